"""Cores: what is alive where bytes are short decides, what is quiet finds room around it, more work is never worse."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plan.problems import small_problems
from tests.profiles import examples
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.bounds import max_breadth
from tflite_memopt.solvers.plan.check import check_plan
from tflite_memopt.solvers.plan.methods import around, cores_of, restricted, solve
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation, arena_bytes


def quiet_then_busy(seed: int, quiet: int = 60, busy: int = 24) -> PlanProblem:
    """A long chain of small items, and in its middle a short time of many large ones, related as in a row of layers."""
    rng = random.Random(seed)
    items = [Item(16 * rng.randint(1, 6), step, step + rng.randint(2, 3)) for step in range(quiet)]
    middle = quiet // 2
    items += [Item(16 * rng.randint(8, 60), middle + k // 3, middle + k // 3 + rng.randint(2, 4)) for k in range(busy)]
    relations = [
        Relation(a, b, 16 * rng.randint(0, 8), rng.random() < 0.3)
        for a in range(quiet, quiet + busy)
        for b in range(a + 1, min(a + 4, quiet + busy))
        if rng.random() < 0.5
    ]
    return PlanProblem(tuple(items), tuple(relations))


def alive_above(items: Sequence[Item], level: int) -> set[int]:
    """The slow version of what a core is: looks at every scope."""
    scopes = range(max(item.end for item in items))
    busy = [s for s in scopes if sum(item.size for item in items if item.start <= s < item.end) > level]
    return {i for i, item in enumerate(items) if item.size and any(item.start <= s < item.end for s in busy)}


@given(problem=small_problems())
@examples(100)
def test_cores_are_what_is_alive_above_a_level_and_grow(problem: PlanProblem) -> None:
    bound = max_breadth(problem)
    given_ones = {i for i, item in enumerate(problem.items) if item.offset is not None}
    levels = [alive_above(problem.items, bound * quarters // 4) | given_ones for quarters in (4, 3, 2)]
    cores = [set(core.indices) for core in cores_of(problem)]
    assert all(core in levels and 2 * len(core) <= len(problem.items) for core in cores)
    assert all(one < other for one, other in pairwise(cores))


def test_a_restricted_problem_keeps_the_relations_inside() -> None:
    problem = PlanProblem(
        (Item(64, 0, 2), Item(32, 1, 3), Item(48, 2, 4)), (Relation(0, 1, 16), Relation(2, 1, 0, exact=True))
    )
    assert restricted(problem, (2, 1)) == PlanProblem((problem.items[2], problem.items[1]), (Relation(0, 1, 0, True),))


@pytest.mark.parametrize("seed", range(3))
def test_the_rest_lies_around_the_core_or_there_is_no_answer(seed: int) -> None:
    problem = quiet_then_busy(seed)
    core = next(cores_of(problem))
    plan = solve(core.problem)
    for capacity in (plan.arena_bytes, 10 * plan.arena_bytes):
        offsets = around(problem, core, plan.offsets, capacity)
        if offsets is not None:
            check_plan(problem, offsets)
            assert arena_bytes(problem, offsets) <= capacity
            assert tuple(offsets[i] for i in core.indices) == plan.offsets
    assert offsets is not None, "above everything there is room"


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
@examples(10)
@example(374)  # within the limit of a judge neither is proved
def test_a_core_s_optimum_is_that_of_all_where_the_rest_fits(seed: int) -> None:
    problem = quiet_then_busy(seed, busy=8)
    core = next(cores_of(problem), None)
    wide = SearchLimit(effort=64.0)
    whole = solve(problem, "exact", wide)
    plan = solve(problem, limit=wide)
    check_plan(problem, plan.offsets)
    assert whole.optimal
    assert plan.optimal
    assert plan.arena_bytes == whole.arena_bytes
    assert core is None or solve(core.problem).lower_bound <= plan.arena_bytes


@pytest.mark.parametrize("seed", range(4))
def test_a_wider_limit_never_ends_worse(seed: int) -> None:
    problem = quiet_then_busy(seed)
    works = (0.0002, 0.001, 0.002, 0.005, 0.02, 0.1)
    plans = [solve(problem, limit=SearchLimit(effort=work)) for work in works]
    arenas, bounds = [plan.arena_bytes for plan in plans], [plan.lower_bound for plan in plans]
    assert arenas == sorted(arenas, reverse=True)
    assert bounds == sorted(bounds)
