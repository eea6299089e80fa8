"""Algorithm 2 of Serenity as printed: its formulas, its answer, and that it can end without one."""

from __future__ import annotations

from hypothesis import given

from scripts.papers.as_printed.serenity import StepLimit, next_budgets, serenity_as_printed
from tests.schedule.problems import problems
from tflite_memopt.published.serenity.dynamic_programming import SearchOutcome
from tflite_memopt.published.serenity.method import SerenityParts
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step

NO, TIMEOUT = SearchOutcome.NO_SOLUTION, SearchOutcome.TIMEOUT


@given(problems())
def test_with_time_enough_it_is_optimal(problem: ScheduleProblem) -> None:
    best = solve(problem).peak_bytes
    for parts in (SerenityParts(False, False), SerenityParts(True, False), SerenityParts()):
        answer = serenity_as_printed(problem, SearchLimit(60.0), StepLimit(), parts)
        check_order(problem, answer.order)
        assert peak_of(problem, answer.order) == best
        assert answer.lower_bound <= best


@given(problems())
def test_without_time_the_answer_is_an_order_without_a_bound(problem: ScheduleProblem) -> None:
    answer = serenity_as_printed(problem, SearchLimit(60.0), StepLimit(seconds=0.0))
    check_order(problem, answer.order)
    assert answer.lower_bound <= solve(problem).peak_bytes


def test_a_step_of_one_signature_at_most_ends_without_a_bound_where_two_operators_are_ready() -> None:
    two = ScheduleProblem((8, 8, 8, 8), (Step((0,), (1,)), Step((0,), (2,)), Step((1, 2), (3,))), (0,), (3,))
    assert serenity_as_printed(two, SearchLimit(60.0), StepLimit(signatures=1)).lower_bound == 0
    assert serenity_as_printed(two, SearchLimit(60.0), StepLimit(signatures=2)).lower_bound == 24


def test_after_a_timeout_half_the_budget() -> None:
    assert next_budgets(100, 100, TIMEOUT) == (100, 50)


def test_no_solution_can_be_followed_by_a_smaller_budget() -> None:
    """What is proved too small at 75 is asked again at 62, and never again above 75: the formulas as printed."""
    old, new = next_budgets(*next_budgets(100, 100, TIMEOUT), NO)
    assert (old, new) == (50, 75)
    seen = []
    for _ in range(20):
        old, new = next_budgets(old, new, NO)
        seen.append(new)
    assert seen[0] == 62
    assert max(seen) < 75
