"""The order that the model came with."""

from __future__ import annotations

from ..budget import Budget
from .problem import Answer, ScheduleProblem


def as_is(problem: ScheduleProblem, budget: Budget) -> Answer:
    """The identity order."""
    return Answer(tuple(range(len(problem.steps))))
