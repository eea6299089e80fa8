"""The layout of the arena for each part of a program, counted for one kernel library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import UnsupportedModelError
from ...kernels.arena import arena_beside_head
from ...kernels.profile import KernelProfile
from ...memory.layout import head_of, memory_layout, offsets_in_force
from ...model.io import offline_plan
from ...model.ir.model import Model, Tensor
from ...solvers.graph.alignment import aligned
from .handover import Handover, PartSpace, Range, hand_over


def arena_of(parts: Sequence[Model], profile: KernelProfile) -> tuple[int, tuple[Handover, ...]]:
    """The arena of optimized parts under one kernel library, their plans in tables; the moves before each part."""
    return hand_over([part_space(part, profile, offline_plan.decode(part) or {}) for part in parts])


def part_space(part: Model, profile: KernelProfile, planned: Mapping[Tensor, int]) -> PartSpace:
    """Compute the layout of the arena for a part; ``planned``: the offsets of its tensors in its file.

    Raises UnsupportedModelError if its inputs or outputs lie outside of it.
    """
    layout = memory_layout(part, profile)
    offsets = offsets_in_force(layout, planned)
    places = dict(zip(layout.tensors, offsets, strict=False))
    beside = arena_beside_head(part, profile.requests, profile.abi, planner="table")
    variables = (tensor for tensor in layout.tensors if tensor.is_variable)
    return PartSpace(
        required=beside.with_head(head_of(layout.items, offsets)).required,
        tail=beside.tail,
        temporaries=beside.temporaries,
        cleared=tuple((places[each], places[each] + aligned(each.nbytes)) for each in variables),
        inputs=tuple(_range(each, places) for each in part.main.inputs),
        outputs=tuple(_range(each, places) for each in part.main.outputs),
    )


def counted_library(profile: KernelProfile) -> KernelProfile:
    """Return the library for which arenas are counted: the profile's own, TFLM's where firmware may link any."""
    return next(iter(profile.libraries), profile)


def _range(tensor: Tensor, places: Mapping[Tensor, int]) -> Range:
    if tensor not in places:
        raise UnsupportedModelError(f"a model in parts: '{tensor.name}' crosses a cut and is a constant")
    return places[tensor], places[tensor] + tensor.nbytes
