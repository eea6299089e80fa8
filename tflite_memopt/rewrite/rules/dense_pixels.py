"""A pointwise convolution of floats is a dense layer of every pixel, for which TFLM keeps less in the tail.

    x -- CONV_2D 1x1, stride 1        =>        x -- FULLY_CONNECTED of each pixel

For every CONV_2D TFLM keeps a multiplier and a shift of each output channel, 8 bytes a channel, for floats too, which
use neither (micro/kernels/conv_common.cc). FULLY_CONNECTED keeps none for floats (fully_connected_common.cc), and its
other structures are some 40 bytes smaller on 32 bits.

Exact: both loops go over pixels and output channels, add the same products in the same order, and then the bias.
Sources: tflite-micro 90b983c2b3f1, kernels/internal/reference/conv.h and fully_connected.h; no kernel library of TFLM
has floats of its own. Integers are left alone. TFLM computes the same bits of them as well, but LiteRT's dense
layer with several scales multiplies by them in floating point (integer_ops/fully_connected.h), and was off by 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import operands
from ..pattern import Match, Pattern
from ..rule import Rule


@dataclass(frozen=True)
class PixelByPixel:
    """A pointwise convolution, its input, and its filter."""

    convolution: Operator
    source: Tensor
    filters: Tensor


def _check(match: Match) -> PixelByPixel | str | None:
    convolution = match.anchor
    source, filters, bias = operands(convolution, 3)
    if source is None or filters is None or len(filters.shape) != 4 or filters.shape[1:3] != (1, 1):
        return None
    if source.dtype is not DType.FLOAT32 or filters.dtype is not DType.FLOAT32:
        return "LiteRT's dense layer of integers rounds otherwise"
    if convolution.option("strideH", 1) != 1 or convolution.option("strideW", 1) != 1:
        return "it skips pixels"
    if filters.shape[3] != source.shape[-1]:
        return "it is grouped"
    if values(filters) is None or (bias is not None and not bias.is_constant):
        return "its weights are computed"
    return PixelByPixel(convolution, source, filters)


def _rewrite(found: PixelByPixel, edit: Editor) -> None:
    filters, convolution = found.filters, found.convolution
    whole = values(filters)
    assert whole is not None
    flat = edit.constant(f"{filters.name}/dense", np.reshape(whole, (filters.shape[0], -1)), filters.quantization)
    fields = {"keepNumDims": True, "fusedActivationFunction": convolution.option("fusedActivationFunction", 0)}
    inputs = (found.source, flat, operands(convolution, 3)[2])
    edit.operator("FULLY_CONNECTED", inputs, convolution.outputs, "FullyConnectedOptions", **fields)


DENSE_PIXELS = Rule("dense_pixels", Pattern("convolution", ("CONV_2D",)), _check, _rewrite)
