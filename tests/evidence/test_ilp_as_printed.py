"""The integer program's paper as printed: its rows, its fusion and its Algorithm 2, against every order."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given

from scripts.papers.as_printed.ilp import PrintedParts, ilp_as_printed
from scripts.papers.as_printed.ilp_fusion import fuse_as_printed, grown_from, is_hill, is_monotonic
from scripts.papers.as_printed.ilp_program import formulate_as_printed
from tests.profiles import examples
from tflite_memopt.published.ilp.program import PEAK
from tflite_memopt.published.ilp.solver import ProgramRun, run_program
from tflite_memopt.solvers.graph.dependency_graph import reverse_post_order, transitive_closure
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.problem import ScheduleProblem, Step, memory_graph

from ..schedule.problems import brute_force, diamond_beside_a_chain, problems

RESIDUAL = ScheduleProblem(
    (10, 10, 10, 10, 10),
    (Step((0,), (1,)), Step((1,), (2,)), Step((2,), (3,)), Step((1, 3), (4,))),
    (0,),
    (4,),
)
"""A block of two operators and the ADD that reads its input again."""


def plain(problem: ScheduleProblem) -> ScheduleProblem:
    """What the paper's graphs have: no reuse, no order without data, and no result or input that nobody uses."""
    used = {*problem.outputs, *(t for step in problem.steps for t in step.inputs)}
    sizes = tuple(size if t in used else 0 for t, size in enumerate(problem.sizes))
    return replace(problem, sizes=sizes, steps=tuple(replace(step, reuses=(), after=()) for step in problem.steps))


def run(problem: ScheduleProblem, pruning: bool, keep_outputs: bool = True) -> ProgramRun:
    program = formulate_as_printed(problem, pruning, keep_outputs)
    start = reverse_post_order(memory_graph(problem))
    return run_program(program, start, (0, math.inf), 0, Allowance(10**9, SearchLimit()))


@given(drawn=problems(5))
@examples(40)
def test_the_rows_as_printed_have_the_optimum_with_and_without_pruning(drawn: ScheduleProblem) -> None:
    problem = plain(drawn)
    for pruning in (False, True):
        found = run(problem, pruning)
        assert found.finished
        assert found.order is not None
        check_order(problem, found.order)
        assert peak_of(problem, found.order) == brute_force(problem) == max(found.bound, sum_given(problem))


def sum_given(problem: ScheduleProblem) -> int:
    """Bytes before the first step, which the program does not count."""
    return sum(problem.sizes[t] for t in set(problem.inputs))


def test_without_its_own_row_an_output_weighs_nothing() -> None:
    one = ScheduleProblem((10, 70), (Step((0,), (1,)),), (0,), (1,))
    assert run(one, False, keep_outputs=False).bound == 10
    assert run(one, False).bound == 80


def test_pruning_by_the_reader_with_most_descendants_would_leave_no_order() -> None:
    """(10) as printed ends tensor 1 after step |V| - |des(b)| = 2, and the ADD reads it at step 4."""
    closure = transitive_closure(memory_graph(RESIDUAL))
    descendants = [closure.after[v].bit_count() for v in (1, 3)]
    assert len(RESIDUAL.steps) - max(descendants) == 2
    assert formulate_as_printed(RESIDUAL, True).stored[1].end == len(RESIDUAL.steps) - min(descendants) == 4


def test_a_negative_extra_has_no_effect_in_the_rows_as_printed() -> None:
    freed = ScheduleProblem((50, 50, 10), (Step((0,), (1,), scratch=-30), Step((1,), (2,))), (0,), (2,))
    assert peak_of(freed, (0, 1)) == 70
    assert run(freed, False).bound == 100


def test_the_number_of_variables_and_what_pruning_leaves() -> None:
    full, pruned = (formulate_as_printed(RESIDUAL, pruning) for pruning in (False, True))
    assert full.variables == 4 * 4 + 5 * 4
    assert pruned.variables == 4 * 1 + (1 + 4 + 2 + 2 + 1)
    assert full.columns == full.variables + PEAK + 1


@given(drawn=problems(6))
@examples(60)
def test_a_fused_order_is_an_order_and_its_peak_is_that_of_its_operators(drawn: ScheduleProblem) -> None:
    problem = plain(drawn)
    fused = fuse_as_printed(problem)
    order = reverse_post_order(memory_graph(fused.problem))
    expanded = fused.expand(order)
    check_order(problem, expanded)
    assert peak_of(problem, expanded) == peak_of(fused.problem, order)


def test_a_residual_block_grows_to_its_add_and_is_fused() -> None:
    graph = memory_graph(RESIDUAL)
    assert list(grown_from(graph, transitive_closure(graph), 1, 24)) == [0b1110]
    assert len(fuse_as_printed(RESIDUAL).problem.steps) == 1


def test_the_theorems_on_footprints() -> None:
    assert is_monotonic((0, 1, 2), (5, 6))
    assert is_monotonic((2, 1, 0), (6, 5))
    assert not is_monotonic((0, 1, 2), (6, 5))
    assert is_hill((0, 7, 3))
    assert not is_hill((0, 2, 3))


LIGHTER_ON_ANOTHER_WAY = diamond_beside_a_chain((60, 10, 60, 30, 30, 60, 40, 100, 10))
"""The best inner order of the diamond never weighs less than the 60 bytes at its ends; the other one does, once."""


def test_fusion_as_printed_can_lose_the_optimum() -> None:
    assert brute_force(LIGHTER_ON_ANOTHER_WAY) == 180
    assert brute_force(fuse_as_printed(LIGHTER_ON_ANOTHER_WAY).problem) == 200


@given(drawn=problems(6))
@examples(20)
def test_algorithm_2_gives_an_order_and_the_optimum_where_it_cuts_and_fuses_nothing(drawn: ScheduleProblem) -> None:
    problem = plain(drawn)
    for parts in (PrintedParts(2), PrintedParts(3, by_bytes=False), PrintedParts(2, as_printed=False)):
        check_order(problem, ilp_as_printed(problem, SearchLimit(), parts).answer.order)
    for exact in (False, True):
        whole = ilp_as_printed(problem, SearchLimit(), PrintedParts(1, fusion=False, exact=exact))
        assert whole.finished
        assert peak_of(problem, whole.answer.order) == brute_force(problem)
    one, every = (PrintedParts(2, exact=True, everywhere=everywhere) for everywhere in (False, True))
    assert _peak(problem, every) <= _peak(problem, one)


def _peak(problem: ScheduleProblem, parts: PrintedParts) -> int:
    return peak_of(problem, ilp_as_printed(problem, SearchLimit(), parts).answer.order)


def test_a_program_that_is_too_large_is_not_run() -> None:
    found = ilp_as_printed(RESIDUAL, SearchLimit(), PrintedParts(1, fusion=False, most_variables=3))
    assert found.too_large
    assert found.variables > (3,)
