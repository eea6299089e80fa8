"""Kinds that move a window over an image, or enlarge one: convolutions, pools, resizing; and a window's geometry.

The reference loops finish one output pixel before the next, over batch, row, column, and write a pixel's channels in
order while they read its window again for each:

    input    |----|====window of p====|---------|      lowest byte that p or a later pixel reads: need(p)
    output   |-------- ..p|                            end of the bytes that p wrote: end(p)

    distance = max over p of end(p) - need(p)

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/reference/conv.h, depthwiseconv_float.h,
pooling.h, fully_connected.h, and those four of integer_ops; padding as in tensorflow/lite/kernels/padding.h. Requests:
kernels conv_common.cc, depthwise_conv_common.cc, transpose_conv.cc, which keep a multiplier and a shift per output
channel, for float models too; the helper that computes them looks at the tensors again, so that most temporaries are
held twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..model.ir.editor import GraphWriter
from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import QUANTIZED, integers
from .kind import ARM_LIBRARIES, BYTES, FLOAT, NIBBLES, TO_8, TO_16, AlongH, Arrival, ByPhase, OperatorKind, Tflm
from .overrides import RANK, Overrides, Sequences, ShapeOperand, laid_along_h, swapped_options
from .requests import BINARY, IN0, IN1, IN2, IN3, INT, OUT0, Abi, Asks, Bytes, Size, Slot, copied_shape, held, needed
from .reuse import KernelReuse
from .rows import (
    HYBRID,
    NO_IMAGE,
    Axis,
    Positions,
    RowMap,
    computes_weights,
    enlarged_rows,
    image_of,
    is_hybrid,
    is_padded,
    padded_axis,
    window_axis,
)

CONVOLUTION, DEPTHWISE = CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
ALL_POOLS = (*POOLS, "L2_POOL_2D")
RESIZES = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")


@dataclass(frozen=True)
class KernelWindow:
    """A window over images: rows and columns in pixels, and channels.

    ``taps_depth`` is the depth of the filter: less than ``in_depth`` where a convolution has groups.
    """

    rows: Axis
    columns: Axis
    batches: int
    in_depth: int
    out_depth: int
    taps_depth: int

    @property
    def taps(self) -> int:
        """Pixels that the filter covers."""
        return self.rows.taps * self.columns.taps

    @property
    def taps_inside(self) -> int:
        """Of all output pixels: taps that lie on the input."""
        return self.rows.taps_inside() * self.columns.taps_inside()

    @property
    def strides(self) -> tuple[int, int]:
        """Along height and width."""
        return self.rows.stride, self.columns.stride

    @property
    def padding(self) -> tuple[int, int]:
        """Rows and columns of padding before the input."""
        return self.rows.before, self.columns.before

    @property
    def is_padded(self) -> bool:
        """Tell whether there is padding before the input."""
        return self.padding != (0, 0)

    @property
    def is_pointwise(self) -> bool:
        """Tell whether every pixel is computed from the one at its place."""
        return self.taps == 1 and self.strides == (1, 1) and not self.is_padded

    @property
    def pixels(self) -> int:
        """Of the input."""
        return self.rows.size * self.columns.size

    @property
    def out_pixels(self) -> int:
        """Of the output."""
        return self.rows.outputs * self.columns.outputs

    def grown(self, rows: int = 0, columns: int = 0) -> int:
        """Return the elements of the input with more rows and columns."""
        return (self.rows.size + rows) * (self.columns.size + columns) * self.in_depth

    @property
    def is_3x3(self) -> bool:
        """Tell whether the filter covers three rows and columns."""
        return self.rows.taps == self.columns.taps == 3

    @property
    def is_dilated(self) -> bool:
        """Tell whether the taps lie apart in either direction."""
        return (self.rows.dilation, self.columns.dilation) != (1, 1)

    @property
    def is_grouped(self) -> bool:
        """Tell whether a channel depends on some of the input's."""
        return self.in_depth != self.taps_depth

    @property
    def transposed(self) -> KernelWindow:
        """Return the window with rows and columns swapped."""
        return replace(self, rows=self.columns, columns=self.rows)


def window_of(operator: Operator) -> KernelWindow:
    """The window of a CONV_2D or DEPTHWISE_CONV_2D. Raises IndexError for a tensor that has not four dimensions."""
    dilations = int(operator.option("dilationHFactor", 1)), int(operator.option("dilationWFactor", 1))
    shapes = operator.required(0).shape, operator.required(1).shape, operator.outputs[0].shape
    return _between(*shapes, strides_of(operator), dilations, is_padded(operator))


def transposed_window_of(operator: Operator) -> KernelWindow:
    """The window of a TRANSPOSE_CONV, whose input is the activation; the padding is the rows and columns left out.

    Raises IndexError as ``window_of``.
    """
    source, filters, output = operator.required(2).shape, operator.required(1).shape, operator.outputs[0].shape
    strides = strides_of(operator)
    reversed_window = _between(output, filters, source, strides, (1, 1), is_padded(operator))
    window = _between(source, filters, output, strides, (1, 1), False)
    rows, columns = (
        replace(axis, before=cut.before, after=cut.after)
        for axis, cut in ((window.rows, reversed_window.rows), (window.columns, reversed_window.columns))
    )
    return replace(window, rows=rows, columns=columns)


def strides_of(operator: Operator) -> tuple[int, int]:
    """Return the strides along height and width."""
    return int(operator.option("strideH", 1)), int(operator.option("strideW", 1))


@lru_cache(maxsize=1 << 14)  # searches ask for the same stripes many thousand times
def _between(
    source: tuple[int, ...],
    filters: tuple[int, ...],
    output: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    is_padded: bool,
) -> KernelWindow:
    """Return a window by the shapes of its tensors; pairs are of height and width."""
    rows, columns = (
        padded_axis(source[at], output[at], strides[at - 1], filters[at], dilations[at - 1], is_padded) for at in (1, 2)
    )
    return KernelWindow(rows, columns, source[0], source[3], output[3], filters[3])


# Rows -----------------------------------------------------------------------------------------------------------------


def convolution_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows from r * stride - padding on, as many as the dilated filter covers; not hybrid."""
    source, filters = (*operator.inputs, None)[:2]
    if filters is None or len(filters.shape) != RANK:
        return _window_rows(operator, "its weights are not a 4-dimensional constant")
    return _window_rows(operator, HYBRID if is_hybrid(source, filters) else filters.shape[1:3])


def pool_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows from r * stride - padding on, as many as the window covers."""
    return _window_rows(operator, _taps_of_pool(operator))


def _taps_of_pool(operator: Operator) -> tuple[int, int]:
    return operator.option("filterHeight", 0), operator.option("filterWidth", 0)


def _window_rows(operator: Operator, taps: tuple[int, ...] | str) -> RowMap | str:
    """A window of so many taps along H and W; or the reason why these are not known."""
    source, output = image_of(operator), operator.outputs[0]
    if source is None:
        return NO_IMAGE
    if computes_weights(operator):
        return "its weights are computed"
    if isinstance(taps, str):
        return taps
    rows, columns = (window_axis(operator, source, output, axis, taps[axis - 1]) for axis in (1, 2))
    return RowMap(rows, columns, is_window=True)


def transposed_convolution_rows(operator: Operator) -> RowMap | str:
    """Row r reads the rows whose window reaches r: constant weights and shape, not hybrid, a stride of rows per row.

    The padding is that of the convolution that it reverses (micro/kernels/transpose_conv.cc).
    """
    shape, filters = operator.inputs[:2]
    source, output, stride = image_of(operator, 2), operator.outputs[0], int(operator.option("strideH", 1))
    if source is None or filters is None or integers(shape) is None or not filters.is_constant:
        return "its input is not an NHWC tensor with batch 1, or its weights or its shape are computed"
    if is_hybrid(source, filters):
        return HYBRID
    rows, outputs, taps = source.shape[1], output.shape[1], filters.shape[1]
    if outputs < rows * stride or (is_padded(operator) and outputs != rows * stride):
        return "it does not make a stride of rows of each row"
    before = max(0, taps - stride) // 2 if is_padded(operator) else 0
    return enlarged_rows(operator, 2, stride, max(0, taps - stride - before), before)


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
    return enlarged_rows(operator, 0, factor)


def bilinear_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r / n and the one beside it: n a power of two, so that weights are exact; corners not aligned.

    The weights are those of reference/resize_bilinear.h.
    """
    factor = _factor(operator)
    if isinstance(factor, str):
        return factor
    if factor & (factor - 1):
        return f"its weights are rounded: {factor} is no power of two"
    above, below = (factor // 2, factor // 2) if operator.option("halfPixelCenters", False) else (0, factor)
    return enlarged_rows(operator, 0, factor, above, below)


def _factor(operator: Operator) -> int | str:
    source, output = image_of(operator), operator.outputs[0]
    if operator.option("alignCorners", False):
        return "it aligns corners: its scale depends on the number of rows"
    if source is None or integers(operator.inputs[1]) is None:
        return "its input is not an NHWC tensor with batch 1, or its size is computed"
    if output.shape[1] % source.shape[1]:
        return "it does not make a whole number of rows of one"
    return output.shape[1] // source.shape[1]


# Phases, and sequences along H ----------------------------------------------------------------------------------------


def is_dilated_by_phases(operator: Operator, phases: int) -> bool:
    """Tell whether all taps of a convolution are in one phase."""
    filters = operator.inputs[1]
    if filters is None or len(filters.shape) != RANK or filters.shape[2] != 1 or computes_weights(operator):
        return False
    if strides_of(operator) != (1, 1):
        return False
    is_dilated = not is_padded(operator) and operator.option("dilationHFactor", 1) % phases == 0
    return filters.shape[1] == 1 or bool(is_dilated)


def dilation_in_phase(_: GraphWriter, operator: Operator, phases: int) -> Overrides:
    """Return the steps that are ``phases`` apart are next to each other."""
    return Overrides(fields={"dilationHFactor": max(1, int(operator.option("dilationHFactor", 1)) // phases)})


def _is_image_of_one_row(operator: Operator, sequences: Sequences, slot: int = 0) -> bool:
    """Tell whether the input is a sequence in four dimensions, and so is the output."""
    source = operator.inputs[slot]
    return source in sequences and source is not None and len(source.shape) == len(operator.outputs[0].shape) == RANK


def has_filters_of_one_row(operator: Operator, sequences: Sequences) -> bool:
    """Return a convolution by filters of 1 x k."""
    return _is_of_one_row(operator.inputs[1]) and _is_image_of_one_row(operator, sequences)


def _is_of_one_row(filters: Tensor | None) -> bool:
    return filters is not None and filters.is_constant and len(filters.shape) == RANK and filters.shape[1] == 1


def transposes_one_row(operator: Operator, sequences: Sequences) -> bool:
    """A transposed convolution of a sequence by filters of 1 x k, whose shape is said by a constant."""
    is_said = integers(operator.inputs[0]) is not None
    return _is_of_one_row(operator.inputs[1]) and is_said and _is_image_of_one_row(operator, sequences, 2)


def shape_along_h(edit: GraphWriter, operator: Operator) -> Overrides:
    """Rows and columns are swapped in the options, and in the shape that is said."""
    output = operator.outputs[0]
    shape = edit.constant(f"{output.name}/shape", np.asarray(laid_along_h(output.shape), np.int32))
    return Overrides({0: shape}, swapped_options(operator))


def pools_one_row(operator: Operator, sequences: Sequences) -> bool:
    """Return a pool over 1 x k."""
    return operator.option("filterHeight", 1) == 1 and _is_image_of_one_row(operator, sequences)


def swapped_sides(_: GraphWriter, operator: Operator) -> Overrides:
    """As ``swapped_options``."""
    return Overrides(fields=swapped_options(operator))


# Bytes that may be shared ---------------------------------------------------------------------------------------------

_MOST_PIXELS = 1 << 23
"""Of an output, all of which are enumerated: more than any microcontroller has memory for."""


def window_reuses(operator: Operator, by_rows: bool = False) -> tuple[KernelReuse, ...]:
    """Return the overlap of a convolution; filter and bias must be constants.

    ``by_rows``: of a kernel that finishes one output row before the next, and goes over a row more than once:
    distance = max over rows of the row's end - the lowest byte that it or a later one reads.
    """
    filters = operator.operand(1)
    return () if filters is None or len(filters.shape) != RANK else overlap(operator, filters.shape[1:3], by_rows)


def pool_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """Return the overlap of a pool."""
    return overlap(operator, _taps_of_pool(operator))


def overlap(operator: Operator, taps: tuple[int, ...], by_rows: bool = False) -> tuple[KernelReuse, ...]:
    """Return how far the output may run over an image that is read by windows of so many rows and columns."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not _is_plain(source, output) or computes_weights(operator):
        return ()
    if source.shape[0] * output.shape[1] * output.shape[2] > _MOST_PIXELS:
        return ()
    rows, columns = (window_axis(operator, source, output, axis, taps[axis - 1]).first_read() for axis in (1, 2))
    # Every pixel of a row may be read until its last one has been written: all of them read from the lowest column.
    lowest = np.full(output.shape[2], columns.min()) if by_rows else columns
    return (KernelReuse(source, output, distance(source, output, rows, lowest), "overlap"),)


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
    four = len(source.shape) == len(output.shape) == RANK
    return four and source.dtype in TO_16 and source.dtype is output.dtype and min(*source.shape, *output.shape) > 0


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


def transpose_conv_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """TRANSPOSE_CONV of int8 and int16: the output may lie anywhere on the input. The float kernel adds up in the
    output itself, and nothing is reused.

    Source: tflite-micro commit 90b983c2b3f1, reference/integer_ops/transpose_conv.h: the output is written from
    ``scratch_buffer`` after the loops over the input.
    """
    if len(operator.inputs) < 3:
        return ()
    source, output = operator.inputs[2], operator.outputs[0]
    if source is None or source.is_constant or source.dtype not in QUANTIZED or source.dtype is not output.dtype:
        return ()
    return (KernelReuse(source, output, -source.nbytes, "overlap"),)


# Requests and multiply-accumulates ------------------------------------------------------------------------------------

_SUMS = {DType.INT8: 4, DType.INT16: 8}
"""Bytes of a sum of TRANSPOSE_CONV."""


def unpacked_filter(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for the bytes of a 4-bit filter, one per weight, which the kernel unpacks; for none of other types."""
    filters = needed(operator, IN1)
    return (filters.elements,) if filters.dtype is DType.INT4 else ()


def _per_channel(axis: int) -> Bytes:
    """Ask for a multiplier and a shift per channel, which are along this dimension of the filter."""
    return lambda operator, _: (needed(operator, IN1).shape[axis] * INT,) * 2


def _sums_of_transposed(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for a sum per element of the output; and for int16 for biases of 64 bits, which the kernel wants."""
    dtype, output = needed(operator, IN2).dtype, needed(operator, OUT0)
    sums = (output.elements * _SUMS[dtype],) if dtype in _SUMS else ()
    wide = (bias.elements * 8 for bias in held(operator, (IN3,)) if dtype is bias.dtype is DType.INT16)
    return (*sums, *wide)


def _held_by_transposed(operator: Operator) -> tuple[Slot, ...]:
    is_float = needed(operator, IN2).dtype is DType.FLOAT32
    return (OUT0, IN2, IN1) if is_float else (OUT0, IN2, IN1, IN2, IN1, IN3, OUT0)


def _asks(channel_axis: int) -> Asks:
    holds = (OUT0, IN0, IN1, IN0, IN1, IN2, OUT0)
    # TfLiteConvParams, and TfLiteDepthwiseConvParams; OpDataConv
    return Asks(28, Size(56, 80, lp64=72), holds, _per_channel(channel_axis), unpacked_filter)


def _macs(operator: Operator) -> int:
    # Each output element is a dot product over kernel height x width x input channels (of its group).
    filters = needed(operator, IN1)
    return operator.outputs[0].elements * filters.elements // max(filters.shape[0], 1)


def _macs_by_channel(operator: Operator) -> int:
    filters = needed(operator, IN1)
    return operator.outputs[0].elements * filters.shape[1] * filters.shape[2]


def _macs_transposed(operator: Operator) -> int:
    # Each input pixel is multiplied by the whole filter [out, h, w, in].
    filters = needed(operator, IN1)
    return needed(operator, IN2).elements * filters.elements // max(filters.shape[3], 1)


# The rows of the table ------------------------------------------------------------------------------------------------

_CONVOLUTION = OperatorKind(
    Tflm(TO_16, weights=1, of_weights=NIBBLES),
    price="window",
    rows=convolution_rows,
    beyond="zero point",
    along_h=AlongH(has_filters_of_one_row, swapped_sides, filters=1, is_worth_it=True),
    reuses=window_reuses,
    versions={DType.INT8: 3},
)
_POOL = OperatorKind(
    Tflm(TO_16, one_scale=True),
    Asks(40, 32, (IN0, OUT0)),  # TfLitePoolParams; OpDataPooling
    "pooled",
    rows=pool_rows,
    beyond="not counted",
    along_h=AlongH(pools_one_row, swapped_sides),
    reuses=pool_reuses,
    keeps_scale=True,
    versions={DType.INT8: 2},
)
_RESIZED = OperatorKind(
    Tflm(TO_16, constants=(1,), sizes=(1,)),
    Asks(2, holds=BINARY),  # TfLiteResizeBilinearParams, TfLiteResizeNearestNeighborParams
    resized=ShapeOperand(1, 1, 3),
    reuses=resize_reuses,
    keeps_scale=True,
)
_OF_BYTES = replace(_RESIZED.tflm, types=TO_8)
_PHASES = ByPhase(is_dilated_by_phases, dilation_in_phase)
_L2 = Asks(40, holds=(OUT0, IN0), prepare=copied_shape)  # TfLitePoolParams

KINDS: Mapping[str, OperatorKind] = {
    "AVERAGE_POOL_2D": replace(_POOL, flash=2675),
    "CONV_2D": replace(_CONVOLUTION, asks=_asks(0), macs=_macs, channel_axis=0, by_phase=_PHASES, flash=5213),
    "CONV_3D": OperatorKind(instead="stack the frames along the channels and use Conv2D (torch.nn.Conv2d)"),
    "CONV_3D_TRANSPOSE": OperatorKind(
        instead="stack the frames along the channels and use Conv2DTranspose (torch.nn.ConvTranspose2d)"
    ),
    "DEPTHWISE_CONV_2D": replace(
        _CONVOLUTION,
        asks=_asks(3),
        macs=_macs_by_channel,
        channel_axis=3,
        flash=4649,
        since=(Arrival("2023-08-01 a7846a175", DType.INT16, had_by=ARM_LIBRARIES),),
    ),
    "L2_POOL_2D": replace(_POOL, tflm=Tflm(FLOAT), asks=_L2, reuses=None, price="element", keeps_scale=False),
    "LOCAL_RESPONSE_NORMALIZATION": OperatorKind(instead="use BatchNormalization (torch.nn.BatchNorm2d)"),
    "MAX_POOL_2D": replace(_POOL, flash=2829),
    "RESIZE_BILINEAR": replace(_RESIZED, tflm=_OF_BYTES, rows=bilinear_rows),
    "RESIZE_NEAREST_NEIGHBOR": replace(
        _RESIZED, rows=nearest_rows, flash=2208, versions={DType.INT8: 2, DType.INT16: 4}
    ),
    "TRANSPOSE_CONV": OperatorKind(
        Tflm(TO_16, activation=2, weights=1, of_weights=BYTES, sizes=(0,)),
        # TfLiteTransposeConvParams; OpData
        Asks(Size(20, short=16), Size(72, 88, lp64=80), _held_by_transposed, _per_channel(0), _sums_of_transposed),
        *("products", None, transposed_convolution_rows, ShapeOperand(0)),
        along_h=AlongH(transposes_one_row, shape_along_h, filters=1, is_worth_it=True),
        reuses=transpose_conv_reuses,
        macs=_macs_transposed,
        channel_axis=0,
        since=(Arrival("2024-05-09 5e4e51bbe", DType.INT16, "without a bias", lambda op: op.operand(3) is None),),
        versions={DType.INT8: 2},
    ),
}
