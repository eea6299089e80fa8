"""Elementwise kernels: the output may take over its dying input's bytes.

The reference loops read element i of an input and then write element i of the output, and read it never again.
SOFTMAX and LOG_SOFTMAX pass over a row first and write it in the last pass, each element from the same one.
Sources, tflite-micro commit 90b983c2b3f1: kernels/activations_common.cc, logistic.cc, tanh.cc, hard_swish.cc,
leaky_relu.cc, elu.cc, elementwise.cc, exp.cc, floor.cc, ceil.cc, round.cc, neg.cc, logical.cc, softmax.cc,
log_softmax.cc, add.cc, sub.cc, mul.cc, div.cc, maximum_minimum.cc, squared_difference.cc, quantize_common.cc,
dequantize.cc, cast.cc and the loops of tensorflow/lite/kernels/internal/reference that they call. With broadcasting
only an input of the output's own shape qualifies: in reference/add.h and its likes the loop runs over the output,
so that such an input is read at the very index that is written.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from .model import Share

_UNARY = frozenset(
    {
        "ABS",
        "CEIL",
        "COS",
        "ELU",
        "EXP",
        "FLOOR",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LOG",
        "LOGICAL_NOT",
        "LOGISTIC",
        "LOG_SOFTMAX",
        "NEG",
        "QUANTIZE",
        "RELU",
        "RELU6",
        "ROUND",
        "RSQRT",
        "SIN",
        "SOFTMAX",
        "SQRT",
        "SQUARE",
        "TANH",
    }
)
_BINARY = frozenset({"ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB"})
_CONVERSIONS = frozenset({"CAST", "DEQUANTIZE", "QUANTIZE"})
_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.BOOL)


def in_place_shares(operator: Operator) -> tuple[Share, ...]:
    """Each input that the output may lie on exactly, and where a conversion changes the size of an element, how."""
    output = operator.outputs[0] if len(operator.outputs) == 1 else None
    if output is None or operator.name not in _UNARY | _BINARY | _CONVERSIONS:
        return ()
    inputs = operator.inputs[:1] if operator.name not in _BINARY else operator.inputs
    return tuple(
        share
        for tensor in dict.fromkeys(inputs)
        if tensor is not None and not tensor.is_constant and tensor.shape == output.shape
        for share in _share(operator, tensor, output)
    )


def _share(operator: Operator, source: Tensor, output: Tensor) -> tuple[Share, ...]:
    if source.dtype not in _TYPES or output.dtype not in _TYPES:
        return ()
    read, written = source.dtype.arena_bytes, output.dtype.arena_bytes
    if read == written:
        return (Share(source, output, 0, "in-place"),)
    if operator.name not in _CONVERSIONS:
        return ()
    # Element i is written when all up to i have been read: (i + 1) * written bytes over (i + 1) * read.
    last = output.elements - 1
    return (Share(source, output, max(written - read, last * (written - read)), "overlap"),)
