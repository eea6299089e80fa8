"""Kahn's topological sort: breadth first, blind to memory; the other baseline."""

from __future__ import annotations

from ..graph.dependency_graph import kahn_order
from ..graph.search_limit import SearchLimit
from .memory_graph import memory_graph
from .problem import ScheduleAnswer, ScheduleProblem


def kahn(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Operators in the order in which they become ready."""
    return ScheduleAnswer(kahn_order(memory_graph(problem)))
