"""Planning in passes, for tensors whose size is known only once others have been computed.

Each pass plans what it has become possible to plan, around what earlier passes placed: their bytes are in use.
Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflite_memopt.errors import UsageError
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.bounds import section_bound
from tflite_memopt.solvers.plan.methods import BEST, restricted, solve
from tflite_memopt.solvers.plan.problem import Plan, PlanProblem, arena_bytes


def extend_plan(
    problem: PlanProblem, placed: Mapping[int, int], method: str = BEST, limit: SearchLimit | None = None
) -> Plan:
    """One pass: plan all items, those in ``placed`` (item -> offset in bytes) where they are. Raises as ``solve``."""
    items = tuple(
        replace(item, offset=placed[index]) if index in placed else item for index, item in enumerate(problem.items)
    )
    return solve(replace(problem, items=items), method, limit)


def plan_incrementally(
    problem: PlanProblem, passes: Sequence[int], method: str = BEST, limit: SearchLimit | None = None
) -> Plan:
    """Plan item i in pass ``passes[i]``, the lowest first; no offset depends on items of later passes.

    Each pass may do all the work of the limit; ``lower_bound`` is that of planning all items at once. Raises UsageError
    unless there is one pass for each item, else as ``solve``.
    """
    if len(passes) != len(problem.items):
        raise UsageError(f"{len(passes)} passes are given for {len(problem.items)} items")
    limit, numbers = limit or SearchLimit(), sorted(set(passes))
    placed: dict[int, int] = {}
    deadline = limit.deadline()
    seconds, used, stopped = 0.0, method, False
    for number in numbers:
        known = [index for index, first in enumerate(passes) if first <= number]
        positions = {index: position for position, index in enumerate(known)}
        earlier = {positions[index]: offset for index, offset in placed.items()}
        left = replace(limit, time_limit=deadline.left())
        plan = extend_plan(restricted(problem, known), earlier, method, left)
        placed = dict(zip(known, plan.offsets, strict=True))
        seconds, used, stopped = seconds + plan.seconds, plan.method, stopped or plan.stopped_by_clock
    offsets = tuple(placed[index] for index in range(len(problem.items)))
    size, certificate = arena_bytes(problem, offsets), section_bound(problem)
    bound = certificate.nbytes
    return Plan(offsets, size, bound, size == bound, used, seconds, certificate, stopped_by_clock=stopped)
