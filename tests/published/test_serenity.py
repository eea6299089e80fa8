"""Serenity: its parts keep the optimum, and its limits cost proofs but never a valid order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.published.serenity.divide import divide, split
from tflite_memopt.published.serenity.dynamic_programming import (
    DynamicProgram,
    PartialSchedule,
    ProgramLimits,
    SearchOutcome,
    operator_sequence,
)
from tflite_memopt.published.serenity.method import SerenityParts, serenity
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import as_is, kahn
from tflite_memopt.solvers.schedule.problem import ScheduleAnswer, ScheduleProblem, Step, memory_graph

from ..schedule.problems import brute_force, problems

PARTS = [SerenityParts(d, b, width=width) for d in (False, True) for b in (False, True) for width in (1, 1000)]


def chain(*sizes: int) -> ScheduleProblem:
    """Operator v reads tensor v and writes tensor v + 1."""
    last = len(sizes) - 1
    return ScheduleProblem(sizes, tuple(Step((v,), (v + 1,)) for v in range(last)), (0,), (last,))


def parallel(branches: int, outputs: tuple[int, ...] = ()) -> ScheduleProblem:
    """Branches of two operators each between a first and a last operator: grow to 96 bytes, shrink to 16."""
    steps = [Step((0,), (1,))]
    for branch in range(branches):
        steps += [Step((1,), (2 + 2 * branch,)), Step((2 + 2 * branch,), (3 + 2 * branch,))]
    result = 2 + 2 * branches
    steps.append(Step(tuple(range(3, result, 2)), (result,)))
    return ScheduleProblem((16, 16, *(96, 16) * branches, 16), tuple(steps), (0,), (result, *outputs))


@examples(100)
@given(problem=problems(7))
def test_every_combination_of_parts_finds_and_proves_the_optimum(problem: ScheduleProblem) -> None:
    optimum = brute_force(problem)
    for parts in PARTS:
        answer = serenity(problem, SearchLimit(), parts)
        check_order(problem, answer.order)
        assert peak_of(problem, answer.order) == optimum, parts
        assert answer.lower_bound == optimum, parts


@examples(100)
@given(problem=problems(7))
def test_a_sum_of_parts_runs_the_same_bytes_as_the_whole(problem: ScheduleProblem) -> None:
    answer = divide(problem, SearchLimit(), kahn)
    check_order(problem, answer.order)
    place = {v: position for position, v in enumerate(answer.order)}
    peaks = []
    for part in split(problem):
        order = sorted(range(len(part.operators)), key=lambda v: place[part.operators[v]])
        check_order(part.problem, order)
        peaks.append(peak_of(part.problem, order))
    assert max(peaks) == peak_of(problem, answer.order)


def test_parts_end_where_every_path_crosses() -> None:
    problem = parallel(3)
    assert [part.operators for part in split(problem)] == [(0,), (1, 2, 3, 4, 5, 6, 7)]
    assert [part.operators for part in split(chain(16, 32, 48))] == [(0,), (1,)]


def test_bytes_that_only_pass_a_part_count_in_it() -> None:
    """The graph's second input waits for the last operator."""
    problem = ScheduleProblem(
        (16, 16, 16, 16, 1000), (Step((0,), (1,)), Step((1,), (2,)), Step((2, 4), (3,))), (0, 4), (3,)
    )
    assert [peak_of(part.problem, (0,)) for part in split(problem)] == [1032, 1032, 1032]


def level_by_level(branches: int) -> ScheduleProblem:
    """``parallel`` with the operators numbered in Kahn's order, so that the model's own order is no better."""
    problem = parallel(branches)
    return replace(problem, steps=tuple(problem.steps[v] for v in kahn(problem, SearchLimit()).order))


@pytest.mark.parametrize("parts", PARTS, ids=str)
def test_without_time_the_order_is_kahns_and_proves_nothing(parts: SerenityParts) -> None:
    problem = level_by_level(9)
    answer = serenity(problem, SearchLimit(time_limit=0), parts)
    assert answer.order == kahn(problem, SearchLimit()).order
    assert answer.lower_bound < 9 * 16 + 96


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("budgeting", [False, True])
def test_with_too_few_states_the_order_is_kahns(divided: bool, budgeting: bool) -> None:
    problem = level_by_level(9)
    answer = serenity(problem, SearchLimit(), SerenityParts(divided, budgeting, states=50))
    assert answer.order == kahn(problem, SearchLimit()).order
    assert answer.lower_bound < peak_of(problem, answer.order)
    assert answer.states < 200


@pytest.mark.parametrize("parts", PARTS, ids=str)
@pytest.mark.parametrize(("time_limit", "states"), [(0.0, 50), (60.0, 50)])
def test_out_of_time_or_states_the_models_own_order_stays_where_it_is_better(
    parts: SerenityParts, time_limit: float, states: int
) -> None:
    """Branch by branch, as numbered, needs 8 * 16 bytes and a branch; Kahn's order all wide tensors at once."""
    problem = parallel(9)
    answer = serenity(problem, SearchLimit(time_limit), replace(parts, states=states))
    assert answer.order == tuple(range(len(problem.steps)))
    assert peak_of(problem, answer.order) < peak_of(problem, kahn(problem, SearchLimit()).order)


@pytest.mark.slow
def test_budgets_visit_fewer_states() -> None:
    problem = parallel(9)
    alone = serenity(problem, SearchLimit(), SerenityParts(divide=False, budgeting=False))
    budgeted = serenity(problem, SearchLimit(), SerenityParts(divide=False, width=700))
    assert budgeted.lower_bound == alone.lower_bound == 8 * 16 + 16 + 96
    assert budgeted.states < alone.states


@pytest.mark.slow
def test_a_part_that_another_outweighs_is_not_searched() -> None:
    """The last operator needs 1,000 bytes whatever the order before it."""
    cell = parallel(9)
    last = len(cell.sizes) - 1
    problem = ScheduleProblem((*cell.sizes, 16), (*cell.steps, Step((last,), (last + 1,), 1000)), (0,), (last + 1,))
    assert serenity(problem, SearchLimit(), SerenityParts(budgeting=False)) == ScheduleAnswer(
        kahn(problem, SearchLimit()).order, 1032
    )
    assert serenity(problem, SearchLimit(), SerenityParts(divide=False, budgeting=False)).states > 3**9


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        (ProgramLimits(), SearchOutcome.SOLUTION),
        (ProgramLimits(peak=208), SearchOutcome.SOLUTION),
        (ProgramLimits(peak=207), SearchOutcome.NO_SOLUTION),
        (ProgramLimits(width=3), SearchOutcome.TIMEOUT),
        (ProgramLimits(states=9), SearchOutcome.EXHAUSTED),
        (ProgramLimits(visited=20), SearchOutcome.EXHAUSTED),
        (ProgramLimits(allowance=Allowance(1, SearchLimit(time_limit=0.0))), SearchOutcome.EXHAUSTED),
        (ProgramLimits(allowance=Allowance(20, SearchLimit())), SearchOutcome.EXHAUSTED),
    ],
)
def test_how_a_search_ends(limits: ProgramLimits, outcome: SearchOutcome) -> None:
    problem = parallel(7)
    graph = memory_graph(problem)
    units = tuple(operator_sequence(graph, (v,)) for v in range(len(problem.steps)))
    found = DynamicProgram(units, limits).search(PartialSchedule(0, graph.alive_at_start, 0))
    assert found.outcome is outcome
    assert bool(found.order) is (outcome is SearchOutcome.SOLUTION)


def test_no_operator_at_all() -> None:
    problem = ScheduleProblem((16,), (), (0,), (0,))
    assert serenity(problem, SearchLimit()).order == ()
    assert divide(problem, SearchLimit(), as_is).order == ()


@examples(30)
@given(problem=problems(7), states=st.integers(1, 30), width=st.integers(1, 5))
def test_any_limit_leaves_a_valid_order_and_a_true_bound(problem: ScheduleProblem, states: int, width: int) -> None:
    answer = serenity(problem, SearchLimit(), SerenityParts(width=width, states=states))
    check_order(problem, answer.order)
    assert answer.lower_bound <= brute_force(problem)


@pytest.mark.slow
def test_two_thousand_branches_stop_at_the_cap() -> None:
    problem = parallel(2000)
    answer = serenity(problem, SearchLimit(effort=0.01), SerenityParts(states=20_000))
    check_order(problem, answer.order)
    assert answer.lower_bound < peak_of(problem, answer.order)
