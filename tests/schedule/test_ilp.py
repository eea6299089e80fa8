"""The ILP scheduler and its parts, against every order of small random problems."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tflite_memopt.budget import Budget
from tflite_memopt.schedule.check import check_order, peak_of
from tflite_memopt.schedule.fusion import fuse
from tflite_memopt.schedule.kahn import kahn
from tflite_memopt.schedule.problem import Method, ScheduleProblem, Step
from tflite_memopt.schedule.rpo import rpo

from .problems import brute_force, problems


@pytest.mark.parametrize("method", [rpo, kahn])
@given(problem=problems(12))
@settings(deadline=None)
def test_baselines_give_schedules(method: Method, problem: ScheduleProblem) -> None:
    check_order(problem, method(problem, Budget()).order)


FORK = ScheduleProblem(
    (8,) * 6, (Step((0,), (1,)), Step((0,), (2,)), Step((1,), (3,)), Step((2,), (4,)), Step((3, 4), (5,))), (0,), (5,)
)
"""Two branches of two operators, numbered level by level."""


def test_rpo_finishes_a_branch_first_and_kahn_goes_level_by_level() -> None:
    assert rpo(FORK, Budget()).order == (0, 2, 1, 3, 4)
    assert kahn(FORK, Budget()).order == (0, 1, 2, 3, 4)


@given(problem=problems(6))
@settings(deadline=None)
def test_fusion_keeps_the_optimum(problem: ScheduleProblem) -> None:
    fused = fuse(problem)
    assert sorted(v for members in fused.members for v in members) == list(range(len(problem.steps)))
    assert brute_force(fused.problem) == brute_force(problem)


@given(problem=problems(10))
@settings(deadline=None)
def test_a_fused_order_has_the_peak_of_its_operators(problem: ScheduleProblem) -> None:
    fused = fuse(problem)
    order = rpo(fused.problem, Budget()).order
    expanded = fused.expand(order)
    check_order(problem, expanded)
    assert peak_of(problem, expanded) == peak_of(fused.problem, order)
