"""Lower bounds on the arena for a fixed order."""

from __future__ import annotations

from .problem import PlanProblem


def max_breadth(problem: PlanProblem) -> int:
    """Largest sum of sizes alive in one scope, in bytes, found by a sweep over births and deaths.

    With relations two items may share bytes, and the bound falls back to the largest single item.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 5.1.
    """
    fixed = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    largest = max((item.size for item in problem.items), default=0)
    if problem.relations:
        return max(largest, fixed)
    events = sorted(event for i in problem.items if i.start < i.end for event in ((i.start, i.size), (i.end, -i.size)))
    breadth = top = 0
    for position, (scope, change) in enumerate(events):
        breadth += change
        if position + 1 == len(events) or events[position + 1][0] != scope:
            top = max(top, breadth)
    return max(top, largest, fixed)
