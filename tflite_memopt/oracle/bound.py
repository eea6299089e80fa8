"""A lower bound on the arena of a graph, and of all candidates of a family at once; no order, no plan, no file.

While an operator runs, its inputs and outputs are in the arena, with its scratch; what its kernel lets an output share
with an input is taken off. The largest of these sums is below every plan of every order. To it comes what TFLM keeps
beside the head: its structures and the kernels' buffers, without what alignment between them costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT
from ..kernels import arena
from .description import Dimension, GraphSketch, OperatorSketch, Sizes, TensorSketch
from .facts import FactTable, OperatorFacts, facts_of, names_of


@dataclass(frozen=True)
class FamilyNeed:
    """An entry for each candidate: bytes of the arena and of its head, and multiply-accumulates."""

    required: Sizes
    head: Sizes
    macs: Sizes


def least_need(sketch: GraphSketch, table: FactTable) -> FamilyNeed:
    """The bound of every candidate. Raises UsageError when the arrays of the family have different lengths."""
    return _Bound(sketch, table).run()


def up(sizes: Dimension) -> Dimension:
    """Rounded up to TFLM's alignment."""
    return -(-sizes // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


class _Bound:
    """Sizes are numbers where all candidates have the same, and arrays where not: a single graph needs no NumPy."""

    def __init__(self, sketch: GraphSketch, table: FactTable) -> None:
        self._sketch, self._table, self._count = sketch, table, sketch.candidates
        self._bytes = {name: arena_bytes(each) for name, each in sketch.tensors.items() if is_in_head(each)}
        self._facts = [facts_of(sketch, operator, table) for operator in sketch.operators]
        self._in_views = {
            names_of(operator)[slot]
            for operator, (facts, _) in zip(sketch.operators, self._facts, strict=True)
            for each in facts
            for slot in each.views
        }

    def run(self) -> FamilyNeed:
        head = _largest(self._together(self._sketch.inputs), self._together(self._sketch.outputs))
        tail: Dimension = 0
        requests: Dimension = 0
        macs: Dimension = 0
        for operator, (facts, kind) in zip(self._sketch.operators, self._facts, strict=True):
            head = _largest(head, self._step(operator, facts, kind))
            tail = tail + spread([each.tail for each in facts], kind)
            requests = requests + spread([each.requests for each in facts], kind)
            macs = macs + spread([each.macs for each in facts], kind)
        figures = (self._required(head, tail, requests), head, macs)
        return FamilyNeed(*(np.broadcast_to(np.asarray(each, np.int64), (self._count,)) for each in figures))

    def _step(self, operator: OperatorSketch, facts: Sequence[OperatorFacts], kind: Sizes | None) -> Dimension:
        """Bytes while an operator runs: of all its tensors less what they share, or of its inputs or outputs alone."""
        names = names_of(operator)
        less = self._together(names) - spread([_shared(names, each) for each in facts], kind)
        ends = _largest(self._together(operator.inputs), self._together(operator.outputs))
        return _largest(ends, less) + spread([each.scratch for each in facts], kind)

    def _together(self, names: Sequence[str | None]) -> Dimension:
        """Bytes of tensors that are alive at once. Of those that may be ranges of one another, the largest counts."""
        alone: Dimension = 0
        view: Dimension = 0
        for name in dict.fromkeys(names):
            if name in self._in_views:
                view = _largest(view, self._bytes.get(str(name), 0))
            elif name in self._bytes:
                alone = alone + self._bytes[name]
        return alone + view

    def _required(self, head: Dimension, tail: Dimension, requests: Dimension) -> Dimension:
        """``AllocateTensors`` without alignment: see kernels/arena.py, whose structures these are."""
        abi, sketch = self._table.profile.abi, self._sketch
        fixed = (arena.BUFFER_ALLOCATOR, arena.MEMORY_PLANNER, arena.MICRO_ALLOCATOR, arena.BUILTIN_DATA_ALLOCATOR)
        structures = sum(size.on(abi) for size in fixed) + arena.SUBGRAPH_ALLOCATIONS.on(abi)
        structures += arena.EVAL_TENSOR.on(abi) * len(sketch.tensors)
        structures += arena.NODE_AND_REGISTRATION.on(abi) * len(sketch.operators)
        # The first of the buffers may lie in what alignment leaves of the structures.
        kept = structures + tail - (ARENA_ALIGNMENT - 1) + arena.SCRATCH_HANDLE.on(abi) * requests
        ends = len(sketch.inputs) + len(sketch.outputs)
        interface = (arena.POINTER.on(abi) + arena.TENSOR.on(abi)) * ends
        tables = arena.ALLOCATION_INFO.on(abi) * (len(sketch.tensors) + requests)
        tables = tables + arena.PLANNED_BUFFER.on(abi) * (len(self._bytes) + requests)
        return up(_largest(head + interface, tables) + kept)


def arena_bytes(tensor: TensorSketch) -> Dimension:
    """Bytes that a tensor takes in the arena."""
    return up(prod(tensor.shape, start=tensor.dtype.arena_bytes))


def _largest(one: Dimension, other: Dimension) -> Dimension:
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    found: Sizes = np.maximum(one, other)
    return found


def spread(values: Sequence[int], kind: Sizes | None) -> Dimension:
    """The value of each candidate's kind; one for all where there are no kinds."""
    if kind is None or len(set(values)) == 1:
        return values[0]
    found: Sizes = np.array(values)[kind]
    return found


def _shared(names: Sequence[str | None], facts: OperatorFacts) -> int:
    return sum({(names[first], names[second]): nbytes for first, second, nbytes in facts.shared}.values())


def is_in_head(tensor: TensorSketch) -> bool:
    """Handles of resources live in the kernel's own data."""
    return not tensor.is_constant and tensor.type != "resource"
