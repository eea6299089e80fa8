"""What TFLM must place in the head when a model runs in some order: tensors and scratch, as items for the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..analysis.lifetimes import UNBORN, Lifetime, Timeline, compute_timeline
from ..graph.alignment import aligned
from ..ir.model import Model, Operator, Tensor
from ..kernels.profile import KernelProfile
from ..kernels.relations import KernelReuse
from ..kernels.requests import ILP32
from ..plan.problem import Item, PlanProblem
from .loops import LoopLayout, loop_layout
from .pins import Pins, pinned_offsets
from .relations import relations_of, reuses_of, shared_by_npu

_ABI_OF_SCRATCH = ILP32
"""Scratch is counted in elements, not in pointers: its size is the same on every target."""


@dataclass(frozen=True)
class MemoryLayout:
    """What TFLM must place in the head: ``tensors`` in file order, then the scratch requests in the order of running.

    ``items`` is in the same order. ``scratch`` is the aligned scratch bytes of each operator that asks.
    Items of tensors that the user pinned have their offset. ``reuses`` is what the kernels of the main graph permit,
    in any order; the relations of ``problem`` are what that comes to in this one. ``order`` is that of the main graph's
    operators, by position; None: as they stand.
    """

    timeline: Timeline
    tensors: tuple[Tensor, ...]
    scratch: Mapping[Operator, int]
    reuses: Mapping[Operator, tuple[KernelReuse, ...]]
    items: tuple[Item, ...]
    returned: tuple[Tensor, ...]
    loops: LoopLayout
    order: tuple[int, ...] | None = None
    ties: tuple[tuple[Tensor, Tensor], ...] = ()

    @cached_property
    def problem(self) -> PlanProblem:
        """The offset problem. Worked out when asked for: a search for an order does without its relations."""
        numbers = {tensor: number for number, tensor in enumerate(self.tensors)}
        reuses = {**self.reuses, **self.loops.reuses}
        own = relations_of(reuses, self.timeline, numbers, (*self.returned, *self.loops.returned))
        fixed = shared_by_npu(self.tensors, self.items)
        return PlanProblem(self.items, tuple(dict.fromkeys((*own, *self.loops.relations(numbers), *fixed))))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Items by number that lie at one offset: what a loop carries, and what is tied."""
        return self.groups_with(self.ties)

    def groups_with(self, ties: Sequence[tuple[Tensor, Tensor]]) -> tuple[tuple[int, ...], ...]:
        """The groups with these ties in place of the model's own."""
        numbers = {tensor: number for number, tensor in enumerate(self.tensors)}
        groups = [tuple(numbers[tensor] for tensor in each.tensors) for each in self.loops.carried]
        for tie in ties:
            pair = {numbers[tensor] for tensor in tie}
            touched = [group for group in groups if not pair.isdisjoint(group)]
            apart = (group for group in groups if pair.isdisjoint(group))
            groups = [*apart, tuple(sorted(pair.union(*touched)))]
        return tuple(groups)


def memory_layout(
    model: Model, profile: KernelProfile, pins: Pins = (), order: Sequence[int] | None = None
) -> MemoryLayout:
    """The offset problem of a model, the ``pins`` given. Raises UsageError for a wrong pin.

    ``order``: positions of the main graph's operators in the order in which they run; None: as they stand.
    """
    timeline = compute_timeline(model, order)
    places = pinned_offsets(timeline.tensors, unplannable_tensors(model) if pins else (), pins)
    items = [
        Item(aligned(t.nbytes), _first_need(t, life, timeline), life.end, offset=places.get(t, t.fixed_offset))
        for t, life in timeline.tensors.items()
    ]
    scratch: dict[Operator, int] = {}
    for operator in _executed(model, timeline):
        span = timeline.spans[operator]
        # A request of 0 bytes has a handle, and no place.
        for size in filter(None, profile.requests(operator, _ABI_OF_SCRATCH).scratch):
            items.append(Item(aligned(size), span.start, span.end))
            scratch[operator] = scratch.get(operator, 0) + aligned(size)
    reuses = reuses_of(model.main, timeline, profile)
    runs_in = None if order is None else tuple(order)
    tensors, returned = tuple(timeline.tensors), model.main.outputs
    loops = loop_layout(model, reuses, timeline, profile)
    return MemoryLayout(timeline, tensors, scratch, reuses, tuple(items), returned, loops, runs_in, model.tied)


def unplannable_tensors(model: Model) -> frozenset[Tensor]:
    """Tensors of the main graph that TFLM must place itself.

    TFLM looks up whether a subgraph's variable is planned at the variable's index in the *first* subgraph
    (micro_allocator.cc, ``AllocateVariables``), and would leave it without memory if that entry were planned.
    """
    shadowed = {index for graph in model.graphs[1:] for index, tensor in enumerate(graph.tensors) if tensor.is_variable}
    return frozenset(tensor for index, tensor in enumerate(model.main.tensors) if index in shadowed)


def _first_need(tensor: Tensor, life: Lifetime, timeline: Timeline) -> int:
    """From when on a tensor needs its bytes. TFLM says of a placeholder: from the start; nobody reads it so early.

    The same of the memory that an NPU works in.
    """
    if not tensor.is_placeholder and (life.start != UNBORN or tensor.fixed_offset is None):
        return life.start
    return min((timeline.spans[use.operator].start for use in tensor.uses), default=life.start)


def _executed(model: Model, timeline: Timeline) -> Iterator[Operator]:
    """Graph by graph, the operators that run, in the timeline's order."""
    for graph in model.graphs:
        ran = (operator for operator in graph.operators if operator in timeline.spans)
        yield from sorted(ran, key=lambda operator: timeline.spans[operator].start)
