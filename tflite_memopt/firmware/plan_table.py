"""A plan as the rows of a table: what TFLM asks a memory planner for, in TFLM's order, and where each lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..memory.in_force import offsets_in_force
from ..memory.layout import memory_layout


@dataclass(frozen=True)
class PlannedBuffer:
    """A tensor or a scratch buffer of ``bytes``, in use in TFLM's steps ``first`` to ``last``, both included.

    ``first`` is -1 for what is there before the first step. ``offset``: bytes from the start of the arena.
    """

    name: str
    bytes: int
    first: int
    last: int
    offset: int


def planned_buffers(model: Model, planned: Mapping[Tensor, int], profile: KernelProfile) -> tuple[PlannedBuffer, ...]:
    """The rows of a model, ``planned`` the offsets in its file, or none.

    The order and the steps are those of ``AllocationInfoBuilder`` and ``CreatePlan`` (TFLM, micro_allocation_info.cc
    and micro_allocator.cc, commit 90b983c2b3f1): tensors by subgraph and position, then scratch in order of requests.
    """
    layout = memory_layout(model, profile)
    offsets = offsets_in_force(layout, planned)
    starts = [layout.timeline.tensors[tensor].start for tensor in layout.tensors]
    starts += [item.start for item in layout.items[len(starts) :]]
    names = [tensor.name for tensor in layout.tensors]
    names += ["scratch"] * (len(starts) - len(names))
    rows = zip(names, layout.items, starts, offsets, strict=True)
    return tuple(PlannedBuffer(name, item.size, start, item.end - 1, offset) for name, item, start, offset in rows)
