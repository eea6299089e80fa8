"""Order a model's operators, place its tensors, and judge the result: its cost, and its need with each library.

Nothing here changes the model: the caller applies order and offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..kernels.arena import ArenaBesideHead, arena_beside_head
from ..kernels.profile import KernelProfile
from ..model.analysis.macs import model_macs
from ..model.ir.model import Model, Tensor
from ..operators.requests import ILP32
from ..options import Objective, SearchOptions
from ..solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ..solvers.graph.limits import SearchLimit
from ..solvers.plan.check import check_plan
from ..solvers.plan.methods import CHEAP
from ..solvers.plan.problem import Item, Plan, PlanProblem, arena_bytes
from ..solvers.plan.together import claimed, join, solve_together
from ..solvers.schedule.methods import solve as solve_schedule
from ..solvers.schedule.problem import Schedule, ScheduleProblem
from .figures import MemoryUse, ReuseInForce, memory_use
from .layout import MemoryLayout, head_in_force, heads_with, memory_layout, offsets_to_write
from .problems import schedule_problem
from .reserve import LibraryNeed, Needs, need_with
from .storage import bytes_in_common


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
    """The chosen order with its problem, and the chosen placement.

    The order of ``placement`` is that of ``schedule`` or the model's own. ``needs``: what each library needs with it,
    by profile name, where that is known.
    """

    problem: ScheduleProblem
    schedule: Schedule
    placement: ModelPlacement
    needs: Needs | None = None


def arrange(
    model: Model,
    profile: KernelProfile,
    options: SearchOptions,
    effort: float = 1.0,
    known: tuple[int, ...] | None = None,
) -> Arrangement:
    """Order the operators and place the tensors, each search with that part of its limit of ``effort``.

    The model's own order wins when both need as much: a smaller peak has no value if the plan cannot use it. ``known``:
    offsets of the items in that order, which a search has found.
    """
    own = memory_layout(model, profile, range(len(model.main.operators)))
    problem = schedule_problem(model.main, own)
    schedule = solve_schedule(problem, limit=options.search_limit(effort))
    layouts = [own] if schedule.order == own.order else [own, memory_layout(model, profile, schedule.order)]
    limit = options.plan_limit(effort)
    # Here, where the next candidate finds them.
    plans = [solve_together(layout.joined, options.planner, limit) for layout in layouts]
    if known is not None:
        plans[0] = _or_known(own, plans[0], known)
    placements = (
        _placed(model, layout, plan, profile, options, limit) for layout, plan in zip(layouts, plans, strict=True)
    )
    return Arrangement(problem, schedule, min(placements, key=lambda placement: placement.memory.arena_bytes))


def _or_known(layout: MemoryLayout, plan: Plan, known: tuple[int, ...]) -> Plan:
    """Return the plan, or these offsets where they need less: with a number to be below, less effort may find more."""
    check_plan(layout.problem, known)
    arena = arena_bytes(layout.problem, known)
    return plan if plan.arena_bytes <= arena else _with_bound_of(plan, replace(plan, offsets=known, arena_bytes=arena))


def _placed(
    model: Model, layout: MemoryLayout, plan: Plan, profile: KernelProfile, options: SearchOptions, limit: SearchLimit
) -> ModelPlacement:
    plan, offsets = _best_in_force(model, layout, plan, options.planner, limit)
    plan = claimed(layout.joined, plan)
    assert layout.order is not None
    return ModelPlacement(layout.order, layout, plan, offsets, memory_use(model, layout, offsets, profile))


def _best_in_force(
    model: Model, layout: MemoryLayout, plan: Plan, planner: str, limit: SearchLimit
) -> tuple[Plan, dict[Tensor, int]]:
    """Return a plan, and its offsets to write; others are tried where TFLM's head is larger than planned.

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
        yield solve_together(layout.joined, name, limit)
    yield solve_together(join(_alive_as_for_tflm(layout), layout.groups), planner, limit)


def _with_bound_of(plan: Plan, other: Plan) -> Plan:
    """Another plan, of a problem that may ask for more, and the known facts about the problem as it is."""
    is_optimal = other.arena_bytes <= plan.lower_bound
    return replace(other, lower_bound=plan.lower_bound, optimal=is_optimal, certificate=plan.certificate)


def _alive_as_for_tflm(layout: MemoryLayout) -> PlanProblem:
    """Return the problem with every tensor alive as long as TFLM counts it, for placement at run time."""
    lives = [layout.timeline.tensors[tensor].start for tensor in layout.tensors]
    items = [replace(item, start=max(0, start)) for item, start in zip(layout.items, lives, strict=False)]
    return replace(layout.problem, items=(*items, *layout.items[len(items) :]))


def reuse_in_force(placement: ModelPlacement) -> tuple[ReuseInForce, ...]:
    """Return the permissions that the plan uses, largest saving first; a pair that two permit is there once."""
    offsets = dict(zip(placement.layout.tensors, placement.plan.offsets, strict=False)) if placement.offsets else {}
    found: dict[tuple[int, Tensor, Tensor], ReuseInForce] = {}
    for operator, reuses in placement.layout.reuses.items():
        for reuse in reuses:
            if reuse.input not in offsets or reuse.output not in offsets:
                continue
            both = bytes_in_common(reuse, offsets)
            if both > 0:
                use = ReuseInForce(operator.opcode.label, reuse.kind, reuse.input.name, reuse.output.name, both)
                found.setdefault((id(operator), reuse.input, reuse.output), use)
    return tuple(sorted(found.values(), key=lambda use: -use.saved_bytes))


@dataclass(frozen=True, order=True)
class Cost:
    """The cost of a model, compared field by field: bytes of the objective, head, then their price."""

    need: int
    head: int
    macs: int
    operators: int


@dataclass(frozen=True)
class Declined:
    """A candidate that needs less, whose new operator kinds or newer TFLM do not pay.

    ``need``: bytes of the objective. ``kinds``: operator kinds that the original does without. ``instructions``:
    estimated, by kernel library.
    """

    need: int
    kinds: tuple[str, ...]
    instructions: Mapping[str, int]


_EFFORT = 0.1
"""The part of its limit that the search for an order may use for one estimate: many are made."""


def cost_of(model: Model, profile: KernelProfile, options: SearchOptions) -> Cost:
    """Return the cost under the objective of ``options``, ordered and planned."""
    return cost_in(arrange(model, profile, options).placement.memory, options)


def cost_in(memory: MemoryUse, options: SearchOptions) -> Cost:
    """Return the cost of the plan, under the objective of ``options``."""
    return Cost(memory.bytes_for(options.objective), memory.arena_bytes, memory.macs, memory.operators)


def planned_head(model: Model, layout: MemoryLayout, options: SearchOptions, limit: SearchLimit) -> tuple[int, Plan]:
    """Return the bytes of the head in the order of a layout, as ``arrange`` plans it, and the plan.

    If the search finds no plan below ``limit.below``, they are those of its best plan, before TFLM places the rest.
    """
    plan = solve_together(layout.joined, options.planner, limit)
    if limit.below is not None and plan.arena_bytes >= limit.below:
        return plan.arena_bytes, plan
    plan, written = _best_in_force(model, layout, plan, options.planner, limit)
    return head_in_force(layout, written), plan


def cost_at(head: int, model: Model, profile: KernelProfile, options: SearchOptions) -> Cost:
    """Return the cost of a model whose head takes ``head`` bytes."""
    beside = arena_beside_head(model, profile.requests, profile.abi)
    return Cost(need_at(head, beside, options), head, model_macs(model), len(model.all_operators))


def head_below(need: int, beside: ArenaBesideHead, options: SearchOptions) -> int:
    """Return the bytes that a head must be below for an objective below ``need``.

    ``need``: one more than a multiple of 16 bytes, as a cutoff is.
    """
    return need - beside.tail if options.objective == "total" else need


def need_at(head: int, beside: ArenaBesideHead, options: SearchOptions) -> int:
    """Return the bytes that the objective counts when the head takes ``head`` bytes."""
    return beside.with_head(head).required if options.objective == "total" else head


def estimate_of(model: Model, profile: KernelProfile, options: SearchOptions) -> Cost:
    """Return the cost if the plan meets the peak of the best order: searches compare by it, the planner decides."""
    problem = schedule_problem(model.main, memory_layout(model, profile))
    peak = solve_schedule(problem, limit=options.search_limit(_EFFORT)).peak_bytes
    return cost_at(peak, model, profile, options)


def is_worse(before: LibraryNeed, after: LibraryNeed, objective: Objective) -> bool:
    """Tell whether a library needs more after than before: a larger head or, for the total, a larger arena.

    Of a library that was only read the head counts alone: its scratch can exceed all activations, and the structures of
    stripes would then weigh more than they save elsewhere.
    """
    counts_arena = objective == "total" and after.measured
    return after.head > before.head or (counts_arena and after.required > before.required)


def fitted(
    model: Model, found: Arrangement, before: Needs, profile: KernelProfile, options: SearchOptions
) -> Arrangement | None:
    """Return the arrangement, or one with another placement, such that no library needs more than ``before``.

    The ``needs`` of the answer are known; an arrangement that has them comes from here. Other placements: a plan whose
    tensors lie low while a library needs much scratch, plans that leave holes for it, and no plan at all; of the last
    two kinds the one with the smallest head. None where each makes some library worse. Ties must be kept, so that with
    these there are no others.
    """
    # The library that needed most comes first: it is the likeliest to need more, and then no other one is looked at.
    libraries = sorted(profile.libraries or (profile,), key=lambda each: before[each.name].head, reverse=True)

    def fitting(placement: ModelPlacement) -> Arrangement | None:
        needs = dict[str, LibraryNeed]()
        heads = heads_with(model, libraries, placement.offsets, placement.order)
        for library, head in zip(libraries, heads, strict=False):
            needs[library.name] = need_with(model, head, library, placement.order)
            if is_worse(before[library.name], needs[library.name], options.objective):
                return None
        return replace(found, placement=placement, needs={name: needs[name] for name in before})

    as_it_is = found if found.needs is not None else fitting(found.placement)
    if as_it_is is not None or options.ties:
        return as_it_is
    low = fitting(_low_under_scratch(model, found.placement, before, profile, options))
    if low is not None:
        return low
    others = filter(None, map(fitting, _others(model, found, profile, options)))
    return min(others, key=lambda each: each.placement.memory.arena_bytes, default=None)


def _low_under_scratch(
    model: Model, found: ModelPlacement, before: Needs, profile: KernelProfile, options: SearchOptions
) -> ModelPlacement:
    """Return the same order, with no tensor where it would lift a library's scratch above the head that it had before.

    TFLM puts scratch above the highest tensor that is alive where it finds no hole. So what is between the place that
    the scratch must begin at and the head is kept free while its operator runs.
    """
    layout, head = found.layout, found.memory.arena_bytes
    free = _kept_free(layout, head, before, profile)
    if not free:
        return found
    problem = PlanProblem((*layout.items, *free), layout.problem.relations)
    plan = solve_together(join(problem, layout.groups), options.planner, options.plan_limit())
    offsets = plan.offsets[: len(layout.items)]
    arena = arena_bytes(layout.problem, offsets)
    kept = replace(found.plan, offsets=offsets, arena_bytes=arena, optimal=arena <= found.plan.lower_bound)
    written = offsets_to_write(model, layout, offsets)
    return replace(found, plan=kept, offsets=written, memory=memory_use(model, layout, written, profile))


def _kept_free(layout: MemoryLayout, head: int, before: Needs, profile: KernelProfile) -> list[Item]:
    """Ranges that no tensor may touch, at each scope from the lowest place that a library's scratch must begin at."""
    lowest: dict[int, int] = {}
    for library in profile.libraries or (profile,):
        for operator, span in layout.timeline.spans.items():
            size = sum(aligned(each) for each in library.requests(operator, ILP32).scratch)
            start = (before[library.name].head - size) // ARENA_ALIGNMENT * ARENA_ALIGNMENT
            if size and 0 <= start < head:
                lowest.update((scope, min(start, lowest.get(scope, start))) for scope in range(span.start, span.end))
    return [Item(head - start, scope, scope + 1, offset=start) for scope, start in sorted(lowest.items())]


def _others(
    model: Model, found: Arrangement, profile: KernelProfile, options: SearchOptions
) -> Iterator[ModelPlacement]:
    """In the new order and in the model's own: planned for each library's scratch, and unplanned; what differs."""
    own = tuple(range(len(found.schedule.order)))
    for order in dict.fromkeys((tuple(found.schedule.order), own)):
        layout, limit = memory_layout(model, profile, order), options.plan_limit()
        different: dict[frozenset[tuple[Tensor, int]], tuple[Plan, dict[Tensor, int]]] = {}
        for library in profile.libraries or (profile,):
            # The library's holes, but only relations that hold for every library.
            placing = memory_layout(model, replace(profile, requests=library.requests), order)
            plan = solve_together(placing.joined, options.planner, limit)
            plan, offsets = _best_in_force(model, placing, plan, options.planner, limit)
            different.setdefault(frozenset(offsets.items()), (claimed(placing.joined, plan), offsets))
        different.setdefault(frozenset(), (found.placement.plan, {}))
        for plan, offsets in different.values():
            yield ModelPlacement(order, layout, plan, offsets, memory_use(model, layout, offsets, profile))
