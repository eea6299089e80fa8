"""Where a model can be cut, and its parts: models of their own that run one after the other.

    a --> b --> c --> d            a --> b --> [x]      [x] --> c --> d
                              =>
            cut before c             part 0                 part 1

What crosses a cut is an output of one part and an input of the next: whatever an operator before the cut computes, or
the model takes, that an operator behind it reads or the model gives. A part that only has to keep such a tensor takes
and gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..errors import UnsupportedModelError
from ..ir.check import check_model, describe
from ..ir.control_flow import called_subgraphs, renumber_subgraphs
from ..ir.copying import copy_model
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.model import Model, Operator, Tensor
from ..ir.npu import has_npu

_STATE = frozenset(
    {
        "ASSIGN_VARIABLE",
        "CALL_ONCE",
        "CUSTOM",
        "DELEGATE",
        "HASHTABLE",
        "HASHTABLE_FIND",
        "HASHTABLE_IMPORT",
        "HASHTABLE_SIZE",
        "MULTINOMIAL",
        "RANDOM_STANDARD_NORMAL",
        "RANDOM_UNIFORM",
        "READ_VARIABLE",
        "VAR_HANDLE",
    }
)
"""Operators that remember something over invocations, or may: what they hold lies in the arena."""


def why_whole(model: Model) -> str | None:
    """Why a model cannot be cut; None where it can.

    Each part's interpreter is made anew in each run, in the arena of the others: what one remembers would be lost.
    """
    if has_npu(model):
        return "an NPU's commands have addresses in the arena of the whole model"
    for number, graph in enumerate(model.graphs):
        for position, operator in enumerate(graph.operators):
            if _keeps_state(operator):
                where = describe(number, position, operator)
                return f"{where} keeps state over invocations, which another part in the same arena would overwrite"
    return None


def crossing(model: Model) -> list[tuple[Tensor, ...]]:
    """For each position, from 0 to the number of operators, what crosses a cut there.

    At both ends it is the interface, in its order; in between the order is that in which the tensors come to be.
    """
    operators, outputs = model.main.operators, model.main.outputs
    last = dict.fromkeys(outputs, len(operators))
    for position, operator in enumerate(operators):
        for tensor in operator.present_inputs():
            last[tensor] = max(last.get(tensor, position), position)
    alive = dict.fromkeys(model.main.inputs)
    found = [tuple(alive)]
    for position, operator in enumerate(operators[:-1], 1):
        alive |= dict.fromkeys(operator.outputs)
        alive = {tensor: None for tensor in alive if last.get(tensor, -1) >= position}
        found.append(tuple(alive))
    return [*found, tuple(dict.fromkeys(outputs))]


def cut(model: Model, positions: Sequence[int]) -> list[Model]:
    """The parts of a model that is cut before the operators at these positions, in their order.

    Raises UnsupportedModelError for a model that cannot be cut.
    """
    reason = why_whole(model)
    if reason is not None and positions:
        raise UnsupportedModelError(f"a model in parts: {reason}")
    ends = [0, *positions, len(model.main.operators)]
    return [part_of(model, first, end) for first, end in pairwise(ends)]


def part_of(model: Model, first: int, end: int) -> Model:
    """Steps ``first`` to ``end``, half-open, as a model of their own, which shares weights with the whole."""
    across, places = crossing(model), {tensor: at for at, tensor in enumerate(model.main.tensors)}
    part = copy_model(model)
    part.signatures, part.metadata, part.legacy_metadata, part.associated_files = None, [], None, ()
    graph = part.main
    for operator in (*graph.operators[:first], *graph.operators[end:]):
        graph.remove_operator(operator)
    graph.inputs = tuple(graph.tensors[places[tensor]] for tensor in across[first])
    graph.outputs = model_outputs = tuple(graph.tensors[places[tensor]] for tensor in across[end])
    if end == len(model.main.operators):  # one may be there twice
        model_outputs = tuple(graph.tensors[places[tensor]] for tensor in model.main.outputs)
    graph.outputs = model_outputs
    _drop_unreachable(part)
    drop_dead_tensors(part)
    used = {operator.opcode for each in part.graphs for operator in each.operators}
    part.opcodes = [opcode for opcode in part.opcodes if opcode in used]
    check_model(part)
    return part


def _keeps_state(operator: Operator) -> bool:
    return operator.name in _STATE or any(tensor.is_variable for tensor in operator.present_inputs())


def _drop_unreachable(model: Model) -> None:
    """Drop the subgraphs that nothing calls."""
    reached, left = {0}, [0]
    while left:
        called = {at for operator in model.graphs[left.pop()].operators for at in called_subgraphs(operator)}
        left += called - reached
        reached |= called
    kept = sorted(reached)
    for operator in (operator for at in kept for operator in model.graphs[at].operators):
        renumber_subgraphs(operator, {old: new for new, old in enumerate(kept)})
    model.graphs = [model.graphs[at] for at in kept]
