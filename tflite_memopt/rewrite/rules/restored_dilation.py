"""A convolution of blocks becomes the dilated convolution that the author wrote.

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.constants import integers, values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.making import SAME, VALID
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from ...kernels.relations import operands
from ..pattern import Match, Pattern
from ..reshaping import write_reshape
from ..rule import Rule


@dataclass(frozen=True)
class BlockAxis:
    """One axis that was cut into blocks: pixels of ``x`` and ``y``, the block, paddings and crops at both ends."""

    size: int
    outputs: int
    block: int = 1
    paddings: tuple[int, int] = (0, 0)
    crops: tuple[int, int] = (0, 0)

    def fits(self, inner: int, made: int) -> bool:
        """Whether blocks of ``inner`` pixels, of which the convolution makes ``made``, have these sizes."""
        is_cut = self.block * inner == self.size + sum(self.paddings)
        return is_cut and self.outputs == self.block * made - sum(self.crops)


_WHOLE = BlockAxis(1, 1)


@dataclass(frozen=True)
class DilatedAxis:
    """A window over one axis: its dilation, and the pixels of padding that it needs at both ends."""

    dilation: int
    before: int
    after: int


@dataclass(frozen=True)
class Dilated:
    """The convolution, its axes H and W with dilation, and what is around it where blocks have three dimensions.

    ``image`` and ``result`` are the shapes that the convolution takes and makes.
    """

    source: Tensor
    output: Tensor
    convolution: Operator
    axes: tuple[DilatedAxis, ...]
    padding: int | None
    image: tuple[int, ...]
    result: tuple[int, ...]
    expand: Operator | None
    restore: Operator | None


def _check(match: Match) -> Dilated | str:
    blocks, convolution, joined = match["blocks"], match["convolution"], match.anchor
    expand, restore = (match.operators.get(role) for role in ("expand", "restore"))
    # The blocks may have other readers: as a rule convolutions of which the same holds.
    made = [each.outputs[0] for each in (convolution, restore) if each is not None]
    shared = next((tensor.name for tensor in made if len(tensor.uses) > 1 or match.is_returned(tensor)), None)
    if shared is not None:
        return f"'{shared}' is needed by others too"
    source, output = blocks.inputs[0], joined.outputs[0]
    if source is None or source.is_variable:
        return "it computes on a variable"
    cut = _axes(blocks, joined, convolution)
    reason = _reason_against_values(source, output, (blocks.outputs[0], made[-1]), convolution)
    if reason is not None or isinstance(cut, str):
        return reason or str(cut)
    axes = tuple(_dilated(axis, convolution, number) for number, axis in enumerate(cut))
    if any(min(axis.before, axis.after) < 0 for axis in axes):
        return "it crops more pixels than it pads: it is a slice of a dilated convolution"
    image = (source.shape[0], *(axis.size for axis in cut), source.shape[-1])
    result = (source.shape[0], *(axis.outputs for axis in cut), output.shape[-1])
    return Dilated(source, output, convolution, axes, _padding(cut, axes), image, result, expand, restore)


def _rewrite(found: Dilated, edit: Editor) -> None:
    convolution, x = found.convolution, found.source
    if found.expand is not None:
        x = edit.activation(f"{found.source.name}/image", found.image, found.source)
        write_reshape(edit, found.expand, found.source, x)
    if found.padding is None:
        x = _padded(edit, found, x)
    y = found.output
    if found.restore is not None:
        y = edit.activation(f"{found.output.name}/image", found.result, found.output)
    fields = {"padding": VALID if found.padding is None else found.padding}
    fields |= {f"dilation{letter}Factor": axis.dilation for letter, axis in zip("HW", found.axes, strict=True)}
    edit.twin(convolution, (x, *convolution.inputs[1:]), (y,), **fields)
    if found.restore is not None:
        write_reshape(edit, found.restore, y, found.output)


def _padded(edit: Editor, found: Dilated, x: Tensor) -> Tensor:
    amounts = [(0, 0), *((axis.before, axis.after) for axis in found.axes), (0, 0)]
    y = edit.activation(
        f"{found.source.name}/padded", [size + sum(pair) for size, pair in zip(x.shape, amounts, strict=True)], x
    )
    edit.pad(x, amounts, y)
    return y


def _reason_against_values(
    source: Tensor, output: Tensor, ends: tuple[Tensor, Tensor], convolution: Operator
) -> str | None:
    first, last = ends
    if not quantized_alike(source.quantization, first.quantization) or not quantized_alike(
        last.quantization, output.quantization
    ):
        return "the blocks are quantized otherwise than the image"
    weights = operands(convolution, 2)[1]
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
    if any(int(convolution.option(name, 1)) != 1 for name in ("strideH", "strideW")):
        return "its stride is not 1: it skips pixels of each block"
    source, inner = blocks.inputs[0], convolution.inputs[0]
    weights, made, output = operands(convolution, 2)[1], convolution.outputs[0], joined.outputs[0]
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


def _dilated(axis: BlockAxis, convolution: Operator, number: int) -> DilatedAxis:
    weights = operands(convolution, 2)[1]
    assert weights is not None
    inside = int(convolution.option(f"dilation{'HW'[number]}Factor", 1))
    reach = (weights.shape[1 + number] - 1) * inside  # in pixels of a block
    own = reach // 2 if convolution.option("padding", 0) == SAME else 0
    before = axis.paddings[0] - axis.crops[0] + own * axis.block
    after = axis.outputs + reach * axis.block - axis.size - before
    return DilatedAxis(inside * axis.block, before, after)


def _padding(cut: tuple[BlockAxis, ...], axes: tuple[DilatedAxis, ...]) -> int | None:
    """SAME or VALID, where that is the padding that the axes need; None where none of the two is.

    Source: tensorflow/lite/kernels/padding.h, ``ComputePaddingWithOffset``.
    """
    if not any(axis.before or axis.after for axis in axes):
        return VALID
    halves = (axis.after - axis.before in (0, 1) for axis in axes)
    keeps_size = (axis.size == axis.outputs for axis in cut)
    return SAME if all((*halves, *keeps_size)) else None


_CONVOLUTION = ("CONV_2D", "DEPTHWISE_CONV_2D")
_BLOCKS = Pattern("blocks", ("SPACE_TO_BATCH_ND",))
_EXPANDED = Pattern("expand", ("EXPAND_DIMS", "RESHAPE"), {0: _BLOCKS})
_RESTORED = Pattern("restore", ("RESHAPE", "SQUEEZE"), {0: Pattern("convolution", _CONVOLUTION, {0: _EXPANDED})})

RESTORED_DILATION = tuple(
    Rule("restored_dilation", Pattern("joined", ("BATCH_TO_SPACE_ND",), {0: inner}), _check, _rewrite)
    for inner in (Pattern("convolution", _CONVOLUTION, {0: _BLOCKS}), _RESTORED)
)
"""For blocks of four dimensions and of three."""
