"""Greedy by Breadth: scopes with the most bytes alive first, in each the largest item first.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (MLSys 2020 workshop),
section 5.3, "Greedy by Breadth for Offset Calculation". A group is placed whole at its first item's turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.search_limit import SearchLimit
from .placement import Placement
from .problem import Candidate, PlanProblem, RigidGroup
from .sections import maximal_sections
from .variants import best_variant


def greedy_by_breadth(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes. O(n^2), vectorised."""
    return best_variant(problem, _place_by_breadth)


def _place_by_breadth(problem: PlanProblem, units: Sequence[RigidGroup]) -> tuple[int, ...]:
    items, placement = problem.items, Placement(problem)
    unit_of = {index: unit for unit in units for index, _ in unit}
    by_size = np.array(sorted(range(len(items)), key=lambda i: (-items[i].size, i)), np.int64)
    starts = np.array([items[i].start for i in by_size], np.int64)
    ends = np.array([items[i].end for i in by_size], np.int64)
    for scope, _ in sorted(maximal_sections(items), key=lambda pair: (-pair[1], pair[0])):
        for index in by_size[(starts <= scope) & (scope < ends)].tolist():
            if not placement.is_placed(index):
                placement.place(unit_of[index], placement.tightest(unit_of[index]))
    return placement.finish()
