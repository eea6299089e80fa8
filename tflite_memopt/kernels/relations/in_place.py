"""Elementwise kernels: the output may take over its dying input's bytes.

The reference loops read element i of an input and then write element i of the output, and read it never again. Those
that go over a row more than once write it in the last pass that reads the input. Sources, tflite-micro commit
90b983c2b3f1, tensorflow/lite/micro/kernels/ and the loops of tensorflow/lite/kernels/internal/reference/ they call:

    one input        activations.cc, logistic.cc, tanh.cc, hard_swish.cc, leaky_relu.cc, elu.cc, elementwise.cc, exp.cc,
                     floor.cc, ceil.cc, round.cc, neg.cc; zeros_like.cc reads nothing; cumsum.cc adds up as it goes,
                     but with ``exclusive`` writes an element before it reads it
    by rows          softmax.cc, log_softmax.cc, l2norm.cc: maximum or sum of a row first; float and int16 softmax
                     keeps its exponentials in the output, and then reads only that
    conversions      quantize_common.cc, dequantize.cc, cast.cc
    several inputs   add_common.cc, sub_common.cc, mul_common.cc, div.cc, maximum_minimum.cc, squared_difference.cc,
                     floor_div.cc, floor_mod.cc, comparisons.cc, logical_common.cc, prelu_common.cc, add_n.cc, select.cc
    the first input  dynamic_update_slice.cc: skips the copy of its operand when the two pointers are equal

With broadcasting reference/broadcast_loop.h and select.h go over the output forwards, and read an input of the output's
own shape at the very index that is written. A smaller one is read again and again: it never qualifies.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from .model import KernelReuse

_CONVERSIONS = frozenset({"CAST", "DEQUANTIZE", "QUANTIZE"})
FIRST_INPUT = _CONVERSIONS | {
    "ABS",
    "CEIL",
    "COS",
    "CUMSUM",
    "DYNAMIC_UPDATE_SLICE",
    "ELU",
    "EXP",
    "FLOOR",
    "HARD_SWISH",
    "L2_NORMALIZATION",
    "LEAKY_RELU",
    "LOG",
    "LOGICAL_NOT",
    "LOGISTIC",
    "LOG_SOFTMAX",
    "NEG",
    "RELU",
    "RELU6",
    "ROUND",
    "RSQRT",
    "SIN",
    "SOFTMAX",
    "SQRT",
    "SQUARE",
    "TANH",
    "ZEROS_LIKE",
}
"""Operators whose output may lie on their first input."""
ANY_INPUT = frozenset(
    {
        "ADD",
        "ADD_N",
        "DIV",
        "EQUAL",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "GREATER",
        "GREATER_EQUAL",
        "LESS",
        "LESS_EQUAL",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "NOT_EQUAL",
        "PRELU",
        "SELECT_V2",
        "SQUARED_DIFFERENCE",
        "SUB",
    }
)
"""Operators whose output may lie on any input of the same shape."""
_TYPES = frozenset(
    {
        DType.BOOL,
        DType.FLOAT32,
        DType.INT8,
        DType.INT16,
        DType.INT32,
        DType.INT64,
        DType.UINT8,
        DType.UINT32,
    }
)


def in_place_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """Each input that the output may lie on exactly, and where a conversion changes the size of an element, how."""
    if len(operator.outputs) != 1 or (operator.name == "CUMSUM" and operator.option("exclusive", False)):
        return ()
    output = operator.outputs[0]
    return tuple(
        reuse
        for tensor in dict.fromkeys(_overwritable(operator))
        if tensor is not None and not tensor.is_constant and not tensor.is_variable and tensor.shape == output.shape
        for reuse in _reuse(operator, tensor, output)
    )


def _overwritable(operator: Operator) -> tuple[Tensor | None, ...]:
    """The inputs whose elements the kernel reads only at the index that it writes."""
    if operator.name in FIRST_INPUT:
        return operator.inputs[:1]
    return operator.inputs if operator.name in ANY_INPUT else ()


def _reuse(operator: Operator, source: Tensor, output: Tensor) -> tuple[KernelReuse, ...]:
    if source.dtype not in _TYPES or output.dtype not in _TYPES or not output.elements:
        return ()
    read, written = source.dtype.arena_bytes, output.dtype.arena_bytes
    if read == written:
        return (KernelReuse(source, output, 0, "in-place"),)
    if operator.name not in _CONVERSIONS:
        return ()
    # Element i is written when all up to i have been read: (i + 1) * written bytes over (i + 1) * read.
    last = output.elements - 1
    return (KernelReuse(source, output, max(written - read, last * (written - read)), "overlap"),)
