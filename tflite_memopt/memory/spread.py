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
from ..plan.memories import MemoriesPlan, MemoriesProblem, part_of, spread
from .layout import MemoryLayout
from .run_through import run_through
from .ties import groups_with
from .together import Groups, join

_PICKED = frozenset({"SLICE", "STRIDED_SLICE", "GATHER", "SPLIT", "SPLIT_V", "UNPACK"})
"""Operators that read no more of their first operand than they write."""
_PUT = "DYNAMIC_UPDATE_SLICE"
"""It writes no more of its output than its second operand has."""


def memories_problem(
    model: Model, layout: MemoryLayout, capacities: Sequence[int], groups: Groups | None = None
) -> MemoriesProblem:
    """The problem of a model in the order in which it stands; ``capacities`` in bytes, the fastest memory first.

    What lies at one offset, the ``groups``, is one item of it, as for the planner (``together.py``); None: what loops
    carry.
    """
    moved = traffic_of(model)
    joined = join(layout.problem, layout.groups if groups is None else groups)
    traffic = [0] * len(joined.problem.items)
    # Scratch is written once and read once.
    scratch = (2 * item.size for item in layout.items[len(layout.tensors) :])
    for item, nbytes in zip(joined.item_of, (*(moved[each] for each in layout.tensors), *scratch), strict=True):
        traffic[item] += nbytes
    return MemoriesProblem(joined.problem, tuple(traffic), tuple(capacities))


def spread_model(
    model: Model,
    layout: MemoryLayout,
    capacities: Sequence[int],
    limit: SearchLimit,
    ties: Sequence[tuple[Tensor, Tensor]] = (),
    external: Sequence[Tensor] = (),
) -> MemoriesPlan:
    """The plan, by item of the layout, checked as a whole and over all iterations of loops.

    ``ties``: outputs at the places of inputs (``ties.py``). ``external``: tensors in buffers that are not the model's:
    each is alone in a memory after the ``capacities``, together with what has to lie at its offset.
    Raises InfeasibleError when the model does not fit, UsageError for a tie that cannot be.
    """
    groups = groups_with(layout, ties)
    item_of = join(layout.problem, groups).item_of
    problem = memories_problem(model, layout, capacities, groups)
    outside = tuple(dict.fromkeys(item_of[layout.tensors.index(tensor)] for tensor in external))
    inside = [item for item in range(len(problem.traffic)) if item not in outside]
    moved = tuple(problem.traffic[item] for item in inside)
    found = spread(MemoriesProblem(part_of(problem.plan, inside), moved, problem.capacities), limit)
    places = dict(zip(inside, zip(found.memories, found.offsets, strict=True), strict=True))
    places |= {item: (len(capacities) + number, 0) for number, item in enumerate(outside)}
    used = (*found.used, *(problem.plan.items[item].size for item in outside))
    memories = tuple(places[item][0] for item in item_of)
    offsets = tuple(places[item][1] for item in item_of)
    starts = [aligned(sum(used[:number])) for number in range(len(used))]
    whole = [starts[memory] + offset for memory, offset in zip(memories, offsets, strict=True)]
    check_plan(layout.problem, whole)
    run_through(model, layout, whole)
    return replace(found, memories=memories, offsets=offsets, used=used)


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
