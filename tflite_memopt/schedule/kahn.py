"""Kahn's topological sort: breadth first, blind to memory; the other baseline."""

from __future__ import annotations

from collections import deque

from ..graph.search_limit import SearchLimit
from .problem import Answer, ScheduleProblem
from .wiring import bits, wire


def kahn(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """Operators in the order in which they become ready (A. B. Kahn, CACM 1962). O(operators + edges)."""
    wiring = wire(problem)
    missing = [needs.bit_count() for needs in wiring.needs]
    ready = deque(v for v, count in enumerate(missing) if not count)
    order: list[int] = []
    while ready:
        operator = ready.popleft()
        order.append(operator)
        for later in bits(wiring.feeds[operator]):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return Answer(tuple(order))
