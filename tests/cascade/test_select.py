"""Selections against all subsets of the options."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.cascade.dominance import Floors, undominated
from tflite_memopt.cascade.select import least_heads, selections
from tflite_memopt.cascade.selection import (
    TAIL_OF_CONSTANT,
    TEMPORARIES_OF_CONSTANT,
    BaseNeed,
    Option,
    Selection,
    SelectionLimits,
    least_need,
    selection_of,
)

STEPS = 6
FAR = 1 << 40
sizes = st.integers(0, 99)
prices = st.integers(1, 60)
bases = st.builds(BaseNeed, st.integers(0, 50), st.integers(0, 200), st.integers(0, 9), st.booleans())


@st.composite
def options(draw: st.DrawFn) -> Option:
    first = draw(st.integers(0, STEPS - 1))
    end = draw(st.integers(first + 1, STEPS))
    return Option(
        first,
        end,
        draw(sizes),
        draw(prices),
        draw(prices),
        draw(prices),
        draw(prices),
        draw(st.integers(0, 15)),
        draw(prices),
    )


def every_selection(needs: Sequence[int], given_options: Sequence[Option], limits: SelectionLimits) -> list[Selection]:
    """All sets of options that do not overlap and keep the limits: slow and obvious."""
    found = []
    for count in range(1, len(given_options) + 1):
        for numbers in combinations(range(len(given_options)), count):
            ordered = sorted(numbers, key=lambda n: given_options[n].first)
            chosen = [given_options[n] for n in ordered]
            if any(a.end > b.first for a, b in pairwise(chosen)):
                continue
            covered = {step for option in chosen for step in range(option.first, option.end)}
            heads = [need for step, need in enumerate(needs) if step not in covered]
            sums = [
                sum(getattr(o, name) for o in chosen) for name in ("tail", "temporaries", "macs", "operators", "work")
            ]
            constants = {bit for option in chosen for bit in range(8) if option.constants >> bit & 1}
            together = sum(1 << bit for bit in constants)
            if sums[2] <= limits.macs and sums[3] <= limits.operators and sums[4] <= limits.work:
                bound = max([*heads, *(o.bound for o in chosen)], default=0)
                tail, temporaries, macs, operators, work = sums
                found.append(Selection(tuple(ordered), bound, tail, temporaries, macs, operators, together, work))
    return found


def costs(base: BaseNeed, selection: Selection, counts_run_time: bool) -> tuple[int, ...]:
    return least_need(base, selection), selection.macs, selection.operators * counts_run_time


def front(every: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """The costs that no other ones equal or beat in everything."""
    return {own for own in every if not any(other != own and all(map(int.__le__, other, own)) for other in every)}


@settings(deadline=None, max_examples=300)
@given(
    st.lists(sizes, min_size=STEPS, max_size=STEPS),
    st.lists(options(), max_size=7),
    st.builds(SelectionLimits, st.integers(0, 140), st.integers(0, 140), st.integers(0, 140)),
    bases,
    st.one_of(st.just(FAR), st.integers(0, 400)),
    st.booleans(),
)
def test_no_subset_beats_what_is_selected(
    needs: list[int],
    given_options: list[Option],
    limits: SelectionLimits,
    base: BaseNeed,
    below: int,
    counts_run_time: bool,
) -> None:
    found = selections(needs, given_options, limits, base, below, counts_run_time)
    every = [each for each in every_selection(needs, given_options, limits) if least_need(base, each) < below]
    raised = least_heads(needs, given_options)[0]
    assert all(least_need(base, each) < below for each in found)
    for each in found:
        truth = selection_of(needs, [given_options[number] for number in each.options])
        # What no selection goes below is not told apart.
        assert each.bound == max(truth.bound, raised)
        assert (each.tail, each.macs, each.constants) == (truth.tail, truth.macs, truth.constants)
        assert each.work == truth.work <= limits.work
    # Selecting nothing is always possible, and may be better than any option.
    nothing = selection_of(needs, ())
    least = {costs(base, each, counts_run_time) for each in [*every, nothing]}
    reached = {costs(base, each, counts_run_time) for each in [*found, nothing]}
    assert front(reached) == front(least)
    assert [least_need(base, each) for each in found] == sorted(least_need(base, each) for each in found)


def test_two_options_that_touch_are_both_taken_and_two_that_overlap_are_not() -> None:
    limits, base = SelectionLimits(10, 10), BaseNeed(0, 0, 0)
    first, second = Option(0, 2, 3, 1, 1, 0, 1), Option(2, 4, 3, 1, 1, 0, 1)
    both = selections([9, 9, 9, 9], [first, second], limits, base, 9)
    assert [each.options for each in both] == [(0, 1)]
    assert selections([9, 9, 9, 9], [first, Option(1, 4, 3, 1, 1, 0, 1)], limits, base, 9) == ()


@pytest.mark.parametrize(("limits", "both"), [((7, 9), True), ((6, 9), False), ((7, 8), False)])
def test_the_limits_are_on_the_sum_of_all_options(limits: tuple[int, int], both: bool) -> None:
    first, second = Option(0, 1, 3, 1, 1, 3, 4), Option(1, 2, 3, 1, 1, 4, 5)
    found = selections([9, 9], [first, second], SelectionLimits(*limits), BaseNeed(0, 0, 0), FAR)
    assert ((0, 1) in {each.options for each in found}) == both


def test_a_constant_of_two_options_is_counted_once() -> None:
    base = BaseNeed(0, 0, 0)
    apart = [Option(0, 1, 1, 0, 0, 0, 1, 0b0011), Option(1, 2, 1, 0, 0, 0, 1, 0b1100)]
    same = [Option(0, 1, 1, 0, 0, 0, 1, 0b0011), Option(1, 2, 1, 0, 0, 0, 1, 0b0011)]
    tails = []
    for given_options in (apart, same):
        found = selections([99, 99], given_options, SelectionLimits(9, 9), base, FAR)
        tails += [each.whole_tail for each in found if each.options == (0, 1)]
    assert tails == [4 * 12, 2 * 12]


def test_the_planner_s_tables_can_need_more_than_the_head() -> None:
    base = BaseNeed(tail=100, temporaries=50, interface=8)
    assert base.least(10, 0, 0) == 100 + 42
    assert base.least(10, 5, 20) == 105 + 62
    assert base.least(80, 5, 20) == 185
    assert BaseNeed(100, 50, 8, counts_tail=False).least(80, 5, 20) == 80


def test_no_steps() -> None:
    assert selections([], [], SelectionLimits(0, 0), BaseNeed(0, 0, 0), FAR) == ()


labels = st.builds(
    lambda bound, tail, temporaries, work, constants: Selection((), bound, tail, temporaries, 0, 0, constants, work),
    st.integers(0, 3),
    st.integers(0, 40),
    st.integers(0, 80),
    st.integers(0, 3),
    st.integers(0, 7),
)


def beats(one: Selection, other: Selection, floors: Floors) -> bool:
    """Whether one takes no more, even if the other one has all of its constants in common with what is added."""
    alone = (one.constants & ~other.constants).bit_count()
    temporaries = one.temporaries + TEMPORARIES_OF_CONSTANT * alone
    return (
        one.bound <= other.bound
        and one.tail + TAIL_OF_CONSTANT * alone <= other.tail
        and (one.whole_temporaries <= floors.temporaries or temporaries <= other.temporaries)
        and max(one.work, floors.work) <= max(other.work, floors.work)
    )


@given(st.lists(labels, max_size=30), st.builds(Floors, st.integers(0, 80), work=st.integers(0, 3)))
def test_what_stays_is_what_nothing_else_beats(given_labels: list[Selection], floors: Floors) -> None:
    kept = undominated(given_labels, floors)
    assert all(any(beats(one, label, floors) for one in kept) for label in given_labels)
    assert all(each in given_labels for each in kept)
    for one in kept:
        rivals = [other for other in kept if other is not one and beats(other, one, floors)]
        assert all(beats(one, other, floors) for other in rivals), "only one that is as good may stay beside it"
