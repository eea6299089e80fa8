"""Reverse post-order: the topological sort of most compilers, blind to memory; the papers' baseline."""

from __future__ import annotations

from ..graph.dependency_graph import reverse_post_order
from ..graph.search_limit import SearchLimit
from .memory_graph import memory_graph
from .problem import ScheduleAnswer, ScheduleProblem


def rpo(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """The reverse post-order of a depth-first walk; of two ready branches it finishes the earlier one first."""
    return ScheduleAnswer(reverse_post_order(memory_graph(problem)))
