"""The slow, obvious checker of schedules; it shares no code with any method and runs on every result."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InfeasibleError
from .problem import ScheduleProblem


def check_order(problem: ScheduleProblem, order: Sequence[int]) -> None:
    """Raise InfeasibleError unless ``order`` runs every operator once and after all that it needs."""
    if sorted(order) != list(range(len(problem.steps))):
        raise InfeasibleError(f"the schedule does not run each of the {len(problem.steps)} operators once")
    producers = {tensor: index for index, step in enumerate(problem.steps) for tensor in step.outputs}
    done: set[int] = set()
    for index in order:
        needs = {producers[t] for t in problem.steps[index].inputs if t in producers}
        missing = (needs | set(problem.steps[index].after)) - done
        if missing:
            raise InfeasibleError(f"the schedule runs operator {index} before operator {min(missing)}, which it needs")
        done.add(index)


def peak_of(problem: ScheduleProblem, order: Sequence[int]) -> int:
    """Largest working set of an order in bytes, by following the definition step by step. O(n * alive)."""
    last_use = dict.fromkeys(problem.inputs, -1)
    for position, index in enumerate(order):
        step = problem.steps[index]
        last_use.update(dict.fromkeys((*step.inputs, *step.outputs), position))
    last_use.update(dict.fromkeys(problem.outputs, len(order)))
    alive = set(problem.inputs)
    peak = sum(problem.sizes[tensor] for tensor in alive)
    alive = {tensor for tensor in alive if last_use[tensor] >= 0}
    for position, index in enumerate(order):
        step = problem.steps[index]
        alive.update(step.outputs)
        saved = max((reuse.saved for reuse in step.reuses if last_use[reuse.tensor] == position), default=0)
        peak = max(peak, sum(problem.sizes[tensor] for tensor in alive) + step.scratch - saved)
        alive = {tensor for tensor in alive if last_use[tensor] > position}
    return peak
