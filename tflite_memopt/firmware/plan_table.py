"""A plan as the rows of a table: what TFLM asks a memory planner for, in TFLM's order, and where each lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..graph.search_limit import SearchLimit
from ..ir.model import Model, Tensor
from ..kernels.profile import KernelProfile
from ..memory.in_force import offsets_in_force
from ..memory.layout import MemoryLayout, memory_layout
from ..memory.spread import spread_model
from ..plan.memories import MemoriesPlan


@dataclass(frozen=True)
class PlannedBuffer:
    """A tensor or a scratch buffer of ``bytes``, in use in TFLM's steps ``first`` to ``last``, both included.

    ``first`` is -1 for what is there before the first step. ``offset``: bytes from the start of ``memory``.
    """

    name: str
    bytes: int
    first: int
    last: int
    offset: int
    memory: int = 0


def buffers_in(
    model: Model, profile: KernelProfile, capacities: Sequence[int]
) -> tuple[tuple[PlannedBuffer, ...], MemoriesPlan]:
    """The rows of a model over several memories of so many bytes, the fastest first, and the plan.

    Raises InfeasibleError when it does not fit.
    """
    layout = memory_layout(model, profile)
    found = spread_model(model, layout, capacities, SearchLimit())
    return tuple(_rows(layout, found.offsets, found.memories)), found


def planned_buffers(model: Model, planned: Mapping[Tensor, int], profile: KernelProfile) -> tuple[PlannedBuffer, ...]:
    """The rows of a model in one memory, ``planned`` the offsets in its file, or none.

    The order and the steps are those of ``AllocationInfoBuilder`` and ``CreatePlan`` (TFLM, micro_allocation_info.cc
    and micro_allocator.cc, commit 90b983c2b3f1): tensors by subgraph and position, then scratch in order of requests.
    """
    layout = memory_layout(model, profile)
    return tuple(_rows(layout, offsets_in_force(layout, planned), (0,) * len(layout.items)))


def _rows(layout: MemoryLayout, offsets: Sequence[int], memories: Sequence[int]) -> Iterator[PlannedBuffer]:
    starts = [layout.timeline.tensors[tensor].start for tensor in layout.tensors]
    starts += [item.start for item in layout.items[len(starts) :]]
    names = [tensor.name for tensor in layout.tensors]
    names += ["scratch"] * (len(starts) - len(names))
    for name, item, start, offset, memory in zip(names, layout.items, starts, offsets, memories, strict=True):
        yield PlannedBuffer(name, item.size, start, item.end - 1, offset, memory)
