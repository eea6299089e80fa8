"""Permissions: what they forbid, what the strategies gain from them, the bound with them, given offsets."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.bounds import max_breadth, section_bound
from tflite_memopt.solvers.plan.check import check_bound, check_plan
from tflite_memopt.solvers.plan.heuristics import Placement, rigid_groups, singles
from tflite_memopt.solvers.plan.methods import STRATEGIES, solve
from tflite_memopt.solvers.plan.problem import BoundCertificate, Item, PlanProblem, Relation, arena_bytes, may_differ_by

LIMIT = SearchLimit(time_limit=2.0, seed=0)
USING = [name for name in STRATEGIES if name not in ("naive", "tflm_greedy")]


@st.composite
def related_problems(draw: st.DrawFn, most: int = 16, unit: int = 4, pinned: bool = True) -> PlanProblem:
    """Many relations an item, of both kinds and signs, between items that mostly meet; some offsets given."""
    count = draw(st.integers(1, most))
    chosen = []
    for _ in range(count):
        start = draw(st.integers(0, 4))
        alignment = draw(st.sampled_from((1, unit)))
        chosen.append(Item(draw(st.integers(1, 12)) * unit // 2, start, start + draw(st.integers(1, 4)), alignment))
    positions = st.integers(0, count - 1)
    triples = st.tuples(positions, positions, st.integers(-8, 8), st.booleans())
    drawn = draw(st.lists(triples, max_size=3 * count))
    relations = tuple(Relation(a, b, distance * unit // 2, exact) for a, b, distance, exact in drawn if a != b)
    for place in draw(st.lists(st.integers(0, 20), max_size=2 if pinned else 0)):
        at = draw(positions)
        moved = [*chosen[:at], replace(chosen[at], offset=place * unit), *chosen[at + 1 :]]
        if _given_are_apart(moved):
            chosen = moved
    return PlanProblem(tuple(chosen), relations)


def _given_are_apart(chosen: list[Item]) -> bool:
    given_items = tuple(item for item in chosen if item.offset is not None)
    try:
        check_plan(PlanProblem(given_items), [item.offset or 0 for item in given_items])
    except InfeasibleError:
        return False
    return True


@pytest.mark.parametrize("name", STRATEGIES)
@given(problem=related_problems())
@examples(80)
def test_every_strategy_keeps_the_rules_with_relations(name: str, problem: PlanProblem) -> None:
    if name == "tflm_greedy":  # it knows no alignment: TFLM's sizes are aligned
        problem = replace(problem, items=tuple(replace(item, alignment=1) for item in problem.items))
    offsets = STRATEGIES[name](problem, LIMIT).offsets
    check_plan(problem, offsets)
    assert arena_bytes(problem, offsets) >= max_breadth(problem)
    assert STRATEGIES[name](problem, LIMIT).offsets == offsets


@pytest.mark.parametrize("name", ["greedy_by_size", "greedy_by_breadth", "strip_packing_best_fit"])
@given(problem=related_problems())
@examples(40)
def test_a_permission_never_makes_a_greedy_strategy_worse(name: str, problem: PlanProblem) -> None:
    with_relations = arena_bytes(problem, STRATEGIES[name](problem, LIMIT).offsets)
    plain = PlanProblem(problem.items)
    assert with_relations <= arena_bytes(plain, STRATEGIES[name](plain, LIMIT).offsets)


@pytest.mark.slow
@given(problem=related_problems(most=4, unit=2, pinned=False))
@examples(60)
def test_the_bound_with_relations_is_below_brute_force(problem: PlanProblem) -> None:
    small = replace(problem, items=tuple(replace(i, size=min(i.size, 6), alignment=1) for i in problem.items))
    optimum = _smallest_arena(small)
    assert max_breadth(small) <= optimum
    assert solve(small, "strip_packing_best_fit", LIMIT).arena_bytes >= optimum


def _smallest_arena(problem: PlanProblem) -> int:
    """Every offset up to a plan that is known, tried out."""
    best = arena_bytes(problem, STRATEGIES["greedy_by_size"](problem, LIMIT).offsets)
    for offsets in product(*(range(best - item.size + 1) for item in problem.items)):
        size = arena_bytes(problem, offsets)
        if size < best and _is_valid(problem, offsets):
            best = size
    return best


def _is_valid(problem: PlanProblem, offsets: tuple[int, ...]) -> bool:
    try:
        check_plan(problem, offsets)
    except InfeasibleError:
        return False
    return True


@given(problem=related_problems(most=2))
@examples(150)
def test_forbidden_differences_are_what_the_checker_refuses(problem: PlanProblem) -> None:
    if len(problem.items) < 2:
        return
    free = replace(problem, items=tuple(replace(item, offset=None, alignment=1) for item in problem.items))
    permissions = free.permissions
    if not permissions:
        return
    for difference in range(-40, 41):
        assert may_differ_by(difference, permissions[0][1]) == _is_valid(free, (100 + difference, 100))
        assert may_differ_by(-difference, permissions[1][0]) == _is_valid(free, (100 + difference, 100))


def test_a_view_splits_what_is_forbidden() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(16, 0, 2), Item(16, 1, 3)), (Relation(1, 0, 16, True),))
    conflicts = problem.conflicts
    assert [other for other, _, _ in conflicts[0]] == [1, 1, 2]


@given(problem=related_problems(), floor=st.integers(0, 30))
@examples(80)
def test_lowest_is_the_first_offset_that_the_checker_accepts(problem: PlanProblem, floor: int) -> None:
    free = replace(problem, items=tuple(replace(item, offset=None) for item in problem.items))
    placement, last = Placement(free), len(free.items) - 1
    for unit in singles(free)[:-1]:
        placement.place(unit, placement.tightest(unit))
    found = placement.lowest(((last, 0),), floor)
    before = [offset for offset in placement.offsets if offset is not None]
    places = range(floor, found + 1)
    assert [place for place in places if _is_valid(free, (*before, place))] == [found]


@given(problem=related_problems())
@examples(80)
def test_groups_hold_every_free_item_once_and_are_valid_by_themselves(problem: PlanProblem) -> None:
    units = rigid_groups(problem, 40)
    free = sorted(index for index, item in enumerate(problem.items) if item.offset is None)
    assert sorted(index for unit in units for index, _ in unit) == free
    for unit in units:
        position = {index: rank for rank, (index, _) in enumerate(unit)}
        relations = tuple(
            replace(r, first=position[r.first], second=position[r.second])
            for r in problem.relations
            if r.first in position and r.second in position
        )
        base = 4 * 1000
        alone = PlanProblem(tuple(problem.items[index] for index, _ in unit), relations)
        check_plan(alone, [base + shift for _, shift in unit])
        if len(unit) > 1:
            lows = [shift for _, shift in unit]
            assert max(s + problem.items[i].size for i, s in unit) - min(lows) <= 40


@pytest.mark.parametrize("name", USING)
def test_an_in_place_chain_takes_its_largest_item(name: str) -> None:
    chain = tuple(Item(16 * size, step, step + 2) for step, size in enumerate((3, 5, 8, 8, 6, 2)))
    relations = tuple(Relation(step + 1, step, 0, exact=True) for step in range(len(chain) - 1))
    plan = solve(PlanProblem(chain, relations), name, LIMIT)
    assert (plan.arena_bytes, plan.optimal) == (128, True)


@pytest.mark.parametrize("name", USING)
def test_the_inputs_of_a_concatenation_are_ranges_of_its_output(name: str) -> None:
    parts = (Item(64, 0, 4), Item(32, 1, 4), Item(96, 2, 4))
    problem = PlanProblem(
        (*parts, Item(192, 3, 5)),
        (Relation(0, 3, 0, True), Relation(1, 3, 64, True), Relation(2, 3, 96, True)),
    )
    plan = solve(problem, name, LIMIT)
    assert (plan.arena_bytes, plan.optimal) == (192, True)


@pytest.mark.parametrize("name", USING)
def test_an_overlap_costs_its_distance(name: str) -> None:
    problem = PlanProblem((Item(160, 0, 2), Item(160, 1, 3)), (Relation(0, 1, 20),))
    plan = solve(problem, name, LIMIT)
    assert plan.arena_bytes == 160 + 32  # 20 bytes, at the next multiple of 16
    assert plan.lower_bound == 192


def test_in_place_into_the_middle_of_a_neighbor() -> None:
    problem = PlanProblem((Item(160, 0, 2, offset=0), Item(32, 1, 3)), (Relation(1, 0, 64, True),))
    assert solve(problem, "greedy_by_size", LIMIT).offsets == (0, 64)


def test_given_offsets_that_collide_are_named() -> None:
    problem = PlanProblem((Item(32, 0, 2, offset=0), Item(16, 0, 2), Item(32, 1, 3, offset=16)))
    with raises(InfeasibleError, ErrorKind.OVERLAP, "items 0 and 2"):
        solve(problem)


@pytest.mark.parametrize("item", [Item(16, 0, 1, offset=8), Item(16, 0, 1, offset=-16), Item(16, 3, 3)])
def test_an_item_that_cannot_be_is_refused(item: Item) -> None:
    with raises(InfeasibleError, ErrorKind.PLACE, "item 0"):
        solve(PlanProblem((item,)))


def test_given_offsets_may_use_a_permission() -> None:
    pair = (Item(32, 0, 2, offset=0), Item(32, 1, 3, offset=0))
    assert solve(PlanProblem(pair, (Relation(0, 1, 0, True),))).arena_bytes == 32


def test_two_thousand_items_stay_near_the_bound() -> None:
    sizes = [16 * (1 + (7919 * step) % 251) for step in range(2_000)]
    items = tuple(Item(size, step, step + 2 + (step * step) % 5) for step, size in enumerate(sizes))
    problem = PlanProblem(items)
    assert arena_bytes(problem, STRATEGIES["greedy_by_size"](problem, LIMIT).offsets) <= 1.05 * max_breadth(problem)


@given(problem=related_problems())
@examples(150)
def test_the_certificate_of_the_bound_is_accepted_and_more_than_all_items_is_not(problem: PlanProblem) -> None:
    certificate = section_bound(problem)
    check_bound(problem, certificate)
    with raises(InfeasibleError, ErrorKind.BOUND):
        check_bound(
            problem,
            replace(
                certificate, nbytes=1 + sum(item.size + item.alignment + (item.offset or 0) for item in problem.items)
            ),
        )


def test_a_certificate_counts_only_what_is_alive_at_its_time() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(64, 1, 3), Item(64, 2, 4)))
    check_bound(problem, BoundCertificate(128, 1, (0, 1)))
    with raises(InfeasibleError, ErrorKind.BOUND, "(0, 2)"):
        check_bound(problem, BoundCertificate(128, 1, (0, 2)))


def test_a_chain_of_halos_counts_but_for_what_neighbors_share() -> None:
    """Four stripes of 10 rows, each with two rows of the one before: 34 rows, not every other stripe's 20."""
    items = tuple(Item(160, 0, 2) for _ in range(4))
    relations = tuple(Relation(k + 1, k, 128, exact=True) for k in range(3))
    problem = PlanProblem(items, relations)
    assert section_bound(problem).nbytes == 544
    assert solve(problem, limit=LIMIT).arena_bytes == 544


def test_an_output_grows_into_the_input_that_is_given_back() -> None:
    """Eight stripes of an input become stripes of an output, each over a window."""
    stripes, row = 8, 64
    slices = [Item(row, 0, 2 * k + 2) for k in range(stripes)]
    windows = [Item(2 * row, 2 * k + 1, 2 * k + 2) for k in range(stripes)]
    parts = [Item(row, 2 * k + 2, 2 * stripes + 2) for k in range(stripes)]
    whole = [Item(stripes * row, 0, 1), Item(stripes * row, 2 * stripes + 1, 2 * stripes + 3)]
    relations = tuple(Relation(k, 3 * stripes, k * row, True) for k in range(stripes))
    relations += tuple(Relation(2 * stripes + k, 3 * stripes + 1, k * row, True) for k in range(stripes))
    problem = PlanProblem((*slices, *windows, *parts, *whole), relations)
    plan = solve(problem, limit=LIMIT)
    check_plan(problem, plan.offsets)
    assert plan.arena_bytes == max_breadth(problem)
