"""The ILP scheduler and its parts, against every order of small random problems."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tflite_memopt.budget import Budget
from tflite_memopt.schedule.bounds import any_order
from tflite_memopt.schedule.check import check_order, peak_of
from tflite_memopt.schedule.fusion import fuse
from tflite_memopt.schedule.ilp import IlpParts, ilp, ilp_with
from tflite_memopt.schedule.kahn import kahn
from tflite_memopt.schedule.problem import Method, ScheduleProblem, Step
from tflite_memopt.schedule.rpo import rpo

from .problems import SIZES, brute_force, problems


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


@st.composite
def independent_groups(draw: st.DrawFn) -> ScheduleProblem:
    """Two groups of operators that only share memory: what fusion decides in one must suit the other."""
    sizes: list[int] = []
    steps: list[Step] = []
    inputs: list[int] = []
    for count in (4, 2):
        known = [len(sizes)]
        inputs += known
        sizes.append(draw(SIZES))
        for _ in range(count):
            read = draw(st.lists(st.sampled_from(known[-3:]), min_size=1, max_size=2, unique=True))
            known.append(len(sizes))
            sizes.append(draw(SIZES))
            steps.append(Step(tuple(read), (known[-1],)))
    last_ones = tuple(t for t in range(len(sizes)) if t not in {t for step in steps for t in step.inputs})
    return ScheduleProblem(tuple(sizes), tuple(steps), tuple(inputs), last_ones)


LIGHT_STATE_ON_ANOTHER_WAY = ScheduleProblem(
    sizes=(40, 30, 30, 35, 5, 40, 40, 90, 40),
    steps=(
        Step((0,), (1, 2)),
        Step((1,), (3,)),
        Step((2,), (4,)),
        Step((3, 4), (5,)),
        Step((6,), (7,)),
        Step((7,), (8,)),
    ),
    inputs=(0, 6),
    outputs=(5, 8),
)
"""A diamond of four that weighs 40 before and after, 60, 65, 40 on one way through it, but 60, 35, 40 on the other.

The two others peak at 130 by themselves and find no lighter moment than 35.
"""

FALLING_WITH_A_LATE_PEAK = ScheduleProblem(
    sizes=(100, 60, 20, 100, 50),
    steps=(Step((0,), (1,)), Step((1,), (2,), scratch=200), Step((3,), (4,), scratch=100)),
    inputs=(0, 3),
    outputs=(2, 4),
)
"""The first frees memory that the third needs, and the second must wait until the third has freed some: 330 bytes."""


@given(problem=problems(6) | independent_groups())
@example(LIGHT_STATE_ON_ANOTHER_WAY)
@example(FALLING_WITH_A_LATE_PEAK)
@settings(deadline=None, max_examples=300)
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


SWITCHES = [IlpParts(pruning, fusion, 1) for pruning in (True, False) for fusion in (True, False)]


@pytest.mark.parametrize("parts", SWITCHES, ids=str)
@given(problem=problems(6))
@settings(deadline=None, max_examples=40)
def test_a_single_partition_gives_the_optimum_and_proves_it(parts: IlpParts, problem: ScheduleProblem) -> None:
    answer = ilp_with(problem, Budget(), parts).answer
    check_order(problem, answer.order)
    optimum = brute_force(problem)
    assert peak_of(problem, answer.order) == optimum
    assert max(answer.lower_bound, any_order(problem)) == optimum


@pytest.mark.parametrize("partitions", [None, 2, 3])
@given(problem=problems(6))
@settings(deadline=None, max_examples=40)
def test_several_partitions_give_no_false_proof(partitions: int | None, problem: ScheduleProblem) -> None:
    answer = ilp_with(problem, Budget(), IlpParts(partitions=partitions)).answer
    check_order(problem, answer.order)
    assert answer.lower_bound <= brute_force(problem)
    assert peak_of(problem, answer.order) <= peak_of(problem, rpo(problem, Budget()).order)


@given(problem=problems(6))
@settings(deadline=None, max_examples=40)
def test_the_method_is_exact_where_no_part_is_too_large(problem: ScheduleProblem) -> None:
    answer = ilp(problem, Budget())
    assert max(answer.lower_bound, any_order(problem)) == peak_of(problem, answer.order) == brute_force(problem)
