"""Every item gets bytes of its own: what a runtime without a planner takes."""

from __future__ import annotations

from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from .problem import Candidate, PlanProblem


def naive(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets behind one another, above all given offsets. O(n)."""
    frontier = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    offsets = []
    for item in problem.items:
        if item.offset is not None:
            offsets.append(item.offset)
            continue
        begin = aligned(frontier, item.alignment)
        offsets.append(begin)
        frontier = begin + item.size
    return Candidate(tuple(offsets))
