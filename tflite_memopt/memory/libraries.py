"""What a model needs under each library that firmware may link, and a placement with which none needs more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Model, Tensor
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..kernels.requests import ILP32
from ..options import Objective, Options
from ..plan.problem import Item, PlanProblem, arena_bytes
from .arrange import Arrangement, ModelPlacement, place
from .figures import LibraryNeed
from .in_force import head_in_force, offsets_to_write
from .layout import MemoryLayout, memory_layout
from .together import solve_together
from .usage import memory_use


def needs_by_library(
    model: Model, planned: Mapping[Tensor, int], profile: KernelProfile, order: Sequence[int] | None = None
) -> dict[str, LibraryNeed]:
    """What the model needs under each library of the profile, or under its own, ``planned`` in force; by profile name.

    TFLM places each library's scratch around the same offsets. ``order`` as for ``memory_layout``.
    """
    found = {}
    for library in profile.libraries or (profile,):
        head = head_in_force(memory_layout(model, library, order=order), planned)
        required = arena_use(model, head, library.requests, profile.abi, order).required
        found[library.name] = LibraryNeed(head, required, library.measured_at is not None)
    return found


def miscomputed(model: Model, profile: KernelProfile) -> tuple[str, ...]:
    """Names of the outputs that a library of the profile may compute wrongly, whatever the plan."""
    operators = (operator for graph in model.graphs for operator in graph.operators)
    return tuple(operator.outputs[0].name for operator in operators if profile.may_miscompute(operator))


def worse_under(
    before: Mapping[str, LibraryNeed], after: Mapping[str, LibraryNeed], objective: Objective
) -> Iterator[str]:
    """Libraries that need more after than before: a larger head or, for the total, a larger arena.

    Of a library that was only read the head counts alone: its scratch can exceed all activations, and the structures of
    stripes would then weigh more than what they save elsewhere.
    """
    for name, need in after.items():
        counts_arena = objective == "total" and need.measured
        if need.head > before[name].head or (counts_arena and need.required > before[name].required):
            yield name


def fitted(
    model: Model, found: Arrangement, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> Arrangement | None:
    """What was found, or it with another placement, under which no library needs more than ``before``.

    The ``needs`` of the answer are known. Other placements: a plan whose tensors lie low while a library needs much
    scratch, plans that leave holes for it, and no plan at all; of the last two kinds the one with the smallest head.
    None where each makes some library worse. Pins must be kept, so that with pins there are no others.
    """

    def known(placement: ModelPlacement) -> Arrangement:
        needs = needs_by_library(model, placement.offsets, profile, placement.order)
        return replace(found, placement=placement, needs=needs)

    def is_no_worse(arrangement: Arrangement) -> bool:
        assert arrangement.needs is not None
        return not any(worse_under(before, arrangement.needs, options.objective))

    as_it_is = known(found.placement) if found.needs is None else found
    if is_no_worse(as_it_is):
        return as_it_is
    if options.pins:
        return None
    low = known(_low_under_scratch(model, found.placement, before, profile, options))
    if is_no_worse(low):
        return low
    others = (known(placement) for placement in _others(model, found, profile, options))
    return min(filter(is_no_worse, others), key=lambda each: each.placement.memory.arena_bytes, default=None)


def _low_under_scratch(
    model: Model, found: ModelPlacement, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> ModelPlacement:
    """The same order, with no tensor where it would lift a library's scratch above the head that it had before.

    TFLM puts scratch above the highest tensor that is alive where it finds no hole. So what is between the place that
    the scratch must begin at and the head is kept free while its operator runs.
    """
    layout, head = found.layout, found.memory.arena_bytes
    free = _kept_free(layout, head, before, profile)
    if not free:
        return found
    problem = PlanProblem((*layout.items, *free), layout.problem.relations)
    plan = solve_together(problem, layout.groups, options.planner, options.plan_limit())
    offsets = plan.offsets[: len(layout.items)]
    arena = arena_bytes(layout.problem, offsets)
    kept = replace(found.plan, offsets=offsets, arena_bytes=arena, optimal=arena <= found.plan.lower_bound)
    written = offsets_to_write(model, layout, offsets)
    return replace(found, plan=kept, offsets=written, memory=memory_use(model, layout, written, profile))


def _kept_free(
    layout: MemoryLayout, head: int, before: Mapping[str, LibraryNeed], profile: KernelProfile
) -> list[Item]:
    """Ranges that no tensor may touch, at each scope from the lowest place that a library's scratch must begin at."""
    lowest: dict[int, int] = {}
    for library in profile.libraries or (profile,):
        for operator, span in layout.timeline.spans.items():
            size = sum(aligned(each) for each in library.requests(operator, ILP32).scratch)
            start = (before[library.name].head - size) // ARENA_ALIGNMENT * ARENA_ALIGNMENT
            if size and 0 <= start < head:
                lowest.update((scope, min(start, lowest.get(scope, start))) for scope in range(span.start, span.end))
    return [Item(head - start, scope, scope + 1, offset=start) for scope, start in sorted(lowest.items())]


def _others(model: Model, found: Arrangement, profile: KernelProfile, options: Options) -> Iterator[ModelPlacement]:
    """In the order that was found and in the model's own: planned for each library's scratch, and unplanned."""
    own = tuple(range(len(found.schedule.order)))
    for order in dict.fromkeys((tuple(found.schedule.order), own)):
        layout = memory_layout(model, profile, order=order)
        for library in profile.libraries or (profile,):
            # The library's holes, but only what holds for every library.
            planned = place(model, order, replace(profile, requests=library.requests), options)
            if planned is not None:
                yield replace(planned, layout=layout, memory=memory_use(model, layout, planned.offsets, profile))
        nothing: dict[Tensor, int] = {}
        memory = memory_use(model, layout, nothing, profile)
        yield replace(found.placement, order=order, layout=layout, offsets=nothing, memory=memory)
