"""Sequences that lie along the columns of an image of one row, stood up so that they lie along its rows.

Keras converts a convolution of one dimension so:

    x (1, L, C) -- EXPAND_DIMS -- (1, 1, L, C) -- CONV_2D of 1 x k -- (1, 1, L', D) -- RESHAPE -- (1, L', D)

Stripes are cut along rows, of which there is one. Stood up, tensors are (1, L, 1, C) and filters k x 1: the same bytes
in the same order, so that nothing is moved and every sum is added in the order that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir.constants import integers
from ..ir.copying import copy_model
from ..ir.editor import Editor
from ..ir.model import Graph, Model, Operator, Tensor
from .receptive_field import ELEMENTWISE, POOLS

_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_SWAPPED = (("strideH", "strideW"), ("dilationHFactor", "dilationWFactor"), ("filterHeight", "filterWidth"))


def upright(model: Model) -> Model | None:
    """A copy of the model with its sequences along rows; None where it has none that can be stood up."""
    copied = copy_model(model)
    graph = copied.main
    lying = _turnable(graph)
    if not any(_is_window(each) and each.outputs[0] in lying for each in graph.operators):
        return None
    for operator in list(graph.operators):
        if _touches(operator, lying):
            _turn_operands(copied, operator, lying)
    filters = {id(each.inputs[1]): each.inputs[1] for each in graph.operators if _reads_filter(each, lying)}
    for tensor in (*lying, *filters.values()):
        if tensor is not None:
            tensor.shape = _turned(tensor.shape)
    return copied


def _turnable(graph: Graph) -> set[Tensor]:
    """Tensors of one row that every operator at them can take along columns; those at other operators drop out."""
    interface = {*graph.inputs, *graph.outputs}
    lying = {
        tensor
        for tensor in graph.tensors
        if len(tensor.shape) == 4
        and tensor.shape[:2] == (1, 1)
        and not (tensor.is_constant or tensor.is_variable or tensor in interface)
    }
    while True:
        stuck = {
            tensor
            for operator in graph.operators
            if _touches(operator, lying) and not _can_turn(operator, lying)
            for tensor in (*operator.present_inputs(), *operator.outputs)
        }
        if not lying & stuck:
            return lying
        lying -= stuck


def _touches(operator: Operator, lying: set[Tensor]) -> bool:
    return any(tensor in lying for tensor in (*operator.present_inputs(), *operator.outputs))


def _can_turn(operator: Operator, lying: set[Tensor]) -> bool:
    if len(operator.outputs) != 1:
        return False
    if _is_window(operator):
        return _window_turns(operator, lying)
    check = _CHECKS.get(operator.name)
    if check is not None:
        return check(operator, lying)
    return operator.name in ELEMENTWISE and all(
        tensor in lying or (tensor.is_constant and all(size == 1 for size in tensor.shape[:-1]))
        for tensor in (*operator.present_inputs(), *operator.outputs)
    )


def _is_window(operator: Operator) -> bool:
    return operator.name in _CONVOLUTIONS or operator.name in POOLS


def _window_turns(operator: Operator, lying: set[Tensor]) -> bool:
    """A window of one row. Its filter is turned too, so that no other operator may read it."""
    if operator.inputs[0] not in lying or operator.outputs[0] not in lying:
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
        and all(use.operator.inputs[0] in lying and use.operator.outputs[0] in lying for use in filters.uses)
    )


def _reshape_turns(operator: Operator, lying: set[Tensor]) -> bool:
    return all(tensor.is_constant for tensor in list(operator.present_inputs())[1:])


def _expand_turns(operator: Operator, lying: set[Tensor]) -> bool:
    axis = integers(operator.inputs[1])
    return operator.outputs[0] in lying and axis is not None and axis.reshape(-1).tolist() in ([1], [-3])


def _squeeze_turns(operator: Operator, lying: set[Tensor]) -> bool:
    axes = operator.option("squeezeDims")
    return axes is not None and list(axes) in ([1], [-3])


_CHECKS: Mapping[str, Callable[[Operator, set[Tensor]], bool]] = {
    "EXPAND_DIMS": _expand_turns,
    "RESHAPE": _reshape_turns,
    "SQUEEZE": _squeeze_turns,
}


def _reads_filter(operator: Operator, lying: set[Tensor]) -> bool:
    return operator.name in _CONVOLUTIONS and operator.outputs[0] in lying


def _turn_operands(model: Model, operator: Operator, lying: set[Tensor]) -> None:
    """What an operator is told about rows and columns, said of columns and rows."""
    graph, output = model.main, operator.outputs[0]
    edit = Editor(model, graph, graph.operators.index(operator))
    if _is_window(operator):
        fields = {} if operator.options is None else operator.options.fields
        swapped = {a: fields[b] for pair in _SWAPPED for a, b in (pair, pair[::-1]) if b in fields}
        _set_options(operator, swapped)
    elif operator.name == "EXPAND_DIMS":
        graph.set_input(operator, 1, edit.constant(f"{output.name}/axis", np.asarray(2, np.int32)))
    elif operator.name == "SQUEEZE":
        _set_options(operator, {"squeezeDims": np.asarray([2], np.int32)})
    elif operator.name == "RESHAPE" and output in lying:
        shape = np.asarray(_turned(output.shape), np.int32)
        if len(operator.inputs) > 1:
            graph.set_input(operator, 1, edit.constant(f"{output.name}/shape", shape))
        if operator.option("newShape") is not None:
            _set_options(operator, {"newShape": shape})


def _set_options(operator: Operator, fields: dict[str, Any]) -> None:
    if operator.options is not None:
        operator.options = replace(operator.options, fields={**operator.options.fields, **fields})


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[2], shape[1], shape[3])
