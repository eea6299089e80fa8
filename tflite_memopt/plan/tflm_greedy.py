"""TFLM's own planner, step by step, so that the stock head is known without running TFLM.

Source: TFLM memory_planner/greedy_memory_planner.cc, ``CalculateOffsetsIfNeeded``, and
micro_allocator.cc, ``CreatePlan`` (given offsets are taken as they are).
"""

from __future__ import annotations

from ..graph.search_limit import SearchLimit
from .groups import singles
from .placement import Placement
from .problem import Candidate, PlanProblem


def tflm_greedy(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes: given offsets first, then largest first, each into the first gap. O(n^2), vectorised.

    Of equal sizes the later item goes first: TFLM fills its array from the back and sorts it stably. It knows no
    relations, and no alignment either: the sizes that it is given are aligned.
    """
    items, placement = problem.items, Placement(problem.plain, aligns=False)
    for unit in sorted(singles(problem), key=lambda unit: (-items[unit[0][0]].size, -unit[0][0])):
        placement.place(unit, placement.lowest(unit))
    return Candidate(placement.finish())
