"""The order that the model came with."""

from __future__ import annotations

from ..graph.search_limit import SearchLimit
from .problem import Answer, ScheduleProblem


def as_is(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """The identity order."""
    return Answer(tuple(range(len(problem.steps))))
