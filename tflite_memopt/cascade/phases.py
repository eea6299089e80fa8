"""Dilated sequences as a loop over phases, each written over its own input.

A convolution with dilation d reads the steps t, t - d, t - 2 d, ...: where P divides all dilations and paddings of a
region, the steps with the same ``t mod P`` are a sequence of their own, and no two of them ever meet.

    x (1, L, 1, C)  is  (1, L / P, P, C): column p has the steps p, p + P, p + 2 P, ...

    loop over p     column = SLICE(x, p)        the region on (1, L / P, 1, C), dilations and paddings divided by P
                    x' = DYNAMIC_UPDATE_SLICE(x, made, p)

Only one column of each inner tensor is alive at a time, and the result takes the place of the input: these are the same
bytes in the same order. No product is computed twice, and nothing is kept from iteration to iteration. Exactness:
exact. (The converter writes a dilated convolution in the same way, with the phases as a batch: SPACE_TO_BATCH_ND.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ..ir.dead_tensors import drop_dead_tensors
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.names import stem
from ..operators.table import kind_of
from .loop.lower import unread_constants, write_while
from .loop.turn_graph import LoopSubgraphs, TurnGraph
from .region import Region, region_of

_COLUMNS = 2
"""The axis of NHWC that says which phase."""
_SHORTEST = 3
"""Operators of a region that is worth a loop: a PAD, a convolution and a sum at least."""


def phase_regions(graph: Graph, pinned: Collection[str]) -> Iterator[tuple[int, int, int]]:
    """Steps ``first`` to ``end``, half-open, and phases: for each number of phases the longest region that has them."""
    dilations = {int(op.option("dilationHFactor", 1)) for op in graph.operators if op.name == "CONV_2D"}
    for phases in sorted(each for each in dilations if each > 1):
        fits = [_has_phases(operator, phases) for operator in graph.operators]
        starts = ((_start(graph, fits, end, pinned), end) for end in range(len(fits), 0, -1))
        found = ((first, end) for first, end in starts if first is not None)
        longest = max(found, key=lambda each: each[1] - each[0], default=None)
        if longest is not None and longest[1] - longest[0] >= _SHORTEST:
            yield (*longest, phases)


def _start(graph: Graph, fits: Sequence[bool], end: int, pinned: Collection[str]) -> int | None:
    """The first step of the longest region that ends before step ``end`` and has one sequence as input."""
    start = end
    while start and fits[start - 1]:
        start -= 1
    return next((first for first in range(start, end - _SHORTEST + 1) if _is_one(graph, first, end, pinned)), None)


def _is_one(graph: Graph, first: int, end: int, pinned: Collection[str]) -> bool:
    """Whether these steps make a sequence of one that nothing else reads, of the same bytes."""
    region = region_of(graph, graph.operators[first:end])
    if isinstance(region, str) or len(region.inputs) != 1:
        return False
    (x,), exit_ = region.inputs, region.exit
    if any(operator.outputs[0].name in pinned for operator in region.operators) or x.name in pinned:
        return False
    is_read_elsewhere = any(use.operator not in region.operators for use in x.uses)
    is_interface = x in graph.inputs or x in graph.outputs or exit_ in graph.outputs
    return not is_read_elsewhere and not is_interface and x.shape == exit_.shape and x.dtype is exit_.dtype


def _has_phases(operator: Operator, phases: int) -> bool:
    """Whether the operator does the same to every phase by itself."""
    if len(operator.outputs) != 1 or not _is_sequence(operator.outputs[0], phases):
        return False
    source = operator.inputs[0]
    if source is None or source.is_constant or not _is_sequence(source, phases):
        return False
    by_phase = kind_of(operator).by_phase
    return by_phase is not None and by_phase.can(operator, phases)


def _is_sequence(tensor: Tensor, phases: int) -> bool:
    shape = tensor.shape
    return len(shape) == 4 and shape[0] == shape[2] == 1 and shape[1] > phases and shape[1] % phases == 0


def lower_phases(model: Model, region: Region, phases: int) -> str | None:
    """Replace the operators of a region of the main graph by the loop, in place; returns why that cannot be."""
    if len(region.inputs) != 1 or not all(_has_phases(operator, phases) for operator in region.operators):
        return f"not one sequence of {phases} phases"
    graph, (x,), exit_ = model.main, region.inputs, region.exit
    if x.shape != exit_.shape or x.dtype is not exit_.dtype:
        return "its result is no sequence such as its input"
    edit = Editor(model, graph, graph.operators.index(region.operators[-1]) + 1)
    for operator in region.operators:
        edit.remove(operator)
    shape = (1, x.shape[1] // phases, phases, x.shape[3])
    columns = edit.activation(f"{stem(x)}/columns", shape, x)
    edit.reshape(x, columns, has_operand=False)
    grown = edit.activation(f"{stem(exit_)}/columns", shape, x)
    write_while(edit, _body(model, region, phases, columns), columns, grown, {})
    # What comes out of the loop has the bytes of the exit, quantized as that is.
    edit.reshape(grown, exit_, has_operand=False)
    graph.remove_tensors([*(op.outputs[0] for op in region.operators[:-1]), *unread_constants(model, graph, region)])
    drop_dead_tensors(model)
    return None


def _body(model: Model, region: Region, phases: int, columns: Tensor) -> LoopSubgraphs:
    """An iteration: one column out of the whole, the operators on it, and what they make into its place."""
    turn = TurnGraph(model, region, phases, columns, _COLUMNS)
    edit, begin = turn.edit, turn.begin(tuple(range(phases)))
    (x,) = region.inputs
    have = {x: edit.activation("column", _column(x, phases), x)}
    size = edit.constant("column/size", np.asarray(have[x].shape, np.int32))
    edit.operator("SLICE", (turn.result, begin, size), (have[x],), "SliceOptions")
    for operator in region.operators:
        output = operator.outputs[0]
        inputs = [None if each is None else have.get(each) or turn.twins[each] for each in operator.inputs]
        by_phase = kind_of(operator).by_phase
        assert by_phase is not None
        told = by_phase.told(edit, operator, phases)
        have[output] = edit.activation(stem(output), _column(output, phases), output)
        edit.twin(operator, told.given(inputs), (have[output],), **told.fields)
    return turn.finish(have[region.exit], tuple(range(phases)), ())


def _column(tensor: Tensor, phases: int) -> tuple[int, ...]:
    return (1, tensor.shape[1] // phases, 1, tensor.shape[3])
