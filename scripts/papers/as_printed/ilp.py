"""Algorithm 2 as printed: fuse, look where the reverse post-order peaks, cut into k parts, solve that part alone.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.C. The paper
cuts with dagP; here it is ``partition.py``, which minimizes the same sum of bytes at the cuts. Its "naive" partition of
Table V minimizes the number of tensors there. k is fixed, no part is looked at again, and there are no windows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tflite_memopt.published.ilp.fusion import unfused
from tflite_memopt.published.ilp.partition import light_cuts
from tflite_memopt.published.ilp.program import formulate
from tflite_memopt.published.ilp.solver import run_program, solve_program
from tflite_memopt.published.sub_problem import SubProblem, sub_problems
from tflite_memopt.solvers.graph.dependency_graph import set_of
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.best_first import best_first as solve_best_first
from tflite_memopt.solvers.schedule.check import peak_of
from tflite_memopt.solvers.schedule.problem import (
    MemoryGraph,
    ScheduleAnswer,
    ScheduleProblem,
    memory_graph,
    schedule_lower_bound,
)

from .ilp_fusion import fuse_as_printed
from .ilp_program import formulate_as_printed, variables_as_printed
from .ilp_walk import order_from_outputs

_WORK = 1_000_000
"""As in ``ilp/method.py``: columns times linear programs, some ten seconds."""


@dataclass(frozen=True)
class PrintedParts:
    """Which steps are on. ``partitions`` is k. ``by_bytes``: the memory-aware partition, else the naive one.

    ``as_printed``: rows as printed; else this project's rows in the same place (``ilp/program.py``), all else alike.
    ``exact``: neither, but the least peak of the part by best_first, which sets the method apart from the solver.
    ``everywhere``: not in the part with the peak alone, but in all: what the cuts leave.
    A program with more than ``most_variables``, counted as printed, is not run: its part keeps its order.
    """

    partitions: int
    fusion: bool = True
    pruning: bool = True
    by_bytes: bool = True
    as_printed: bool = True
    exact: bool = False
    everywhere: bool = False
    most_variables: int = 4_000


@dataclass(frozen=True)
class PrintedAnswer:
    """``operators``: after fusion. ``variables``: O and T of each program that was solved, and its operators.

    ``finished``: the solver proved its optimum for each of them; ``too_large``: one was not run.
    """

    answer: ScheduleAnswer
    operators: int
    solved: tuple[int, ...]
    variables: tuple[int, ...]
    finished: bool
    too_large: bool


def ilp_as_printed(problem: ScheduleProblem, limit: SearchLimit, parts: PrintedParts) -> PrintedAnswer:
    """Algorithm 2 with chosen steps. It proves nothing of the whole: its bound is 0."""
    fused = fuse_as_printed(problem) if parts.fusion else unfused(problem)
    graph = memory_graph(fused.problem)
    order = order_from_outputs(graph)
    needs = graph.needs_along(order)
    peak = max(needs, default=0)
    peaking = set_of(v for v, need in zip(order, needs, strict=True) if need == peak)
    cuts = light_cuts(graph if parts.by_bytes else _weightless(graph), order, 0, parts.partitions)
    allowance = Allowance(_WORK, limit)
    found = [_ordered(part, peaking, limit, allowance, parts) for part in sub_problems(graph, cuts)]
    chosen = fused.expand(tuple(v for each in found for v in each.order))
    solved = [each for each in found if each.variables]
    return PrintedAnswer(
        ScheduleAnswer(chosen, stopped_by_clock=allowance.stopped_by_clock),
        len(fused.members),
        tuple(len(each.order) for each in solved),
        tuple(each.variables for each in solved),
        all(each.finished for each in found),
        any(each.too_large for each in solved),
    )


@dataclass(frozen=True)
class _Ordered:
    order: tuple[int, ...]
    variables: int = 0
    finished: bool = True
    too_large: bool = False


def _weightless(graph: MemoryGraph) -> MemoryGraph:
    """Every tensor counts one: only the topology is left."""
    return replace(graph, problem=replace(graph.problem, sizes=(1,) * len(graph.problem.sizes)))


def _ordered(part: SubProblem, peaking: int, limit: SearchLimit, allowance: Allowance, parts: PrintedParts) -> _Ordered:
    """By the program where a peaking operator is in the part, else in reverse post-order."""
    start = order_from_outputs(memory_graph(part.problem))
    if not (parts.everywhere or set_of(part.operators) & peaking) or len(start) < 2:
        return _Ordered(part.in_whole(start))
    if parts.exact:
        answer = solve_best_first(part.problem, limit)
        bound = max(answer.lower_bound, schedule_lower_bound(part.problem))
        return _Ordered(part.in_whole(answer.order), finished=bound == peak_of(part.problem, answer.order))
    variables = variables_as_printed(part.problem, parts.pruning)
    if variables > parts.most_variables:
        return _Ordered(part.in_whole(start), variables, finished=False, too_large=True)
    if parts.as_printed:
        printed = formulate_as_printed(part.problem, parts.pruning)
        found = run_program(printed, start, (0, math.inf), limit.seed, allowance)
        best = min((start, found.order or start), key=lambda order: peak_of(part.problem, order))
        return _Ordered(part.in_whole(best), variables, found.finished)
    program = formulate(part.problem, parts.pruning)
    ours = solve_program(part.problem, program, start, limit.seed, allowance)
    finished = ours.lower_bound == peak_of(part.problem, ours.order)
    return _Ordered(part.in_whole(ours.order), variables, finished)
