"""Covers against all subsets of the options."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.cascade.select import Cover, Limits, Option, covers

STEPS = 6
sizes = st.integers(0, 9)
prices = st.integers(1, 6)


@st.composite
def options(draw: st.DrawFn) -> Option:
    first = draw(st.integers(0, STEPS - 1))
    end = draw(st.integers(first + 1, STEPS))
    return Option(first, end, draw(sizes), draw(prices), draw(prices), draw(prices), draw(prices))


def every_cover(needs: Sequence[int], given_options: Sequence[Option], limits: Limits) -> list[Cover]:
    """All sets of options that do not overlap and keep the limits: slow and obvious."""
    found = []
    for count in range(len(given_options) + 1):
        for numbers in combinations(range(len(given_options)), count):
            chosen = sorted((given_options[n] for n in numbers), key=lambda option: option.first)
            if any(a.end > b.first for a, b in pairwise(chosen)):
                continue
            covered = {step for option in chosen for step in range(option.first, option.end)}
            peaks = [need for step, need in enumerate(needs) if step not in covered]
            sums = [sum(getattr(o, name) for o in chosen) for name in ("tail", "temporaries", "macs", "operators")]
            ordered = tuple(sorted(numbers, key=lambda n: given_options[n].first))
            if sums[2] <= limits.macs and sums[3] <= limits.operators:
                found.append(Cover(ordered, max([*peaks, *(o.peak for o in chosen)], default=0), *sums))
    return found


def costs(cover: Cover) -> tuple[int, int, int, int]:
    return cover.peak, cover.tail, cover.macs, cover.operators


def front(found: Sequence[Cover]) -> set[tuple[int, int, int, int]]:
    """The costs that no other ones equal or beat in everything."""
    every = {costs(cover) for cover in found}
    return {own for own in every if not any(other != own and all(map(int.__le__, other, own)) for other in every)}


@settings(deadline=None, max_examples=300)
@given(
    st.lists(sizes, min_size=STEPS, max_size=STEPS),
    st.lists(options(), max_size=8),
    st.builds(Limits, st.integers(0, 14), st.integers(0, 14)),
)
def test_covers_are_the_best_of_all_subsets(needs: list[int], given_options: list[Option], limits: Limits) -> None:
    found = covers(needs, given_options, limits)
    every = every_cover(needs, given_options, limits)
    assert {costs(cover) for cover in found} == front(every)
    assert all(cover in every for cover in found)
    assert len({costs(cover) for cover in found}) == len(found)
    assert any(cover.options == () for cover in found)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(sizes, min_size=STEPS, max_size=STEPS),
    st.lists(options(), max_size=8),
    st.builds(Limits, st.integers(0, 14), st.integers(0, 14)),
    st.integers(2, 5),
)
def test_few_levels_give_true_covers_and_none_for_nothing(
    needs: list[int], given_options: list[Option], limits: Limits, levels: int
) -> None:
    every = every_cover(needs, given_options, limits)
    found = covers(needs, given_options, limits, levels)
    assert all(cover in every for cover in found)
    assert any(cover.options == () for cover in found)


def test_two_options_that_touch_are_both_taken_and_two_that_overlap_are_not() -> None:
    limits = Limits(10, 10)
    first, second = Option(0, 2, 3, 1, 1, 0, 1), Option(2, 4, 3, 1, 1, 0, 1)
    both = covers([9, 9, 9, 9], [first, second], limits)
    assert Cover((0, 1), 3, 2, 2, 0, 2) in both
    overlapping = covers([9, 9, 9, 9], [first, Option(1, 4, 3, 1, 1, 0, 1)], limits)
    assert {cover.options for cover in overlapping} == {()}


@pytest.mark.parametrize(("limits", "both"), [((7, 9), True), ((6, 9), False), ((7, 8), False)])
def test_the_limits_are_on_the_sum_of_all_options(limits: tuple[int, int], both: bool) -> None:
    first, second = Option(0, 1, 3, 1, 1, 3, 4), Option(1, 2, 3, 1, 1, 4, 5)
    found = {cover.options for cover in covers([9, 9], [first, second], Limits(*limits))}
    assert ((0, 1) in found) == both


def test_no_steps() -> None:
    assert covers([], [], Limits(0, 0)) == (Cover((), 0, 0, 0, 0, 0),)
