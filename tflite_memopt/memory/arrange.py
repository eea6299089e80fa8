"""The order and the offsets of a model, found and judged. Nothing here changes the model: the caller applies them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..errors import InfeasibleError
from ..graph.search_limit import SearchLimit
from ..graph.side_by_side import side_by_side
from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..options import Options
from ..plan.methods import CHEAP
from ..plan.problem import Plan, PlanProblem
from ..schedule.methods import solve as solve_schedule
from ..schedule.problem import Schedule, ScheduleProblem
from .figures import LibraryNeed, MemoryUse, ReuseInForce
from .in_force import head_in_force, offsets_to_write
from .layout import MemoryLayout, memory_layout
from .pins import check_pins
from .schedule_problem import schedule_problem
from .together import solve_together
from .usage import memory_use

_OTHER_PROFILES_WORK = 0.05
"""Part of a search's limit for the plan of a profile that was not asked for."""
_MANY_ITEMS = 200
"""Of both orders, which are planned at once: with fewer, processes may take longer than they save."""


@dataclass(frozen=True)
class ModelPlacement:
    """The plan of a model that runs in ``order``: positions of the main graph's operators as they stand.

    ``offsets`` are those to write into the file, ``memory`` what the model then needs.
    """

    order: tuple[int, ...]
    layout: MemoryLayout
    plan: Plan
    offsets: Mapping[Tensor, int]
    memory: MemoryUse


@dataclass(frozen=True)
class Arrangement:
    """The order that was found, with the problem that it solves, and the placement that was chosen.

    The order of ``placement`` is that of ``schedule`` or the model's own. ``needs``: what each library needs with it,
    by profile name, where that is known.
    """

    problem: ScheduleProblem
    schedule: Schedule
    placement: ModelPlacement
    needs: Mapping[str, LibraryNeed] | None = None


def arrange(model: Model, profile: KernelProfile, options: Options, work: float = 1.0) -> Arrangement:
    """Order the operators and place the tensors, each search with that part of its limit of ``work``.

    The model's own order wins when both need as much: a smaller peak is worth nothing that the plan cannot make use of.
    Raises UsageError when pins collide in both.
    """
    problem = schedule_problem(model.main, memory_layout(model, profile))
    schedule = solve_schedule(problem, options.scheduler, options.search_limit(work))
    return Arrangement(problem, schedule, place_in_better_order(model, schedule.order, profile, options, work))


def place_in_better_order(
    model: Model, order: Sequence[int], profile: KernelProfile, options: Options, work: float = 1.0
) -> ModelPlacement:
    """The placement of the smaller head: of the model in its own order, or in ``order``. Raises as ``arrange``."""
    own = tuple(range(len(order)))
    layouts = [memory_layout(model, profile, options.pins, each) for each in dict.fromkeys((own, tuple(order)))]
    limit = options.plan_limit(work)
    is_much = sum(len(layout.items) for layout in layouts) >= _MANY_ITEMS
    plans = side_by_side(partial(_planned, options, limit), layouts, options.jobs if is_much else 1)
    placements = [
        _placed(model, layout, plan, profile, options, limit)
        for layout, plan in zip(layouts, plans, strict=True)
        if plan is not None
    ]
    if placements:
        return min(placements, key=lambda placement: placement.memory.arena_bytes)
    check_pins(layouts[0].problem, layouts[0].tensors)
    raise InfeasibleError("the pins leave no place for the other tensors")


def place(
    model: Model, order: tuple[int, ...], profile: KernelProfile, options: Options, work: float = 1.0
) -> ModelPlacement | None:
    """The placement in one order; None where its pins collide."""
    layout, limit = memory_layout(model, profile, options.pins, order), options.plan_limit(work)
    plan = _planned(options, limit, layout)
    return None if plan is None else _placed(model, layout, plan, profile, options, limit)


def _planned(options: Options, limit: SearchLimit, layout: MemoryLayout) -> Plan | None:
    """The plan of one order; None where its pins collide."""
    try:
        return solve_together(layout.problem, layout.groups, options.planner, limit)
    except InfeasibleError:
        if not options.pins:
            raise
        return None


def _placed(
    model: Model, layout: MemoryLayout, plan: Plan, profile: KernelProfile, options: Options, limit: SearchLimit
) -> ModelPlacement:
    plan, offsets = _best_in_force(model, layout, plan, options.planner, limit)
    assert layout.order is not None
    return ModelPlacement(layout.order, layout, plan, offsets, memory_use(model, layout, offsets, profile))


def _best_in_force(
    model: Model, layout: MemoryLayout, plan: Plan, planner: str, limit: SearchLimit
) -> tuple[Plan, dict[Tensor, int]]:
    """A plan, and its offsets to write; others are tried where TFLM's head is larger than planned.

    TFLM counts the result of a loop, which is not set before that, as alive from the start: scratch that the plan has
    on its bytes earlier is put elsewhere. The last plan that is tried keeps those bytes for it from the start.
    """
    best = plan, offsets_to_write(model, layout, plan.offsets)
    least = head_in_force(layout, best[1])
    if least <= plan.arena_bytes:
        return best
    for other in _other_plans(layout, planner, limit):
        offsets = offsets_to_write(model, layout, other.offsets)
        head = head_in_force(layout, offsets)
        if head < least:
            best, least = (other, offsets), head
        if least <= plan.arena_bytes:
            break
    return _with_bound_of(plan, best[0]), best[1]


def _other_plans(layout: MemoryLayout, planner: str, limit: SearchLimit) -> Iterator[Plan]:
    for name in CHEAP:
        yield solve_together(layout.problem, layout.groups, name, limit)
    yield solve_together(_alive_as_for_tflm(layout), layout.groups, planner, limit)


def _with_bound_of(plan: Plan, other: Plan) -> Plan:
    """Another plan, of a problem that may ask for more, and what is known of the problem as it is."""
    is_optimal = other.arena_bytes <= plan.lower_bound
    return replace(other, lower_bound=plan.lower_bound, optimal=is_optimal, certificate=plan.certificate)


def _alive_as_for_tflm(layout: MemoryLayout) -> PlanProblem:
    """The problem with every tensor alive as long as TFLM counts it, for what is placed at run time."""
    lives = [layout.timeline.tensors[tensor].start for tensor in layout.tensors]
    items = [replace(item, start=max(0, start)) for item, start in zip(layout.items, lives, strict=False)]
    return replace(layout.problem, items=(*items, *layout.items[len(items) :]))


def reuse_in_force(placement: ModelPlacement) -> tuple[ReuseInForce, ...]:
    """What the plan makes of the kernels' permissions, largest saving first; a pair that two permit is there once."""
    offsets = dict(zip(placement.layout.tensors, placement.plan.offsets, strict=False)) if placement.offsets else {}
    found: dict[tuple[int, Tensor, Tensor], ReuseInForce] = {}
    for operator, reuses in placement.layout.reuses.items():
        for reuse in reuses:
            if reuse.input not in offsets or reuse.output not in offsets:
                continue
            first, second = offsets[reuse.input], offsets[reuse.output]
            both = min(first + reuse.input.nbytes, second + reuse.output.nbytes) - max(first, second)
            if both > 0:
                use = ReuseInForce(operator.opcode.label, reuse.kind, reuse.input.name, reuse.output.name, both)
                found.setdefault((id(operator), reuse.input, reuse.output), use)
    return tuple(sorted(found.values(), key=lambda use: -use.saved_bytes))
