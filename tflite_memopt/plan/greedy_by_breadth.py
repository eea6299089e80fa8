"""Greedy by Breadth: scopes with the most bytes alive first, in each the largest item first.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (MLSys 2020 workshop),
section 5.3, "Greedy by Breadth for Offset Calculation".
"""

from __future__ import annotations

from ..budget import Budget
from .placement import Placement
from .problem import PlanProblem


def greedy_by_breadth(problem: PlanProblem, budget: Budget) -> tuple[int, ...]:
    """Offsets in bytes. O(n^2 + total lifetime)."""
    alive: dict[int, list[int]] = {}
    for index, item in enumerate(problem.items):
        for scope in range(item.start, item.end):
            alive.setdefault(scope, []).append(index)
    breadth = {scope: sum(problem.items[i].size for i in indices) for scope, indices in alive.items()}
    placement = Placement(problem)
    for scope in sorted(alive, key=lambda s: (-breadth[s], s)):
        for index in sorted(alive[scope], key=lambda i: (-problem.items[i].size, i)):
            if not placement.is_placed(index):
                placement.place(index, placement.smallest_gap(index))
    return placement.finish()
