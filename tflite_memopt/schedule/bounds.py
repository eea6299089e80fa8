"""Lower bounds on the peak of any order."""

from __future__ import annotations

from .problem import ScheduleProblem


def schedule_lower_bound(problem: ScheduleProblem) -> int:
    """Bytes that no order can avoid: the largest need of one operator, or all inputs or outputs. No search."""
    sizes = problem.sizes
    saved = (max((reuse.saved for reuse in step.reuses), default=0) for step in problem.steps)
    steps = (
        sum(sizes[t] for t in {*step.inputs, *step.outputs}) + step.scratch - least
        for step, least in zip(problem.steps, saved, strict=True)
    )
    ends = (sum(sizes[t] for t in set(tensors)) for tensors in (problem.inputs, problem.outputs))
    return max((*steps, *ends), default=0)
