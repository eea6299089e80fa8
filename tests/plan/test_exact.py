"""The exact planner against brute force, on perfect packings, under a time limit, and its bounds."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.plan.bounds import max_breadth
from tflite_memopt.plan.check import check_plan
from tflite_memopt.plan.exact.group import build, groups
from tflite_memopt.plan.exact.strategy import exact
from tflite_memopt.plan.problem import Item, PlanProblem, Relation

LIMIT = SearchLimit(time_limit=10.0, seed=0)


def _top(problem: PlanProblem, offsets: tuple[int, ...]) -> int:
    return max((o + item.size for o, item in zip(offsets, problem.items, strict=True)), default=0)


@st.composite
def small_problems(draw: st.DrawFn) -> PlanProblem:
    """Up to five free items of any size and alignment, and up to two fixed ones that keep out of each other."""
    scale = draw(st.sampled_from((1, 4, 16)))
    items: list[Item] = []
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, 5))
        alignment = draw(st.sampled_from((1, 4, 16)))
        items.append(Item(draw(st.integers(1, 12)) * scale, start, start + draw(st.integers(1, 4)), alignment))
    for place in draw(st.lists(st.integers(0, 2), max_size=2, unique=True)):
        items.insert(0, Item(draw(st.integers(1, 16)), draw(st.integers(0, 3)), 6, 16, place * 16))
    return PlanProblem(tuple(items))


def _brute_force(problem: PlanProblem) -> int:
    """Smallest arena over all orders of placing the free items, each as low as it goes: one of them is optimal."""
    items, tops = problem.items, []
    for order in permutations(i for i, item in enumerate(items) if item.offset is None):
        offsets = {i: item.offset for i, item in enumerate(items) if item.offset is not None}
        for index in order:
            offsets[index] = _lowest(items, offsets, index)
        tops.append(max(offsets[i] + items[i].size for i in offsets))
    return min(tops)


def _lowest(items: tuple[Item, ...], offsets: dict[int, int], index: int) -> int:
    item = items[index]
    taken = [(offsets[o], offsets[o] + items[o].size) for o in offsets if items[o].meets(item)]
    ends = sorted({0, *(-(-end // item.alignment) * item.alignment for _, end in taken)})
    return next(e for e in ends if all(e + item.size <= begin or end <= e for begin, end in taken))


@given(problem=small_problems())
@settings(max_examples=400, deadline=None)
def test_equals_brute_force_and_proves_it(problem: PlanProblem) -> None:
    answer = exact(problem, LIMIT)
    check_plan(problem, answer.offsets)
    assert _top(problem, answer.offsets) == answer.lower_bound == _brute_force(problem)


def _guillotine(seed: int, cuts: int, steps: int = 64, height: int = 4096) -> PlanProblem:
    """A rectangle of time and bytes cut into pieces: no byte is free at any time, so the optimum is ``height``."""
    rng = random.Random(seed)
    pieces = [(0, steps, 0, height)]
    while len(pieces) < cuts:
        start, end, low, high = pieces.pop(rng.randrange(len(pieces)))
        if end - start > 2 and (rng.random() < 0.5 or high - low < 64):
            middle = rng.randrange(start + 1, end)
            pieces += [(start, middle, low, high), (middle, end, low, high)]
        elif high - low >= 64:
            middle = rng.randrange(low + 16, high - 15, 16)
            pieces += [(start, end, low, middle), (start, end, middle, high)]
        else:
            pieces.append((start, end, low, high))
    rng.shuffle(pieces)
    return PlanProblem(tuple(Item(high - low, start, end, 16) for start, end, low, high in pieces))


@pytest.mark.parametrize("seed", range(8))
def test_perfect_packings_are_found_and_repeat(seed: int) -> None:
    problem = _guillotine(seed, cuts=50)
    answer = exact(problem, LIMIT)
    check_plan(problem, answer.offsets)
    assert _top(problem, answer.offsets) == answer.lower_bound == 4096
    assert exact(problem, LIMIT) == answer


def test_an_optimum_above_the_breadth_is_proved() -> None:
    """Two items at multiples of 16 leave 7 bytes between them, too few for the 8 of the third."""
    problem = PlanProblem((Item(9, 0, 1, 16), Item(9, 0, 1, 16), Item(8, 0, 1, 1)))
    assert max_breadth(problem) == 26
    answer = exact(problem, LIMIT)
    assert answer.lower_bound == _top(problem, answer.offsets) == _brute_force(problem) == 33


def test_padding_that_everything_shares_counts_in_the_bound() -> None:
    """Three items of 10 bytes at multiples of 16 need 16 + 16 + 10."""
    model = build([Item(10, 0, 1)] * 3)
    assert model.lower_bound * model.unit == 42
    assert exact(PlanProblem((Item(10, 0, 1),) * 3), LIMIT).lower_bound == 42


def test_groups_part_where_nothing_is_alive_across() -> None:
    assert groups([Item(1, 4, 6), Item(1, 0, 2), Item(1, 1, 4), Item(1, 5, 9)]) == [[1, 2], [0, 3]]


def test_no_time_still_gives_a_plan_and_no_false_proof() -> None:
    problem = _guillotine(seed=3, cuts=200)
    answer = exact(problem, SearchLimit(time_limit=0.0))
    check_plan(problem, answer.offsets)
    assert answer.lower_bound <= 4096


def test_relations_and_odd_items_claim_no_more_than_holds() -> None:
    """Relations, items without size and without lifetime are all allowed; what is claimed holds for each."""
    items = (Item(64, 0, 2), Item(64, 1, 3), Item(0, 0, 3), Item(32, 2, 2), Item(32, 1, 4, 16, 128))
    problem = PlanProblem(items, (Relation(0, 1, 16),))
    answer = exact(problem, LIMIT)
    check_plan(problem, answer.offsets)
    assert answer.lower_bound == max_breadth(problem)


def test_nothing_to_place() -> None:
    answer = exact(PlanProblem(()), LIMIT)
    assert answer.offsets == ()
    assert answer.lower_bound == 0
