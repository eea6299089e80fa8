"""The exact planner against brute force, on perfect packings, within limits and capacities."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.problems import guillotine, in_a_row, random_problem, small_problems, smallest_arena
from tests.profiles import examples
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.plan import disjunctive
from tflite_memopt.solvers.plan.bounds import max_breadth
from tflite_memopt.solvers.plan.check import check_plan
from tflite_memopt.solvers.plan.disjunctive import FOUND
from tflite_memopt.solvers.plan.exact import PairSearch, exact, fit, group_of, improve, time_groups
from tflite_memopt.solvers.plan.methods import solve, solve_within
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation, arena_bytes

LIMIT = SearchLimit(time_limit=600.0)
THOROUGH = SearchLimit(time_limit=600.0, effort=100.0)
"""Small problems are always solved to the end."""
KINDS = {"mixed": ((1, 2, 4), 1), "bytes": ((1,), 1), "aligned": ((1,), 16), "coarse": ((4,), 2)}
"""Alignments, and what sizes, distances and alignments are multiples of."""


def _assert_optimal(problem: PlanProblem, optimum: int, limit: SearchLimit = THOROUGH) -> None:
    found = improve(problem, None, limit)
    check_plan(problem, found.offsets)
    assert arena_bytes(problem, found.offsets) == found.lower_bound == optimum


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equals_brute_force_and_proves_it_on_a_thousand_problems(kind: str) -> None:
    alignments, scale = KINDS[kind]
    rng = random.Random(15)
    for _ in range(1000):
        problem = random_problem(rng, alignments, 1 if kind == "aligned" else scale)
        optimum = smallest_arena(problem)
        assert max_breadth(problem) <= optimum
        if kind == "aligned":  # in bytes that all sizes are multiples of, as tensors are
            problem = _scaled(problem, scale)
        _assert_optimal(problem, optimum * (scale if kind == "aligned" else 1))


@pytest.mark.parametrize(("seed", "count"), [(480, 8), (1233, 9)])
def test_nodes_that_share_a_bit_of_a_cause_hide_no_plan(seed: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In causes the deep nodes share one bit; small problems reach it only when it is moved up.

    On these two, found among 1,568, plans are lost when that bit is taken away as if it were the node's own.
    """
    problem = in_a_row(random.Random(seed), count)
    least = improve(problem, None, THOROUGH).lower_bound
    monkeypatch.setattr(disjunctive, "_DEEPEST", 0)
    search = PairSearch(group_of(problem, range(count)), compiles=False)
    assert search.run(least, "weight", 1000, Allowance(10**8, LIMIT)).end == FOUND


def _scaled(problem: PlanProblem, scale: int) -> PlanProblem:
    items = tuple(
        Item(i.size * scale, i.start, i.end, i.alignment * scale, None if i.offset is None else i.offset * scale)
        for i in problem.items
    )
    relations = tuple(Relation(r.first, r.second, r.distance * scale, r.exact) for r in problem.relations)
    return PlanProblem(items, relations)


@given(problem=small_problems(), less=st.integers(-2, 4))
@examples(300)
def test_a_capacity_is_met_where_it_can_be(problem: PlanProblem, less: int) -> None:
    optimum = smallest_arena(problem)
    capacity = max(0, optimum - less)
    for found in (solve_within(problem, capacity, LIMIT), fit(problem, capacity, THOROUGH)):
        assert (found is not None) == (capacity >= optimum)
        if found is not None:
            check_plan(problem, found)
            assert arena_bytes(problem, found) <= capacity


@given(problem=small_problems(), less=st.integers(-3, 3))
@examples(200)
def test_a_plan_below_what_is_known_is_found_wherever_there_is_one(problem: PlanProblem, less: int) -> None:
    optimum = smallest_arena(problem)
    below = max(1, optimum - less)
    for found in (
        solve(problem, limit=replace(THOROUGH, below=below)),
        improve(problem, None, replace(THOROUGH, below=below)),
    ):
        check_plan(problem, found.offsets)
        arena = arena_bytes(problem, found.offsets)
        assert arena == optimum if optimum < below else arena >= optimum
        assert min(optimum, below) <= found.lower_bound <= optimum


@pytest.mark.parametrize("seed", range(8))
def test_perfect_packings_are_found_and_repeat(seed: int) -> None:
    problem = guillotine(seed, cuts=50)
    answer = exact(problem, LIMIT)
    check_plan(problem, answer.offsets)
    assert arena_bytes(problem, answer.offsets) == answer.lower_bound == 4096
    assert exact(problem, LIMIT) == answer


def test_an_optimum_above_the_breadth_is_proved_by_search() -> None:
    """Two items at multiples of 16 leave 7 bytes between them, too few for the 8 of the third."""
    problem = PlanProblem((Item(9, 0, 1, 16), Item(9, 0, 1, 16), Item(8, 0, 1, 1)))
    assert max_breadth(problem) == 26
    plan = solve(problem, "exact", LIMIT)
    assert (plan.arena_bytes, plan.lower_bound, plan.bound_by, plan.gap_bytes) == (33, 33, "search", 0)


def test_an_output_below_its_inputs_rests_on_them() -> None:
    """The concatenation can only lie around its second input, which rests on an item that is gone by then."""
    items = (Item(32, 0, 2, offset=0), Item(32, 1, 4), Item(16, 3, 4, offset=0), Item(64, 3, 5))
    problem = PlanProblem(items, (Relation(1, 3, 16, True),))
    plan = solve(problem, "exact", LIMIT)
    assert plan.optimal
    assert (plan.offsets[1], plan.offsets[3]) == (32, 16)


def test_groups_part_where_nothing_is_alive_across() -> None:
    assert time_groups([Item(1, 4, 6), Item(1, 0, 2), Item(1, 1, 4), Item(1, 5, 9), Item(0, 0, 9)]) == [[1, 2], [0, 3]]


def test_no_work_still_gives_a_plan_and_no_false_proof() -> None:
    problem = guillotine(seed=3, cuts=200)
    answer = improve(problem, None, replace(LIMIT, effort=0.0))
    check_plan(problem, answer.offsets)
    assert answer.lower_bound == 4096 < arena_bytes(problem, answer.offsets)
    assert not answer.stopped_by_clock
    assert fit(problem, 4096, replace(LIMIT, effort=0.0)) is None


def test_the_emergency_stop_is_admitted() -> None:
    problem = guillotine(seed=3, cuts=200)
    answer = improve(problem, None, SearchLimit(time_limit=0.0))
    check_plan(problem, answer.offsets)
    assert answer.stopped_by_clock
    plan = solve(problem, limit=SearchLimit(time_limit=0.0))
    assert plan.stopped_by_clock
    assert not solve(problem, limit=LIMIT).stopped_by_clock


def test_relations_and_odd_items_claim_no_more_than_holds() -> None:
    items = (Item(64, 0, 2), Item(64, 1, 3), Item(0, 0, 3), Item(32, 1, 4, 16, 128))
    problem = PlanProblem(items, (Relation(0, 1, 16),))
    _assert_optimal(problem, 160, LIMIT)


def test_nothing_to_place() -> None:
    answer = exact(PlanProblem(()), LIMIT)
    assert answer.offsets == ()
    assert answer.lower_bound == 0
