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

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..model.ir.editor import VALID
from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import same_padding

Row = TypeVar("Row", int, npt.NDArray[np.int64])
"""The number of a row, or an array of them."""
Positions = npt.NDArray[np.int64]


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
    """A window that moves along one axis, in pixels: ``taps`` of the kernel, ``dilation`` apart.

    ``before`` and ``after`` are the pixels of padding that the whole tensor gets at its two ends. ``factor``: pixels
    that are made of one; with more than one there is no stride and no padding, and an output pixel depends on what
    ``above`` output pixels before it and ``below`` after it are made of.
    """

    size: int
    outputs: int
    stride: int = 1
    taps: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1
    factor: int = 1
    above: int = 0
    below: int = 0

    @property
    def reach(self) -> int:
        """Pixels from the first tap to the last."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def missing(self) -> int:
        """Pixels that the windows reach beyond the input, as esp-nn counts them: without a dilation."""
        return self.outputs * self.stride + self.taps - 1 - self.size

    @property
    def trailing(self) -> int:
        """Pixels of padding behind the input that the last window reaches into."""
        return max(0, (self.outputs - 1) * self.stride + self.reach - self.before - self.size)

    def reads(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The input rows for output rows ``start`` to ``end``, half-open and not clipped: rows outside are padding."""
        if self.factor > 1:
            return (start - self.above) // self.factor, (end - 1 + self.below) // self.factor + 1
        return start * self.stride - self.before, (end - 1) * self.stride - self.before + self.reach

    def makes(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The output rows that come of these input rows, where ``factor`` is more than one."""
        beyond = self.outputs - self.size * self.factor
        return start * self.factor, end * self.factor + beyond

    def first_read(self) -> Positions:
        """Lowest input position that each output reads; a position past the end where all taps are padding."""
        start = np.arange(self.outputs, dtype=np.int64) * self.stride - self.before
        # The first tap at or after position 0.
        first = np.where(start >= 0, start, start + self.dilation * -(start // self.dilation))
        return np.where(first > start + self.reach - 1, self.size, first)

    def taps_inside(self) -> int:
        """Of all outputs: taps that lie on the input."""
        found = 0
        for tap in range(self.taps):
            shift = self.before - tap * self.dilation
            first = max(0, -(-shift // self.stride))
            last = min(self.outputs - 1, (self.size - 1 + shift) // self.stride)
            found += max(0, last - first + 1)
        return found


def padded_axis(size: int, outputs: int, stride: int, taps: int, dilation: int, is_padded: bool) -> Axis:
    """Return a window with the padding of SAME, if ``is_padded``, else of VALID."""
    padding = same_padding(size, outputs, stride, (taps - 1) * dilation + 1) if is_padded else (0, 0)
    return Axis(size, outputs, stride, taps, *padding, dilation)


def is_padded(operator: Operator) -> bool:
    """Tell whether an operator with windows pads its input."""
    return bool(operator.option("padding", 0) != VALID)


def window_axis(operator: Operator, source: Tensor, output: Tensor, axis: int, taps: int) -> Axis:
    """Return the window of an operator along dimension 1 or 2, by its options."""
    letter = "HW"[axis - 1]
    stride, dilation = (int(operator.option(each, 1)) for each in (f"stride{letter}", f"dilation{letter}Factor"))
    return padded_axis(source.shape[axis], output.shape[axis], stride, taps, dilation, is_padded(operator))


@dataclass(frozen=True)
class RowMap:
    """The use that a row-by-row operator makes of its inputs: ``sliced`` are the slots of which it reads rows.

    The other slots are read whole: weights, and tensors that are the same for all rows. ``passes_on``: the output is
    its input's bytes in another shape.
    """

    rows: Axis
    columns: Axis
    sliced: tuple[int, ...] = (0,)
    is_window: bool = False
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


def image_of(operator: Operator, slot: int = 0) -> Tensor | None:
    """Return an input, if it is an NHWC tensor with batch 1."""
    source = operator.inputs[slot]
    return source if source is not None and is_image(source) else None


NO_IMAGE = "its input is not an NHWC tensor with batch 1"
HYBRID = "it is hybrid: its float input is quantized by the range of all rows"


def is_hybrid(source: Tensor | None, filters: Tensor) -> bool:
    """Tell whether floats are multiplied by weights that are none."""
    return source is not None and source.dtype is DType.FLOAT32 and filters.dtype is not DType.FLOAT32


def computes_weights(operator: Operator) -> bool:
    """Tell whether an input behind the first is computed."""
    return any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:])


def same_rows(output: Tensor, sliced: tuple[int, ...] = (0,), passes_on: bool = False) -> RowMap:
    """A row of the output needs the same row of the inputs in these slots, and nothing beside it."""
    rows, columns = (Axis(output.shape[axis], output.shape[axis]) for axis in (1, 2))
    return RowMap(rows, columns, sliced, passes_on=passes_on)


def enlarged_rows(operator: Operator, slot: int, factor: int, above: int = 0, below: int = 0) -> RowMap | str:
    """Make ``factor`` rows of each of the input in a slot."""
    source, output = image_of(operator, slot), operator.outputs[0]
    if source is None:
        return NO_IMAGE
    if factor < 2:
        return "it makes no more rows than it reads"
    rows = Axis(source.shape[1], output.shape[1], factor=factor, above=above, below=below)
    return RowMap(rows, Axis(source.shape[2], output.shape[2]), (slot,))
