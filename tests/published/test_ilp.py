"""The ILP scheduler and its parts, against every order of small random problems."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.published.ilp.fusion import fuse
from tflite_memopt.published.ilp.method import ilp
from tflite_memopt.published.ilp.partition import light_cuts
from tflite_memopt.published.ilp.windows import improve_in_windows
from tflite_memopt.published.sub_problem import sub_problems
from tflite_memopt.solvers.graph.dependency_graph import bits, reverse_post_order
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import kahn, rpo
from tflite_memopt.solvers.schedule.problem import Method, ScheduleProblem, Step, memory_graph, schedule_lower_bound

from ..schedule.problems import SIZES, brute_force, diamond_beside_a_chain, problems


@pytest.mark.parametrize("method", [rpo, kahn])
@given(problem=problems(12))
def test_baselines_give_schedules(method: Method, problem: ScheduleProblem) -> None:
    check_order(problem, method(problem, SearchLimit()).order)


FORK = ScheduleProblem(
    (8,) * 6, (Step((0,), (1,)), Step((0,), (2,)), Step((1,), (3,)), Step((2,), (4,)), Step((3, 4), (5,))), (0,), (5,)
)
"""Two branches of two operators, numbered level by level."""


def test_rpo_finishes_a_branch_first_and_kahn_goes_level_by_level() -> None:
    assert rpo(FORK, SearchLimit()).order == (0, 2, 1, 3, 4)
    assert kahn(FORK, SearchLimit()).order == (0, 1, 2, 3, 4)


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


LIGHT_STATE_ON_ANOTHER_WAY = diamond_beside_a_chain((40, 30, 30, 35, 5, 40, 40, 90, 40))
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
@examples(300)
def test_fusion_keeps_the_optimum(problem: ScheduleProblem) -> None:
    fused = fuse(problem)
    assert sorted(v for members in fused.members for v in members) == list(range(len(problem.steps)))
    assert brute_force(fused.problem) == brute_force(problem)


@given(problem=problems(10))
def test_a_fused_order_has_the_peak_of_its_operators(problem: ScheduleProblem) -> None:
    fused = fuse(problem)
    order = rpo(fused.problem, SearchLimit()).order
    expanded = fused.expand(order)
    check_order(problem, expanded)
    assert peak_of(problem, expanded) == peak_of(fused.problem, order)


START_IN_PLACE_OF_THE_ANSWER = ScheduleProblem(
    sizes=(16, 0, 0, 0, 16),
    steps=(
        *(Step((), (0,)), Step((), (1,)), Step((0,), (2,)), Step((0,), (3,))),
        *(Step((0, 1), ()), Step((2, 3), (4,))),
    ),
    inputs=(),
    outputs=(1, 2, 3, 4),
)
"""HiGHS 1.16 gives the objective of its answer here, and the order that it was started with."""
CALLED_INFEASIBLE = ScheduleProblem(
    sizes=(160, 64, 0, 0, 16, 64, 64, 96),
    steps=(
        *(Step((0,), (1,)), Step((1,), (2,)), Step((1,), (3,)), Step((1, 2), (4,))),
        *(Step((5,), (6,)), Step((5, 6), (7,))),
    ),
    inputs=(0, 5),
    outputs=(3, 4, 7),
)
"""HiGHS 1.16 says that there is no order."""


@given(problem=problems(6))
@example(problem=START_IN_PLACE_OF_THE_ANSWER)
@examples(40)
def test_the_method_is_exact_where_no_part_is_too_large(problem: ScheduleProblem) -> None:
    answer = ilp(problem, SearchLimit())
    assert (
        max(answer.lower_bound, schedule_lower_bound(problem)) == peak_of(problem, answer.order) == brute_force(problem)
    )


@given(problem=problems(12), parts=st.integers(1, 5))
def test_a_partition_is_acyclic_and_its_parts_make_up_the_peak(problem: ScheduleProblem, parts: int) -> None:
    graph = memory_graph(problem)
    order = reverse_post_order(graph)
    cuts = light_cuts(graph, order, 0, parts)
    assert len(cuts) == min(parts, len(order)) + 1
    assert all(not graph.needs[v] & ~cut for cut in cuts for v in bits(cut))
    found = list(sub_problems(graph, cuts))
    whole = tuple(part.operators[v] for part in found for v in reverse_post_order(memory_graph(part.problem)))
    check_order(problem, whole)
    peaks = [peak_of(part.problem, reverse_post_order(memory_graph(part.problem))) for part in found]
    unread = sum(problem.sizes[t] for t in problem.inputs)
    assert max(*peaks, unread) == peak_of(problem, whole)


PAIRS = ScheduleProblem(
    sizes=(16, *(size for branch in range(9) for size in (64 + 16 * branch, 160 - 16 * branch))),
    steps=tuple(step for t in range(1, 19, 2) for step in (Step((0,), (t,)), Step((t,), (t + 1,)))),
    inputs=(0,),
    outputs=tuple(range(2, 19, 2)),
)
"""Nine branches of two operators from one input."""


def test_no_time_still_gives_a_schedule_no_worse_than_rpo() -> None:
    found = ilp(PAIRS, SearchLimit(time_limit=0))
    check_order(PAIRS, found.order)
    assert peak_of(PAIRS, found.order) <= peak_of(PAIRS, rpo(PAIRS, SearchLimit()).order)
    assert found.states == 0


@given(problem=problems(6))
@examples(40)
def test_parts_of_two_operators_give_no_false_proof(problem: ScheduleProblem) -> None:
    with patch("tflite_memopt.published.ilp.method.PART_SIZE", 2):
        answer = ilp(problem, SearchLimit())
    check_order(problem, answer.order)
    assert answer.lower_bound <= brute_force(problem)
    assert peak_of(problem, answer.order) <= peak_of(problem, rpo(problem, SearchLimit()).order)


def test_nothing_to_order() -> None:
    assert ilp(ScheduleProblem((), ()), SearchLimit()).order == ()


def test_equal_seeds_give_equal_orders() -> None:
    first, second = (ilp(LIGHT_STATE_ON_ANOTHER_WAY, SearchLimit(seed=7)).order for _ in range(2))
    assert first == second


@given(problem=problems(6) | independent_groups())
@example(problem=CALLED_INFEASIBLE)
@examples(60)
def test_windows_widen_until_the_optimum_is_proved(problem: ScheduleProblem) -> None:
    graph, floor = memory_graph(problem), schedule_lower_bound(problem)
    fences = [0, len(problem.steps)]
    allowance = Allowance(10**9, SearchLimit())
    order, solved = improve_in_windows(graph, reverse_post_order(graph), fences, 2, floor, 0, allowance)
    check_order(problem, order)
    optimum = brute_force(problem)
    assert peak_of(problem, order) == optimum
    assert max([floor, *(section.lower_bound for section in solved if section.exact)]) == optimum
