"""A PAD before a convolution that is the padding of SAME: the convolution pads by itself.

    x -- PAD -- CONV_2D, VALID -- y        =>        x -- CONV_2D, SAME -- y

DEPTHWISE_CONV_2D likewise. Exact: PAD writes the zero point around ``x``, and a kernel adds nothing for a pixel of its
own padding, or the product of a zero; where that is the same number of pixels at every side (tensorflow/lite/kernels/
padding.h, ``ComputePaddingWithOffset``). A sum that starts from +0 stays the same when +0 or -0 is added, so that float
values are the same bits as well where the weights are finite.

Keras pads in this way before a stride of 2 (``ZeroPadding2D``), and models that come from PyTorch everywhere. It takes
a copy of the image out of the arena.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...ir.constants import integers, values
from ...ir.dtype import DType
from ...ir.making import SAME, VALID
from ...ir.model import Operator
from ...kernels.relations import operands
from ..copies import CopyReader, source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule


def _check(match: Match) -> CopyReader | str | None:
    pad, convolution = match["pad"], match.anchor
    source, weights = pad.inputs[0], operands(convolution, 2)[1]
    amounts = integers(operands(pad, 2)[1])
    if convolution.option("padding", SAME) != VALID or source is None or weights is None or len(weights.shape) != 4:
        return None
    if amounts is None or amounts.size != 8 or amounts.min() < 0 or amounts[:2].any() or amounts[6:].any():
        return "its paddings are computed, or not those of rows and columns"
    fitting = (
        _is_same(convolution, axis, source.shape[axis], weights.shape[axis], amounts[2 * axis : 2 * axis + 2].tolist())
        for axis in (1, 2)
    )
    if not all(fitting):
        return "it is not the padding of SAME"
    if source.dtype is DType.FLOAT32:
        found = values(weights)
        if weights.dtype is not DType.FLOAT32 or found is None or not np.isfinite(found).all():
            return "its weights are computed, not finite, or of another type than its input"
    kept = source_for_one_reader(match, pad)
    return kept if isinstance(kept, str) else CopyReader(convolution, kept)


def _is_same(convolution: Operator, axis: int, size: int, taps: int, amounts: list[int]) -> bool:
    letter = "HW"[axis - 1]
    stride, dilation = (int(convolution.option(f"{name}{letter}{end}", 1)) for name, end in _STEPS)
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + (taps - 1) * dilation + 1 - size)
    return outputs == convolution.outputs[0].shape[axis] and amounts == [total // 2, total - total // 2]


_STEPS = (("stride", ""), ("dilation", "Factor"))


SAME_PADDING = Rule(
    "same_padding",
    Pattern("convolution", ("CONV_2D", "DEPTHWISE_CONV_2D"), {0: Pattern("pad", ("PAD",))}),
    _check,
    partial(CopyReader.read_source, padding=SAME),
)
