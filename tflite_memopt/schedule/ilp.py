"""Integer programming on a graph made small by fusion and partition: Algorithm 2 and its parts.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization". Each part of the method
can be switched off (:class:`IlpParts`), so that the paper's Tables II to VI can be run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..graph.search_limit import SearchLimit
from .bounds import any_order
from .check import peak_of
from .integer.fusion import fuse, unfused
from .integer.partition import forced_cuts, light_cuts, parts_of
from .integer.section import Section
from .integer.windows import improve_in_windows
from .problem import Answer, ScheduleProblem
from .reach import reach
from .rpo import rpo_order
from .wiring import Wiring, wire

PART_SIZE = 24
"""Operators after fusion that HiGHS orders in seconds; larger graphs are cut into parts of about this size."""


@dataclass(frozen=True)
class IlpParts:
    """What to use. ``partitions`` is the paper's k; 1 is exact.

    None cuts where every order passes anyway, which is exact too, and cuts the pieces further where they have more
    than ``PART_SIZE`` operators, which is not.
    """

    pruning: bool = True
    fusion: bool = True
    partitions: int | None = None


@dataclass(frozen=True)
class IlpAnswer:
    """``fused`` operators are left after fusion; ``variables`` are those of each program that was solved.

    ``answer.states`` are branch-and-bound nodes.
    """

    answer: Answer
    fused: int
    variables: tuple[int, ...]


def ilp(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """The method with all its parts on. Proves what it can: see :func:`ilp_with`."""
    return ilp_with(problem, limit, IlpParts()).answer


def ilp_with(problem: ScheduleProblem, limit: SearchLimit, parts: IlpParts) -> IlpAnswer:
    """Order by integer programming with chosen parts of the method.

    With one partition the bound is HiGHS' own, and the optimum if time suffices. With more it is that of the parts
    that start and end where every order must pass. When time is up, parts keep their reverse post-order. With
    ``partitions=None`` the time that is left goes to windows around the peak.
    """
    if not problem.steps:
        return IlpAnswer(Answer(()), 0, ())
    deadline = time.perf_counter() + limit.time_limit
    fused = fuse(problem) if parts.fusion else unfused(problem)
    wiring = wire(fused.problem)
    cuts = [0, wiring.everything] if parts.partitions is not None else forced_cuts(reach(wiring))
    sections = _sections(wiring, cuts, parts.partitions)
    _solve_peaks(sections, limit, deadline, parts.pruning)
    order = tuple(v for section in sections for v in section.order)
    if parts.partitions is None:
        bound = max(_bound(sections), any_order(fused.problem))
        rest = replace(limit, time_limit=deadline - time.perf_counter())
        fences = [cut.bit_count() for cut in cuts]
        order, windows = improve_in_windows(wiring, order, fences, PART_SIZE, bound, rest, parts.pruning)
        sections += windows
    best = min(fused.expand(order), rpo_order(wire(problem)), key=lambda candidate: peak_of(problem, candidate))
    variables = [section.variables for section in sections if section.variables]
    answer = Answer(best, _bound(sections), sum(section.nodes for section in sections))
    return IlpAnswer(answer, len(fused.members), tuple(variables))


def _bound(sections: Sequence[Section]) -> int:
    """Bytes that no order of the whole goes below, as far as the sections tell."""
    return max((section.lower_bound for section in sections if section.exact), default=0)


def _sections(wiring: Wiring, cuts: Sequence[int], partitions: int | None) -> list[Section]:
    """The parts in order, each in reverse post-order; what lies between two ``cuts`` is cut further."""
    order = rpo_order(wiring)
    found: list[Section] = []
    for done, upto in pairwise(cuts):
        inside = [v for v in order if upto & ~done & 1 << v]
        wanted = partitions if partitions is not None else -(-len(inside) // PART_SIZE)
        parts = parts_of(wiring, light_cuts(wiring, inside, done, wanted))
        found += [Section(part, exact=len(parts) == 1) for part in parts]
    return found


def _solve_peaks(sections: Sequence[Section], limit: SearchLimit, deadline: float, pruning: bool) -> None:
    """Solve the part with the peak, until the peak is in a part that is solved (Algorithm 2) or time is up.

    The parts that may still hold the peak share the time that is left.
    """
    while True:
        settled = max((section.peak for section in sections if section.solved), default=0)
        higher = [section for section in sections if not section.solved and section.peak > settled]
        left = deadline - time.perf_counter()
        if not higher or left <= 0:
            return
        worst = max(higher, key=lambda section: section.peak)
        worst.solve(replace(limit, time_limit=left / len(higher)), pruning)
