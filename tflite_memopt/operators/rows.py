"""Receptive rows: those of its inputs that an operator reads for some rows of its output.

Rows are positions along H of an NHWC tensor. An operator is *row by row* when its output rows [a, b) are a function of
the input rows

    [a * stride - before, (b - 1) * stride - before + reach), clipped to the input

and of nothing else that changes from row to row. Outside the input a convolution and a pool see padding.

An operator that makes ``factor`` rows of one reads the rows

    [(a - above) // factor, (b - 1 + below) // factor + 1), clipped to the input

and makes all rows of these; those that are not wanted, which lack a neighbor, are cut off.

For each kind of operator there is a function that returns its ``RowMap``, or the reason why it cannot run by rows.
All ask for an output that is one NHWC tensor with batch 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..model.ir.editor import VALID
from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import integers, same_padding

Row = TypeVar("Row", int, npt.NDArray[np.int64])
"""The number of a row, or an array of them."""


@dataclass(frozen=True)
class Rows:
    """Rows ``start`` to ``end``, half-open."""

    start: int
    end: int

    @property
    def count(self) -> int:
        """The number of rows, never negative."""
        return max(0, self.end - self.start)

    def hull(self, other: Rows) -> Rows:
        """The smallest range that has the rows of both."""
        return Rows(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Axis:
    """A window that moves along one axis, in pixels: ``reach`` of the kernel with its dilation.

    ``before`` and ``after`` are the pixels of padding that the whole tensor gets at its two ends. ``factor``: pixels
    that are made of one; with more than one there is no stride and no padding, and an output pixel depends on what
    ``above`` output pixels before it and ``below`` after it are made of.
    """

    size: int
    outputs: int
    stride: int = 1
    reach: int = 1
    before: int = 0
    after: int = 0
    factor: int = 1
    above: int = 0
    below: int = 0

    def reads(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The input rows for output rows ``start`` to ``end``, half-open and not clipped: rows outside are padding."""
        if self.factor > 1:
            return (start - self.above) // self.factor, (end - 1 + self.below) // self.factor + 1
        return start * self.stride - self.before, (end - 1) * self.stride - self.before + self.reach

    def makes(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The output rows that come of these input rows, where ``factor`` is more than one."""
        beyond = self.outputs - self.size * self.factor
        return start * self.factor, end * self.factor + beyond


@dataclass(frozen=True)
class RowMap:
    """The use that a row-by-row operator makes of its inputs: ``sliced`` are the slots of which it reads rows.

    The other slots are read whole: weights, and tensors that are the same for all rows. ``passes_on``: the output is
    its input's bytes in another shape.
    """

    rows: Axis
    columns: Axis
    sliced: tuple[int, ...]
    is_window: bool
    passes_on: bool = False

    def images(self, operator: Operator) -> list[Tensor]:
        """The inputs of which the operator reads rows, by slot."""
        return [tensor for slot in self.sliced if (tensor := operator.inputs[slot]) is not None]


def is_image(tensor: Tensor) -> bool:
    """Tell whether it is an NHWC tensor with batch 1."""
    return len(tensor.shape) == 4 and tensor.shape[0] == 1 and bool(np.all(np.asarray(tensor.shape) > 0))


FROM_STACK, TO_STACK = (2, 1, 3, 0), (3, 1, 0, 2)
"""Orders of a TRANSPOSE between a stack (C, H, 1, W) and an image (1, H, W, C)."""


def is_stack(tensor: Tensor) -> bool:
    """Tell whether it is (C, H, 1, W), which are the bytes of an image with channels first."""
    return len(tensor.shape) == 4 and tensor.shape[2] == 1 and min(tensor.shape) > 0


_NO_IMAGE = "its input is not an NHWC tensor with batch 1"
_HYBRID = "it is hybrid: its float input is quantized by the range of all rows"


def convolution_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows from r * stride - padding on, as many as the dilated filter covers; not hybrid."""
    source, filters = (*operator.inputs, None)[:2]
    if filters is None or len(filters.shape) != 4:
        return _window(operator, "its weights are not a 4-dimensional constant")
    return _window(operator, _HYBRID if _is_hybrid(source, filters) else filters.shape[1:3])


def pool_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows from r * stride - padding on, as many as the window covers."""
    return _window(operator, (operator.option("filterHeight", 0), operator.option("filterWidth", 0)))


def _window(operator: Operator, taps: Sequence[int] | str) -> RowMap | str:
    """A window of so many taps along H and W; or the reason why these are not known."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not is_image(source):
        return _NO_IMAGE
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return "its weights are computed"
    if isinstance(taps, str):
        return taps
    axes = [_axis(operator, source, output, axis, taps[axis - 1]) for axis in (1, 2)]
    return RowMap(axes[0], axes[1], (0,), is_window=True)


def _is_hybrid(source: Tensor | None, filters: Tensor) -> bool:
    return source is not None and source.dtype is DType.FLOAT32 and filters.dtype is not DType.FLOAT32


def _axis(operator: Operator, source: Tensor, output: Tensor, axis: int, taps: int) -> Axis:
    letter, size, outputs = "HW"[axis - 1], source.shape[axis], output.shape[axis]
    stride = int(operator.option(f"stride{letter}", 1))
    reach = (taps - 1) * int(operator.option(f"dilation{letter}Factor", 1)) + 1
    padding = (0, 0) if operator.option("padding", 0) == VALID else same_padding(size, outputs, stride, reach)
    return Axis(size, outputs, stride, reach, *padding)


def pad_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r - (rows padded above), if there is one: constant paddings, not negative, none of the batch."""
    source, output = operator.inputs[0], operator.outputs[0]
    amounts = integers(operator.inputs[1])
    if source is None or not is_image(source) or amounts is None or amounts.size != 8:
        return "its input is not an NHWC tensor with batch 1, or its paddings are not constant"
    if amounts.min() < 0 or amounts[:2].any():
        return "it pads the batch, or by a negative number"
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[2:]):
        return "its padding value is computed"
    axes = [
        Axis(source.shape[axis], output.shape[axis], 1, 1, int(amounts[2 * axis]), int(amounts[2 * axis + 1]))
        for axis in (1, 2)
    ]
    return RowMap(axes[0], axes[1], (0,), is_window=False)


def elementwise_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: no constant that differs between rows."""
    output = operator.outputs[0]
    height = output.shape[1]
    sliced = []
    for slot, tensor in enumerate(operator.inputs):
        if tensor is None:
            continue
        rows = tensor.shape[-3] if len(tensor.shape) >= 3 else 1
        if rows == 1 and (height > 1 or tensor.is_constant):
            continue  # broadcast over the rows: the same for each of them
        if tensor.is_constant or not is_image(tensor) or rows != height:
            return "an operand is a constant that differs from row to row, or has another shape"
        sliced.append(slot)
    if not sliced:
        return "it reads no tensor of its output's height"
    columns = Axis(output.shape[2], output.shape[2])
    return RowMap(Axis(height, height), columns, tuple(sliced), is_window=False)


def _same(output: Tensor, sliced: tuple[int, ...], passes_on: bool = False) -> RowMap:
    """A row of the output needs the same row of the inputs in these slots, and nothing beside it."""
    rows, columns = (Axis(output.shape[axis], output.shape[axis]) for axis in (1, 2))
    return RowMap(rows, columns, sliced, is_window=False, passes_on=passes_on)


def concatenation_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: along columns or channels, no constants."""
    output = operator.outputs[0]
    if int(operator.option("axis", 0)) % 4 not in (2, 3):
        return "it joins tensors along their rows"
    inputs = list(operator.present_inputs())
    if not all(map(is_image, inputs)) or len(inputs) != len(operator.inputs):
        return "it joins other things than images"
    return _same(output, tuple(range(len(inputs))))


def mirror_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: only columns and channels are mirrored."""
    source, output, amounts = operator.inputs[0], operator.outputs[0], integers(operator.inputs[1])
    if source is None or not is_image(source) or amounts is None or amounts.size != 8 or amounts[:4].any():
        return "it mirrors rows"
    axes = [Axis(source.shape[axis], output.shape[axis]) for axis in (1, 2)]
    return RowMap(axes[0], axes[1], (0,), is_window=False)


def dense_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: per pixel (``keep_num_dims``), constant weights, not hybrid."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not is_image(source) or source.shape[:3] != output.shape[:3]:
        return "it is not computed pixel by pixel"
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return "its weights are computed"
    filters = operator.inputs[1]
    if filters is None or _is_hybrid(source, filters):
        return _HYBRID
    return _same(output, (0,))


def product_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r of an input with one matrix per row, and all of a matrix that exists once: not hybrid.

    The rows of BATCH_MATMUL are the matrices of a batch, such as the heads of an attention.

    A matrix that is there once is the same for all rows: then these are the vectors of a sequence, such as queries.

        queries (1, L, 1, d)  x  keys (1, 1, S, d), adjY  =  scores (1, L, 1, S)       read whole: the keys
    """
    output, both = operator.outputs[0], list(operator.present_inputs())
    if len({tensor.dtype for tensor in both}) > 1:
        return _HYBRID
    sliced = tuple(slot for slot, tensor in enumerate(both) if not set(tensor.shape[:-2]) <= {1})
    for slot in sliced:
        if not is_image(both[slot]) or both[slot].shape[1] != output.shape[1]:
            return "its matrices are neither one for each row nor one for all"
    if not sliced:
        return "it multiplies one matrix by one"
    return _same(output, sliced)


def argument_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: over channels, which the result lacks, so that a region ends here."""
    source, output, axis = operator.inputs[0], operator.outputs[0], integers(operator.inputs[1])
    if source is None or not is_image(source) or axis is None:
        return "its input is not an NHWC tensor with batch 1, or its axis is computed"
    if axis.size != 1 or int(axis.flat[0]) % 4 != 3:
        return "it compares rows or columns"
    return _same(output, (0,))


def slice_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: along columns and channels, by int32 constants."""
    source, output = operator.inputs[0], operator.outputs[0]
    begin, size = (integers(tensor) for tensor in operator.inputs[1:3])
    if source is None or not is_image(source) or begin is None or size is None:
        return "its input is not an NHWC tensor with batch 1, or what it cuts out is computed"
    if source.shape[1] != output.shape[1] or source.shape == output.shape:
        return "it cuts rows out, or nothing"
    if any(tensor is None or tensor.dtype is not DType.INT32 for tensor in operator.inputs[1:3]):
        return "it says in 64 bits what it cuts out"
    return _same(output, (0,))


def reshape_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: keeps rows, and is neither first nor last in a region."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not is_image(source) or len(operator.inputs) != 2:
        return _NO_IMAGE
    if source.shape[1] != output.shape[1] or integers(operator.inputs[1]) is None:
        return "it does not keep rows, or its shape is computed"
    return _same(output, (0,), passes_on=True)


def transpose_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: columns and channels change places, or those of a stack become channels; by constants."""
    source, order = operator.inputs[0], integers(operator.inputs[1])
    if source is None or order is None:
        return "its order is computed"
    ends = (source, operator.outputs[0])
    if tuple(order.tolist()) in (FROM_STACK, TO_STACK) and any(map(is_image, ends)) and any(map(is_stack, ends)):
        return _same(operator.outputs[0], (0,))
    if not all(map(is_image, ends)):
        return "its input is not an NHWC tensor with batch 1"
    if order.tolist() != [0, 1, 3, 2]:
        return "it moves rows, or nothing"
    return _same(operator.outputs[0], (0,))


def reduction_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: over columns and channels, with ``keep_dims``."""
    source, output, axes = operator.inputs[0], operator.outputs[0], integers(operator.inputs[1])
    if source is None or not is_image(source) or axes is None:
        return "its input is not an NHWC tensor with batch 1, or its axes are computed"
    if not operator.option("keepDims", False) or not {int(axis) % 4 for axis in axes} <= {2, 3}:
        return "it takes rows together"
    return _same(output, (0,))


def space_to_depth_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows r * block to (r + 1) * block."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not is_image(source):
        return _NO_IMAGE
    block = int(operator.option("blockSize", 1))
    axes = [Axis(source.shape[axis], output.shape[axis], block, block) for axis in (1, 2)]
    return RowMap(axes[0], axes[1], (0,), is_window=False)


def depth_to_space_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r / block."""
    return _enlarged(operator, 0, int(operator.option("blockSize", 1)))


def nearest_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r / n: enlarged by an integer n, corners not aligned.

    The row is computed in float32 (tensorflow/lite/kernels/internal/reference/resize_nearest_neighbor.h), and the
    scale is the same float for any number of rows.
    """
    factor = _factor(operator)
    if isinstance(factor, str):
        return factor
    rows = np.arange(operator.outputs[0].shape[1], dtype=np.float32)
    offset = np.float32(0.5 if operator.option("halfPixelCenters", False) else 0)
    found = np.floor((rows + offset) * (np.float32(1) / np.float32(factor)))
    if (found.astype(np.int64) != np.arange(len(rows)) // factor).any():
        return "it does not repeat every row as often"
    return _enlarged(operator, 0, factor)


def bilinear_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r / n and the one beside it: n a power of two, so that weights are exact; corners not aligned.

    The weights are those of reference/resize_bilinear.h.
    """
    factor = _factor(operator)
    if isinstance(factor, str):
        return factor
    if factor & (factor - 1):
        return f"its weights are rounded: {factor} is no power of two"
    is_half = bool(operator.option("halfPixelCenters", False))
    above, below = (factor // 2, factor // 2) if is_half else (0, factor)
    return _enlarged(operator, 0, factor, above, below)


def _factor(operator: Operator) -> int | str:
    source, output = operator.inputs[0], operator.outputs[0]
    if operator.option("alignCorners", False):
        return "it aligns corners: its scale depends on the number of rows"
    if source is None or not is_image(source) or integers(operator.inputs[1]) is None:
        return "its input is not an NHWC tensor with batch 1, or its size is computed"
    if output.shape[1] % source.shape[1]:
        return "it does not make a whole number of rows of one"
    return output.shape[1] // source.shape[1]


def transposed_convolution_rows(operator: Operator) -> RowMap | str:
    """Row r reads the rows whose window reaches r: constant weights and shape, not hybrid, a stride of rows per row.

    The padding is that of the convolution that it reverses (micro/kernels/transpose_conv.cc).
    """
    shape, filters, source = operator.inputs[:3]
    output, stride = operator.outputs[0], int(operator.option("strideH", 1))
    if source is None or filters is None or integers(shape) is None or not filters.is_constant or not is_image(source):
        return "its input is not an NHWC tensor with batch 1, or its weights or its shape are computed"
    if _is_hybrid(source, filters):
        return _HYBRID
    rows, outputs, taps = source.shape[1], output.shape[1], filters.shape[1]
    is_valid = operator.option("padding", 0) == VALID
    if outputs < rows * stride or (not is_valid and outputs != rows * stride):
        return "it does not make a stride of rows of each row"
    before = 0 if is_valid else max(0, taps - stride) // 2
    return _enlarged(operator, 2, stride, max(0, taps - stride - before), before)


def _enlarged(operator: Operator, slot: int, factor: int, above: int = 0, below: int = 0) -> RowMap | str:
    source, output = operator.inputs[slot], operator.outputs[0]
    if source is None or not is_image(source):
        return _NO_IMAGE
    if factor < 2:
        return "it makes no more rows than it reads"
    rows = Axis(source.shape[1], output.shape[1], factor=factor, above=above, below=below)
    return RowMap(rows, Axis(source.shape[2], output.shape[2]), (slot,), is_window=False)
