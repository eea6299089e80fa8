"""A placement that makes no arena larger than it was, whichever of the profile's libraries the firmware links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..options import Options
from .arrange import Arrangement, ModelPlacement, place
from .layout import memory_layout
from .libraries import LibraryNeed, needs_by_library, worse_under
from .usage import memory_use


def placement_for_every_library(
    model: Model, found: Arrangement, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> ModelPlacement | None:
    """The placement that was found, or the smallest head of others, under which no library needs more than ``before``.

    The others: plans that leave holes for a library's scratch, and no plan at all. None where each makes some library
    worse. Pins must be kept, so that with pins there are no others.
    """
    if _is_no_worse(model, found.placement, before, profile, options):
        return found.placement
    if options.pins:
        return None
    fitting = [
        each for each in _others(model, found, profile, options) if _is_no_worse(model, each, before, profile, options)
    ]
    return min(fitting, key=lambda each: each.memory.arena_bytes, default=None)


def _is_no_worse(
    model: Model, placement: ModelPlacement, before: Mapping[str, LibraryNeed], profile: KernelProfile, options: Options
) -> bool:
    after = needs_by_library(model, placement.offsets, profile, placement.order)
    return not any(worse_under(before, after, options.objective))


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
