"""Lower bounds on the peak of any order."""

from __future__ import annotations

from dataclasses import replace

from .problem import Reuse, ScheduleProblem, Step


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


def head_lower_bound(problem: ScheduleProblem, lower_bound: int) -> int:
    """Bytes of the head that no plan of any order goes below, given what no order's peak goes below.

    A peak is at a step that may save ``uncounted`` bytes more, or at one that may not. No search.
    """
    most = max((step.uncounted for step in problem.steps), default=0)
    if not most:
        return lower_bound
    saving = replace(problem, steps=tuple(_saving_all(step) for step in problem.steps))
    return max(lower_bound - most, schedule_lower_bound(saving))


def _saving_all(step: Step) -> Step:
    """The step as if what is not counted were saved by one of its inputs."""
    if not step.uncounted:
        return step
    return replace(step, reuses=(*step.reuses, Reuse(step.inputs[0], step.uncounted)))
