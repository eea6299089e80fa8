"""The frontier of the best-first search gives back what a list sorted anew each time would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.solvers.schedule.bottleneck import Frontier, State

TURNS = st.lists(st.tuples(st.sampled_from(("push", "push", "push", "pop", "raise", "first")), st.integers(0, 9)))


@given(TURNS)
@examples(200)
def test_it_gives_states_in_the_order_of_a_sorted_list(turns: list[tuple[str, int]]) -> None:
    frontier, slow = Frontier(0), list[tuple[int, State]]()
    for place, (turn, number) in enumerate(turns):
        if turn == "push":
            entry = (max(number, frontier.floor), (-(number % 3), place, 0, 0, 0))
            frontier.push(*entry)
            slow = sorted([*slow, entry])
        elif turn == "raise":
            frontier.raise_floor(number)
            slow = sorted((max(need, number), state) for need, state in slow)
        elif turn == "first":
            assert list(frontier.first(number)) == slow[:number]
        elif slow:
            assert frontier.pop() == slow.pop(0)
        assert bool(frontier) == bool(slow)
