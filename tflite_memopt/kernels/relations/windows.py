"""Convolution, pooling and resizing: how far a reference kernel's output may run over the input that it still reads.

The reference loops finish one output pixel before the next, over batch, row, column, and write a pixel's channels in
order while they read its window again for each:

    input    |----|====window of p====|---------|      lowest byte that p or a later pixel reads: need(p)
    output   |-------- ..p|                            end of what p has written: end(p)

    distance = max over p of end(p) - need(p)

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/reference/conv.h, depthwiseconv_float.h,
pooling.h, fully_connected.h, and those four of integer_ops; padding as in
tensorflow/lite/kernels/padding.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from .model import KernelReuse

Positions = npt.NDArray[np.int64]
_VALID = 1
_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


_MOST_PIXELS = 1 << 23
"""Of an output, all of which are enumerated: more than any microcontroller has memory for."""


@dataclass(frozen=True)
class _KernelAxis:
    """A window along one axis: sizes in pixels, ``taps`` of the kernel ``dilation`` apart."""

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    valid: bool

    def first_read(self) -> Positions:
        """Lowest input position that each output reads; a position past the end where all taps are padding."""
        reach = (self.taps - 1) * self.dilation + 1
        pad = 0 if self.valid else max(0, ((self.outputs - 1) * self.stride + reach - self.size) // 2)
        start = np.arange(self.outputs, dtype=np.int64) * self.stride - pad
        # The first tap at or after position 0.
        first = np.where(start >= 0, start, start + self.dilation * -(start // self.dilation))
        return np.where(first > start + reach - 1, self.size, first)


def window_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """CONV_2D, DEPTHWISE_CONV_2D, AVERAGE_POOL_2D, MAX_POOL_2D, and FULLY_CONNECTED of every pixel by itself.

    Filter and bias must be constants.
    """
    found = _axes(operator)
    if found is None:
        return ()
    source, output, rows, columns = found
    if source.shape[0] * rows.outputs * columns.outputs > _MOST_PIXELS:
        return ()
    return (KernelReuse(source, output, distance(source, output, rows.first_read(), columns.first_read()), "overlap"),)


def row_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """The same for a kernel that finishes one output row before the next, and goes over a row more than once.

    distance = max over rows of the row's end - the lowest byte that it or a later one reads.
    """
    found = _axes(operator)
    if found is None:
        return ()
    source, output, rows, columns = found
    # Every pixel of a row may be read until its last one has been written: all of them read from the lowest column.
    lowest = np.full(output.shape[2], columns.first_read().min())
    return (KernelReuse(source, output, distance(source, output, rows.first_read(), lowest), "overlap"),)


def _axes(operator: Operator) -> tuple[Tensor, Tensor, _KernelAxis, _KernelAxis] | None:
    """Input, output, rows and columns; None where a rule does not apply."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not _is_plain(source, output):
        return None
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[1:]):
        return None
    if operator.name == "FULLY_CONNECTED":
        if source.shape[:3] != output.shape[:3]:
            return None
        taps = 1, 1
    elif operator.name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        filters = operator.inputs[1]
        if filters is None or len(filters.shape) != 4:
            return None
        taps = filters.shape[1], filters.shape[2]
    else:
        taps = operator.option("filterHeight", 0), operator.option("filterWidth", 0)
    rows, columns = (_axis(operator, source, output, axis, taps[axis - 1]) for axis in (1, 2))
    return source, output, rows, columns


def resize_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: pixel by pixel, each from one or four pixels of the input.

    Which ones is computed in float or in fixed point; where rounding may reach one lower, one lower is taken.
    Source: tflite-micro commit 90b983c2b3f1, reference/resize_nearest_neighbor.h, resize_bilinear.h.
    """
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not _is_plain(source, output):
        return ()
    rows, columns = (_lowest_read(operator, source.shape[axis], output.shape[axis]) for axis in (1, 2))
    return (KernelReuse(source, output, distance(source, output, rows, columns), "overlap"),)


def _lowest_read(operator: Operator, size: int, outputs: int) -> Positions:
    corners = operator.option("alignCorners", False) and outputs > 1
    over, under = (size - 1, outputs - 1) if corners else (size, outputs)
    if operator.name == "RESIZE_NEAREST_NEIGHBOR":
        # Half-pixel centers and rounding only reach further; an exact quotient may be rounded down.
        first = [max(0, (position * over - 1) // under) for position in range(outputs)]
    else:
        first = [max(0, position * over // under - 1) for position in range(outputs)]
    return np.asarray(first, dtype=np.int64)


def _is_plain(source: Tensor, output: Tensor) -> bool:
    four = len(source.shape) == len(output.shape) == 4
    return four and source.dtype in _TYPES and source.dtype is output.dtype and min(*source.shape, *output.shape) > 0


def _axis(operator: Operator, source: Tensor, output: Tensor, axis: int, taps: int) -> _KernelAxis:
    letter = "HW"[axis - 1]
    return _KernelAxis(
        source.shape[axis],
        output.shape[axis],
        taps,
        operator.option(f"stride{letter}", 1),
        operator.option(f"dilation{letter}Factor", 1),
        operator.option("padding", 0) == _VALID,
    )


def distance(source: Tensor, output: Tensor, rows: Positions, columns: Positions) -> int:
    """Bytes, by enumeration of all output pixels, when pixel (y, x) reads nothing before (rows[y], columns[x]).

    A row or column past the input's end says that nothing is read.
    """
    batches, height, width, depth = source.shape
    pixel = depth * source.dtype.arena_bytes
    size = source.nbytes // batches
    unread = (rows >= height)[:, None] | (columns >= width)[None, :]
    reads = np.where(unread, source.nbytes, (rows[:, None] * width + columns[None, :]) * pixel).reshape(-1)
    reads = np.concatenate([np.minimum(reads + batch * size, source.nbytes) for batch in range(batches)])
    need = np.minimum.accumulate(reads[::-1])[::-1]
    end = np.arange(1, need.size + 1, dtype=np.int64) * (output.shape[3] * output.dtype.arena_bytes)
    return int((end - need).max())
