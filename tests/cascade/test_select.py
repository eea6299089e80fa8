"""Sets of options against all subsets of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.search.cascade.select import (
    BEAM,
    Base,
    Figures,
    Limits,
    Option,
    OptionSet,
    Problem,
    choices,
    least_heads,
    near_beam,
)

STEPS = 6
FAR = 1 << 40
sizes, prices, signed = st.integers(0, 99), st.integers(1, 60), st.integers(-20, 60)
limits = st.builds(Limits, st.integers(0, 140), st.integers(0, 140), st.integers(0, 140))
of_constant = st.tuples(st.integers(0, 5), st.integers(0, 9))
bases = st.builds(Base, st.integers(0, 50), st.integers(0, 200), st.integers(0, 9), of_constant, st.booleans())
figures = st.builds(Figures, sizes, sizes, sizes, prices, prices, signed, st.integers(0, 4))


@st.composite
def options(draw: st.DrawFn) -> Option:
    first = draw(st.integers(0, STEPS - 1))
    return Option(first, draw(st.integers(first + 1, STEPS)), draw(figures))


problems = st.builds(
    Problem,
    st.lists(sizes, min_size=STEPS, max_size=STEPS),
    st.lists(options(), max_size=7),
    limits,
    bases,
    st.one_of(st.just(FAR), st.integers(0, 400)),
    st.booleans(),
    st.integers(0, 3),
)


def together(needs: Sequence[int], chosen: Sequence[Option], making: int) -> Figures:
    """What options come to that do not overlap. ``making``: work of each operator that they add, beside their own."""
    covered = {step for option in chosen for step in range(option.first, option.end)}
    every = [option.figures for option in chosen]
    names = ("tail", "temporaries", "macs", "operators", "work")
    tail, temporaries, macs, operators, work = (sum(getattr(each, name) for each in every) for name in names)
    work += sum(making * max(0, each.operators) for each in every)
    head = max([need for step, need in enumerate(needs) if step not in covered] + [each.head for each in every])
    constants = max(each.constants for each in every)
    return Figures(head, tail, temporaries, macs, operators, work, constants)


def every_choice(problem: Problem) -> Iterator[OptionSet]:
    """All sets of options that do not overlap, keep the limits and lie below the cutoff: slow and obvious."""
    for count in range(1, len(problem.options) + 1):
        for numbers in combinations(range(len(problem.options)), count):
            ordered = tuple(sorted(numbers, key=lambda number: problem.options[number].first))
            chosen = [problem.options[number] for number in ordered]
            if any(one.end > other.first for one, other in pairwise(chosen)):
                continue
            # Limits are kept by each part of a set, from its first option on.
            sums = [together(problem.needs, chosen[: at + 1], problem.making) for at in range(len(chosen))]
            least = problem.base.least(sums[-1])
            if all(map(problem.limits.allow, sums)) and least < problem.below:
                yield OptionSet(ordered, least, sums[-1])


def assert_is_valid(problem: Problem, choice: OptionSet) -> None:
    """It is a set, within the limits and below the cutoff, that comes to what is said."""
    chosen = [problem.options[number] for number in choice.options]
    truth = together(problem.needs, chosen, problem.making)
    assert all(one.end <= other.first for one, other in pairwise(chosen))
    # What no set goes below is not told apart.
    raised = max(truth.head, least_heads(problem.needs, problem.options)[0])
    assert choice.figures == truth._replace(head=raised)
    assert choice.least == problem.base.least(choice.figures) < problem.below
    assert problem.limits.allow(choice.figures)


@examples(400)
@given(problems)
def test_no_set_beats_what_is_chosen(problem: Problem) -> None:
    found, every = choices(problem), list(every_choice(problem))
    for choice in found:
        assert_is_valid(problem, choice)
    assert [each.least for each in found] == sorted(each.least for each in found)
    # No tiling at all may be better than any set.
    bare = Figures(max(problem.needs), 0, 0, 0, 0, 0)
    nothing = OptionSet((), problem.base.least(bare), bare)
    found.append(nothing)
    assert min(each.least for each in found) == min([nothing.least, *(each.least for each in every)])
    for one in every:
        # Where run time counts, nothing is left out that needs more and takes less of it.
        assert any(
            other.least <= one.least
            and (not problem.by_work or other.figures.operators <= one.figures.operators)
            and (not problem.by_work or other.figures.work <= one.figures.work)
            for other in found
        )


@examples(100)
@given(problems, st.integers(1, 3))
def test_with_a_small_beam_what_is_chosen_is_valid(problem: Problem, beam: int) -> None:
    for choice in choices(problem, beam):
        assert_is_valid(problem, choice)


def option(first: int, end: int, **values: int) -> Option:
    given_ = {"head": 3, "tail": 1, "temporaries": 1, "macs": 0, "operators": 1, "work": 0, "constants": 0} | values
    return Option(first, end, Figures(**given_))


NOTHING = Base(0, 0, 0, (0, 0))
WIDE = Limits(10, 10, 10)


def test_two_options_that_touch_are_both_taken_and_two_that_overlap_are_not() -> None:
    first, second = option(0, 2), option(2, 4)
    both = choices(Problem([9, 9, 9, 9], [first, second], WIDE, NOTHING, 9))
    assert [each.options for each in both] == [(0, 1)]
    assert choices(Problem([9, 9, 9, 9], [first, option(1, 4)], WIDE, NOTHING, 9)) == []


@pytest.mark.parametrize(("macs", "operators", "both"), [(7, 9, True), (6, 9, False), (7, 8, False)])
def test_the_limits_are_on_the_sum_of_all_options(macs: int, operators: int, both: bool) -> None:
    every = [option(0, 1, macs=3, operators=4), option(1, 2, macs=4, operators=5)]
    found = choices(Problem([9, 9], every, Limits(macs, operators, 10), NOTHING, FAR))
    assert ((0, 1) in {each.options for each in found}) == both


def test_where_one_interval_alone_leads_on_no_more_sets_stay_than_a_beam_holds() -> None:
    """Of 12 options for each of 8 steps, which is not possible as it is, there are 430 million sets."""
    ways = [(head, 12 - head) for head in range(1, 13)]  # none is better than another one
    every = [option(step, step + 1, head=head, tail=tail, operators=0) for step in range(8) for head, tail in ways]
    found = choices(Problem([99] * 8, every, WIDE, NOTHING, 80))
    assert 0 < len(found) <= BEAM
    assert {len(each.options) for each in found} == {8}


def test_constants_of_two_options_are_counted_once() -> None:
    every, base = [option(0, 1, tail=0, constants=2), option(1, 2, tail=0, constants=3)], Base(0, 0, 0, (12, 24))
    (both,) = (each for each in choices(Problem([99, 99], every, WIDE, base, FAR)) if len(each.options) == 2)
    assert both.figures.constants == 3
    assert both.least == 3 * 12 + max(3, 2 + 3 * 24)


def test_the_planner_s_tables_can_need_more_than_the_head() -> None:
    base = Base(tail=100, temporaries=50, interface=8, constant=(0, 0))
    nothing = Figures(10, 0, 0, 0, 0, 0)
    assert base.least(nothing) == 100 + 42
    assert base.least(nothing._replace(tail=5, temporaries=20)) == 105 + 62
    assert base.least(nothing._replace(head=80, tail=5, temporaries=20)) == 185
    assert replace(base, counts_tail=False).least(nothing._replace(head=80, tail=5, temporaries=20)) == 80


def test_no_steps() -> None:
    assert choices(Problem([], [], Limits(0, 0, 0), NOTHING, FAR)) == []


@given(st.lists(sizes, max_size=STEPS), st.lists(options(), max_size=5))
def test_the_least_head_of_the_steps_that_are_left(needs: list[int], every: list[Option]) -> None:
    within = [each for each in every if each.end <= len(needs)]
    found = least_heads(needs, within)
    assert found[-1] == 0
    for step in range(len(needs)):
        heads = [each.figures.head for each in within if each.first <= step < each.end]
        assert found[step] == max(found[step + 1], min([needs[step], *heads]))


@examples(300)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 9)), min_size=1), st.integers(1, 9))
def test_what_is_left_out_early_is_in_no_beam(sets: list[tuple[int, int, int]], most: int) -> None:
    """The beam takes the best of each kind in turn, by two figures, of which the first one alone is looked at early."""
    rank = {
        place: sum(sets[other] < sets[place] for other in range(len(sets)) if sets[other][0] == sets[place][0])
        for place in range(len(sets))
    }
    beam = sorted(rank, key=lambda place: (rank[place], *sets[place][1:]))[:most]
    kinds, least, _ = np.asarray(sets).T
    near = near_beam(kinds, least, most).tolist()
    assert set(beam) <= set(near)
    assert len(sets) > most or near == list(range(len(sets)))
