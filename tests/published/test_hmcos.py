"""HMCOS: valid, never worse than Kahn's order, optimal on cells; the hierarchy is one."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.profiles import examples
from tflite_memopt.published.hmcos.hierarchy import Hierarchy, build_hierarchy
from tflite_memopt.published.hmcos.method import hmcos
from tflite_memopt.published.serenity.method import serenity
from tflite_memopt.solvers.graph.dependency_graph import bits
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.methods import kahn
from tflite_memopt.solvers.schedule.problem import ScheduleAnswer, ScheduleProblem, Step, memory_graph

from ..schedule.problems import brute_force, problems


def cells(count: int, branches: int = 3, wide: int = 96, narrow: int = 16) -> ScheduleProblem:
    """Cells like those of NASNet: each reads the outputs of the two before it, and joins its branches.

    A branch is two operators: one writes ``wide`` bytes, with scratch, one shrinks them to ``narrow``.
    """
    sizes, steps, outputs = [64], list[Step](), [0, 0]
    for _ in range(count):
        joined = []
        for branch in range(branches):
            first = len(sizes)
            sizes += [wide, narrow]
            steps.append(Step((outputs[-1 - branch % 2],), (first,), narrow))
            steps.append(Step((first,), (first + 1,)))
            joined.append(first + 1)
        outputs.append(len(sizes))
        sizes.append(narrow * branches)
        steps.append(Step(tuple(joined), (outputs[-1],)))
    return ScheduleProblem(tuple(sizes), tuple(steps), (0,), (outputs[-1],))


def peak(problem: ScheduleProblem, answer: ScheduleAnswer) -> int:
    check_order(problem, answer.order)
    return peak_of(problem, answer.order)


@examples(200)
@given(problem=problems(7))
def test_random_problems(problem: ScheduleProblem) -> None:
    answer = hmcos(problem, SearchLimit())
    assert peak(problem, answer) <= peak_of(problem, kahn(problem, SearchLimit()).order)
    assert answer.lower_bound <= brute_force(problem) <= peak(problem, answer)


@examples(200)
@given(problem=problems(12))
def test_the_hierarchy_of_random_problems(problem: ScheduleProblem) -> None:
    graph = memory_graph(problem)
    hierarchy = build_hierarchy(graph)
    order = [v for unit in hierarchy.sequences for v in unit.order]
    check_order(problem, order)
    assert coarse_order_exists(hierarchy)
    assert sum(hierarchy.groups) == sum(1 << s for group in hierarchy.groups for s in bits(group))
    assert all(group.bit_count() > 1 for group in hierarchy.groups)


def coarse_order_exists(hierarchy: Hierarchy) -> bool:
    """Whether the graph with each group as one vertex has no cycle."""
    free = (1 << len(hierarchy.sequences)) - 1 & ~sum(hierarchy.groups)
    waiting = [*hierarchy.groups, *(1 << s for s in bits(free))]
    done = 0
    while waiting:
        ready = [v for v in waiting if not any(hierarchy.graph.needs[s] & ~(done | v) for s in bits(v))]
        if not ready:
            return False
        done |= sum(ready)
        waiting = [v for v in waiting if v not in ready]
    return True


def test_sequences_and_groups_of_cells() -> None:
    """Each branch is a sequence. Branches that read a cell's output, and together write no more, are a group.

    Of the second cell that leaves a branch and the end, of the third its end alone, which needs no group.
    """
    hierarchy = build_hierarchy(memory_graph(cells(3)))
    assert sorted(len(unit.order) for unit in hierarchy.sequences) == [1] * 3 + [2] * 9
    assert [group.bit_count() for group in hierarchy.groups] == [4, 3, 2, 2]


def test_a_wide_output_is_shrunk_right_after_its_cell() -> None:
    """The cell's output of 96 bytes has two readers of 16 bytes each: they are a group of their own."""
    steps = (
        *(Step((0,), (branch,)) for branch in (1, 2, 3)),
        Step((1, 2, 3), (4,)),
        *(Step((4,), (narrow,)) for narrow in (5, 6)),
        Step((5,), (7,)),
        Step((6, 7), (8,)),
    )
    problem = ScheduleProblem((32, 32, 32, 32, 96, 16, 16, 64, 64), steps, (0,), (8,))
    hierarchy = build_hierarchy(memory_graph(problem))
    groups = [{v for s in bits(group) for v in hierarchy.sequences[s].order} for group in hierarchy.groups]
    assert groups == [{0, 1, 2, 3}, {4, 5}]


def test_no_group_that_waits_for_itself_through_another() -> None:
    """Operator 0 and the last one would be a group, but the other cell needs the one and feeds the other."""
    steps = (
        *(Step((0,), (written,)) for written in (1, 2)),
        *(Step((1,), (written,)) for written in (3, 4, 5)),
        Step((3, 4, 5), (6,)),
        Step((1,), (7,)),
        Step((2, 6, 7), (8,)),
    )
    hierarchy = build_hierarchy(memory_graph(ScheduleProblem((16,) * 9, steps, (0,), (8,))))
    groups = [{v for s in bits(group) for v in hierarchy.sequences[s].order} for group in hierarchy.groups]
    assert groups == [{2, 3, 4, 5}]


@pytest.mark.parametrize("branches", [2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_cells_get_their_optimum(count: int, branches: int) -> None:
    problem = cells(count, branches)
    assert peak(problem, hmcos(problem, SearchLimit())) == serenity(problem, SearchLimit()).lower_bound
    assert peak(problem, hmcos(problem, SearchLimit())) < peak_of(problem, kahn(problem, SearchLimit()).order)


def test_groups_save_states() -> None:
    problem = cells(4, 4)
    assert hmcos(problem, SearchLimit()).states * 3 < serenity(problem, SearchLimit()).states


def test_single_operators_without_groups_are_a_proof() -> None:
    """Two operators rise and cannot be joined: nothing is left but the exact search."""
    problem = ScheduleProblem(
        (16, 32, 64, 32, 64), (Step((0,), (1,)), Step((1,), (2,)), Step((0,), (3,)), Step((3,), (4,))), (0,), (2, 4)
    )
    answer = hmcos(problem, SearchLimit())
    assert answer.lower_bound == peak(problem, answer) == brute_force(problem)


@pytest.mark.parametrize(("time_limit", "states"), [(0.0, 500_000), (60.0, 2)])
def test_out_of_time_or_states_the_order_is_no_worse_than_kahns(time_limit: float, states: int) -> None:
    problem = cells(4, 4)
    answer = hmcos(problem, SearchLimit(time_limit), states)
    assert peak(problem, answer) <= peak_of(problem, kahn(problem, SearchLimit()).order)
    assert answer.lower_bound < peak(problem, answer)


@pytest.mark.slow
def test_two_thousand_branches_stop_at_the_cap() -> None:
    problem = cells(1, 2000)
    answer = hmcos(problem, SearchLimit(effort=0.01), 5_000)
    assert peak(problem, answer) <= peak_of(problem, kahn(problem, SearchLimit()).order)


def test_no_operator_at_all() -> None:
    assert hmcos(ScheduleProblem((16,), (), (0,), (0,)), SearchLimit()).order == ()
