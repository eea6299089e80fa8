"""A model over several memories: the bytes that move of every tensor, and where each lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ..errors import ErrorKind, InfeasibleError, UsageError
from ..evidence.proof import Status, prove_plan
from ..kernels.arena import MemoryPlanner, arena_beside_head
from ..kernels.profile import KernelProfile
from ..model.analysis.loops import loops_of
from ..model.ir.model import Model, Operator, Tensor
from ..solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ..solvers.graph.limits import SearchLimit
from ..solvers.plan.check import check_plan
from ..solvers.plan.memories import MemoriesPlan, MemoriesProblem, part_of, spread
from ..solvers.plan.together import join
from .layout import MemoryLayout, places_of
from .problems import groups_with

_PICKED = frozenset({"SLICE", "STRIDED_SLICE", "GATHER", "SPLIT", "SPLIT_V", "UNPACK"})
"""Operators that read no more of their first operand than they write."""
_PUT = "DYNAMIC_UPDATE_SLICE"
"""It writes no more of its output than its second operand has."""


def moves_of(model: Model, layout: MemoryLayout) -> list[int]:
    """Return the bytes that move in one invocation, of each item of the layout.

    The use of scratch by a kernel is unknown: it counts as written once and read once.
    """
    moved = traffic_of(model)
    scratch = (2 * item.size for item in layout.items[len(layout.tensors) :])
    return [*(moved[each] for each in layout.tensors), *scratch]


def spread_model(
    model: Model,
    layout: MemoryLayout,
    profile: KernelProfile,
    capacities: Sequence[int],
    prices: tuple[int, ...],
    ties: Sequence[tuple[Tensor, Tensor]],
    external: Sequence[Tensor],
) -> MemoriesPlan:
    """Return the plan, by item of the layout, checked as a whole, and proved over all iterations of loops.

    ``capacities`` in bytes, the fastest memory first; ``prices``: of a byte that moves, by memory. ``ties``: outputs at
    the places of inputs (``problems.py``); what lies at one offset is one item, as for the planner (``together.py``).
    ``external``: tensors in buffers that are not the model's: each is alone in a memory after the ``capacities``,
    together with items that must lie at its offset.
    Raises InfeasibleError when the model does not fit, UsageError for a tie that cannot be.
    """
    joined = join(layout.problem, groups_with(layout, ties))
    item_of, items = joined.item_of, joined.problem.items
    traffic = [0] * len(items)
    for item, nbytes in zip(item_of, moves_of(model, layout), strict=True):
        traffic[item] += nbytes
    outside = tuple(dict.fromkeys(item_of[layout.tensors.index(tensor)] for tensor in external))
    inside = [item for item in range(len(items)) if item not in outside]
    moved = tuple(traffic[item] for item in inside)
    problem = MemoriesProblem(part_of(joined.problem, inside), moved, tuple(capacities), prices)
    found = spread(problem, SearchLimit())
    places = dict(zip(inside, zip(found.memories, found.offsets, strict=True), strict=True))
    places |= {item: (len(capacities) + number, 0) for number, item in enumerate(outside)}
    used = (*found.used, *(items[item].size for item in outside))
    memories = tuple(places[item][0] for item in item_of)
    offsets = tuple(places[item][1] for item in item_of)
    starts = [aligned(sum(used[:number])) for number in range(len(used))]
    whole = [starts[memory] + offset for memory, offset in zip(memories, offsets, strict=True)]
    check_plan(layout.problem, whole)
    proof = prove_plan(model, places_of(model, layout, whole, profile))
    if proof.status is Status.DIFFERENT:
        raise InfeasibleError(f"a wrong plan: {proof}")
    return replace(found, memories=memories, offsets=offsets, used=used)


def prices_for(sizes: Mapping[str, int], prices: Mapping[str, int]) -> tuple[int, ...]:
    """Return the price of a byte that moves through each memory: 0 in the first, and in another 1 where none is said.

    Raises UsageError for a price of the first, and where a memory is cheaper than one before it.
    """
    first, *others = sizes
    if first in prices:
        raise UsageError(f"--memory {first}: the first memory is the fastest one, and has no price", ErrorKind.MEMORY)
    found = (0, *(prices.get(name, 1) for name in others))
    for name, (before, price) in zip(others, pairwise(found), strict=True):
        if price < max(1, before):
            raise UsageError(
                f"--memory {name}: a price of {price} after one of {before}; write the fastest memory first",
                ErrorKind.MEMORY,
            )
    return found


def capacities_for(
    model: Model,
    profile: KernelProfile,
    sizes: Mapping[str, int],
    tail: str | None = None,
    planner: MemoryPlanner = "table",
) -> tuple[tuple[int, ...], int]:
    """Bytes of each memory that are left for tensors, and the number of the one in which TFLM's structures lie.

    ``tail``: its name; None: the last one. Raises UsageError for another name, and where the structures do not fit.
    """
    if tail is not None and tail not in sizes:
        known = f"there are {', '.join(sizes)}" if sizes else "there is none"
        raise UsageError(f"--tail {tail}: no --memory has this name; {known}", ErrorKind.UNKNOWN)
    names = tuple(sizes)
    arena = len(names) - 1 if tail is None else names.index(tail)
    beside = arena_beside_head(model, profile.requests, profile.abi, planner=planner)
    if (least := beside.with_head(0).required) > sizes[names[arena]]:
        raise UsageError(f"--memory {names[arena]}: TFLM's own structures need {least:,} bytes there", ErrorKind.MEMORY)
    room = sizes[names[arena]] // ARENA_ALIGNMENT * ARENA_ALIGNMENT - beside.tail
    return tuple(room if number == arena else size for number, size in enumerate(sizes.values())), arena


def traffic_of(model: Model) -> Counter[Tensor]:
    """Return the bytes that operators read and write of each tensor in one invocation, weights and scratch apart.

    Each operator reads each operand once, as Figure 11 of SERENITY (Ahn et al., MLSys 2020, section 4.2) counts, and of
    for a slice, only the bytes that it picks. The body of a loop counts as often as it runs, once where that depends on
    data.
    """
    moved: Counter[Tensor] = Counter()
    iterations = {id(loop.body): loop.iterations for loop in loops_of(model) if loop.iterations is not None}
    for graph in model.graphs:
        for operator in graph.operators:
            for tensor, nbytes in _moved_by(operator):
                moved[tensor] += iterations.get(id(graph), 1) * nbytes
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
