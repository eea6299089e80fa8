"""The order that the model came with."""

from __future__ import annotations

from ..graph.search_limit import SearchLimit
from .problem import ScheduleAnswer, ScheduleProblem


def as_is(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """The identity order."""
    return ScheduleAnswer(tuple(range(len(problem.steps))))
