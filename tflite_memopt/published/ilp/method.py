"""Integer programming on a graph made small by fusion and partition: Algorithm 2 and its parts.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization"; ``scripts/paper`` runs
its tables again, with the method as printed and its parts switched off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ...solvers.graph.dependency_graph import forced_cuts, reverse_post_order, sets_at, transitive_closure
from ...solvers.graph.limits import Allowance, SearchLimit
from ...solvers.schedule.check import peak_of
from ...solvers.schedule.problem import MemoryGraph, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from ..sub_problem import sub_problems
from .fusion import FusedProblem, fuse
from .ordered_part import OrderedPart
from .partition import light_cuts
from .windows import improve_in_windows

PART_SIZE = 24
"""Operators after fusion that HiGHS orders in seconds; larger graphs are cut into parts of about this size."""

_WORK = 1_000_000
"""Columns times linear programs, of all programs together: some ten seconds."""


def ilp(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Order by integer programming; ``states`` are branch-and-bound nodes.

    The graph is cut where every order passes, which is exact, and what lies between further where it has more than
    ``PART_SIZE`` operators, which is not. The bound is that of parts which start and end where every order must pass.
    When the work is done, parts keep their reverse post-order; what is left goes to windows around the peak.
    """
    if not problem.steps:
        return ScheduleAnswer(())
    allowance = Allowance(_WORK, limit)
    fused = fuse(problem)
    graph = _without_unread_inputs(fused)
    cuts = forced_cuts(transitive_closure(graph))
    found = _ordered_parts(graph, cuts)
    _solve_peaks(found, limit.seed, allowance)
    order = tuple(v for part in found for v in part.order)
    bound = max(_bound(found), schedule_lower_bound(fused.problem))
    order, windows = improve_in_windows(graph, order, cuts, PART_SIZE, bound, limit.seed, allowance)
    found += windows
    known = fused.expand(order), reverse_post_order(memory_graph(problem))
    best = min(known, key=lambda candidate: peak_of(problem, candidate))
    return ScheduleAnswer(best, _bound(found), sum(part.nodes for part in found), allowance.stopped_by_clock)


def _without_unread_inputs(fused: FusedProblem) -> MemoryGraph:
    """The graph of a problem without the inputs that count before the first step only, the same in every order."""
    graph = memory_graph(fused.problem)
    used = tuple(t for t in fused.problem.inputs if not graph.dies(t, graph.everything))
    return replace(graph, problem=replace(fused.problem, inputs=used))


def _bound(parts: Sequence[OrderedPart]) -> int:
    """Return the bytes that no order of the whole goes below, as far as the parts tell."""
    return max((part.lower_bound for part in parts if part.exact), default=0)


def _ordered_parts(graph: MemoryGraph, cuts: Sequence[int]) -> list[OrderedPart]:
    """Return the parts in order, each in reverse post-order; what lies between two ``cuts`` is cut further."""
    order = reverse_post_order(graph)
    found: list[OrderedPart] = []
    for (start, end), done in zip(pairwise(cuts), sets_at(order, cuts), strict=False):
        wanted = -(-(end - start) // PART_SIZE)
        parts = list(sub_problems(graph, light_cuts(graph, order[start:end], done, wanted)))
        found += [OrderedPart(part, exact=len(parts) == 1) for part in parts]
    return found


def _solve_peaks(parts: Sequence[OrderedPart], seed: int, allowance: Allowance) -> None:
    """Solve the part with the peak, until the peak is in a part that is solved (Algorithm 2) or the work is done.

    The parts that may still hold the peak share the work that is left.
    """
    while True:
        settled = max((part.peak for part in parts if part.solved), default=0)
        higher = [part for part in parts if not part.solved and part.peak > settled]
        if not higher or allowance.is_spent():
            return
        worst = max(higher, key=lambda part: part.peak)
        with allowance.part_of(len(higher)):
            worst.solve(seed, allowance)
