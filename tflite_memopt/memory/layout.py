"""The items that TFLM must place in the head when a model runs in some order, and the offsets that it ends up with.

Tensors and scratch become items for the planner. TFLM takes the planned offsets as they are, and places the rest in
its own way around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from ..evidence.proof import Places
from ..kernels.profile import KernelProfile
from ..model.analysis.lifetimes import UNBORN, Lifetime, Timeline, compute_timeline
from ..model.ir.model import Model, Operator, Tensor
from ..operators.requests import ILP32
from ..solvers.graph.alignment import aligned
from ..solvers.graph.limits import SearchLimit
from ..solvers.plan.check import check_in_force
from ..solvers.plan.heuristics import tflm_greedy
from ..solvers.plan.problem import Item, PlanProblem
from ..solvers.plan.together import Groups, Joined, join
from .loops import LoopLayout, loop_layout
from .storage import Reuses, relations_of, reuses_of, shared_by_npu

_ABI_OF_SCRATCH = ILP32
"""Scratch is counted in elements, not in pointers: its size is the same on every target."""


@dataclass(frozen=True)
class MemoryLayout:
    """The items that TFLM must place in the head: ``tensors`` in file order, then the scratch requests in the order of
    running.

    ``items`` is in the same order. ``scratch`` is the aligned scratch bytes of each operator that asks.
    ``reuses`` are the relations that the kernels of the main graph permit, in any order; the relations of ``problem``
    are those of this order. ``order`` is that of the main graph's operators, by position; None: as they stand.
    """

    timeline: Timeline
    tensors: tuple[Tensor, ...]
    scratch: Mapping[Operator, int]
    reuses: Reuses
    items: tuple[Item, ...]
    returned: tuple[Tensor, ...]
    loops: LoopLayout
    order: tuple[int, ...] | None = None
    ties: tuple[tuple[Tensor, Tensor], ...] = ()

    @cached_property
    def numbers(self) -> Mapping[Tensor, int]:
        """The number of each tensor's item."""
        return {tensor: number for number, tensor in enumerate(self.tensors)}

    @cached_property
    def problem(self) -> PlanProblem:
        """The offset problem. Worked out when asked for: a search for an order does without its relations."""
        reuses = {**self.reuses, **self.loops.reuses}
        own = relations_of(reuses, self.timeline, self.numbers, (*self.returned, *self.loops.returned))
        fixed = shared_by_npu(self.tensors, self.items)
        return PlanProblem(self.items, tuple(dict.fromkeys((*own, *self.loops.relations(self.numbers), *fixed))))

    @cached_property
    def groups(self) -> Groups:
        """Items by number that lie at one offset: carried by a loop, or tied."""
        return self.groups_with(self.ties)

    @cached_property
    def joined(self) -> Joined:
        """The offset problem with each of the groups as one item."""
        return join(self.problem, self.groups)

    def groups_with(self, ties: Sequence[tuple[Tensor, Tensor]]) -> Groups:
        """Return the groups with these ties in place of the model's own."""
        groups = [tuple(self.numbers[tensor] for tensor in each) for each in self.loops.carried]
        for tie in ties:
            pair = {self.numbers[tensor] for tensor in tie}
            touched = [group for group in groups if not pair.isdisjoint(group)]
            apart = (group for group in groups if pair.isdisjoint(group))
            groups = [*apart, tuple(sorted(pair.union(*touched)))]
        return tuple(groups)


def memory_layout(model: Model, profile: KernelProfile, order: Sequence[int] | None = None) -> MemoryLayout:
    """Return the offset problem of a model.

    ``order``: positions of the main graph's operators in the order in which they run; None: as they stand.
    """
    timeline = compute_timeline(model, order)
    of_operators = _scratch_of(model, timeline, profile)
    scratch: dict[Operator, int] = {}
    for operator, item in of_operators:
        scratch[operator] = scratch.get(operator, 0) + item.size
    items = [*_items_of(timeline), *(item for _, item in of_operators)]
    reuses = reuses_of(model.main, timeline, profile)
    runs_in = None if order is None else tuple(order)
    tensors, returned = tuple(timeline.tensors), model.main.outputs
    loops = loop_layout(model, reuses, timeline, profile)
    return MemoryLayout(timeline, tensors, scratch, reuses, tuple(items), returned, loops, runs_in, model.tied)


def _items_of(timeline: Timeline) -> list[Item]:
    """The items of the tensors."""
    return [
        Item(aligned(t.nbytes), _first_need(t, life, timeline), life.end, offset=t.fixed_offset)
        for t, life in timeline.tensors.items()
    ]


def _scratch_of(model: Model, timeline: Timeline, profile: KernelProfile) -> list[tuple[Operator, Item]]:
    """The requests for scratch, as items, each with its operator. One of 0 bytes has a handle, and no place."""
    return [
        (operator, Item(aligned(size), timeline.spans[operator].start, timeline.spans[operator].end))
        for operator in chain.from_iterable(map(timeline.executed, model.graphs))
        for size in profile.requests(operator, _ABI_OF_SCRATCH).scratch
        if size
    ]


def unplannable_tensors(model: Model) -> frozenset[Tensor]:
    """Return the tensors of the main graph that TFLM must place itself.

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


def offsets_to_write(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """Return the offsets for the file: those of a plan, or none where TFLM does better by itself.

    Raises InfeasibleError where TFLM, which places the rest around them, would break a rule.
    TFLM places scratch at the first gap, which need not be the gap that the plan kept for it. Fixed offsets and ties
    are always kept, and a placeholder that has no offset would be in the tail.
    """
    planned = _plannable(model, layout, offsets)
    check_in_force(layout.problem, offsets_in_force(layout, planned))
    is_fixed = any(item.offset is not None for item in layout.items)
    if is_fixed or model.ties or any(tensor.is_placeholder for tensor in layout.tensors):
        return planned
    return planned if head_in_force(layout, planned) <= head_in_force(layout, {}) else {}


def _plannable(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """Return the offsets that can be written into the file: of tensors only, since scratch has no name there."""
    kept_back = unplannable_tensors(model)
    pairs = zip(layout.tensors, offsets, strict=False)
    return {tensor: offset for tensor, offset in pairs if tensor not in kept_back}


def head_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> int:
    """TFLM's head in bytes if it places all unplanned tensors around the planned ones."""
    return head_of(layout.items, offsets_in_force(layout, planned))


def head_of(items: Sequence[Item], offsets: Sequence[int]) -> int:
    """TFLM's head in bytes when every item of a layout has its offset."""
    return max((offset + item.size for offset, item in zip(offsets, items, strict=True)), default=0)


def offsets_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> tuple[int, ...]:
    """Compute the offset of each item in TFLM: planned ones as written, the rest placed by TFLM around them."""
    return _in_force(layout.timeline, layout.items, planned)


def _in_force(timeline: Timeline, items: Sequence[Item], planned: Mapping[Tensor, int]) -> tuple[int, ...]:
    """As ``offsets_in_force``. ``items``: those of the tensors first. TFLM knows no relations."""
    count = len(timeline.tensors)
    tensors = (
        replace(item, start=life.start, offset=planned.get(tensor))
        for item, (tensor, life) in zip(items[:count], timeline.tensors.items(), strict=True)
    )
    return tflm_greedy(PlanProblem((*tensors, *items[count:])), SearchLimit()).offsets


def heads_with(
    model: Model, profiles: Sequence[KernelProfile], planned: Mapping[Tensor, int], order: Sequence[int] | None = None
) -> Iterator[int]:
    """Yield TFLM's head in bytes with the scratch of each of the profiles, as ``head_in_force`` of their layouts."""
    timeline = compute_timeline(model, order)
    tensors = _items_of(timeline)
    for profile in profiles:
        items = [*tensors, *(item for _, item in _scratch_of(model, timeline, profile))]
        yield head_of(items, _in_force(timeline, items, planned))


def places_of(model: Model, layout: MemoryLayout, offsets: Sequence[int], profile: KernelProfile) -> Places:
    """Return the places of a layout's items; ``offsets``: of all of them, those that TFLM finds itself included."""
    tensors = dict(zip(layout.tensors, offsets, strict=False))
    rest = iter(offsets[len(layout.tensors) :])
    scratch: dict[Operator, list[tuple[int, int]]] = {}
    for operator in chain.from_iterable(map(layout.timeline.executed, model.graphs)):  # the order of the items
        for size in filter(None, profile.requests(operator, _ABI_OF_SCRATCH).scratch):
            first = next(rest)
            scratch.setdefault(operator, []).append((first, first + size))
    return Places(tensors, profile.name, scratch, model.ties)
