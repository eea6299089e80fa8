"""A pointwise convolution of pixels that were picked first: the convolution skips the others by itself.

    x -- AVERAGE_POOL_2D 1x1, stride 2 -- CONV_2D 1x1      =>      x -- CONV_2D 1x1, stride 2

    x -- STRIDED_SLICE [1::2, 1::2] -- CONV_2D 1x1         =>      x -- CONV_2D 2x2, stride 2, VALID

Of the new window all taps are 0 but the last one, which lies on the pixel that the slice takes. Integers only, and
exact: what a kernel adds for a tap of 0 is 0, and a pool of one pixel gives it back (TFLM reference/integer_ops/conv.h
and pooling.h). A float sum may be taken in another order when it has more terms, and 0 times infinity is not 0.

Networks of cells halve an image so ("factorized reduction": Zoph et al., arXiv 1707.07012; Liu et al., arXiv
1806.09055), and what is picked of a wide image is what they need the most memory for. The second form multiplies the
products of this convolution by the taps of the window; it takes two operators, and their bytes, out of the arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.making import VALID
from ...ir.model import Operator, Tensor
from ...kernels.relations import Grid, operands, strided_slice_grid
from ..copies import source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule

_TYPES = (DType.INT8, DType.INT16)
_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")


@dataclass(frozen=True)
class PickedPixels:
    """A pointwise convolution, the image whose pixels it reads, the first of them, and the steps between them."""

    convolution: Operator
    picking: Operator
    source: Tensor
    first: tuple[int, int]
    stride: tuple[int, int]


def _check(match: Match) -> PickedPixels | str | None:
    picking, convolution = match["picking"], match.anchor
    weights = operands(convolution, 2)[1]
    grid = _grid_of(picking)
    if weights is None or len(weights.shape) != 4 or weights.shape[1:3] != (1, 1) or grid is None:
        return None
    source = source_for_one_reader(match, picking)
    if isinstance(source, str):
        return source
    if source.dtype not in _TYPES or weights.dtype is not DType.INT8 or values(weights) is None:
        return "its values are no integers, or its weights are computed or packed"
    if weights.shape[3] != source.shape[3]:
        return "it is grouped"
    first, steps = (grid.first[1], grid.first[2]), (grid.stride[1], grid.stride[2])
    own = int(convolution.option("strideH", 1)), int(convolution.option("strideW", 1))
    stride = steps[0] * own[0], steps[1] * own[1]
    if not _fits(source, convolution.outputs[0], first, stride):
        return "what is picked is not what a window that begins at the first pixel would meet"
    return PickedPixels(convolution, picking, source, first, stride)


def _rewrite(found: PickedPixels, edit: Editor) -> None:
    convolution, weights = found.convolution, found.convolution.inputs[1]
    whole = None if weights is None else values(weights)
    if weights is not None and whole is not None and any(found.first):
        rows, columns = found.first
        shape = (whole.shape[0], rows + 1, columns + 1, whole.shape[3])
        window = np.zeros(shape, whole.dtype)
        window[:, rows, columns, :] = whole[:, 0, 0, :]
        weights = edit.constant(f"{weights.name}/window", window, weights.quantization)
    inputs: Sequence[Tensor | None] = (found.source, weights, *convolution.inputs[2:])
    fields = {"padding": VALID, "strideH": found.stride[0], "strideW": found.stride[1]}
    # Where the pixels were picked, so that the image lives no longer than it did.
    edit.position = edit.graph.operators.index(found.picking)
    edit.twin(convolution, inputs, convolution.outputs, **fields)


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
    stride = (1, int(picking.option("strideH", 1)), int(picking.option("strideW", 1)), 1)
    return Grid((0, 0, 0, 0), stride, picked.shape)


def _fits(source: Tensor, output: Tensor, first: tuple[int, int], stride: tuple[int, int]) -> bool:
    """Whether VALID windows of ``first`` + 1 pixels make the output's rows and columns, all inside the image."""
    return all(
        (source.shape[axis] - first[axis - 1] - 1) // stride[axis - 1] + 1 == output.shape[axis] for axis in (1, 2)
    )


SKIPPING_CONVOLUTION = Rule(
    "skipping_convolution",
    Pattern("convolution", ("CONV_2D",), {0: Pattern("picking", (*_POOLS, "STRIDED_SLICE"))}),
    _check,
    _rewrite,
)
