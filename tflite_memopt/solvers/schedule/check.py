"""The slow, obvious checker of problems and schedules; it shares no code with any method and runs on every result."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from graphlib import CycleError, TopologicalSorter

from ...errors import ErrorKind, InfeasibleError
from .problem import ScheduleProblem


def check_problem(problem: ScheduleProblem) -> None:
    """Raise InfeasibleError unless every tensor in use has a size and one origin, and some order exists."""
    steps, writers = problem.steps, dict[int, int]()
    for index, step in enumerate(steps):
        for tensor in step.outputs:
            if writers.setdefault(tensor, index) != index:
                raise InfeasibleError(
                    f"operators {writers[tensor]} and {index} both write tensor {tensor}", ErrorKind.TWO_PRODUCERS
                )
    made = {*problem.inputs, *writers}
    for tensor in made:
        if not 0 <= tensor < len(problem.sizes):
            raise InfeasibleError(f"tensor {tensor} has no size: there are {len(problem.sizes)} tensors")
    for index, step in enumerate(steps):
        if not made.issuperset(step.inputs):
            raise InfeasibleError(
                f"operator {index} reads tensor {min({*step.inputs} - made)}, which nothing writes", ErrorKind.UNWRITTEN
            )
    if not made.issuperset(problem.outputs):
        raise InfeasibleError(
            f"the graph returns tensor {min({*problem.outputs} - made)}, which nothing writes", ErrorKind.UNWRITTEN
        )
    _check_waiting([{*step.after, *(writers[t] for t in step.inputs if t in writers)} for step in steps])


def _check_waiting(needs: Sequence[AbstractSet[int]]) -> None:
    missing = {v for some in needs for v in some if not 0 <= v < len(needs)}
    if missing:
        raise InfeasibleError(f"an operator waits for operator {min(missing)}; there are {len(needs)}, from 0 on")
    if all(v > max(some, default=-1) for v, some in enumerate(needs)):
        return  # no circle if every operator waits for earlier ones only
    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise InfeasibleError(
            f"no order exists: operators wait for each other in a circle, {cycle}", ErrorKind.CYCLE
        ) from None


def check_order(problem: ScheduleProblem, order: Sequence[int]) -> None:
    """Raise InfeasibleError unless ``order`` runs every operator once and after all that it needs."""
    if sorted(order) != list(range(len(problem.steps))):
        raise InfeasibleError(
            f"the schedule does not run each of the {len(problem.steps)} operators once", ErrorKind.COUNT
        )
    producers = {tensor: index for index, step in enumerate(problem.steps) for tensor in step.outputs}
    done: set[int] = set()
    for index in order:
        needs = {producers[t] for t in problem.steps[index].inputs if t in producers}
        missing = (needs | set(problem.steps[index].after)) - done
        if missing:
            raise InfeasibleError(
                f"the schedule runs operator {index} before operator {min(missing)}, which it needs", ErrorKind.ORDER
            )
        done.add(index)


def peak_of(problem: ScheduleProblem, order: Sequence[int]) -> int:
    """Return the largest working set of an order in bytes, by following the definition step by step. O(n * alive)."""
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
