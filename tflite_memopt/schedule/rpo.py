"""Reverse post-order: the topological sort of most compilers, blind to memory; the papers' baseline."""

from __future__ import annotations

from ..graph.search_limit import SearchLimit
from .problem import Answer, ScheduleProblem
from .wiring import Wiring, wire


def rpo(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """The reverse post-order of a depth-first walk; of two ready branches it finishes the earlier one first."""
    return Answer(rpo_order(wire(problem)))


def rpo_order(wiring: Wiring) -> tuple[int, ...]:
    """Operators in reverse post-order. O(operators + edges), but for the width of the sets.

    The walk takes the last operator first, so that the reversed order keeps the model's order where it can.
    """
    unseen = wiring.everything
    finished: list[int] = []
    for root in reversed(range(len(wiring.needs))):
        if wiring.needs[root]:
            continue
        unseen ^= 1 << root
        path = [root]
        while path:
            onward = wiring.feeds[path[-1]] & unseen
            if onward:
                path.append(onward.bit_length() - 1)
                unseen ^= 1 << path[-1]
            else:
                finished.append(path.pop())
    return tuple(reversed(finished))
