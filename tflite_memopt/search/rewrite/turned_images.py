"""Turn an image whose windows reach all of its height: its columns become rows, since stripes are cut along rows.

Networks of signals from several sensors filter each along time, and then join the sensors:

    x (1, S, T, C) -- 1 x k along T -- (1, S, T', D) -- S x 1 over all sensors -- (1, 1, T'', E)

No row of the result is less than all of it. Turned, time lies along the rows, and stripes are a few steps each:

    x -- TRANSPOSE (1, T, S, C) -- k x 1 -- (1, T', S, D) -- 1 x S -- (1, T'', 1, E) -- RESHAPE (1, 1, T'', E)

Filters, strides, and paddings change places with them. Every sum adds the same products, floats in the order that they
had: filters of floats that reach along both axes are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.ir.change import Changed, changed
from ...model.ir.copying import drop_dead_tensors
from ...model.ir.editor import label
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import integers, values
from ...operators.editor import Editor
from ...operators.overrides import laid_along_h, swapped_options
from ...operators.table import kind_of
from ...operators.window import CONVOLUTIONS, POOLS
from .engine import Driver
from .transposes import CONSECUTIVE_TRANSPOSES

NAME = "turned_images"
_TURN = (0, 2, 1, 3)


def turn_images(model: Model) -> Changed:
    """Turn the images of a model that end in one row of several columns."""
    names = []
    for operator in list(model.main.operators):
        path = _path_to(model.main, operator)
        if path:
            names += [label(each) for each in path]
            _turn(model, path)
    if names:
        Driver(model).apply_everywhere((CONSECUTIVE_TRANSPOSES,))
        drop_dead_tensors(model)
    return changed(model, NAME, names)


def _path_to(graph: Graph, last: Operator) -> list[Operator]:
    """Return the operators from the first that can be turned to ``last``, if its windows have all rows; else none."""
    source = last.inputs[0] if last.name in (*CONVOLUTIONS, *POOLS) else None
    if source is None or not _is_image(source) or source.shape[1] == 1:
        return []
    (_, rows, columns, _) = last.outputs[0].shape
    if rows > 1 or columns == 1 or not _can_turn(last):
        return []
    path = [last]
    while (source := path[0].inputs[0]) is not None and source.producer is not None:
        if len(source.uses) > 1 or source in graph.outputs or not _can_turn(source.producer):
            break
        path.insert(0, source.producer)
    return path


def _is_image(tensor: Tensor | None) -> bool:
    if tensor is None or len(tensor.shape) != 4 or tensor.shape[0] != 1 or tensor.is_constant:
        return False
    return tensor.quantization is None or tensor.quantization.scale.size <= 1  # more lie along an axis


def _can_turn(operator: Operator) -> bool:
    """Tell whether an operator makes an image of one, and the same with rows and columns changed."""
    source, output = operator.operand(0), operator.outputs[0]
    if not _is_image(source) or not _is_image(output) or len(operator.outputs) > 1:
        return False
    assert source is not None
    if operator.name == "PAD":
        return integers(operator.inputs[1]) is not None
    is_float = source.dtype is DType.FLOAT32
    if operator.name in POOLS:
        return not is_float or 1 in (operator.option("filterHeight"), operator.option("filterWidth"))
    if operator.name in CONVOLUTIONS:
        filters = operator.required(1)
        if not filters.is_constant or values(filters) is None:
            return False
        return not is_float or 1 in filters.shape[1:3]
    others = list(operator.present_inputs())[1:]
    is_flat = all(each.is_constant and each.elements in (1, *each.shape[-1:]) for each in others)
    return kind_of(operator).is_elementwise and source.shape == output.shape and is_flat


def _turn(model: Model, path: Sequence[Operator]) -> None:
    first, after = path[0].required(0), path[-1].outputs[0]
    edit = Editor(model, model.main, model.main.operators.index(path[0]))
    made = edit.activation(f"{first.name}/turned", laid_along_h(first.shape), first)
    order = edit.constant(f"{made.name}/order", np.asarray(_TURN, np.int32))
    edit.operator("TRANSPOSE", (first, order), (made,), "TransposeOptions")
    for operator in path:
        output = operator.outputs[0]
        edit.position = model.main.operators.index(operator) + 1
        edit.remove(operator)
        source, made = made, edit.activation(f"{output.name}/turned", laid_along_h(output.shape), output)
        operands = [_operand(edit, operator, slot) for slot in range(1, len(operator.inputs))]
        edit.twin(operator, (source, *operands), (made,), **swapped_options(operator))
    edit.reshape(made, after)


def _operand(edit: Editor, operator: Operator, slot: int) -> Tensor | None:
    """Return what a turned operator reads in a slot beside the image: paddings or filters that are turned, too."""
    tensor = operator.inputs[slot]
    is_turned = slot == 1 and operator.name in ("PAD", *CONVOLUTIONS)
    found = None if tensor is None or not is_turned else values(tensor)
    if tensor is None or found is None:
        return tensor
    turned = found.reshape(-1, 2)[list(_TURN)] if operator.name == "PAD" else np.swapaxes(found, 1, 2)
    return edit.constant(f"{tensor.name}/turned", np.ascontiguousarray(turned), tensor.quantization)
