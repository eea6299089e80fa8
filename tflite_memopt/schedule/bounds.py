"""Lower bounds on the peak of any order."""

from __future__ import annotations

from .problem import ScheduleProblem


def any_order(problem: ScheduleProblem) -> int:
    """``schedule_`` bound in bytes without a search: the largest need of one operator, or all inputs or outputs."""
    sizes = problem.sizes
    steps = (sum(sizes[t] for t in {*s.inputs, *s.outputs}) + s.scratch for s in problem.steps)
    ends = (sum(sizes[t] for t in set(tensors)) for tensors in (problem.inputs, problem.outputs))
    return max((*steps, *ends), default=0)
