"""Rules about pixels: padding, slices of images, repeated pixels, pointwise operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from ...model.ir.editor import SAME, VALID, Array
from ...model.ir.model import DType, Operator, Tensor
from ...model.ir.tensors import QUANTIZED, integers, is_quantized, quantized_alike, same_padding, values
from ...operators.boxes import Grid, operands, strided_slice_box, strided_slice_grid
from ...operators.editor import Editor
from ...operators.rows import Axis
from ...operators.table import OPERATORS, views_of
from ...operators.window import CONVOLUTION, CONVOLUTIONS, POOLS, strides_of, window_of
from .engine import Answer, Match, Pattern, Proposal, Rule, read_instead, source_for_one_reader, source_of
from .shapes import write_reshape


def write_slice(like: Operator, grid: Grid, source: Tensor, output: Tensor, edit: Editor) -> None:
    """A slice of ``source`` that takes the elements of ``grid``, by the code of ``like``, whose dimensions it drops."""
    first, stride, count = (np.asarray(each, np.int32) for each in (grid.first, grid.stride, grid.count))
    limits = {"begin": first, "end": first + stride * (count - 1) + 1, "strides": stride}
    operands = [edit.constant(f"{output.name}/{name}", values) for name, values in limits.items()]
    dropped = like.option("shrinkAxisMask", 0)
    edit.twin(like, (source, *operands), (output,), beginMask=0, endMask=0, shrinkAxisMask=dropped)


def _same_padding(match: Match) -> Answer:
    pad, convolution = match["pad"], match.anchor
    source, weights = pad.inputs[0], convolution.operand(1)
    amounts = integers(pad.operand(1))
    if convolution.option("padding", SAME) != VALID or source is None or weights is None or len(weights.shape) != 4:
        return None
    if amounts is None or amounts.size != 8 or amounts.min() < 0 or amounts[:2].any() or amounts[6:].any():
        return "its paddings are computed, or not those of rows and columns"
    window = window_of(convolution)
    rows, columns = amounts.reshape(4, 2)[1:3].tolist()
    if not (_is_same(window.rows, source.shape[1], rows) and _is_same(window.columns, source.shape[2], columns)):
        return "it is not the padding of SAME"
    if source.dtype is DType.FLOAT32:
        found = values(weights)
        if weights.dtype is not DType.FLOAT32 or found is None or not np.isfinite(found).all():
            return "its weights are computed, not finite, or of another type than its input"
    return read_instead(convolution, source_for_one_reader(match, pad), padding=SAME)


def _is_same(window: Axis, size: int, amounts: list[int]) -> bool:
    """Tell whether a window over a padded axis pads as SAME does by these amounts, of ``size`` pixels without them."""
    outputs = -(-size // window.stride)
    return outputs == window.outputs and amounts == [*same_padding(size, outputs, window.stride, window.reach)]


SAME_PADDING = Rule("same_padding", Pattern("convolution", CONVOLUTIONS, {0: Pattern("pad", ("PAD",))}), _same_padding)
"""Move a PAD that equals SAME padding into the convolution that reads it.

    x -- PAD -- CONV_2D, VALID -- y        =>        x -- CONV_2D, SAME -- y

DEPTHWISE_CONV_2D likewise. Exact: PAD writes the zero point around ``x``, and a kernel adds nothing for a pixel of its
own padding, or the product of a zero; where that is the same number of pixels at every side (tensorflow/lite/kernels/
padding.h, ``ComputePaddingWithOffset``). A sum that starts from +0 stays the same when +0 or -0 is added, so that float
values are the same bits as well where the weights are finite.

Keras pads in this way before a stride of 2 (``ZeroPadding2D``), and models that come from PyTorch everywhere. It takes
a copy of the image out of the arena.
"""


def _unread_padding(match: Match) -> Answer:
    pad, convolution = match["pad"], match.anchor
    source, weights = pad.inputs[0], convolution.operand(1)
    padded, amounts = pad.outputs[0], integers(pad.operand(1))
    if convolution.option("padding", SAME) != VALID or source is None or weights is None or len(weights.shape) != 4:
        return None
    if amounts is None or amounts.size != 8:
        return None
    less = amounts.reshape(4, 2).copy()
    window = window_of(convolution)
    for at, axis in enumerate((window.rows, window.columns), 1):
        read = (axis.outputs - 1) * axis.stride + axis.reach
        less[at, 1] -= max(0, min(less[at, 1], axis.size - read))
    if np.array_equal(less.ravel(), amounts):
        return None
    if match.is_shared(padded):
        return f"'{padded.name}' is needed by others too"
    shape = tuple(int(size + pair.sum()) for size, pair in zip(source.shape, less, strict=True))

    def write(edit: Editor) -> None:
        made = edit.activation(f"{padded.name}/read", shape, padded)
        paddings = edit.constant(f"{made.name}/paddings", less.astype(np.int32))
        edit.twin(pad, (source, paddings, *pad.inputs[2:]), (made,))
        edit.twin(convolution, (made, *convolution.inputs[1:]), convolution.outputs)

    return Proposal(write)


UNREAD_PADDING = tuple(
    Rule("unread_padding", Pattern("convolution", (kind,), {0: Pattern("pad", ("PAD", "PADV2"))}), _unread_padding)
    for kind in CONVOLUTIONS
)
"""Leave out rows and columns of padding that no window reads.

    x (96 x 96) -- PAD to 98 x 98 -- CONV_2D 3x3, stride 2        =>        x -- PAD to 97 x 97 -- CONV_2D

Exact: VALID windows begin at the first row and column, and with a stride the last ones may end before the padding does.

PyTorch pads all sides alike before a stride of 2, and an even image then has a row and a column that are never read.
"""


_TYPES_JOINED_PADDING = {DType.FLOAT32: np.float32, DType.INT8: np.int8, DType.INT16: np.int16}


def _joined_padding(match: Match) -> Answer:
    pad = match.anchor
    x, chosen, given = operands(pad, 3)
    paddings, output = integers(chosen), pad.outputs[0]
    if x is None or x.is_constant or paddings is None or paddings.size != 2 * len(x.shape):
        return "its paddings are computed"
    padded = [axis for axis, amounts in enumerate(paddings.reshape(-1, 2)) if amounts.any()]
    if len(padded) != 1 or paddings.min() < 0 or prod(x.shape[: padded[0]]) != 1:
        return "it pads more than whole rows: what it copies is no range of its output"
    source = source_of(x, output)
    if isinstance(source, str):
        return source
    value = _value(pad, source, given)
    if source.dtype not in _TYPES_JOINED_PADDING or value is None:
        return "its value is computed, or its type has no constants here"
    (axis,), quantization, dtype = padded, source.quantization, _TYPES_JOINED_PADDING[source.dtype]
    shapes = [(*x.shape[:axis], int(count), *x.shape[axis + 1 :]) for count in paddings.reshape(-1, 2)[axis]]

    def write(edit: Editor) -> None:
        above, below = (
            [edit.constant(f"{output.name}/{where}", np.full(shape, value, dtype), quantization)] if shape[axis] else []
            for where, shape in zip(("above", "below"), shapes, strict=True)
        )
        edit.join([*above, x, *below], output, axis)

    return Proposal(write)


def _value(pad: Operator, source: Tensor, given: Tensor | None) -> float | None:
    """The padding that is written around the image."""
    if pad.name == "PADV2":
        found = None if given is None or given.dtype is not source.dtype else values(given)
        return None if found is None or found.size != 1 else float(found.ravel()[0])
    quantization = source.quantization
    return float(quantization.zero_point[0]) if quantization is not None and is_quantized(quantization) else 0.0


JOINED_PADDING = Rule("joined_padding", Pattern("pad", ("PAD", "PADV2")), _joined_padding)
"""Replace a PAD of whole rows by a concatenation of constant rows and the image, which can be a view.

    x -- PAD by 2 rows above        =>        0 0 --+
                                                    +-- CONCATENATION
                                              x ----+

The rows of the image are a range of bytes of the padded one, so that both may be the same bytes: a view, which holds
for every kernel library. With PAD both exist at once, as long as others read the image too: a residual sum beside a
causal convolution does. CONCATENATION takes less of the tail than PAD and copies by memcpy. The constant rows are in
the file.

Exact: the constant has the value that PAD writes, the zero point of integers (micro/kernels/pad_common.cc), or PADV2's.
"""


def _slice_of_padding(match: Match) -> Answer:
    cut = match.anchor
    grid = _unpadded(match["pad"], cut)
    if grid is None:
        return None
    source = source_for_one_reader(match, match["pad"])
    return source if isinstance(source, str) else Proposal(partial(write_slice, cut, grid, source, cut.outputs[0]))


def _unpadded(pad: Operator, cut: Operator) -> Grid | None:
    """Return the slice's box in the tensor before it is padded; None where it takes of the padding."""
    x, chosen = operands(pad, 2)
    grid, paddings = strided_slice_grid(cut), integers(chosen)
    if x is None or grid is None or paddings is None or paddings.size != 2 * len(x.shape):
        return None
    first = tuple(start - before for start, before in zip(grid.first, paddings[::2].tolist(), strict=True))
    last = (start + stride * (count - 1) for start, stride, count in zip(first, grid.stride, grid.count, strict=True))
    is_inside = min(first) >= 0 and all(at < size for at, size in zip(last, x.shape, strict=True))
    # A dimension that the slice takes out (shrinkAxisMask) would be back in the new one.
    return Grid(first, grid.stride, grid.count) if is_inside and grid.count == cut.outputs[0].shape else None


SLICE_OF_PADDING = Rule(
    "slice_of_padding",
    Pattern("slice", ("STRIDED_SLICE",), {0: Pattern("pad", ("MIRROR_PAD", "PAD", "PADV2"))}),
    _slice_of_padding,
)
"""Cut a slice that contains no padding out of the tensor before the PAD.

    x -- PAD -- STRIDED_SLICE        =>        x -- STRIDED_SLICE

Exact: PAD copies ``x`` into its output, and the slice takes elements of that copy alone.
"""


def _subsampled_slice(match: Match) -> Answer:
    cut, pointwise = match["slice"], match.anchor
    if not _skips_pixels(pointwise):
        return None
    between, grid, source = cut.outputs[0], strided_slice_grid(cut), cut.inputs[0]
    if match.is_shared(between):
        return f"'{between.name}' is needed by others too"
    if views_of(cut):
        return "the slice is free: it is a view of its input"
    if grid is None or grid.count != between.shape:
        return "what the slice takes is computed, or of another rank than its input"
    if source is None or source.is_variable:
        return "it slices a variable, which may change before the slice is read"
    thin = _thinned(grid, pointwise)
    if thin.count[:3] != pointwise.outputs[0].shape[:3]:
        return "its output does not have the pixels that its stride leaves"

    def write(edit: Editor) -> None:
        fewer = edit.activation(f"{between.name}/thinned", thin.count, between)
        write_slice(cut, thin, source, fewer, edit)
        edit.twin(pointwise, (fewer, *pointwise.inputs[1:]), pointwise.outputs, strideH=1, strideW=1)

    return Proposal(write)


def _skips_pixels(operator: Operator) -> bool:
    return len(operator.outputs[0].shape) == 4 and _has_window_of_one(operator) and max(strides_of(operator)) > 1


def _thinned(grid: Grid, operator: Operator) -> Grid:
    """Return the slice's rows and columns once the operator's stride is taken in it."""
    steps = (1, *strides_of(operator), 1)
    stride = tuple(old * step for old, step in zip(grid.stride, steps, strict=True))
    return Grid(grid.first, stride, tuple(-(-count // step) for count, step in zip(grid.count, steps, strict=True)))


def _has_window_of_one(operator: Operator) -> bool:
    if min(strides_of(operator)) < 1:
        return False
    if operator.name == CONVOLUTION:
        filters = operator.operand(1)
        return filters is not None and filters.shape[1:3] == (1, 1)
    return all(operator.option(name, 0) == 1 for name in ("filterHeight", "filterWidth"))


SUBSAMPLED_SLICE = Rule(
    "subsampled_slice",
    Pattern("pointwise", (CONVOLUTION, *POOLS), {0: Pattern("slice", ("STRIDED_SLICE",))}),
    _subsampled_slice,
)
"""Let a slice skip the pixels that the pointwise operator behind it would skip.

    x -- STRIDED_SLICE -- CONV_2D 1x1, stride 2        =>        x -- STRIDED_SLICE, stride 2 -- CONV_2D 1x1

Exact: a window of one pixel, whatever the padding, reads the pixels at multiples of its stride, and each output pixel
comes from one of them. The pools of such windows, behind it, do nothing any more where values are integers.

The slice then has a quarter of the bytes. Networks of cells halve an image in this way ("factorized reduction": Zoph et
al., arXiv 1707.07012; Liu et al., arXiv 1806.09055), and it is often what they need the most memory for.
"""


def _plain_slice(match: Match) -> Answer:
    cut = match.anchor
    source, output, box = cut.inputs[0], cut.outputs[0], strided_slice_box(cut)
    if source is None or box is None:
        return None  # it has strides, or what it takes is computed
    if tuple(box.count) != output.shape:
        return "it takes a dimension out, which SLICE cannot"
    if not OPERATORS["SLICE"].tflm.takes(source.dtype):
        return f"TFLM's SLICE does not copy {source.dtype.label}"
    return Proposal(lambda edit: edit.slice(source, box.first, box.count, output))


PLAIN_SLICE = Rule("plain_slice", Pattern("slice", ("STRIDED_SLICE",)), _plain_slice)
"""Replace a STRIDED_SLICE without strides by a SLICE, which needs 108 bytes less in the tail.

    x -- STRIDED_SLICE [2:5, 1:9]        =>        x -- SLICE from (2, 1), of 3 x 8

For each STRIDED_SLICE TFLM keeps 108 bytes in the tail on 32 bits, the options of the file and what it makes of them;
for a SLICE it keeps nothing (micro/kernels/strided_slice.cc and slice.cc, tflite-micro 90b983c2b3f1).

Exact: both copy the same elements.
"""


def _skipping_convolution(match: Match) -> Answer:
    picking, convolution = match["picking"], match.anchor
    weights = convolution.operand(1)
    grid = _grid_of(picking)
    if weights is None or len(weights.shape) != 4 or weights.shape[1:3] != (1, 1) or grid is None:
        return None
    source, taps = source_for_one_reader(match, picking), values(weights)
    if isinstance(source, str):
        return source
    if source.dtype not in QUANTIZED or weights.dtype is not DType.INT8 or taps is None:
        return "its values are no integers, or its weights are computed or packed"
    if weights.shape[3] != source.shape[3]:
        return "it is grouped"
    first, steps = (grid.first[1], grid.first[2]), (grid.stride[1], grid.stride[2])
    own = strides_of(convolution)
    stride = steps[0] * own[0], steps[1] * own[1]
    if not _fits(source, convolution.outputs[0], first, stride):
        return "what is picked is not what a window that begins at the first pixel would meet"

    def write(edit: Editor) -> None:
        filters = weights
        if any(first):
            window = np.zeros((weights.shape[0], first[0] + 1, first[1] + 1, weights.shape[3]), taps.dtype)
            window[:, first[0], first[1], :] = taps[:, 0, 0, :]
            filters = edit.constant(f"{weights.name}/window", window, weights.quantization)
        # A dilation means nothing to a window of one tap, and would spread the taps of a larger one.
        fields = {"strideH": stride[0], "strideW": stride[1], "dilationHFactor": 1, "dilationWFactor": 1}
        # Where the pixels were picked, so that the image lives no longer than it did.
        edit.position = edit.graph.operators.index(picking)
        inputs = (source, filters, *convolution.inputs[2:])
        edit.twin(convolution, inputs, convolution.outputs, padding=VALID, **fields)

    return Proposal(write)


def _grid_of(picking: Operator) -> Grid | None:
    """The pixels that the operator copies, where it does nothing else and takes all channels."""
    source, picked = picking.inputs[0], picking.outputs[0]
    if source is None or len(source.shape) != 4 or len(picked.shape) != 4:
        return None
    if picking.name == "STRIDED_SLICE":
        grid = strided_slice_grid(picking)
        is_whole = grid is not None and all(
            (grid.first[axis], grid.stride[axis], grid.count[axis]) == (0, 1, source.shape[axis]) for axis in (0, 3)
        )
        return grid if is_whole and grid is not None and grid.count == picked.shape else None
    is_copy = all(picking.option(name, 0) == 1 for name in ("filterHeight", "filterWidth"))
    if not is_copy or picking.option("fusedActivationFunction", 0):
        return None
    return Grid((0, 0, 0, 0), (1, *strides_of(picking), 1), picked.shape)


def _fits(source: Tensor, output: Tensor, first: tuple[int, int], stride: tuple[int, int]) -> bool:
    """Tell whether VALID windows of ``first`` + 1 pixels make the output's rows and columns, all inside the image."""
    return all(
        (source.shape[axis] - first[axis - 1] - 1) // stride[axis - 1] + 1 == output.shape[axis] for axis in (1, 2)
    )


SKIPPING_CONVOLUTION = Rule(
    "skipping_convolution",
    Pattern("convolution", (CONVOLUTION,), {0: Pattern("picking", (*POOLS, "STRIDED_SLICE"))}),
    _skipping_convolution,
)
"""Let a 1x1 convolution skip pixels with its stride, instead of a slice or a pool of one pixel before it.

    x -- AVERAGE_POOL_2D 1x1, stride 2 -- CONV_2D 1x1      =>      x -- CONV_2D 1x1, stride 2

    x -- STRIDED_SLICE [1::2, 1::2] -- CONV_2D 1x1         =>      x -- CONV_2D 2x2, stride 2, VALID

Of the new window all taps are 0 but the last one, which lies on the pixel that the slice takes. Integers only, and
exact: what a kernel adds for a tap of 0 is 0, and a pool of one pixel gives it back (TFLM reference/integer_ops/conv.h
and pooling.h). A float sum may be taken in another order when it has more terms, and 0 times infinity is not 0.

Networks of cells halve an image so ("factorized reduction": Zoph et al., arXiv 1707.07012; Liu et al., arXiv
1806.09055), and what is picked of a wide image is what they need the most memory for. The second form multiplies the
products of this convolution by the taps of the window; it takes two operators, and their bytes, out of the arena.
"""


_RESIZE = "RESIZE_NEAREST_NEIGHBOR"
_MOST_MOVED = 1 << 24
"""Elements of a tensor that are followed to where they are copied from."""
_COPIES = ("BROADCAST_TO", "EXPAND_DIMS", "RESHAPE", _RESIZE, "SQUEEZE", "TILE")


def _repeated_pixels(match: Match) -> Answer:
    output = match.anchor.outputs[0]
    if len(output.shape) != 4:
        return "it repeats no image"
    for source, place in moved_from(output):
        if len(source.shape) == 4 and _is_repeated(source, output, place):
            return _resized(source, output)
    return "it repeats other things than rows or columns, or a number of times that is computed"


def _joined_resizes(match: Match) -> Answer:
    first, second = match["first"], match.anchor
    source, between, output = first.inputs[0], first.outputs[0], second.outputs[0]
    if source is None or any(_centers(each) or each.option("alignCorners", False) for each in (first, second)):
        return None
    if match.is_shared(between):
        return f"'{between.name}' is needed by others too"
    return _resized(source, output) if _repeats(source, between) and _repeats(between, output) else None


def _resized(source: Tensor, output: Tensor) -> Proposal | str:
    """Propose that the output is the source with each pixel repeated."""
    takes = OPERATORS[_RESIZE].tflm.takes(source.dtype)
    if not takes or not quantized_alike(source.quantization, output.quantization):
        return f"'{output.name}' is of another type or scale than '{source.name}', or TFLM cannot resize it"
    if not _repeats(source, output):
        return "float32 does not find the right pixel"

    def write(edit: Editor) -> None:
        size = edit.constant(f"{output.name}/size", np.asarray(output.shape[1:3], np.int32))
        fields = {"alignCorners": False, "halfPixelCenters": False}
        edit.operator(_RESIZE, (source, size), (output,), "ResizeNearestNeighborOptions", **fields)

    return Proposal(write)


def moved_from(output: Tensor) -> Iterator[tuple[Tensor, Array]]:
    """Yield the tensors that ``output`` has copies of, the nearest first, and which of their elements lies where."""
    chain, source = list[Operator](), output
    if output.elements > _MOST_MOVED:
        return
    while (operator := source.producer) is not None and operator.name in _COPIES:
        first = operator.operand(0)
        if first is None or not quantized_alike(first.quantization, output.quantization) or first.is_variable:
            return
        chain.insert(0, operator)
        source = first
        place: Array | None = np.arange(source.elements).reshape(source.shape)
        for each in chain:
            place = None if place is None else _copied(each, place)
        if place is None:
            return
        yield source, place


def _copied(operator: Operator, place: Array) -> Array | None:
    """Return what the operator makes of elements; None where that is computed, or does not fit the output."""
    shape, operand = operator.outputs[0].shape, integers(operator.operand(1))
    if operator.name == _RESIZE:
        source = operator.inputs[0]
        if source is None or _centers(operator) or operator.option("alignCorners", False):
            return None
        if not _repeats(source, operator.outputs[0]):
            return None
        for axis in (1, 2):
            place = np.repeat(place, shape[axis] // place.shape[axis], axis)
    elif operator.name == "TILE":
        if operand is None or operand.size != place.ndim:
            return None
        place = np.tile(place, operand.tolist())
    elif operator.name == "BROADCAST_TO":
        if any(size not in (1, wanted) for size, wanted in zip(place.shape[::-1], shape[::-1], strict=False)):
            return None
        place = np.broadcast_to(place, shape)
    return place.reshape(shape) if place.size == operator.outputs[0].elements else None


def _is_repeated(source: Tensor, output: Tensor, place: Array) -> bool:
    """Tell whether the elements are those of an image whose rows and columns are repeated."""
    if any(not size or made % size for size, made in zip(source.shape, output.shape, strict=True)):
        return False
    times = [made // size for size, made in zip(source.shape, output.shape, strict=True)]
    if times[0] != 1 or times[3] != 1:
        return False
    whole = np.arange(source.elements).reshape(source.shape)
    return bool((np.repeat(np.repeat(whole, times[1], 1), times[2], 2) == place).all())


def _repeats(source: Tensor, output: Tensor) -> bool:
    """Tell whether RESIZE_NEAREST_NEIGHBOR makes every pixel as often as every other one."""
    return all(_repeats_along(source.shape[axis], output.shape[axis]) for axis in (1, 2))


def _repeats_along(size: int, made: int) -> bool:
    if not size or made % size:
        return False
    found = np.floor(np.arange(made, dtype=np.float32) * (np.float32(size) / np.float32(made)))
    return bool((found.astype(np.int64) == np.arange(made) // (made // size)).all())


def _centers(operator: Operator) -> bool:
    return bool(operator.option("halfPixelCenters", False))


REPEATED_PIXELS = (
    Rule(
        "repeated_pixels",
        Pattern("flat", ("RESHAPE", "SQUEEZE"), {0: Pattern("tile", ("BROADCAST_TO", "TILE"))}),
        _repeated_pixels,
    ),
    Rule("repeated_pixels", Pattern("second", (_RESIZE,), {0: Pattern("first", (_RESIZE,))}), _joined_resizes),
)
"""Replace a TILE of rows or columns (UpSampling2D of Keras 3) by a RESIZE_NEAREST_NEIGHBOR.

    x (1, H, W, C) -- EXPAND_DIMS (1, H, 1, W, C) -- TILE (1, H, k, W, C) -- RESHAPE (1, k * H, W, C)
                                                        =>        x -- RESIZE_NEAREST_NEIGHBOR to (k * H, W)

Keras 3 writes UpSampling2D so, once for the rows and once for the columns, and the converter joins the reshapes between
the two; TFLM has no TILE. Two resizes in a row become one.

Exact: output row r is row floor(r * (1 / k)) of the input, computed in float32 (tensorflow/lite/kernels/internal/
reference/resize_nearest_neighbor.h); the rule applies where that is r // k for all rows and all columns.

A TILE, and two resizes in a row.
"""


def _broadcast(slot: int, match: Match) -> Answer:
    reader, copied = match.anchor, match["copy"].outputs[0]
    other, output = reader.inputs[1 - slot], reader.outputs[0]
    if match.is_shared(copied):
        return f"'{copied.name}' is needed by others too"
    if other is None or other.shape != output.shape or copied.shape != output.shape:
        return "without the copies its output would be smaller"
    least = None
    for source, place in moved_from(copied):
        if len(source.shape) == len(output.shape) and source.elements < copied.elements:
            is_like = all(size in (1, made) for size, made in zip(source.shape, output.shape, strict=True))
            whole = np.arange(source.elements).reshape(source.shape)
            least = source if is_like and (np.broadcast_to(whole, output.shape) == place).all() else least
    if least is None:
        return "it repeats its elements in another order"
    inputs = [least if at == slot else each for at, each in enumerate(reader.inputs)]
    return Proposal(lambda edit: edit.twin(reader, inputs, reader.outputs))


_REPEATING = Pattern("repeat", ("BROADCAST_TO", "TILE"))
BROADCAST = tuple(
    Rule(
        "broadcast",
        Pattern("reader", ("ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB"), {slot: copy}),
        partial(_broadcast, slot),
    )
    for slot in (0, 1)
    for copy in (Pattern("copy", ("BROADCAST_TO", "TILE")), Pattern("copy", ("RESHAPE", "SQUEEZE"), {0: _REPEATING}))
)
"""Drop a TILE or BROADCAST_TO before an operator that broadcasts by itself.

    x (1, 1, 1, C) -- TILE (1, H, W, C) -- MUL with y (1, H, W, C)        =>        x -- MUL with y

Exact: kernels compute each output element from the two elements at its place, and take the only one along a dimension
of size 1 (micro/kernels/add.cc, ``BroadcastAddSlow``, and likewise the others). It takes the copies out of the arena;
TFLM has no TILE at all.

For either input, and with a RESHAPE behind the copies.
"""


def _dense_pixels(match: Match) -> Answer:
    convolution = match.anchor
    source, filters, bias = operands(convolution, 3)
    if source is None or filters is None or len(filters.shape) != 4 or filters.shape[1:3] != (1, 1):
        return None
    if source.dtype is not DType.FLOAT32 or filters.dtype is not DType.FLOAT32:
        return "LiteRT's dense layer of integers rounds otherwise"
    if strides_of(convolution) != (1, 1):
        return "it skips pixels"
    if filters.shape[3] != source.shape[-1]:
        return "it is grouped"
    whole = values(filters)
    if whole is None or (bias is not None and not bias.is_constant):
        return "its weights are computed"

    def write(edit: Editor) -> None:
        flat = edit.constant(f"{filters.name}/dense", np.reshape(whole, (len(whole), -1)), filters.quantization)
        fields = {"keepNumDims": True, "fusedActivationFunction": convolution.option("fusedActivationFunction", 0)}
        edit.operator("FULLY_CONNECTED", (source, flat, bias), convolution.outputs, "FullyConnectedOptions", **fields)

    return Proposal(write)


DENSE_PIXELS = Rule("dense_pixels", Pattern("convolution", (CONVOLUTION,)), _dense_pixels)
"""Replace a float 1x1 convolution by a FULLY_CONNECTED per pixel, which needs fewer bytes in the tail.

    x -- CONV_2D 1x1, stride 1        =>        x -- FULLY_CONNECTED of each pixel

For every CONV_2D TFLM keeps a multiplier and a shift of each output channel, 8 bytes a channel, for floats too, which
use neither (micro/kernels/conv_common.cc). FULLY_CONNECTED keeps none for floats (fully_connected_common.cc), and its
other structures are some 40 bytes smaller on 32 bits.

Exact: both loops go over pixels and output channels, add the same products in the same order, and then the bias.
Sources: tflite-micro 90b983c2b3f1, kernels/internal/reference/conv.h and fully_connected.h; no kernel library of TFLM
has floats of its own. Integers are left alone. TFLM computes the same bits of them as well, but LiteRT's dense
layer with several scales multiplies by them in floating point (integer_ops/fully_connected.h), and was off by 1.
"""


@dataclass(frozen=True)
class BlockAxis:
    """One axis that was cut into blocks: pixels of ``x`` and ``y``, the block, paddings and crops at both ends."""

    size: int
    outputs: int
    block: int = 1
    paddings: tuple[int, int] = (0, 0)
    crops: tuple[int, int] = (0, 0)

    def fits(self, inner: int, made: int) -> bool:
        """Tell whether blocks of ``inner`` pixels, of which the convolution makes ``made``, have these sizes."""
        is_cut = self.block * inner == self.size + sum(self.paddings)
        return is_cut and self.outputs == self.block * made - sum(self.crops)


_WHOLE = BlockAxis(1, 1)


def _restored_dilation(match: Match) -> Answer:
    blocks, convolution, joined = match["blocks"], match["convolution"], match.anchor
    expand, restore = (match.operators.get(role) for role in ("expand", "restore"))
    # The blocks may have other readers: as a rule convolutions of which the same holds.
    made = [each.outputs[0] for each in (convolution, restore) if each is not None]
    shared = next((tensor.name for tensor in made if match.is_shared(tensor)), None)
    if shared is not None:
        return f"'{shared}' is needed by others too"
    source, output = blocks.inputs[0], joined.outputs[0]
    if source is None or source.is_variable:
        return "it computes on a variable"
    cut = _axes(blocks, joined, convolution)
    reason = _reason_against_values_restored_dilation(source, output, (blocks.outputs[0], made[-1]), convolution)
    if reason is not None or isinstance(cut, str):
        return reason or str(cut)
    axes = tuple(_dilated(axis, convolution, number) for number, axis in enumerate(cut))
    if any(min(axis.before, axis.after) < 0 for axis in axes):
        return "it crops more pixels than it pads: it is a slice of a dilated convolution"
    image = (source.shape[0], *(axis.size for axis in cut), source.shape[-1])
    result = (source.shape[0], *(axis.outputs for axis in cut), output.shape[-1])
    padding = _padding(axes)

    def write(edit: Editor) -> None:
        x, y = source, output
        if expand is not None:
            x = edit.activation(f"{source.name}/image", image, source)
            write_reshape(edit, expand, source, x)
        if padding is None:
            amounts = [(0, 0), *((axis.before, axis.after) for axis in axes), (0, 0)]
            x = edit.padded(x, amounts, f"{source.name}/padded")
        if restore is not None:
            y = edit.activation(f"{output.name}/image", result, output)
        fields = {"padding": VALID if padding is None else padding}
        fields |= {f"dilation{letter}Factor": axis.dilation for letter, axis in zip("HW", axes, strict=True)}
        edit.twin(convolution, (x, *convolution.inputs[1:]), (y,), **fields)
        if restore is not None:
            write_reshape(edit, restore, y, output)

    return Proposal(write)


def _reason_against_values_restored_dilation(
    source: Tensor, output: Tensor, ends: tuple[Tensor, Tensor], convolution: Operator
) -> str | None:
    first, last = ends
    if not quantized_alike(source.quantization, first.quantization) or not quantized_alike(
        last.quantization, output.quantization
    ):
        return "the blocks are quantized otherwise than the image"
    weights = convolution.operand(1)
    if source.dtype is not DType.FLOAT32 or weights is None:
        return None
    found = values(weights)
    if weights.dtype is not DType.FLOAT32 or found is None:
        return "its weights are computed, or it is hybrid: float blocks are quantized one by one"
    return None if np.isfinite(found).all() else "its weights are not finite: padding times infinity is no number"


def _axes(blocks: Operator, joined: Operator, convolution: Operator) -> tuple[BlockAxis, ...] | str:
    """H and W as they were cut, or the reason why they are not those of a dilated convolution."""
    cut, crops = _operands(blocks), _operands(joined)
    if cut is None or crops is None or cut[0] != crops[0]:
        return "blocks, paddings or crops are computed, or not the same at both ends"
    if strides_of(convolution) != (1, 1):
        return "its stride is not 1: it skips pixels of each block"
    source, inner = blocks.inputs[0], convolution.inputs[0]
    weights, made, output = convolution.operand(1), convolution.outputs[0], joined.outputs[0]
    if source is None or inner is None or weights is None or not len(weights.shape) == len(inner.shape) == 4:
        return "it is not a convolution of four dimensions"
    if len(source.shape) != len(cut[0]) + 2 or len(output.shape) != len(source.shape) or len(cut[0]) > 2:
        return "it does not cut one or two axes into blocks"
    sizes = zip(source.shape[1:], output.shape[1:], cut[0], cut[1], crops[1], strict=False)
    axes = [BlockAxis(*each) for each in sizes]
    if len(axes) == 1:
        alone = [axis for axis in (1, 2) if weights.shape[axis] == inner.shape[axis] == made.shape[axis] == 1]
        if not alone:
            return "the convolution has a window of two dimensions over blocks of one"
        axes.insert(alone[0] - 1, _WHOLE)
    if not all(axis.fits(inner.shape[at], made.shape[at]) for at, axis in enumerate(axes, 1)):
        return "image, blocks, paddings and crops do not fit each other"
    batch = source.shape[0] * axes[0].block * axes[1].block
    if not inner.shape[0] == made.shape[0] == batch or output.shape[0] != source.shape[0]:
        return "the batch is not that of the blocks"
    return tuple(axes)


def _operands(operator: Operator) -> tuple[list[int], list[tuple[int, int]]] | None:
    """Blocks, and paddings or crops, one for each axis."""
    _, block, ends = operands(operator, 3)
    blocks, pairs = integers(block), integers(ends)
    if blocks is None or pairs is None or pairs.size != 2 * blocks.size or blocks.min() < 1:
        return None
    return blocks.tolist(), [(int(first), int(last)) for first, last in pairs.reshape(-1, 2)]


def _dilated(axis: BlockAxis, convolution: Operator, number: int) -> Axis:
    """Return the window of the dilated convolution over an axis, with the padding that it needs at both ends."""
    taps = convolution.required(1).shape[1 + number]
    inside = int(convolution.option(f"dilation{'HW'[number]}Factor", 1))
    reach = (taps - 1) * inside  # in pixels of a block
    own = reach // 2 if convolution.option("padding", 0) == SAME else 0
    before = axis.paddings[0] - axis.crops[0] + own * axis.block
    after = axis.outputs + reach * axis.block - axis.size - before
    return Axis(axis.size, axis.outputs, 1, taps, before, after, inside * axis.block)


def _padding(axes: tuple[Axis, ...]) -> int | None:
    """SAME or VALID, where that is the padding that the axes need; None where none of the two is.

    Source: tensorflow/lite/kernels/padding.h, ``ComputePaddingWithOffset``.
    """
    if not any(axis.before or axis.after for axis in axes):
        return VALID
    halves = (axis.after - axis.before in (0, 1) for axis in axes)
    keeps_size = (axis.size == axis.outputs for axis in axes)
    return SAME if all((*halves, *keeps_size)) else None


_BLOCKS = Pattern("blocks", ("SPACE_TO_BATCH_ND",))
_EXPANDED = Pattern("expand", ("EXPAND_DIMS", "RESHAPE"), {0: _BLOCKS})
_RESTORED = Pattern("restore", ("RESHAPE", "SQUEEZE"), {0: Pattern("convolution", CONVOLUTIONS, {0: _EXPANDED})})

RESTORED_DILATION = tuple(
    Rule("restored_dilation", Pattern("joined", ("BATCH_TO_SPACE_ND",), {0: inner}), _restored_dilation)
    for inner in (Pattern("convolution", CONVOLUTIONS, {0: _BLOCKS}), _RESTORED)
)
"""Replace SPACE_TO_BATCH_ND, a convolution, and BATCH_TO_SPACE_ND by the dilated convolution.

    x -- SPACE_TO_BATCH_ND -- CONV_2D -- BATCH_TO_SPACE_ND -- y        =>        x -- CONV_2D, dilated -- y

    x -- SPACE_TO_BATCH_ND -- EXPAND_DIMS -- CONV_2D -- RESHAPE -- BATCH_TO_SPACE_ND -- y
                                                        =>        x -- EXPAND_DIMS -- CONV_2D, dilated -- RESHAPE -- y

TensorFlow runs a convolution with dilation d as d * d convolutions of every d-th pixel, and the converter leaves it at
that where the batch size was not fixed. DEPTHWISE_CONV_2D likewise.

Exact. Along an axis with blocks of d, paddings (p, _) and crops (c, _), output t reads

    x[t + c - p + j * d]        for the taps j of the kernel, 0 (the zero point) outside of x:

a window with dilation d that begins p - c pixels before x. A kernel adds nothing for a pixel of padding, or the product
of a zero; a sum that starts from +0 stays the same when +0 or -0 is added, so float values are the same bits as well
where the weights are finite. What padding the window needs becomes SAME where that is the same, else a PAD.

It takes a copy of x and one of y out of the arena, and out of the firmware a kernel that computes something else on
TFLM: its SPACE_TO_BATCH_ND never sets the value to pad with, and believes the batch of the file (micro/kernels/
space_to_batch_nd.cc, commit 90b983c2b3f1; tensorflow/tflite-micro issues 1629, 1646, 2319, 3185).

For blocks of four dimensions and of three.
"""
