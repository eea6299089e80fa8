"""The positions where a model can be cut, and its parts: models of their own that run one after the other.

    a --> b --> c --> d            a --> b --> [x]      [x] --> c --> d
                              =>
            cut before c             part 0                 part 1

Tensors that cross a cut are outputs of one part and inputs of the next: whatever an operator before the cut computes,
or the model takes, that an operator behind it reads or the model gives. A part that only has to keep such a tensor
takes and gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...errors import ErrorKind, UnsupportedModelError
from ...model.analysis.side_effects import keeps_state
from ...model.ir.check import check_model, describe, is_fixed_by_npu
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_uncalled, drop_unused_codes
from ...model.ir.model import Model, Tensor


def why_whole(model: Model) -> str | None:
    """Return why a model cannot be cut; None where it can.

    The interpreter of a part is re-created in every run, in the arena of the others: its state would be lost.
    """
    if not model.main.operators:
        return "it has no operators"
    if is_fixed_by_npu(model):
        return "an NPU's commands have addresses in the arena of the whole model"
    for number, position, operator in model.located_operators:
        if keeps_state(operator):
            where = describe(number, position, operator)
            return f"{where} keeps state over invocations, which another part in the same arena would overwrite"
    return None


def crossing(model: Model) -> list[tuple[Tensor, ...]]:
    """For each position, from 0 to the number of operators, the tensors that cross a cut there.

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
    """Return the parts of a model that is cut before the operators at these positions, in their order.

    Raises UnsupportedModelError for a model that cannot be cut.
    """
    reason = why_whole(model)
    if reason is not None and positions:
        raise UnsupportedModelError(f"a model in parts: {reason}", ErrorKind.FORM)
    ends = [0, *positions, len(model.main.operators)]
    parts = [part_of(model, first, end) for first, end in pairwise(ends)]
    for part in parts:
        check_model(part)
    return parts


def part_of(model: Model, first: int, end: int) -> Model:
    """Steps ``first`` to ``end``, half-open, as a model of their own, which shares weights with the whole."""
    across, places = crossing(model), {tensor: at for at, tensor in enumerate(model.main.tensors)}
    part = copy_model(model)
    part.signatures, part.metadata, part.legacy_metadata, part.associated_files = None, [], None, ()
    graph = part.main
    for operator in (*graph.operators[:first], *graph.operators[end:]):
        graph.remove_operator(operator)
    is_last = end == len(model.main.operators)  # an output of the model may be there twice
    outputs = model.main.outputs if is_last else across[end]
    graph.inputs = tuple(graph.tensors[places[tensor]] for tensor in across[first])
    graph.outputs = tuple(graph.tensors[places[tensor]] for tensor in outputs)
    drop_uncalled(part)
    drop_dead_tensors(part)
    drop_unused_codes(part)
    return part
