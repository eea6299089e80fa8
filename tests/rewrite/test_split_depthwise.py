"""Concatenation + depthwise convolution."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, weights_quantization
from tflite_memopt.ir.builder import SAME, VALID
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Quantization, Tensor
from tflite_memopt.rewrite.rules.split_depthwise import SPLIT_DEPTHWISE


def depthwise(branch: Branch) -> None:
    pick = branch.random
    dtype = pick.choice((F32, I8, I8, I16))
    x = branch.concat(dtype)
    multiplier, taps = pick.choice((1, 1, 2, 3)), (pick.randint(1, 3), pick.randint(1, 3))
    dilation = pick.choice(((1, 1), (1, 1), (2, 2), (1, 2)))
    stride = (1, 1) if max(dilation) > 1 else (pick.choice((1, 2)),) * 2
    padding = pick.choice((SAME, VALID))
    reach = tuple((tap - 1) * dilate + 1 for tap, dilate in zip(taps, dilation, strict=True))
    if padding == VALID and (reach[0] > x.shape[1] or reach[1] > x.shape[2]):
        padding = SAME
    trim = (0, 0) if padding == SAME else (reach[0] - 1, reach[1] - 1)
    size = [-(-(x.shape[axis + 1] - trim[axis]) // stride[axis]) for axis in (0, 1)]
    channels = x.shape[3] * multiplier
    y = branch.tensor((x.shape[0], *size, channels), dtype, **branch.quantization(dtype))
    weights, bias = operands(branch, dtype, (1, *taps, channels))
    fields = {"strideH": stride[0], "strideW": stride[1], "padding": padding, "depthMultiplier": multiplier}
    fields |= {"dilationHFactor": dilation[0], "dilationWFactor": dilation[1]}
    inputs = (x, weights) if bias is None else (x, weights, bias)
    fields["fusedActivationFunction"] = pick.choice((0, 1, 3))
    branch.run("DEPTHWISE_CONV_2D", inputs, y, "DepthwiseConv2DOptions", **fields)


def operands(branch: Branch, dtype: DType, shape: tuple[int, ...]) -> tuple[Tensor, Tensor | None]:
    channels = shape[3]
    has_bias = branch.random.random() < 0.8
    if dtype is F32:
        bias = branch.constant(branch.values((channels,), F32)) if has_bias else None
        return branch.constant(branch.values(shape, F32)), bias
    found = weights_quantization(branch, channels, 3)
    weights = branch.constant(np.maximum(branch.values(shape, I8), -127), found)
    values = np.random.default_rng(channels).integers(-9000, 9000, channels)
    wide = values.astype(np.int32 if dtype is I8 else np.int64)
    scales = Quantization(found.scale * np.float32(0.05), found.zero_point, 0)
    return weights, branch.constant(wide, scales) if has_bias else None


@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_DEPTHWISE, depthwise, seed, 120)
