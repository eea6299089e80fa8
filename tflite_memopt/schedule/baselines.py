"""Orders that look at no sizes: what every method is compared with."""

from __future__ import annotations

from ..graph.dependency_graph import kahn_order, reverse_post_order
from ..graph.search_limit import SearchLimit
from .memory_graph import memory_graph
from .problem import ScheduleAnswer, ScheduleProblem


def as_is(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """The identity order."""
    return ScheduleAnswer(tuple(range(len(problem.steps))))


def kahn(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Operators in the order in which they become ready."""
    return ScheduleAnswer(kahn_order(memory_graph(problem)))


def rpo(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """The reverse post-order of a depth-first walk; of two ready branches it finishes the earlier one first."""
    return ScheduleAnswer(reverse_post_order(memory_graph(problem)))
