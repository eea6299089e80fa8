"""An arrangement that makes no arena larger than it was, whichever of the profile's libraries the firmware links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.requests.model import ILP32
from ..options import Options
from ..plan.problem import Item, PlanProblem, arena_bytes
from .arrange import Arrangement, ModelPlacement, place
from .in_force import offsets_to_write
from .layout import MemoryLayout, memory_layout
from .libraries import LibraryNeed, needs_by_library, worse_under
from .together import solve_together
from .usage import memory_use


def arranged_for_every_library(
    model: Model, found: Arrangement, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> Arrangement | None:
    """What was found, or it with another placement, under which no library needs more than ``before``.

    The ``needs`` of the answer are known. Other placements: a plan whose tensors lie low while a library needs much
    scratch, plans that leave holes for it, and no plan at all; of the last two kinds the one with the smallest head.
    None where each makes some library worse. Pins must be kept, so that with pins there are no others.
    """
    if found.needs is None:
        found = _placed(model, found, found.placement, profile)
    if _is_no_worse(found, before, options):
        return found
    if options.pins:
        return None
    low = _placed(model, found, _low_under_scratch(model, found.placement, before, profile, options), profile)
    if _is_no_worse(low, before, options):
        return low
    others = (_placed(model, found, each, profile) for each in _others(model, found, profile, options))
    fitting = (each for each in others if _is_no_worse(each, before, options))
    return min(fitting, key=lambda each: each.placement.memory.arena_bytes, default=None)


def _placed(model: Model, found: Arrangement, placement: ModelPlacement, profile: KernelProfile) -> Arrangement:
    """The arrangement with this placement, and what each library needs then."""
    needs = needs_by_library(model, placement.offsets, profile, placement.order)
    return replace(found, placement=placement, needs=needs)


def _is_no_worse(found: Arrangement, before: Mapping[str, LibraryNeed], options: Options) -> bool:
    assert found.needs is not None
    return not any(worse_under(before, found.needs, options.objective))


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
            with_its_scratch = replace(profile, requests=library.requests)
            planned = place(model, order, with_its_scratch, options)
            if planned is not None:
                yield replace(planned, layout=layout, memory=memory_use(model, layout, planned.offsets, profile))
        nothing: dict[Tensor, int] = {}
        memory = memory_use(model, layout, nothing, profile)
        yield replace(found.placement, order=order, layout=layout, offsets=nothing, memory=memory)
