"""Greedy by Size: largest first, each into the smallest gap that holds it.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (MLSys 2020 workshop),
section 5.2, "Greedy by Size for Offset Calculation". Groups of related items count by their largest.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.search_limit import SearchLimit
from .placement import Placement
from .problem import Candidate, PlanProblem, RigidGroup
from .variants import best_variant


def greedy_by_size(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes; of equal sizes the one born first goes first. O(n^2), vectorised."""
    return best_variant(problem, _place_by_size)


def _place_by_size(problem: PlanProblem, units: Sequence[RigidGroup]) -> tuple[int, ...]:
    items, placement = problem.items, Placement(problem)

    def rank(unit: RigidGroup) -> tuple[int, int, int]:
        return min((-items[index].size, items[index].start, index) for index, _ in unit)

    for unit in sorted(units, key=rank):
        placement.place(unit, placement.tightest(unit))
    return placement.finish()
