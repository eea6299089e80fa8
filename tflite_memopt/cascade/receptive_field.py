"""Which rows of its inputs an operator reads for some rows of its output: the receptive rows.

Rows are positions along H of an NHWC tensor. An operator is *row by row* when its output rows [a, b) are a function of
the input rows

    [a * stride - before, (b - 1) * stride - before + reach), clipped to the input

and of nothing else that changes from row to row. Outside the input a convolution and a pool see padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..ir.builder import VALID
from ..ir.constants import integers
from ..ir.dtype import DType
from ..ir.model import Operator, Tensor

_WINDOWED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"})
POOLS = frozenset({"AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"})
_ELEMENTWISE = frozenset(
    {"ABS", "ADD", "ADD_N", "CAST", "CEIL", "COS", "DEQUANTIZE", "DIV", "ELU", "EXP", "FLOOR", "HARD_SWISH"}
    | {"L2_NORMALIZATION", "LEAKY_RELU", "LOG", "LOGICAL_NOT", "LOGISTIC", "LOG_SOFTMAX", "MAXIMUM", "MINIMUM", "MUL"}
    | {"NEG", "PRELU", "QUANTIZE", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT"}
    | {"SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH"}
)
"""An output pixel depends on the inputs' pixels at the same place; in some of these operators on all their channels."""


@dataclass(frozen=True)
class Rows:
    """Rows ``start`` to ``end``, half-open."""

    start: int
    end: int

    @property
    def count(self) -> int:
        """How many rows; never negative."""
        return max(0, self.end - self.start)

    def hull(self, other: Rows) -> Rows:
        """The smallest range that has the rows of both."""
        return Rows(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Axis:
    """A window that moves along one axis, in pixels: ``reach`` of the kernel with its dilation.

    ``before`` and ``after`` are the pixels of padding that the whole tensor gets at its two ends.
    """

    size: int
    outputs: int
    stride: int = 1
    reach: int = 1
    before: int = 0
    after: int = 0

    def reads(self, out: Rows) -> Rows:
        """The input rows for these output rows, clipped."""
        first = out.start * self.stride - self.before
        return Rows(max(0, first), min(self.size, (out.end - 1) * self.stride - self.before + self.reach))

    def padding_of(self, out: Rows) -> tuple[int, int]:
        """Rows of padding above and below the rows that ``reads`` gives, for a window that is not clipped."""
        first = out.start * self.stride - self.before
        last = (out.end - 1) * self.stride - self.before + self.reach
        return max(0, -first), max(0, last - self.size)


@dataclass(frozen=True)
class RowByRow:
    """How a row-by-row operator uses its inputs: ``sliced`` are the slots of which it reads rows.

    The other slots are read whole: weights, and small tensors that are broadcast over the rows.
    """

    rows: Axis
    columns: Axis
    sliced: tuple[int, ...]
    is_window: bool


def row_by_row(operator: Operator) -> RowByRow | str:
    """How the operator can be run for some of its rows at a time, or the reason why it cannot."""
    if len(operator.outputs) != 1 or not _is_image(operator.outputs[0]):
        return "its output is not one NHWC tensor with batch 1"
    if operator.name in _WINDOWED:
        return _windowed(operator)
    if operator.name in ("PAD", "PADV2"):
        return _padded(operator)
    if operator.name in _ELEMENTWISE:
        return _elementwise(operator)
    if operator.name == "CONCATENATION":
        return _joined(operator)
    return f"{operator.name} is not computed row by row"


def _windowed(operator: Operator) -> RowByRow | str:
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or source.is_constant or not _is_image(source):
        return "its input is not an NHWC tensor with batch 1"
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return "its weights are computed"
    if operator.name in POOLS:
        taps = operator.option("filterHeight", 0), operator.option("filterWidth", 0)
    else:
        filters = operator.inputs[1]
        if filters is None or len(filters.shape) != 4:
            return "its weights are not a 4-dimensional constant"
        if source.dtype is DType.FLOAT32 and filters.dtype is not DType.FLOAT32:
            return "it is hybrid: its float input is quantised by the range of all rows"
        taps = filters.shape[1], filters.shape[2]
    axes = [_axis(operator, source, output, axis, taps[axis - 1]) for axis in (1, 2)]
    return RowByRow(axes[0], axes[1], (0,), is_window=True)


def _axis(operator: Operator, source: Tensor, output: Tensor, axis: int, taps: int) -> Axis:
    """Padding as TFLite computes it: tensorflow/lite/kernels/padding.h, ``ComputePaddingWithOffset``."""
    letter, size, outputs = "HW"[axis - 1], source.shape[axis], output.shape[axis]
    stride = int(operator.option(f"stride{letter}", 1))
    reach = (taps - 1) * int(operator.option(f"dilation{letter}Factor", 1)) + 1
    if operator.option("padding", 0) == VALID:
        return Axis(size, outputs, stride, reach)
    total = max(0, (outputs - 1) * stride + reach - size)
    return Axis(size, outputs, stride, reach, total // 2, total - total // 2)


def _padded(operator: Operator) -> RowByRow | str:
    source, output = operator.inputs[0], operator.outputs[0]
    amounts = integers(operator.inputs[1])
    if source is None or source.is_constant or not _is_image(source) or amounts is None or amounts.size != 8:
        return "its input is not an NHWC tensor with batch 1, or its paddings are not constant"
    if amounts.min() < 0 or amounts[:2].any():
        return "it pads the batch, or by a negative number"
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[2:]):
        return "its padding value is computed"
    axes = [
        Axis(source.shape[axis], output.shape[axis], 1, 1, int(amounts[2 * axis]), int(amounts[2 * axis + 1]))
        for axis in (1, 2)
    ]
    return RowByRow(axes[0], axes[1], (0,), is_window=False)


def _elementwise(operator: Operator) -> RowByRow | str:
    output = operator.outputs[0]
    height = output.shape[1]
    sliced = []
    for slot, tensor in enumerate(operator.inputs):
        if tensor is None:
            continue
        rows = tensor.shape[-3] if len(tensor.shape) >= 3 else 1
        if rows == 1 and (height > 1 or tensor.is_constant):
            continue  # broadcast over the rows: the same for each of them
        if tensor.is_constant or not _is_image(tensor) or rows != height:
            return "an operand is a constant that differs from row to row, or has another shape"
        sliced.append(slot)
    if not sliced:
        return "it reads no tensor of its output's height"
    columns = Axis(output.shape[2], output.shape[2])
    return RowByRow(Axis(height, height), columns, tuple(sliced), is_window=False)


def _joined(operator: Operator) -> RowByRow | str:
    output = operator.outputs[0]
    if int(operator.option("axis", 0)) % 4 not in (2, 3):
        return "it joins tensors along their rows"
    inputs = list(operator.present_inputs())
    if any(tensor.is_constant or not _is_image(tensor) for tensor in inputs) or len(inputs) != len(operator.inputs):
        return "it joins a constant"
    rows, columns = (Axis(output.shape[axis], output.shape[axis]) for axis in (1, 2))
    return RowByRow(rows, columns, tuple(range(len(inputs))), is_window=False)


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and tensor.shape[0] == 1 and bool(np.all(np.asarray(tensor.shape) > 0))
