r"""Write an operator that meets a fault of a kernel library otherwise: its padding, or its clamp, on its own.

    x --CONV_2D, SAME--> y               =>   x --PAD--> p --CONV_2D, VALID--> y

    x --TRANSPOSE_CONV, SAME--> y        =>   x --TRANSPOSE_CONV, VALID--> t --SLICE--> y

    x --SPACE_TO_BATCH_ND, padded--> y   =>   x --PAD--> p --SPACE_TO_BATCH_ND--> y

    x --RELU6, rescales--> y             =>   x --RELU, rescales--> r --RELU6--> y

Most faults of convolutions are in how a kernel pads: without padding it reads its input as it is. esp-nn's depthwise
kernels count more rows and columns than the last windows read, and copy the input where it lacks them; where that copy
is a fault, too, PAD adds them all, and VALID leaves out what is too much.

TFLM's RELU6 of integers copies them where it should rescale, and its RELU rescales, as both do in LiteRT. RELU takes
the scales of both sides, and what it gives is clamped at 6 in the output's own scale: x' = clamp(f(x), 0, max), then
clamp(x', 0, six) is clamp(f(x), 0, six), where f, 0 and six are those of the RELU6 (reference/activations.h, ReluX). In
most files 6 is the largest integer of the output, and RELU alone is the same. TFLM rounds ties twice where LiteRT does
so once, in RELU as in all kernels that rescale: outputs may be one step off.

Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import floor

import numpy as np

from ..model.ir.change import Changed, RewriteUse
from ..model.ir.editor import SAME, VALID, stem
from ..model.ir.model import Buffer, DType, Graph, Model, Operator, Tensor
from ..model.ir.tensors import affine_of, integers
from ..operators.editor import Editor
from ..operators.window import CONVOLUTIONS, transposed_window_of, window_of
from .faults import TFLM, Form, faults_in, faults_of
from .profile import KernelProfile

PADDING, CLAMP = "padding_apart", "clamp_apart"
NAMES = (PADDING, CLAMP)
"""Of what is done here, in reports."""
_NO_DATA = Buffer(None)
TRANSPOSED, BATCHES = "TRANSPOSE_CONV", "SPACE_TO_BATCH_ND"
Paddings = tuple[tuple[int, int], tuple[int, int]]
"""Before and after, of rows and of columns."""


def kept_forms(original: Model, profile: KernelProfile) -> frozenset[Form]:
    """Return the forms of operators of a model that stay as they came, in what is made of it.

    For any library those that meet a fault, but for faults of TFLM itself: users of another library than the faulty one
    would pay for it. For a named one, none.
    """
    met = faults_in(original, profile) if profile.libraries else ()
    return frozenset(each.form for each in met if each.fault.library != TFLM)


def mend(model: Model, profile: KernelProfile, kept: Collection[Form] = ()) -> Changed:
    """Write the operators that meet a fault of the profile's libraries otherwise, in all graphs.

    Operators without another way stay. ``kept``: forms whose operators stay as well.
    """
    done = []
    for graph in model.graphs:
        for operator in list(graph.operators):
            met = faults_of(operator, profile) if operator.outputs else ()
            if not met or met[0].form in kept:
                continue
            if operator.name == "RELU6":
                _write_clamp_apart(model, graph, operator)
                done.append(RewriteUse(CLAMP, (operator.outputs[0].name,), "exact", 0))
            elif (amounts := _amounts(operator, profile)) is not None:
                _write_apart(model, graph, operator, amounts)
                done.append(RewriteUse(PADDING, (operator.outputs[0].name,), "exact", 0))
    return Changed(model, tuple(done))


def _amounts(operator: Operator, profile: KernelProfile) -> Paddings | None:
    """Return the padding of an operator that, as an operator of its own, leaves no fault; None where none does."""
    if operator.name == BATCHES:
        return _paddings_of_batches(operator)
    if not _is_padded(operator):
        return None
    is_cut = operator.name == TRANSPOSED
    ways = (_cut_off(operator),) if is_cut else tuple(_paddings(operator, each) for each in (False, True))
    return next((each for each in ways if not faults_of(_unpadded(operator, each), profile)), None)


def _paddings_of_batches(operator: Operator) -> Paddings | None:
    """Return the paddings of a SPACE_TO_BATCH_ND of images; None where they are computed."""
    source, amounts = operator.inputs[0], integers(operator.inputs[2])
    if source is None or len(source.shape) != 4 or amounts is None or amounts.size != 4:
        return None
    (top, bottom), (left, right) = amounts.reshape(2, 2).tolist()
    return (top, bottom), (left, right)


def _is_padded(operator: Operator) -> bool:
    slot = 2 if operator.name == TRANSPOSED else 0
    if operator.name not in (*CONVOLUTIONS, TRANSPOSED) or int(operator.option("padding", SAME)) != SAME:
        return False
    tensors = operator.inputs[slot], operator.inputs[1], operator.outputs[0]
    return operator.options is not None and all(each is not None and len(each.shape) == 4 for each in tensors)


def _unpadded(operator: Operator, amounts: Paddings) -> Operator:
    """Return the operator without padding, between tensors that no graph has."""
    assert operator.options is not None
    options = replace(operator.options, fields={**operator.options.fields, "padding": VALID})
    if operator.name == TRANSPOSED:
        return replace(operator, outputs=(_grown(operator.outputs[0], amounts),), options=options)
    return replace(operator, inputs=(_grown(operator.required(0), amounts), *operator.inputs[1:]), options=options)


def _grown(tensor: Tensor, amounts: Paddings) -> Tensor:
    return Tensor(tensor.name, _grown_shape(tensor, amounts), tensor.dtype, _NO_DATA, tensor.quantization)


def _grown_shape(tensor: Tensor, amounts: Paddings) -> tuple[int, ...]:
    batch, height, width, depth = tensor.shape
    return batch, height + sum(amounts[0]), width + sum(amounts[1]), depth


def _write_apart(model: Model, graph: Graph, operator: Operator, amounts: Paddings) -> None:
    edit = Editor.in_place_of(model, graph, operator)
    output = operator.outputs[0]
    if operator.name == TRANSPOSED:
        whole = edit.activation(f"{stem(output)}/uncut", _grown_shape(output, amounts), output)
        shape = edit.constant(f"{stem(output)}/uncut/shape", np.asarray(whole.shape, np.int32))
        edit.twin(operator, (shape, *operator.inputs[1:]), (whole,), padding=VALID)
        edit.slice(whole, (0, amounts[0][0], amounts[1][0], 0), output.shape, output)
        return
    source = operator.required(0)
    padded = edit.padded(source, ((0, 0), *amounts, (0, 0)), f"{stem(output)}/padded")
    if operator.name == BATCHES:
        nothing = edit.constant(f"{stem(output)}/unpadded", np.zeros((2, 2), np.int32))
        edit.twin(operator, (padded, operator.inputs[1], nothing), (output,))
        return
    edit.twin(operator, (padded, *operator.inputs[1:]), (output,), padding=VALID)


def _write_clamp_apart(model: Model, graph: Graph, operator: Operator) -> None:
    edit = Editor.in_place_of(model, graph, operator)
    source, output = operator.required(0), operator.outputs[0]
    if not _is_below_largest(output):
        edit.operator("RELU", (source,), (output,))
        return
    rectified = edit.activation(f"{stem(output)}/rectified", output.shape, output)
    edit.operator("RELU", (source,), (rectified,))
    edit.operator("RELU6", (rectified,), (output,))


def _is_below_largest(output: Tensor) -> bool:
    """Tell whether 6 is below the largest integer of a tensor, rounded as kernels round it: as a float32 quotient."""
    found = affine_of(output)
    if found is None:
        return True
    most = 127 if output.dtype is DType.INT8 else 32767
    return found.zero_point + floor(float(np.float32(6) / np.float32(found.scale)) + 0.5) < most


def _paddings(operator: Operator, has_spare: bool) -> Paddings:
    """Return the padding of a convolution; ``has_spare``: with as much at the end as esp-nn counts."""
    window = window_of(operator)
    is_spare = has_spare and not window.is_dilated
    rows, columns = (
        (axis.before, axis.missing - axis.before if is_spare else axis.trailing)
        for axis in (window.rows, window.columns)
    )
    return rows, columns


def _cut_off(operator: Operator) -> Paddings:
    """Return the rows and columns that a TRANSPOSE_CONV computes and leaves out."""
    window = transposed_window_of(operator)
    return (window.rows.before, window.rows.after), (window.columns.before, window.columns.after)
