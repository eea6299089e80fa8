"""Write an image of one column as one row: the same bytes in the same order, for which kernels take fewer instructions.

    rows of one column   (1, steps, 1, channels)  -->  (1, 1, steps, channels)   one row of columns

Stripes are cut along rows, so that the sequences of a model are columns while they are cut (``sequences_along_h``). But
CMSIS-NN copies the pixels under a filter row by row of the filter (arm_convolve_s8.c), and Helium reads an input of one
row where it is (arm_convolve_1_x_n_s8.c): along rows a filter of 80 takes 1.5 and 7.7 times the instructions. A
sequence that enters as a row needs no RESHAPE then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...kernels.faults import new_faults
from ...kernels.profile import KernelProfile
from ...memory.work import instructions, slowest
from ...model.ir.change import Changed, changed
from ...model.ir.copying import copy_model, drop_dead_tensors, unlinked_twin
from ...model.ir.editor import Array, add_buffer
from ...model.ir.model import Graph, Model, Operator, Tensor
from ...model.ir.tensors import integers, quantized_alike
from ...operators.editor import Editor
from ...operators.overrides import laid_along_h, swapped_options
from ...operators.reduce import REDUCTIONS
from ...operators.table import kind_of
from ...operators.window import ALL_POOLS, CONVOLUTIONS
from .shapes import shape_is_said

_PLACES = {"SLICE": (1, 2), "DYNAMIC_UPDATE_SLICE": (2,), "PAD": (1,), "PADV2": (1,), "RESHAPE": (1,)}
"""Operands with a number, or two, for each dimension of an image."""
_TURNED = frozenset(
    {*_PLACES, *REDUCTIONS, *CONVOLUTIONS, *ALL_POOLS, "CAST", "CONCATENATION", "FULLY_CONNECTED", "SELECT_V2", "WHILE"}
)
Places = Mapping[tuple[Operator, int], Tensor | None]


def in_one_row(model: Model, profile: KernelProfile) -> Model:
    """Return a copy of the model with its columns in one row; the model itself where that cannot be or does not pay.

    It does not pay where a library of the profile takes more instructions or computes one of the rows wrongly. Inputs
    and outputs keep their shapes, so that a model that has columns there stays as it is.
    """
    if any(map(_is_column, (*model.main.inputs, *model.main.outputs))):
        return model
    laid = lay_in_one_row(copy_model(model))
    if not laid.uses or slowest(instructions(model, profile), instructions(laid.model, profile)) > 0:
        return model
    return model if new_faults(laid.model, model, profile) else laid.model


def lay_in_one_row(model: Model, keeps: Collection[Tensor] = ()) -> Changed:
    """Lay all images of one column in one row.

    Nothing is changed where an operator that reads or writes one of them also has another image, where one of its
    operands is computed, or where one of them ``keeps`` its shape. Other inputs and outputs of the model are turned.
    """
    columns = {each for each in model.all_tensors if _is_column(each)}
    over = {each: None for each in model.all_operators if not columns.isdisjoint(_tensors(each))}
    if not columns or not columns.isdisjoint(keeps) or not all(map(_can_turn, over)):
        return Changed(model)
    places = {(operator, slot): _constant(operator.inputs[slot]) for operator in over for slot in _slots(operator)}
    constants = [tensor for tensor in dict.fromkeys(places.values()) if tensor is not None]
    if None in places.values() or not all(_holds_places_alone(each, places) for each in constants):
        return Changed(model)
    for tensor in constants:
        tensor.buffer = add_buffer(model, _turned_places(tensor))
    for tensor in columns:
        tensor.shape = laid_along_h(tensor.shape)
    for graph in model.graphs:
        for operator in [each for each in graph.operators if each in over]:
            _turn(model, graph, operator)
            _turn_short_constants(model, graph, operator)
        _drop_copies(graph, over)
    drop_dead_tensors(model)
    return changed(model, "in_one_row", sorted(tensor.name for tensor in columns))


def _turned_places(constant: Tensor) -> Array:
    """Return the numbers for N, H, W, C with those for H and W exchanged; of pairs of them, and of tables, too."""
    numbers = integers(constant)
    assert numbers is not None
    turned = numbers.reshape(-1, 4, 2 if constant.shape == (4, 2) else 1)[:, [0, 2, 1, 3]]
    return turned.reshape(constant.shape).astype(constant.dtype.label)


def _turn(model: Model, graph: Graph, operator: Operator) -> None:
    """Let an operator go along W: the axis that it adds, and what its options say of H and W."""
    if operator.name == "EXPAND_DIMS":
        axis = Editor(model, graph, 0).constant(f"{operator.outputs[0].name}/axis", np.asarray(1, np.int32))
        graph.set_input(operator, 1, axis)
    if operator.options is not None:
        fields = {**operator.options.fields, **_turned_options(operator)}
        operator.options = replace(operator.options, fields=fields)


def _turn_short_constants(model: Model, graph: Graph, operator: Operator) -> None:
    """Let constants of three dimensions that lie along H lie along W; their other readers keep them as they are."""
    for slot in _short_slots(operator):
        tensor = operator.required(slot)
        turned = replace(unlinked_twin(tensor), shape=(1, tensor.shape[0], tensor.shape[2]))
        turned.name = Editor(model, graph, 0).unique(tensor.name)
        graph.set_input(operator, slot, graph.add_tensor(turned))


def _short_slots(operator: Operator) -> tuple[int, ...]:
    """Return the operands of three dimensions that lie along H: shapes are broadcast from the last dimension on."""
    if not kind_of(operator).is_elementwise:
        return ()
    shapes = [() if tensor is None else tensor.shape for tensor in operator.inputs]
    return tuple(slot for slot, shape in enumerate(shapes) if len(shape) == 3 and shape[0] > 1)


def _is_column(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and tensor.shape[1] > 1 and tensor.shape[2] == 1


def _tensors(operator: Operator) -> Iterable[Tensor]:
    return (*operator.present_inputs(), *operator.outputs)


def _slots(operator: Operator) -> tuple[int, ...]:
    """Return the operands that hold places."""
    is_reshape = operator.name == "RESHAPE"
    is_of_image = any(_is_column(each) if is_reshape else len(each.shape) == 4 for each in operator.outputs)
    return tuple(slot for slot in _PLACES.get(operator.name, ()) if is_of_image and slot < len(operator.inputs))


def _constant(tensor: Tensor | None) -> Tensor | None:
    """Return the constant, or the table with an entry for each call; None for a value that is computed otherwise."""
    if tensor is not None and tensor.producer is not None and tensor.producer.name == "SLICE":
        tensor = tensor.producer.inputs[0]
    return tensor if tensor is not None and integers(tensor) is not None and tensor.elements % 4 == 0 else None


def _holds_places_alone(constant: Tensor, places: Places) -> bool:
    """Return whether a constant has no other reader: equal constants are shared."""
    read = [use for use in constant.uses if (use.operator, use.slot) not in places]
    taken = [use for each in read for use in each.operator.outputs[0].uses if each.operator.name == "SLICE"]
    return all(each.operator.name == "SLICE" and each.slot == 0 for each in read) and all(
        (use.operator, use.slot) in places for use in taken
    )


def _can_turn(operator: Operator) -> bool:
    """Return whether the operator computes the same when its columns are rows."""
    if operator.name in ("RESHAPE", "WHILE"):
        return operator.name == "WHILE" or shape_is_said(operator)
    if operator.name == "SQUEEZE":  # else its dimensions are not those of a column
        return shape_is_said(operator) and all(map(_is_column, operator.present_inputs()))
    if operator.name == "EXPAND_DIMS":
        return shape_is_said(operator) and _is_column(operator.outputs[0]) and _expands_columns(operator)
    if any(len(tensor.shape) == 4 and tensor.shape[2] > 1 for tensor in _tensors(operator)):
        return False
    if operator.name in REDUCTIONS:
        axes = integers(operator.inputs[1])
        return axes is not None and len({1, 2}.intersection(axes % 4)) != 1
    if not all(operator.required(slot).is_constant for slot in _short_slots(operator)):
        return False
    return operator.name in _TURNED or kind_of(operator).is_elementwise


def _expands_columns(operator: Operator) -> bool:
    """Return whether an EXPAND_DIMS makes a column of (1, steps, channels)."""
    axis = integers(operator.inputs[1])
    return axis is not None and axis.tolist() in (2, [2])


def _turned_options(operator: Operator) -> dict[str, object]:
    if operator.name == "CONCATENATION":
        return {"axis": (0, 2, 1, 3)[int(operator.option("axis", 0)) % 4]}
    if operator.name == "RESHAPE":
        return {"newShape": np.asarray(operator.outputs[0].shape, np.int32)}
    if operator.name == "SQUEEZE":
        dims = np.asarray(operator.option("squeezeDims", ()), np.int32)
        return {"squeezeDims": np.asarray([{1: 2, 2: 1}.get(int(each), int(each)) for each in dims], np.int32)}
    return swapped_options(operator)


def _drop_copies(graph: Graph, over: Collection[Operator]) -> None:
    """Drop each RESHAPE whose result now has the shape of its input."""
    for operator in [each for each in graph.operators if each.name == "RESHAPE" and each in over]:
        source, output = operator.inputs[0], operator.outputs[0]
        is_copy = source is not None and source.shape == output.shape and not source.is_variable
        if source is None or not is_copy or output in graph.outputs:
            continue
        if quantized_alike(source.quantization, output.quantization):
            graph.remove_operator(operator)
            graph.replace_uses(output, source)
