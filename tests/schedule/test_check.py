"""What contradicts itself is refused with one clear line, before any method sees it."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.faults import raises
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule import methods
from tflite_memopt.solvers.schedule.check import check_problem
from tflite_memopt.solvers.schedule.methods import METHODS, solve
from tflite_memopt.solvers.schedule.problem import ScheduleAnswer, ScheduleProblem, Step

from .problems import problems

CHAIN = (Step((0,), (1,)), Step((1,), (2,)))
CONTRADICTIONS = {
    "operator 1 reads tensor 3, which nothing writes": ScheduleProblem(
        (16, 16, 16, 16), (CHAIN[0], Step((1, 3), (2,))), (0,), (2,)
    ),
    "the graph returns tensor 3, which nothing writes": ScheduleProblem((16,) * 4, CHAIN, (0,), (2, 3)),
    "operators 0 and 1 both write tensor 1": ScheduleProblem((16,) * 2, (CHAIN[0], CHAIN[0]), (0,), (1,)),
    "tensor 2 has no size: there are 2 tensors": ScheduleProblem((16, 16), CHAIN, (0,), (2,)),
    "an operator waits for operator 7; there are 2, from 0 on": ScheduleProblem(
        (16,) * 3, (CHAIN[0], Step((1,), (2,), after=(7,))), (0,), (2,)
    ),
    "no order exists: operators wait for each other in a circle, 0 -> 1 -> 0": ScheduleProblem(
        (16,) * 3, (Step((0,), (1,), after=(1,)), CHAIN[1]), (0,), (2,)
    ),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_problem_that_contradicts_itself(method: str, message: str) -> None:
    with pytest.raises(InfeasibleError) as raised:
        solve(CONTRADICTIONS[message], method)
    assert str(raised.value) == message


@given(problems(8))
def test_problems_that_hold_together_pass(problem: ScheduleProblem) -> None:
    check_problem(problem)


def test_no_method_gets_away_with_a_bound_above_its_own_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def boastful(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
        return ScheduleAnswer((0, 1), lower_bound=33)

    monkeypatch.setattr(methods, "METHODS", {"boastful": boastful})
    with raises(InfeasibleError, ErrorKind.BOUND, "'boastful'", "33", "32"):
        solve(ScheduleProblem((16, 16, 16), CHAIN, (0,), (2,)), "boastful")
