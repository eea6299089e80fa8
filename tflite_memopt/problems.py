"""Model -> problems of integers, and solutions back: the only bridge between the IR and the solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from .analysis.alignment import aligned
from .analysis.lifetimes import Timeline, compute_timeline, in_head
from .analysis.side_effects import side_effect_order
from .atoms import Atoms, cut_into_atoms
from .budget import Budget
from .ir.control_flow import called_subgraphs
from .ir.model import Graph, Model, Operator, Tensor
from .kernels.profile import KernelProfile
from .kernels.relations.model import Share
from .kernels.requests.model import Word
from .pins import Pins, pinned_offsets
from .plan.bounds import max_breadth
from .plan.problem import Item, PlanProblem
from .plan.tflm_greedy import tflm_greedy
from .schedule.problem import Reuse, ScheduleProblem, Step
from .sharing import relations_of, saved_bytes, shares_of

_WORD_OF_SCRATCH: Word = 32
"""Scratch is counted in elements, not in pointers: its size is the same on every target."""


@dataclass(frozen=True)
class MemoryLayout:
    """What TFLM must place in the head: ``tensors`` in file order, then the scratch requests in call order.

    ``items`` is in the same order. ``scratch`` is the aligned scratch bytes of each operator that asks.
    Items of tensors that the user pinned have their offset. ``shares`` is what the kernels of the main graph permit,
    in any order; the relations of ``problem`` are what that comes to in this one.
    """

    timeline: Timeline
    tensors: tuple[Tensor, ...]
    scratch: Mapping[Operator, int]
    shares: Mapping[Operator, tuple[Share, ...]]
    items: tuple[Item, ...]
    returned: tuple[Tensor, ...]

    @cached_property
    def problem(self) -> PlanProblem:
        """The offset problem. Worked out when asked for: a search for an order does without its relations."""
        numbers = {tensor: number for number, tensor in enumerate(self.tensors)}
        return PlanProblem(self.items, relations_of(self.shares, self.timeline, numbers, self.returned))


def memory_layout(model: Model, profile: KernelProfile, pins: Pins = ()) -> MemoryLayout:
    """The offset problem of a model in its present order, the ``pins`` given. Raises UsageError for a wrong pin."""
    timeline = compute_timeline(model)
    places = pinned_offsets(timeline.tensors, pins)
    items = [
        Item(aligned(t.nbytes), life.start, life.end, offset=places.get(t)) for t, life in timeline.tensors.items()
    ]
    scratch: dict[Operator, int] = {}
    for operator in (op for graph in model.graphs for op in graph.operators if op in timeline.spans):
        span = timeline.spans[operator]
        for size in profile.requests(operator, _WORD_OF_SCRATCH).scratch:
            items.append(Item(aligned(size), span.start, span.end))
            scratch[operator] = scratch.get(operator, 0) + aligned(size)
    shares = shares_of(model.main, timeline, profile)
    return MemoryLayout(timeline, tuple(timeline.tensors), scratch, shares, tuple(items), model.main.outputs)


def offsets_to_write(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """The offsets for the file: those of a plan, or none where TFLM does better by itself.

    TFLM places scratch at the first gap, which need not be the gap that the plan kept for it. Pins are always kept.
    """
    planned = _plannable(model, layout, offsets)
    if any(item.offset is not None for item in layout.items):
        return planned
    return planned if head_in_force(layout, planned) <= head_in_force(layout, {}) else {}


def _plannable(model: Model, layout: MemoryLayout, offsets: tuple[int, ...]) -> dict[Tensor, int]:
    """The offsets that can be written into the file: tensors only, since scratch has no name there.

    TFLM looks up whether a subgraph's variable is planned at the variable's index in the *first* subgraph
    (micro_allocator.cc, ``AllocateVariables``), and would leave it without memory if that entry were planned.
    Those entries stay with TFLM.
    """
    shadowed = {index for graph in model.graphs[1:] for index, tensor in enumerate(graph.tensors) if tensor.is_variable}
    kept_back = {tensor for index, tensor in enumerate(model.main.tensors) if index in shadowed}
    pairs = zip(layout.tensors, offsets, strict=False)
    return {tensor: offset for tensor, offset in pairs if tensor not in kept_back}


def head_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> int:
    """TFLM's head in bytes when it places everything that is not planned around what is."""
    return head_of(layout, offsets_in_force(layout, planned))


def head_of(layout: MemoryLayout, offsets: Sequence[int]) -> int:
    """TFLM's head in bytes when every item has its offset."""
    return max((offset + item.size for offset, item in zip(offsets, layout.items, strict=True)), default=0)


def offsets_in_force(layout: MemoryLayout, planned: Mapping[Tensor, int]) -> tuple[int, ...]:
    """Where TFLM puts each item: what is planned as it says, the rest in its own way around that."""
    places = [planned.get(tensor) for tensor in layout.tensors]
    places += [None] * (len(layout.items) - len(places))
    items = tuple(
        Item(item.size, item.start, item.end, item.alignment, place)
        for item, place in zip(layout.items, places, strict=True)
    )
    return tflm_greedy(PlanProblem(items, layout.problem.relations), Budget()).offsets


def schedule_problem(graph: Graph, layout: MemoryLayout) -> ScheduleProblem:
    """The ordering problem of one graph, over atoms in place of tensors.

    A control-flow operator counts as one step, and what its subgraphs need at most as its scratch; they keep their
    own order.
    """
    inside = _called_bytes(graph, layout)
    atoms = cut_into_atoms([tensor for tensor in graph.tensors if in_head(tensor)], layout.shares)
    positions = {operator: position for position, operator in enumerate(graph.operators)}
    after: dict[int, list[int]] = {}
    for before, later in side_effect_order(graph):
        after.setdefault(later, []).append(before)

    def pick(chosen: Iterable[Tensor | None]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(atom for t in chosen if t is not None for atom in atoms.of.get(t, ())))

    def step(position: int, op: Operator) -> Step:
        filled = tuple(atom for atom in pick(op.outputs) if atoms.source[atom].producer is op)
        read = pick(op.inputs)
        # A view is read from atoms that others filled: it must have been made all the same.
        makers = {t.producer for t in op.present_inputs()} - {atoms.source[atom].producer for atom in read}
        made = sorted(positions[maker] for maker in makers if maker in positions)
        waits = tuple(dict.fromkeys((*after.get(position, ()), *made)))
        return Step(read, filled, inside.get(op, 0), waits, _reuses(op, layout, atoms))

    steps = tuple(step(position, op) for position, op in enumerate(graph.operators))
    return ScheduleProblem(atoms.sizes, steps, _given(graph, atoms), pick(graph.outputs))


def _given(graph: Graph, atoms: Atoms) -> tuple[int, ...]:
    """Atoms that an input of the graph fills."""
    inputs = set(graph.inputs)
    return tuple(atom for atom, source in enumerate(atoms.source) if source in inputs)


def _reuses(operator: Operator, layout: MemoryLayout, atoms: Atoms) -> tuple[Reuse, ...]:
    """What the operator saves where an input dies: only inputs of one atom, whose death is that of the atom."""
    return tuple(
        Reuse(atoms.of[share.input][0], saved_bytes(share))
        for share in layout.shares.get(operator, ())
        if share.kind != "view" and len(atoms.of[share.input]) == 1
    )


def _called_bytes(graph: Graph, layout: MemoryLayout) -> dict[Operator, int]:
    """For each operator the most bytes alive at once, while it runs, of its scratch and its subgraphs' items."""
    own = set(graph.tensors)
    found = {op: layout.scratch[op] for op in graph.operators if op in layout.scratch}
    for op in graph.operators:
        if op not in layout.timeline.spans or not called_subgraphs(op):
            continue
        span = layout.timeline.spans[op]
        inner = [
            item
            for item, tensor in zip_longest(layout.items, layout.tensors)
            if tensor not in own and span.start <= item.start and item.end <= span.end
        ]
        found[op] = max_breadth(PlanProblem(tuple(inner)))
    return found
