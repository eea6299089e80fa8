"""Planning in passes: rules kept, earlier passes do not depend on later ones, and never below planning at once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scripts.papers.incremental import extend_plan, plan_incrementally
from tests.faults import raises
from tests.plan.test_relations import related_problems
from tests.profiles import examples
from tflite_memopt.errors import UsageError
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.check import check_plan
from tflite_memopt.solvers.plan.methods import solve
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation

LIMIT = SearchLimit(time_limit=2.0, seed=0)


@given(problem=related_problems(pinned=False), data=st.data())
@examples(50)
def test_passes_keep_the_rules_and_do_not_see_later_sizes(problem: PlanProblem, data: st.DataObject) -> None:
    count = len(problem.items)
    passes = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    plan = plan_incrementally(problem, passes, "greedy_by_size", LIMIT)
    check_plan(problem, plan.offsets)
    last = max(passes)
    larger = tuple(
        replace(item, size=2 * item.size) if number == last else item
        for item, number in zip(problem.items, passes, strict=True)
    )
    again = plan_incrementally(replace(problem, items=larger), passes, "greedy_by_size", LIMIT)
    early = [index for index, number in enumerate(passes) if number < last]
    assert [plan.offsets[i] for i in early] == [again.offsets[i] for i in early]


def test_one_pass_is_planning_at_once() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(32, 1, 3), Item(48, 2, 4)))
    assert plan_incrementally(problem, (0, 0, 0), limit=LIMIT).offsets == solve(problem, limit=LIMIT).offsets


def test_what_is_known_late_pays_for_it() -> None:
    """Known at once, the long-lived item goes to the bottom; known late, the large one must go above it."""
    problem = PlanProblem((Item(64, 0, 1), Item(16, 0, 2), Item(80, 1, 2)))
    assert solve(problem, limit=LIMIT).arena_bytes == 96
    late = plan_incrementally(problem, (0, 0, 1), limit=LIMIT)
    assert (late.offsets, late.arena_bytes, late.lower_bound) == ((0, 64, 80), 160, 96)


def test_relations_across_passes_are_used() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(64, 1, 3)), (Relation(1, 0, 0, exact=True),))
    assert plan_incrementally(problem, (0, 1), limit=LIMIT).offsets == (0, 0)


def test_extending_keeps_what_is_placed() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(32, 1, 3)))
    assert extend_plan(problem, {0: 32}, limit=LIMIT).offsets == (32, 0)


def test_passes_must_match_items() -> None:
    with raises(UsageError, None, "1", "0"):
        plan_incrementally(PlanProblem(()), (0,))
