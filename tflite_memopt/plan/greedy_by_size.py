"""Greedy by Size: largest first, each into the smallest gap that holds it.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (MLSys 2020 workshop),
section 5.2, "Greedy by Size for Offset Calculation".
"""

from __future__ import annotations

from ..budget import Budget
from .placement import Placement
from .problem import PlanProblem


def greedy_by_size(problem: PlanProblem, budget: Budget) -> tuple[int, ...]:
    """Offsets in bytes; of equal sizes the one born first goes first. O(n^2)."""
    placement = Placement(problem)
    order = sorted(range(len(problem.items)), key=lambda i: (-problem.items[i].size, problem.items[i].start, i))
    for index in order:
        if not placement.is_placed(index):
            placement.place(index, placement.smallest_gap(index))
    return placement.finish()
