"""A front over a sequence, laid in one row where all of it can lie so: the same bytes in the same order.

    rows of one column   (1, steps, 1, channels)  -->  (1, 1, steps, channels)   one row of columns

Stripes are cut along rows. But CMSIS-NN copies what is under a filter row by row of the filter (arm_convolve_s8.c), and
Helium reads an input of one row where it is (arm_convolve_1_x_n_s8.c): along rows a filter of 80 takes 1.5 and 7.7
times the instructions. In a front no operator depends on which of the two it is, as long as it is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..ir.editor import add_buffer
from ..ir.model import Model, Operator, Tensor
from ..ir.tensors import integers
from ..operators.overrides import laid_along_h, swapped_options
from ..operators.table import kind_of

_PLACES = {"SLICE": (1, 2), "DYNAMIC_UPDATE_SLICE": (2,), "PAD": (1,), "PADV2": (1,), "RESHAPE": (1,)}
"""Operands that say a number, or two, for each dimension of an image."""
_REDUCTIONS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM")
_TURNED = frozenset(
    {*_PLACES, *_REDUCTIONS, "AVERAGE_POOL_2D", "CAST", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D"}
    | {"FULLY_CONNECTED", "L2_POOL_2D", "MAX_POOL_2D", "SELECT_V2"}
)
Places = Mapping[tuple[Operator, int], Tensor | None]


def lay_in_one_row(model: Model) -> None:
    """Lay the images of a front in one row, in place. Nothing is changed where one of them cannot lie so."""
    images = {tensor for tensor in model.main.tensors if len(tensor.shape) == 4}
    over = [operator for operator in model.main.operators if not images.isdisjoint(operator.outputs)]
    readers = {use.operator for tensor in images for use in tensor.uses}.difference(over)
    if any(tensor.shape[2] > 1 for tensor in images) or any(each.name != "RESHAPE" for each in readers):
        return
    places = {(operator, slot): _constant(operator.inputs[slot]) for operator in over for slot in _slots(operator)}
    told = [tensor for tensor in dict.fromkeys(places.values()) if tensor is not None]
    if None in places.values() or not all(map(_can_turn, over)) or not all(_says_places(each, places) for each in told):
        return
    for tensor in told:
        values = integers(tensor)
        assert values is not None
        turned = values.reshape(-1, 4, 2 if tensor.shape == (4, 2) else 1)[:, [0, 2, 1, 3]]
        tensor.buffer = add_buffer(model, turned.reshape(tensor.shape).astype(tensor.dtype.label))
    for tensor in images:
        tensor.shape = laid_along_h(tensor.shape)
    for operator in over:
        if operator.options is not None:
            operator.options = replace(
                operator.options, fields={**operator.options.fields, **_turned_options(operator)}
            )


def _slots(operator: Operator) -> tuple[int, ...]:
    """Return the constant that holds places."""
    return tuple(slot for slot in _PLACES.get(operator.name, ()) if slot < len(operator.inputs))


def _constant(tensor: Tensor | None) -> Tensor | None:
    """The constant, or the table with one entry per call; None for a value that is computed otherwise."""
    if tensor is not None and tensor.producer is not None and tensor.producer.name == "SLICE":
        tensor = tensor.producer.inputs[0]
    return tensor if tensor is not None and integers(tensor) is not None and tensor.elements % 4 == 0 else None


def _says_places(constant: Tensor, places: Places) -> bool:
    """Return whether nothing else is said by a constant: equal ones are one."""
    read = [use for use in constant.uses if (use.operator, use.slot) not in places]
    taken = [use for each in read for use in each.operator.outputs[0].uses if each.operator.name == "SLICE"]
    return all(each.operator.name == "SLICE" and each.slot == 0 for each in read) and all(
        (use.operator, use.slot) in places for use in taken
    )


def _can_turn(operator: Operator) -> bool:
    """Return whether it is known what it has to be told."""
    if operator.name in _REDUCTIONS:
        axes = integers(operator.inputs[1])
        return axes is not None and len({1, 2}.intersection(axes % 4)) != 1
    return operator.name in _TURNED or kind_of(operator).is_elementwise


def _turned_options(operator: Operator) -> dict[str, object]:
    if operator.name == "CONCATENATION":
        return {"axis": (0, 2, 1, 3)[int(operator.option("axis", 0)) % 4]}
    if operator.name == "RESHAPE":
        return {"newShape": np.asarray(operator.outputs[0].shape, np.int32)}
    return swapped_options(operator)
