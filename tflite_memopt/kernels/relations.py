"""Conditions under which outputs may lie on inputs: views, in-place, overlap. One file for each kind of kernel.

The relations that a kernel permits between one of its inputs and one of its outputs.

Distances are bytes: ``offset(input) - offset(output)``.

Which part of a tensor an operator cuts out, and whether that part is one run of elements.

Operators that TFLM executes as a copy of a contiguous range of bytes: source and destination may be the same bytes.

Every kernel below writes each byte with the value that is there already, or skips the copy: memory never changes, so
that it does not matter in which order a kernel reads and writes. Sources, tflite-micro commit 90b983c2b3f1,
tensorflow/lite/micro/kernels/ and tensorflow/lite/kernels/internal/reference/:

    RESHAPE         reshape.cc: skips the copy when the two pointers are equal
    SQUEEZE         squeeze.cc: one memcpy of the whole
    EXPAND_DIMS     expand_dims.cc: element loop
    CONCATENATION   concatenation.cc, reference/concatenation.h: memcpy input by input into consecutive ranges; it never
                    requantizes (int8 inputs that are quantized unlike the output are refused, int16 scales not read)
    PACK, UNPACK    pack.cc, unpack.cc: element loop for each part
    SPLIT, SPLIT_V  split.cc, split_v.cc: element loop for each part; sizes are those of the outputs
    SLICE           slice.cc, reference/slice.h: element by element, the input forwards
    STRIDED_SLICE   strided_slice.cc, reference/strided_slice.h: memcpy of runs of the last dimension if its stride is
                    1, else element by element

A memcpy of a range onto itself does nothing: compilers emit it for a struct that is assigned to itself.

Elementwise kernels: the output may take over its dying input's bytes.

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

PAD, SLICE, STRIDED_SLICE: copies that go forward through both tensors, so that one may run over the other.

Sources, tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/reference:
pad.h writes the output from its first element to its last and reads the input in the same order, one element for
each one copied; slice.h does so element by element; strided_slice.h by memcpy of runs along the last dimension when
its stride is 1. A memcpy between ranges that overlap is not defined, so that a run must be clear of its own source.

Convolution, pooling and resizing: how far a reference kernel's output may run over the input that it still reads.

The reference loops finish one output pixel before the next, over batch, row, column, and write a pixel's channels in
order while they read its window again for each:

    input    |----|====window of p====|---------|      lowest byte that p or a later pixel reads: need(p)
    output   |-------- ..p|                            end of the bytes that p wrote: end(p)

    distance = max over p of end(p) - need(p)

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/reference/conv.h, depthwiseconv_float.h,
pooling.h, fully_connected.h, and those four of integer_ops; padding as in
tensorflow/lite/kernels/padding.h.

Kernels that add up in scratch and write their output only when all of the input has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import integers, quantized_alike, same_padding
from ..operators.table import kind_of
from ..solvers.graph.alignment import ARENA_ALIGNMENT

Kind = Literal["view", "in-place", "overlap"]


@dataclass(frozen=True)
class KernelReuse:
    """The two tensors may share bytes at exactly ``distance`` (view, in-place) or at least ``distance`` (overlap).

    A view: the kernel copies bytes onto themselves, and both tensors stay what they are; the input may live on.
    In-place and overlap: the kernel overwrites its input, which must have no later reader.
    """

    input: Tensor
    output: Tensor
    distance: int
    kind: Kind

    @property
    def exact(self) -> bool:
        """Tell whether no other distance will do."""
        return self.kind != "overlap"


ReuseRule = Callable[[Operator], tuple[KernelReuse, ...]]
"""The signature of a rule for an operator; it returns nothing where it is not sure."""


def no_reuse(operator: Operator) -> tuple[KernelReuse, ...]:
    """Return the rule for an unknown kernel."""
    return ()


_UNSUPPORTED = ("ellipsisMask", "newAxisMask", "offset")
"""Fields of StridedSliceOptions that TFLM ignores (strided_slice_common.cc): no rule should build on them."""

RESHAPES = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
"""Operators that give a tensor another shape and move no element."""


@dataclass(frozen=True)
class Box:
    """The elements ``first[d] <= i < first[d] + count[d]`` of every dimension ``d`` of a tensor."""

    first: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.count)

    def run_start(self, shape: Sequence[int]) -> int | None:
        """Index of its first element in a tensor of this shape; None when the box is not one run of elements.

        A run has all of the inner dimensions, any part of one dimension, and one element of the outer ones.
        """
        inner = len(shape)
        while inner and self.count[inner - 1] == shape[inner - 1]:
            inner -= 1
        if prod(self.count[: max(inner - 1, 0)]) != 1:
            return None
        return sum(first * prod(shape[dim + 1 :]) for dim, first in enumerate(self.first))


def operands(operator: Operator, count: int) -> tuple[Tensor | None, ...]:
    """Return the first inputs; None for those that are not there."""
    return (*operator.inputs, *(None,) * count)[:count]


def axis_of(axis: int, rank: int) -> int | None:
    """Return the axis counted from the front; None when there is no such axis."""
    return axis % rank if -rank <= axis < rank else None


def slice_box(operator: Operator) -> Box | None:
    """Return the box that SLICE cuts out of its input; None unless begin and size are constants that fit the input.

    A size of -1 means all that is left. Source: tensorflow/lite/kernels/internal/reference/slice.h.
    """
    source, begin, size = operands(operator, 3)
    first, count = integers(begin), integers(size)
    if source is None or first is None or count is None or not first.size == count.size == len(source.shape):
        return None
    count = np.where(count == -1, np.asarray(source.shape) - first, count)
    return _box_inside(source, first, count)


@dataclass(frozen=True)
class Grid:
    """The elements ``first[d] + i * stride[d]``, ``0 <= i < count[d]``, of every dimension ``d`` of a tensor."""

    first: tuple[int, ...]
    stride: tuple[int, ...]
    count: tuple[int, ...]


def strided_slice_box(operator: Operator) -> Box | None:
    """Return the box that STRIDED_SLICE cuts out of its input; None unless begin, end and strides are constants that
    make it a box.

    A stride other than 1 is a box where one element is taken.
    """
    grid = strided_slice_grid(operator)
    if grid is None or any(stride > 1 and count > 1 for stride, count in zip(grid.stride, grid.count, strict=True)):
        return None
    return Box(grid.first, grid.count)


def strided_slice_grid(operator: Operator) -> Grid | None:
    """Return the grid that STRIDED_SLICE takes of its input, with steps forward; None unless begin, end and strides are
    constants.

    Sources: micro/kernels/strided_slice_common.cc, tensorflow/lite/kernels/internal/strided_slice_logic.h.
    """
    source, *limits = operands(operator, 4)
    if source is None or any(operator.option(name, 0) for name in _UNSUPPORTED):
        return None
    # TFLM reads the three as int32 whatever their type.
    values = [integers(tensor) for tensor in limits if tensor is not None and tensor.dtype is DType.INT32]
    found = [value for value in values if value is not None and value.size == len(source.shape)]
    if len(found) != 3:
        return None
    begin, end, strides = found
    sizes = np.asarray(source.shape)
    first = np.where(_mask(operator, "beginMask", sizes.size), 0, _clamped(begin, sizes))
    last = np.where(_mask(operator, "endMask", sizes.size), sizes, _clamped(end, sizes))
    last = np.where(_mask(operator, "shrinkAxisMask", sizes.size), first + 1, last)
    if (strides < 1).any():
        return None
    count = -((first - last) // strides)
    if (count < 1).any() or (first + strides * (count - 1) >= sizes).any():
        return None
    return Grid(tuple(first.tolist()), tuple(strides.tolist()), tuple(count.tolist()))


def _mask(operator: Operator, name: str, rank: int) -> npt.NDArray[np.bool_]:
    bits = int(operator.option(name, 0))
    return np.asarray([bool(bits >> axis & 1) for axis in range(rank)])


def _clamped(index: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the indices counted from the front, between 0 and the size."""
    return np.clip(np.where(index < 0, index + sizes, index), 0, sizes)


def _box_inside(source: Tensor, first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> Box | None:
    """Return the box, if it has elements and none of them is outside the tensor."""
    if (first < 0).any() or (count < 1).any() or (first + count > np.asarray(source.shape)).any():
        return None
    return Box(tuple(first.tolist()), tuple(count.tolist()))


Pair = tuple[Tensor | None, Tensor, int]
"""An input, an output, and ``offset(input) - offset(output)`` in bytes."""


def view_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """The inputs and outputs that may be the same bytes; none where an operand that decides it is not a constant.

    Distances are multiples of TFLM's alignment of 16 bytes; a part that would start elsewhere gets none.
    """
    if operator.name not in SHARED_CODE or not operator.outputs:
        return ()
    return tuple(
        KernelReuse(source, output, distance, "view")
        for source, output, distance in _RULES[operator.name](operator)
        if source is not None and _are_in_arena(source, output) and distance % ARENA_ALIGNMENT == 0
    )


def _are_in_arena(source: Tensor, output: Tensor) -> bool:
    """Both have bytes of the same type in the arena's head."""
    if source.is_constant or source.is_variable or output.is_variable or source is output:
        return False
    return source.dtype is output.dtype and source.nbytes > 0 and output.nbytes > 0


def _whole(operator: Operator) -> Iterator[Pair]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: all bytes stay where they are."""
    (source,) = operands(operator, 1)
    output = operator.outputs[0]
    if source is not None and source.nbytes == output.nbytes:
        yield source, output, 0


def _joined(operator: Operator) -> Iterator[Pair]:
    """CONCATENATION, PACK: each input is a range of the output."""
    output = operator.outputs[0]
    alike = all(quantized_alike(part.quantization, output.quantization) for part in operator.present_inputs())
    if operator.option("fusedActivationFunction", 0) or not alike:
        return
    for part, start in _ranges(output, int(operator.option("axis", 0)), operator.inputs):
        if part is not None:
            yield part, output, start


def _unpacked(operator: Operator) -> Iterator[Pair]:
    """UNPACK: each output is a range of the input."""
    (source,) = operands(operator, 1)
    yield from _cut(source, int(operator.option("axis", 0)), operator.outputs)


def _split(operator: Operator) -> Iterator[Pair]:
    """SPLIT has its axis first, SPLIT_V last; each output is a range of the input."""
    if operator.name == "SPLIT":
        chosen, source = operands(operator, 2)
    else:
        source, _, chosen = operands(operator, 3)
    axis = integers(chosen)
    if axis is not None and axis.size == 1:
        yield from _cut(source, int(axis[0]), operator.outputs)


def _cut(source: Tensor | None, axis: int, parts: Sequence[Tensor]) -> Iterator[Pair]:
    if source is not None:
        yield from ((source, part, -start) for part, start in _ranges(source, axis, parts) if part is not None)


def _ranges(whole: Tensor, axis: int, parts: Sequence[Tensor | None]) -> Iterable[tuple[Tensor | None, int]]:
    """Each part with its first byte in the whole, if they are consecutive ranges that make it up."""
    outermost = axis_of(axis, len(whole.shape))
    sizes = [0 if part is None else part.nbytes for part in parts]
    # Along another axis a part is many short runs, one for each element of the dimensions before it.
    if outermost is None or prod(whole.shape[:outermost]) != 1 or sum(sizes) != whole.nbytes:
        return ()
    return zip(parts, accumulate(sizes, initial=0), strict=False)


def _sliced(box_of: Callable[[Operator], Box | None]) -> Callable[[Operator], Iterator[Pair]]:
    """SLICE, STRIDED_SLICE: the output is a range of the input."""

    def rule(operator: Operator) -> Iterator[Pair]:
        (source,) = operands(operator, 1)
        output, box = operator.outputs[0], box_of(operator)
        if source is None or box is None or box.elements != output.elements:
            return
        start = box.run_start(source.shape)
        if start is not None:
            yield source, output, -start * source.dtype.arena_bytes

    return rule


_RULES: Mapping[str, Callable[[Operator], Iterator[Pair]]] = {
    "CONCATENATION": _joined,
    "EXPAND_DIMS": _whole,
    "PACK": _joined,
    "RESHAPE": _whole,
    "SLICE": _sliced(slice_box),
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUEEZE": _whole,
    "STRIDED_SLICE": _sliced(strided_slice_box),
    "UNPACK": _unpacked,
}

SHARED_CODE = frozenset(_RULES)
"""Operators whose kernel is the same source file with every kernel library, so that the rules hold for all of them.

None of these files has a variant in micro/kernels/cmsis_nn, arc_mli, ceva or ethos_u, nor in kernels/esp_nn of
espressif/esp-tflite-micro (add, conv, depthwise_conv, fully_connected, mul, pooling, softmax). Cadence's xtensa has
two: reshape.cc, with the same test for equal pointers; and strided_slice.cc, which for int16 on HiFi cores calls
xa_nn_strided_slice_int16 (foss-xtensa/nnlib-hifi4 6a9ea45, nnlib-hifi5 02d9f1d), which copies run by run: where a view
makes both pointers equal, each byte is written with its own value. docs/kernels.md has the list.
"""


_CONVERSIONS = frozenset({"CAST", "DEQUANTIZE", "QUANTIZE"})
_ELEMENTWISE_TYPES = frozenset(
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
    """Return the inputs whose elements the kernel reads only at the index that it writes."""
    overwrites = kind_of(operator).overwrites
    if overwrites is None:
        return ()
    return operator.inputs[:1] if overwrites == "first input" else operator.inputs


def _reuse(operator: Operator, source: Tensor, output: Tensor) -> tuple[KernelReuse, ...]:
    if source.dtype not in _ELEMENTWISE_TYPES or output.dtype not in _ELEMENTWISE_TYPES or not output.elements:
        return ()
    read, written = source.dtype.arena_bytes, output.dtype.arena_bytes
    if read == written:
        return (KernelReuse(source, output, 0, "in-place"),)
    if operator.name not in _CONVERSIONS:
        return ()
    # Element i is written when all up to i have been read: (i + 1) * written bytes over (i + 1) * read.
    last = output.elements - 1
    return (KernelReuse(source, output, max(written - read, last * (written - read)), "overlap"),)


_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


def pad_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """PAD and PADV2 with constant paddings: distance = max over writes of end(write) - next byte to be read."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or source.dtype not in _TYPES or source.dtype is not output.dtype or not source.elements:
        return ()
    paddings = integers(operator.inputs[1])
    if paddings is None or paddings.size != 2 * len(source.shape) or len(output.shape) != len(source.shape):
        return ()
    lows = paddings.reshape(-1, 2)[:, 0]
    last = lows + np.asarray(source.shape) - 1
    if (lows < 0).any() or (last >= output.shape).any():
        return ()
    # Writes run ahead of reads by the padding written so far: by most at the last element that is copied.
    distance = (int(np.ravel_multi_index(tuple(last), output.shape)) + 1 - source.elements) * source.dtype.arena_bytes
    return (KernelReuse(source, output, distance, "overlap"),)


def slice_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """SLICE and STRIDED_SLICE of a box: distance = max of end(write) - next read, and of a run's overlap."""
    source, output = operator.inputs[0], operator.outputs[0]
    box = slice_box(operator) if operator.name == "SLICE" else strided_slice_box(operator)
    if source is None or box is None or source.dtype not in _TYPES or source.dtype is not output.dtype:
        return ()
    if box.elements != output.elements:
        return ()
    # Reads are ahead of writes by the omitted elements: by least at the first one. A run must clear its source.
    ahead = int(np.ravel_multi_index(tuple(box.first), source.shape))
    run = box.count[-1] if operator.name == "STRIDED_SLICE" else 1
    distance = (run if run > 1 else 0) - ahead
    return (KernelReuse(source, output, distance * source.dtype.arena_bytes, "overlap"),)


Positions = npt.NDArray[np.int64]
_VALID = 1


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
        pad = 0 if self.valid else same_padding(self.size, self.outputs, self.stride, reach)[0]
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
    """Return the same for a kernel that finishes one output row before the next, and goes over a row more than once.

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


def transpose_conv_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """TRANSPOSE_CONV of int8 and int16: the output may lie anywhere on the input. The float kernel adds up in the
    output itself, and nothing is reused.

    Source: tflite-micro commit 90b983c2b3f1, reference/integer_ops/transpose_conv.h: the output is written from
    ``scratch_buffer`` after the loops over the input.
    """
    if len(operator.inputs) < 3:
        return ()
    source, output = operator.inputs[2], operator.outputs[0]
    if source is None or source.is_constant or source.dtype not in (DType.INT8, DType.INT16):
        return ()
    return (KernelReuse(source, output, -source.nbytes, "overlap"),) if source.dtype is output.dtype else ()


_WINDOWS = ("AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D")
_REFERENCE_RULES: Mapping[str, ReuseRule] = {
    **dict.fromkeys(_WINDOWS, window_reuses),
    **dict.fromkeys(("PAD", "PADV2"), pad_reuses),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), resize_reuses),
    "TRANSPOSE_CONV": transpose_conv_reuses,
}


def reference_relations(operator: Operator) -> tuple[KernelReuse, ...]:
    """Views, in-place and overlap; nothing for an operator that no rule knows."""
    if operator.name in _REFERENCE_RULES:
        return _REFERENCE_RULES[operator.name](operator)
    if operator.name in ("SLICE", "STRIDED_SLICE"):
        return view_reuses(operator) + slice_reuses(operator)
    return view_reuses(operator) or in_place_reuses(operator)
