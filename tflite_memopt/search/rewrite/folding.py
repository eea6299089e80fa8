"""Rules that compute something now: shapes, constants in float32, a bias, the layout of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ...model.ir.editor import Array
from ...model.ir.model import DType, Operator, Tensor
from ...model.ir.tensors import QUANTIZED, has_several_scales, integers, nibbles, quantized_alike, values
from ...operators.boxes import CUTS, axis_of, operands
from ...operators.editor import Editor
from ...operators.table import OPERATORS
from ...operators.window import CONVOLUTIONS
from .engine import Answer, Match, Pattern, Proposal, Rule
from .shapes import write_reshape

_FOLDED = (*QUANTIZED, DType.INT32, DType.INT64)
"""Types in which constants are computed."""


def _moved(operator: Operator) -> Array | None:
    """Return the values of the output; None unless they are the operator's inputs, moved."""
    arrays = _arrays(operator)
    if arrays is None:
        return None
    try:
        return _MOVES[operator.name](operator, arrays)
    except ValueError:  # what numpy raises when operands do not fit each other
        return None


def _arrays(operator: Operator) -> list[Array] | None:
    """The values to move; None unless they and the output are of one type and quantization, or integers to cast."""
    moved = operator.inputs if operator.name in ("CONCATENATION", "PACK") else operator.inputs[:1]
    data = [tensor for tensor in moved if tensor is not None]
    found = [array for tensor in data if (array := values(tensor)) is not None]
    if not found or len(found) < len(data) or operator.option("fusedActivationFunction", 0):
        return None
    first, tensors = data[0], (*data, *operator.outputs)
    if operator.name == "CAST":
        return found if all(tensor.dtype in _FOLDED for tensor in tensors) else None
    alike = (t.dtype is first.dtype and quantized_alike(t.quantization, first.quantization) for t in tensors)
    return found if all(alike) else None


def _cut(operator: Operator, arrays: list[Array]) -> Array:
    box = CUTS[operator.name](operator)
    if box is None:
        raise ValueError("not a box")
    cut = arrays[0][tuple(slice(first, first + count) for first, count in zip(box.first, box.count, strict=True))]
    return cut.reshape(operator.outputs[0].shape)


_MOVES: Mapping[str, Callable[[Operator, list[Array]], Array]] = {
    "CAST": lambda operator, arrays: arrays[0].astype(operator.outputs[0].dtype.label),
    "CONCATENATION": lambda operator, arrays: np.concatenate(arrays, axis=int(operator.option("axis", 0))),
    "PACK": lambda operator, arrays: np.stack(arrays, axis=int(operator.option("axis", 0))),
    "RESHAPE": lambda operator, arrays: arrays[0].reshape(operator.outputs[0].shape),
    "SLICE": _cut,
    "STRIDED_SLICE": _cut,
}
"""The output from the values to move; ValueError when the operands do not fit."""
_MOST = 16
"""Integers in an output: fewer bytes than the entry of an operator takes in the file."""
_NUMPY = {DType.INT32: np.int32, DType.INT64: np.int64}


def _folded_shapes(match: Match) -> Answer:
    operator = match.anchor
    if len(operator.outputs) != 1 or operator.outputs[0].dtype not in _NUMPY or operator.outputs[0].elements > _MOST:
        return None
    if operator.name != "SHAPE" and not all(tensor.is_constant for tensor in operator.present_inputs()):
        return None
    output = operator.outputs[0]
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    compute = _COMPUTED.get(operator.name)
    found = _moved(operator) if compute is None else compute(operator)
    if found is None or found.shape != output.shape:
        return "its operands are not those of plain arithmetic with shapes"
    folded = found.astype(_NUMPY[output.dtype])
    return Proposal(lambda edit: edit.fill(output, folded))


def _shape(operator: Operator) -> Array | None:
    (x,) = operator.inputs
    return None if x is None else np.asarray(x.shape, np.int64)


def _gathered(operator: Operator) -> Array | None:
    """Elements of a vector. Source: tensorflow/lite/kernels/internal/reference/gather.h."""
    source, chosen = (None if tensor is None else values(tensor) for tensor in operator.inputs)
    if source is None or chosen is None or source.ndim != 1 or operator.option("batchDims", 0):
        return None
    if axis_of(int(operator.option("axis", 0)), 1) is None or chosen.min() < 0 or chosen.max() >= source.size:
        return None
    found: Array = source[chosen]
    return found


def _product(operator: Operator) -> Array | None:
    """Of all elements of a vector."""
    source, axes = operator.inputs
    array, chosen = None if source is None else values(source), integers(axes)
    if array is None or chosen is None or array.ndim != 1 or [axis_of(int(at), 1) for at in chosen] != [0]:
        return None
    found: Array = np.prod(array, axis=0, keepdims=bool(operator.option("keepDims", False)), dtype=array.dtype)
    return np.asarray(found)


def _multiplied(operator: Operator) -> Array | None:
    a, b = (None if tensor is None else values(tensor) for tensor in operator.inputs)
    if a is None or b is None or a.dtype != b.dtype or operator.option("fusedActivationFunction", 0):
        return None
    found: Array = a * b
    return np.asarray(found)


_COMPUTED: Mapping[str, Callable[[Operator], Array | None]] = {
    "GATHER": _gathered,
    "MUL": _multiplied,
    "REDUCE_PROD": _product,
    "SHAPE": _shape,
}
"""The output's values; None where the operands are others."""

FOLDED_SHAPES = Rule("folded_shapes", Pattern("arithmetic", (*_COMPUTED, *_MOVES)), _folded_shapes)
"""Replace arithmetic with fixed shapes, such as SHAPE, GATHER, or REDUCE_PROD, by its results.

    x -- SHAPE -- GATHER -- REDUCE_PROD -- PACK -- shape        =>        shape (constant)

Exact: the shape of every tensor is fixed in the arena, and integers are computed as C does it.

Keras writes such operators around layers that flatten all but the batch, where the batch size was not fixed. They cost
more flash than the few integers that they make, and TFLM has no REDUCE_PROD: without them it loads the model.
"""


_RESHAPES = ("RESHAPE", "SQUEEZE")


_LARGEST_SUM = 2.0**100
"""Of weights: inputs below 2**27 then make no sum that overflows."""


def _folded_bias(match: Match) -> Answer:
    add, convolution = match.anchor, match["convolution"]
    made, output = convolution.outputs[0], add.outputs[0]
    if output.dtype is not DType.FLOAT32:
        return None
    bias = next((tensor for tensor in add.present_inputs() if tensor.is_constant), None)
    found = None if bias is None else values(bias)
    if bias is None or found is None or found.size != made.shape[-1] or bias.shape[-1:] != made.shape[-1:]:
        return None
    reshape = match.operators.get("reshape")
    between = [each.outputs[0] for each in (convolution, reshape) if each is not None]
    shared = next((tensor.name for tensor in between if match.is_shared(tensor)), None)
    if shared is not None:
        return f"'{shared}' is needed by others too"
    if output.shape != between[-1].shape or output.shape[-1] != made.shape[-1]:
        return "the constant is broadcast, or does not meet the convolution's channels"
    reason = _reason_against_sums(convolution, found)
    if reason is not None:
        return reason
    activation = int(add.option("fusedActivationFunction", 0))

    def write(edit: Editor) -> None:
        vector, y = bias, output
        if len(bias.shape) != 1:
            vector = edit.constant(f"{bias.name}/vector", found.reshape(-1))
        if reshape is not None:
            y = edit.activation(f"{output.name}/image", made.shape, output)
        edit.twin(convolution, (*convolution.inputs[:2], vector), (y,), fusedActivationFunction=activation)
        if reshape is not None:
            write_reshape(edit, reshape, y, output)

    return Proposal(write)


def _reason_against_sums(convolution: Operator, bias: Array) -> str | None:
    if int(convolution.option("fusedActivationFunction", 0)):
        return "the convolution has an activation of its own"
    x, weights, old = operands(convolution, 3)
    if x is None or weights is None or weights.dtype is not DType.FLOAT32:
        return "it is hybrid: its sums are integers"
    factors = values(weights)
    if factors is None or not np.abs(factors.astype(np.float64)).sum() + np.abs(bias).max() < _LARGEST_SUM:
        return "its sums may overflow, which a convolution clamps before the ADD"
    zeros = None if old is None else values(old)
    if old is not None and (zeros is None or zeros.view(np.uint32).any()):
        return "the convolution has a bias of its own: two constants, added one by one, round twice"
    return None


_CONVOLUTION = Pattern("convolution", CONVOLUTIONS)
FOLDED_BIAS = tuple(
    Rule("folded_bias", Pattern("add", ("ADD",), {slot: inner}), _folded_bias)
    for slot in (0, 1)
    for inner in (_CONVOLUTION, Pattern("reshape", _RESHAPES, {0: _CONVOLUTION}))
)
"""Move a float ADD of one constant per channel into the convolution before it, as its bias.

    x -- CONV_2D -- ADD of a constant -- y        =>        x -- CONV_2D with the constant as bias -- y

and likewise through a RESHAPE or SQUEEZE that keeps the channels. The ADD's activation becomes the convolution's.

Exact: a float kernel adds the bias to the complete sum of products and then clamps (tensorflow/lite/kernels/internal/
reference/conv.h), which is what the ADD does. It is done only where the convolution has no activation and no bias but
zeros, and no sum overflows. A sum is never -0, so that adding +0 to it first changes no bit. Integers are left alone:
the ADD rounds them once more.

The converter leaves such an ADD behind a dilated convolution; without it one tensor of the output's size is gone.

For the constant on either side, with a reshape between and without.
"""


_FLAGS = ("adjX", "adjY")


def _widened_constant(is_needed: bool, match: Match) -> Answer:
    source, output = match.anchor.inputs[0], match.anchor.outputs[0]
    if source is None or not source.is_constant or output.dtype is not DType.FLOAT32:
        return None
    is_wrong = not OPERATORS["DEQUANTIZE"].tflm.takes(source.dtype) or has_several_scales(source.quantization)
    if is_needed and not is_wrong:
        return None
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    found = _widened(source)
    if found is None:
        return "its values are sparse, in blocks, or without a scale"
    return Proposal(lambda edit: edit.fill(output, found))


def _widened(source: Tensor) -> Array | None:
    """Return the values of a constant in float32, as LiteRT's DEQUANTIZE rounds them; None where that is not known."""
    data, found = source.buffer.data, source.quantization
    if data is None or source.extras.get("sparsity") is not None or data.size != source.file_bytes:
        return None
    data = np.ascontiguousarray(data)
    if source.dtype is DType.FLOAT16:
        return data.view("<f2").reshape(source.shape).astype(np.float32)
    stored: Array | None = nibbles(source)
    if source.dtype in _STORED:
        stored = data.view(_STORED[source.dtype]).reshape(source.shape)
    if stored is None or found is None or not found.scale.size or found.extras.get("details") is not None:
        return None
    if found.scale.size != found.zero_point.size or found.scale.size not in (1, *source.shape[found.axis :][:1]):
        return None
    along = [1] * len(source.shape)
    if found.scale.size > 1:
        along[found.axis] = found.scale.size
    # A distance is exact in float32, and the product is rounded once.
    distance = stored.astype(np.int64) - found.zero_point.reshape(along)
    widened: Array = found.scale.reshape(along) * distance.astype(np.float32)
    return widened.reshape(source.shape)


_STORED: Mapping[DType, str] = {DType.INT8: "<i1", DType.UINT8: "<u1", DType.INT16: "<i2"}
WIDENED_CONSTANT = Rule("widened_constant", Pattern("widen", ("DEQUANTIZE",)), partial(_widened_constant, False))
"""Store a quantized constant, or one of float16, in float32, as its DEQUANTIZE returns it; the file grows.

    w (int8, int4, int16, uint8, float16) -- DEQUANTIZE -- CONV_2D        =>        w (float32) -- CONV_2D

Exact: every float16 is a float32, and of integers DEQUANTIZE gives scale * (q - zero_point), rounded once, which is
what is stored. TFLM has all values of such weights in the arena, and computes them in each run; now they are in flash,
at up to eight times the size of the integers. ``--keep-quantized`` leaves those that TFLM dequantizes rightly: it has
no float16 and no DEQUANTIZE of int4, and takes the first scale of a constant for all of its channels.
"""
NEEDED_WIDENING = replace(WIDENED_CONSTANT, check=partial(_widened_constant, True))  # of what TFLM does not


def _adjoint_matmul(slot: int, match: Match) -> Answer:
    product, transpose = match.anchor, match["transpose"]
    if bool(product.option(_FLAGS[slot], False)) != (slot == 0):
        return None  # the kernel keeps no copy of this side
    source, chosen = operands(transpose, 2)
    order, made = integers(chosen), transpose.outputs[0]
    if source is None or order is None or order.size != len(made.shape) or order.size < 2:
        return "the order of its dimensions is computed"
    if match.is_shared(made):
        return f"'{made.name}' is needed by others too"
    if len({tensor.dtype for tensor in product.present_inputs()}) > 1:
        return "it is hybrid: another kernel computes it"
    if not quantized_alike(source.quantization, made.quantization):
        return f"'{made.name}' is quantized otherwise than '{source.name}'"
    axes = [axis_of(axis, order.size) for axis in order.tolist()]
    if None in axes:
        return None
    *outer, rows, columns = (axis for axis in axes if axis is not None)
    turned_order = (*outer, columns, rows)

    def write(edit: Editor) -> None:
        turned = edit.activation(f"{made.name}/adjoint", [source.shape[axis] for axis in turned_order], made)
        new = edit.constant(f"{turned.name}/order", np.asarray(turned_order, np.int32))
        edit.twin(transpose, (source, new), (turned,))
        inputs = tuple(turned if at == slot else tensor for at, tensor in enumerate(product.inputs))
        edit.twin(product, inputs, product.outputs, **{_FLAGS[slot]: slot == 1})

    return Proposal(write)


ADJOINT_MATMUL = tuple(
    Rule(
        "adjoint_matmul",
        Pattern("product", ("BATCH_MATMUL",), {slot: Pattern("transpose", ("TRANSPOSE",))}),
        partial(_adjoint_matmul, slot),
    )
    for slot in (1, 0)
)
"""Let BATCH_MATMUL transpose a matrix itself, which needs no copy in the tail.

    b -- TRANSPOSE to (..., K, N) -- BATCH_MATMUL(a, .)
                                    =>        b -- TRANSPOSE to (..., N, K) -- BATCH_MATMUL(a, .), adjY

Without adjY TFLM keeps a transposed copy of the right side in the tail for good, one for each operator, and fills it at
every run; with adjX one of the left side (micro/kernels/batch_matmul.cc, commit 90b983c2b3f1,
``InitializeTemporaries``). In attention that is most of the tail.

Exact: the kernel multiplies the same numbers in the same order, transposed by TRANSPOSE in place of the kernel itself.
Where that leaves no two dimensions in another order, TRANSPOSE is left out by the rule ``identity``.

For the right side and for the left one.
"""
