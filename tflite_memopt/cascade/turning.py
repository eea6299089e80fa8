"""Operators over sequences that can take them standing, and what they are told then: one table.

A sequence (1, L, C), (1, 1, L, C) or (L, C) stands as (1, L, 1, C): the same bytes in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.constants import integers
from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..kernels.relations.shapes import RESHAPES
from .receptive_field import ELEMENTWISE, POOLS, REDUCTIONS

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
COMPUTING = frozenset({*_CONVOLUTIONS, "FULLY_CONNECTED"})
"""Operators for whose sake sequences are stood up."""
_SWAPPED = (("strideH", "strideW"), ("dilationHFactor", "dilationWFactor"), ("filterHeight", "filterWidth"))
Sequences = Collection[Tensor]


def is_sequence(tensor: Tensor) -> bool:
    """Whether it is (1, 1, L, C), (1, L, C) or (L, C) with L > 1, and computed."""
    ones, length = tensor.shape[:-2], tensor.shape[-2:-1]
    is_long = len(tensor.shape) in (2, 3, 4) and all(size == 1 for size in ones) and length > (1,)
    return is_long and tensor.shape[-1] > 0 and not (tensor.is_constant or tensor.is_variable)


def standing(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a sequence, or of a filter of 1 x k, stood up."""
    return (1, *shape[-2:-1], 1, *shape[-1:]) if len(shape) < 4 else (shape[0], shape[2], shape[1], shape[3])


def can_turn(operator: Operator, sequences: Sequences) -> bool:
    """Whether the operator computes the same from its sequences standing. Reshapes only pass them on."""
    if len(operator.outputs) != 1 or operator.outputs[0] not in sequences:
        return False
    way = _WAYS.get(operator.name)
    return way is not None and way.check(operator, sequences)


def stays(operator: Operator, slot: int) -> bool:
    """Whether a turning operator reads this input as it lies: the matrix of a product."""
    return operator.name == "BATCH_MATMUL" and slot == 1


def turn_operands(edit: Editor, operator: Operator) -> None:
    """What an operator is told about rows and columns, said of standing sequences; their shapes are as they were."""
    _WAYS[operator.name].turn(edit, operator)


def shape_is_said(operator: Operator) -> bool:
    """Whether it is a reshape to a shape that is known."""
    given = list(operator.present_inputs())
    return operator.name in RESHAPES and all(tensor.is_constant for tensor in given[1:]) and len(given) > 0


def write_reshape(edit: Editor, position: int, source: Tensor, output: Tensor, like: Operator | None = None) -> None:
    """``source`` in the shape of ``output``, by an operator of the kind of ``like`` where that can be."""
    edit.position = position
    is_added = (*source.shape[:2], 1, *source.shape[2:]) == output.shape
    is_dropped = (*output.shape[:2], 1, *output.shape[2:]) == source.shape
    if like is not None and like.name == "EXPAND_DIMS" and is_added:
        axis = edit.constant(f"{output.name}/axis", np.asarray(2, np.int32))
        edit.twin(like, (source, axis), (output,))
    elif like is not None and like.name == "SQUEEZE" and is_dropped:
        edit.twin(like, (source,), (output,), squeezeDims=np.asarray([2], np.int32))
    else:
        edit.reshape(source, output)


@dataclass(frozen=True)
class _Turning:
    check: Callable[[Operator, Sequences], bool]
    turn: Callable[[Editor, Operator], None]


def _window_turns(operator: Operator, sequences: Sequences) -> bool:
    """A window of one row. Its filter is turned too, so that no other operator may read it."""
    source = operator.inputs[0]
    if source is None or source not in sequences or len(source.shape) != 4 or len(operator.outputs[0].shape) != 4:
        return False
    if operator.name in POOLS:
        return bool(operator.option("filterHeight", 1) == 1)
    filters = operator.inputs[1]
    return (
        filters is not None
        and filters.is_constant
        and len(filters.shape) == 4
        and filters.shape[1] == 1
        and all(use.slot == 1 and use.operator.name in _CONVOLUTIONS for use in filters.uses)
        and all(use.operator.inputs[0] in sequences and use.operator.outputs[0] in sequences for use in filters.uses)
    )


def _swap_sides(_: Editor, operator: Operator) -> None:
    fields = {} if operator.options is None else operator.options.fields
    _set_options(operator, **{a: fields[b] for pair in _SWAPPED for a, b in (pair, pair[::-1]) if b in fields})


def _elementwise_turns(operator: Operator, sequences: Sequences) -> bool:
    """Other operands are the same for every element of the sequence."""
    return all(tensor in sequences or set(tensor.shape[:-1]) <= {1} for tensor in operator.present_inputs())


def _pad_turns(operator: Operator, sequences: Sequences) -> bool:
    amounts = integers(operator.inputs[1])
    rank = len(operator.outputs[0].shape)
    if operator.inputs[0] not in sequences or amounts is None or amounts.size != 2 * rank:
        return False
    others = [tensor for tensor in operator.inputs[2:] if tensor is not None]
    return not amounts[: 2 * (rank - 2)].any() and all(tensor.is_constant for tensor in others)


def _turn_paddings(edit: Editor, operator: Operator) -> None:
    amounts = integers(operator.inputs[1])
    assert amounts is not None
    along, channels = amounts.reshape(-1, 2)[-2:]
    turned = np.asarray([(0, 0), along, (0, 0), channels], np.int32)
    name = f"{operator.outputs[0].name}/paddings"
    edit.graph.set_input(operator, 1, edit.constant(name, turned))


def _join_turns(operator: Operator, sequences: Sequences) -> bool:
    rank = len(operator.outputs[0].shape)
    is_of_channels = int(operator.option("axis", 0)) % rank == rank - 1
    return is_of_channels and all(tensor in sequences for tensor in operator.inputs)


def _dense_turns(operator: Operator, sequences: Sequences) -> bool:
    source, weights = operator.inputs[0], operator.inputs[1:]
    if source is None or source not in sequences or source.shape[-2] != operator.outputs[0].shape[-2]:
        return False
    return all(tensor is None or tensor.is_constant for tensor in weights)


def _reduction_turns(operator: Operator, sequences: Sequences) -> bool:
    source, axes = operator.inputs[0], integers(operator.inputs[1])
    if source is None or source not in sequences or axes is None or not operator.option("keepDims", False):
        return False
    rank = len(source.shape)
    return {int(axis) % rank for axis in axes} == {rank - 1}


def _turn_axis(edit: Editor, operator: Operator) -> None:
    name = f"{operator.outputs[0].name}/axis"
    edit.graph.set_input(operator, 1, edit.constant(name, np.asarray([3], np.int32)))


def _set_options(operator: Operator, **fields: Any) -> None:
    if operator.options is not None:
        operator.options = replace(operator.options, fields={**operator.options.fields, **fields})


def _product_turns(operator: Operator, sequences: Sequences) -> bool:
    """A sequence by one matrix, which stays as it lies: what broadcasts is the same for all rows."""
    source, matrix = operator.inputs[:2]
    if source is None or matrix is None or source not in sequences or len(source.shape) != 4:
        return False
    is_plain = not operator.option("adjX", False) and len(operator.outputs[0].shape) == 4
    return is_plain and matrix.dtype is source.dtype and set(matrix.shape[:-2]) <= {1}


def _slice_turns(operator: Operator, sequences: Sequences) -> bool:
    """Some channels of the whole sequence."""
    source, output = operator.inputs[0], operator.outputs[0]
    is_said = all(tensor is not None and integers(tensor) is not None for tensor in operator.inputs[1:3])
    return is_said and source in sequences and source is not None and source.shape[:-1] == output.shape[:-1]


def _turn_slice(edit: Editor, operator: Operator) -> None:
    begin = integers(operator.inputs[1])
    assert begin is not None
    name, size = operator.outputs[0].name, standing(operator.outputs[0].shape)
    edit.graph.set_input(operator, 1, edit.constant(f"{name}/begin", np.asarray((0, 0, 0, begin[-1]), np.int32)))
    edit.graph.set_input(operator, 2, edit.constant(f"{name}/size", np.asarray(size, np.int32)))


_WAYS: Mapping[str, _Turning] = {
    **dict.fromkeys(ELEMENTWISE, _Turning(_elementwise_turns, lambda _, __: None)),
    **dict.fromkeys((*_CONVOLUTIONS, *sorted(POOLS)), _Turning(_window_turns, _swap_sides)),
    **dict.fromkeys(sorted(REDUCTIONS), _Turning(_reduction_turns, _turn_axis)),
    "BATCH_MATMUL": _Turning(_product_turns, lambda _, __: None),
    "CONCATENATION": _Turning(_join_turns, lambda _, operator: _set_options(operator, axis=3)),
    "FULLY_CONNECTED": _Turning(_dense_turns, lambda _, operator: _set_options(operator, keepNumDims=True)),
    "PAD": _Turning(_pad_turns, _turn_paddings),
    "PADV2": _Turning(_pad_turns, _turn_paddings),
    "SLICE": _Turning(_slice_turns, _turn_slice),
}
"""Operator -> when it can be turned, and how."""
