"""The fusion theorems: what they allow never costs a byte, whatever else runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from tflite_memopt.solvers.graph.dependency_graph import MemoryProfile, runs_in_one_go

Chain = list[tuple[int, int]]
"""(working set beyond what is alive before, change of the bytes alive) of operators that run in this order."""

CHAINS = st.lists(st.tuples(st.integers(0, 6), st.integers(-4, 4)), min_size=2, max_size=4).map(
    # No operator leaves more alive than its working set.
    lambda steps: [(max(need, change), change) for need, change in steps]
)


def peak(steps: Sequence[tuple[int, int]]) -> int:
    """Largest working set of steps, relative to the start; nothing before the first step counts."""
    alive, most = 0, -(10**9)
    for need, change in steps:
        most = max(most, alive + need)
        alive += change
    return most


def interleavings(first: Chain, second: Chain) -> Iterator[Chain]:
    """All orders of two chains that have nothing to do with each other."""
    if not first or not second:
        yield first + second
        return
    for rest in interleavings(first[1:], second):
        yield [first[0], *rest]
    for rest in interleavings(first, second[1:]):
        yield [second[0], *rest]


def profile_of(chain: Chain) -> MemoryProfile:
    alive = [sum(change for _, change in chain[:count]) for count in range(len(chain) + 1)]
    last = alive[-2] + chain[-1][0]
    return MemoryProfile(alive[-1], min(alive[1:-1]), chain[0][0], last, peak(chain))


@given(CHAINS, CHAINS)
@example([(3, 3), (4, 1)], [(5, -2), (1, 1)])  # rising
@example([(4, -1), (3, -3)], [(5, 2), (9, -2)])  # falling
@example([(6, 2), (3, -4)], [(9, -3), (2, 4)])  # a hill
def test_a_set_that_may_run_in_one_go_loses_nothing(chain: Chain, other: Chain) -> None:
    if not runs_in_one_go(profile_of(chain)):
        return
    together = (other[:place] + chain + other[place:] for place in range(len(other) + 1))
    assert min(map(peak, together)) == min(map(peak, interleavings(chain, other)))


def test_what_the_theorems_refuse_may_cost_bytes() -> None:
    """The light state in the middle of the first is where the second must run."""
    valley, other = [(4, -4), (4, 4)], [(5, 0), (5, 0)]
    assert not runs_in_one_go(profile_of(valley))
    together = (other[:place] + valley + other[place:] for place in range(3))
    assert min(map(peak, together)) > min(map(peak, interleavings(valley, other)))


def test_each_theorem_by_itself() -> None:
    rising = MemoryProfile(end=5, lightest=2, first_need=3, last_need=8, peak=8)
    falling = MemoryProfile(end=-5, lightest=-2, first_need=8, last_need=3, peak=8)
    hill = MemoryProfile(end=1, lightest=2, first_need=3, last_need=3, peak=8)
    assert [(p.is_rising, p.is_falling, p.is_hill) for p in (rising, falling, hill)] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert not runs_in_one_go(rising._replace(peak=9))
    assert not runs_in_one_go(falling._replace(peak=9))
    assert not runs_in_one_go(hill._replace(lightest=0))
