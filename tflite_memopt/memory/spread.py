"""A model over several memories: the bytes that move of every tensor, and where each lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..analysis.loops import loops_of
from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from ..ir.model import Model, Operator, Tensor
from ..plan.check import check_plan
from ..plan.memories import MemoriesPlan, MemoriesProblem, spread
from .layout import MemoryLayout
from .run_through import run_through
from .together import join

_PICKED = frozenset({"SLICE", "STRIDED_SLICE", "GATHER", "SPLIT", "SPLIT_V", "UNPACK"})
"""Operators that read no more of their first operand than they write."""
_PUT = "DYNAMIC_UPDATE_SLICE"
"""It writes no more of its output than its second operand has."""


def memories_problem(model: Model, layout: MemoryLayout, capacities: Sequence[int]) -> MemoriesProblem:
    """The problem of a model in the order in which it stands; ``capacities`` in bytes, the fastest memory first.

    What a loop carries at one offset is one item of it, as for the planner (``together.py``).
    """
    moved = traffic_of(model)
    joined = join(layout.problem, layout.groups)
    traffic = [0] * len(joined.problem.items)
    # Scratch is written once and read once.
    scratch = (2 * item.size for item in layout.items[len(layout.tensors) :])
    for item, nbytes in zip(joined.item_of, (*(moved[each] for each in layout.tensors), *scratch), strict=True):
        traffic[item] += nbytes
    return MemoriesProblem(joined.problem, tuple(traffic), tuple(capacities))


def spread_model(model: Model, layout: MemoryLayout, capacities: Sequence[int], limit: SearchLimit) -> MemoriesPlan:
    """The plan, by item of the layout, checked as a whole and over all iterations of loops.

    Raises InfeasibleError when the model does not fit.
    """
    item_of = join(layout.problem, layout.groups).item_of
    found = spread(memories_problem(model, layout, capacities), limit)
    memories = tuple(found.memories[item] for item in item_of)
    offsets = tuple(found.offsets[item] for item in item_of)
    starts = [sum(found.used[:number]) for number in range(len(capacities))]
    places = [aligned(starts[memory]) + offset for memory, offset in zip(memories, offsets, strict=True)]
    check_plan(layout.problem, places)
    run_through(model, layout, places)
    return replace(found, memories=memories, offsets=offsets)


def traffic_of(model: Model) -> Counter[Tensor]:
    """Bytes that operators read and write of each tensor in one invocation, weights and scratch apart.

    Each operator reads each operand once, as Figure 11 of SERENITY (Ahn et al., MLSys 2020, section 4.2) counts, and of
    what a slice picks that part alone. The body of a loop counts as often as it runs, once where that depends on data.
    """
    turns = {id(loop.body): loop.turns for loop in loops_of(model) if loop.turns is not None}
    moved: Counter[Tensor] = Counter()
    for graph in model.graphs:
        for operator in graph.operators:
            for tensor, nbytes in _moved_by(operator):
                moved[tensor] += turns.get(id(graph), 1) * nbytes
    return moved


def _moved_by(operator: Operator) -> list[tuple[Tensor, int]]:
    inputs = [tensor for tensor in operator.present_inputs() if not tensor.is_constant]
    outputs = list(operator.outputs)
    if operator.name == _PUT:
        part = operator.inputs[1]
        size = 0 if part is None else part.nbytes
        return [(tensor, size) for tensor in (*inputs[1:2], *outputs)]
    most = sum(tensor.nbytes for tensor in outputs) if operator.name in _PICKED else None
    read = [(tensor, tensor.nbytes if most is None else min(most, tensor.nbytes)) for tensor in inputs]
    return [*read, *((tensor, tensor.nbytes) for tensor in outputs)]
