"""The structure of a float network as an int8 .tflite: shapes, options and types as quantization leaves them.

    float32 activation   int8, one scale a group of tensors that an operator must not rescale (moves, pools, joins)
    filter               int8, a scale for each output channel
    bias                 int32
    other constants      int8, one scale

Values and scales are drawn at random, and equal for equal structures: no channel is constant, no two tensors have equal
scales unless they must. What a trained network has beyond that, such as channels that never fire, it may gain.
Source of the groups: LiteRT's quantization specification (ai.google.dev/edge/litert/models/quantization_spec).
"""

from __future__ import annotations

import numpy as np

from ..errors import ErrorKind, UnsupportedModelError
from ..model.ir.copying import copy_model
from ..model.ir.editor import GraphWriter, add_buffer
from ..model.ir.model import DType, Model, Operator, Quantization, Tensor
from ..model.ir.tensors import per_tensor
from ..operators.table import kind_of, version_of


def as_int8(model: Model) -> Model:
    """Return the int8 structure of a float network; one without float tensors comes back as it is.

    Raises UnsupportedModelError for a network with subgraphs, whose groups of scales are not known here.
    """
    floats = [tensor for tensor in model.all_tensors if tensor.dtype is DType.FLOAT32]
    if not floats:
        return model
    if len(model.graphs) > 1:
        raise UnsupportedModelError(
            "a network with loops or branches has no int8 structure here: quantize it, and give the .tflite",
            ErrorKind.FORM,
        )
    made = copy_model(model)
    draw = np.random.default_rng(0)
    for operator in made.main.operators:
        _quantize_weights(made, operator, draw)
    groups, scales = _groups(made), dict[Tensor, Quantization]()
    for tensor in made.main.tensors:
        if tensor.dtype is DType.FLOAT32:
            drawn = per_tensor(float(draw.uniform(0.01, 0.1)), int(draw.integers(-128, 128)))
            tensor.quantization = scales.setdefault(groups[tensor], drawn)
            _retype(made, tensor, DType.INT8, draw)
    writer = GraphWriter(made, made.main)
    for operator in made.main.operators:
        scale = kind_of(operator).scale
        if scale is not None:
            operator.outputs[0].quantization = per_tensor(*scale)
        least = version_of(operator.name, operator.outputs)
        if operator.opcode.version < least:
            operator.opcode = writer.opcode(operator.name, least)
    used = {id(tensor.buffer) for tensor in made.main.tensors}
    made.buffers = [buffer for at, buffer in enumerate(made.buffers) if at == 0 or id(buffer) in used]
    made.metadata = []
    return made


def _quantize_weights(model: Model, operator: Operator, draw: np.random.Generator) -> None:
    axis = kind_of(operator).channel_axis
    weights = operator.operand(1)
    if axis is None or weights is None or not weights.is_constant or weights.dtype is not DType.FLOAT32:
        return
    count = weights.shape[axis]
    scale = draw.uniform(0.001, 0.01, count).astype(np.float32)
    weights.quantization = Quantization(scale, np.zeros(count, np.int64), axis)
    _retype(model, weights, DType.INT8, draw)
    bias = operator.inputs[-1] if len(operator.inputs) > 2 else None
    if bias is not None and bias.is_constant and bias.dtype is DType.FLOAT32:
        bias.quantization = Quantization(scale, np.zeros(count, np.int64), 0)
        _retype(model, bias, DType.INT32, draw)


def _retype(model: Model, tensor: Tensor, dtype: DType, draw: np.random.Generator) -> None:
    if tensor.is_constant:
        values = draw.integers(-127, 128, tensor.shape)
        tensor.buffer = add_buffer(model, values.astype(dtype.label))
    tensor.dtype = dtype


def _groups(model: Model) -> dict[Tensor, Tensor]:
    """Return for each tensor the first one of those that must have its scale."""
    parent = {tensor: tensor for tensor in model.main.tensors}

    def root(tensor: Tensor) -> Tensor:
        while parent[tensor] is not tensor:
            tensor = parent[tensor]
        return tensor

    for operator in model.main.operators:
        if not kind_of(operator).keeps_scale:
            continue
        floats = [each for each in (*operator.present_inputs(), *operator.outputs) if each.dtype is DType.FLOAT32]
        for tensor in floats[1:]:
            parent[root(tensor)] = root(floats[0])
    return {tensor: root(tensor) for tensor in parent}
