"""A PAD that is the padding of SAME goes into the convolution behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    refusals,
    weights_quantization,
)
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import SAME_PADDING


def padded(branch: Branch, x: Tensor, amounts: Any) -> Tensor:
    wide = np.asarray([[0, 0], *amounts, [0, 0]], np.int32)
    shape = [size + int(sum(pair)) for size, pair in zip(x.shape, wide, strict=True)]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.builder.operator("PAD", (x, branch.constant(wide)), (y,), "PadOptions")
    return y


def windowed(branch: Branch) -> None:
    """Any window, stride and dilation over an image with the padding of SAME around it."""
    pick, dtype = branch.random, branch.random.choice((F32, I8))
    x = branch.input(
        (pick.choice((1, 2)), pick.randint(5, 9), pick.randint(5, 9), 3), dtype, **branch.quantization(dtype)
    )
    taps = [pick.randint(1, 4), pick.randint(2, 4)]
    strides, dilations = [pick.randint(1, 3) for _ in "hw"], [pick.choice((1, 1, 2)) for _ in "hw"]
    outputs = [-(-size // stride) for size, stride in zip(x.shape[1:3], strides, strict=True)]
    totals = [
        max(0, (out - 1) * stride + (tap - 1) * dilation + 1 - size)
        for out, stride, tap, dilation, size in zip(outputs, strides, taps, dilations, x.shape[1:3], strict=True)
    ]
    y = padded(branch, x, [(total // 2, total - total // 2) for total in totals])
    is_depthwise = pick.random() < 0.5
    shape = (1, *taps, 3) if is_depthwise else (4, *taps, 3)
    channels = 3 if is_depthwise else 4
    scales = None if dtype is F32 else weights_quantization(branch, channels, 3 if is_depthwise else 0)
    values = branch.values(shape, dtype)
    weights = branch.constant(values if dtype is F32 else np.maximum(values, -127), scales)
    bias = branch.constant(np.arange(channels, dtype=np.float32 if dtype is F32 else np.int32))
    made = [
        (size - (tap - 1) * dilation - 1) // stride + 1
        for size, tap, dilation, stride in zip(y.shape[1:3], taps, dilations, strides, strict=True)
    ]
    z = branch.tensor((x.shape[0], *made, channels), dtype, **branch.quantization(dtype))
    fields = {
        "padding": VALID,
        "strideH": strides[0],
        "strideW": strides[1],
        "fusedActivationFunction": pick.choice((0, 1)),
    }
    fields |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
    if is_depthwise:
        fields["depthMultiplier"] = 1
    name, kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2D") if is_depthwise else ("CONV_2D", "Conv2D")
    branch.run(name, (y, weights, bias), z, f"{kind}Options", **fields)


def test_the_same_bits() -> None:
    assert_exact(SAME_PADDING, windowed, 4, 100)


def strided(amounts: Any = ((0, 1), (0, 1)), padding: int = VALID) -> Model:
    """What Keras writes before a stride of 2."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 2))
    wide = np.asarray([[0, 0], *amounts, [0, 0]], np.int32)
    y = b.tensor("padded", [size + int(sum(pair)) for size, pair in zip(x.shape, wide, strict=True)])
    b.operator("PAD", (x, b.constant("amounts", wide)), (y,), "PadOptions")
    return b.finish(b.conv(y, 4, kernel=3, stride=2, padding=padding))


def test_the_padding_of_keras_before_a_stride_goes() -> None:
    model = strided()
    Driver(model).apply_everywhere((SAME_PADDING,))
    (operator,) = model.main.operators
    assert operator.option("padding") == SAME
    assert operator.inputs[0] is model.main.inputs[0]


@pytest.mark.parametrize("amounts", [((1, 1), (1, 1)), ((1, 0), (0, 1)), ((0, 3), (0, 1))])
def test_another_padding_stays(amounts: Any) -> None:
    assert_refused(strided(amounts), SAME_PADDING, "SAME")


def test_a_convolution_that_pads_itself_is_no_match() -> None:
    assert refusals(strided(padding=SAME), SAME_PADDING) == []


def test_a_padded_tensor_that_others_read_stays() -> None:
    model = strided()
    model.main.outputs = (*model.main.outputs, model.main.operators[0].outputs[0])
    assert_refused(model, SAME_PADDING, "others")


def test_padded_channels_and_another_quantization_stay() -> None:
    model = strided()
    amounts = model.main.operators[0].inputs[1]
    assert amounts is not None
    amounts.buffer.data = np.asarray([[0, 0], [0, 1], [0, 1], [0, 1]], np.int32).reshape(-1).view(np.uint8)
    assert_refused(model, SAME_PADDING, "rows")
    model = strided()
    model.main.operators[0].outputs[0].quantization = ModelBuilder().tensor("like", (), scale=0.3).quantization
    assert "quantized otherwise" in refusals(model, SAME_PADDING)[0]


def test_weights_that_are_not_finite_are_left_alone() -> None:
    b = ModelBuilder()
    branch_model = strided()
    operator = branch_model.main.operators[1]
    for tensor in (*operator.inputs[:2], *operator.outputs, branch_model.main.inputs[0]):
        assert tensor is not None
        tensor.dtype, tensor.quantization = F32, None
    weights = operator.inputs[1]
    assert weights is not None
    weights.buffer = b.constant("w", np.full(weights.shape, np.inf, np.float32)).buffer
    assert "not finite" in refusals(branch_model, SAME_PADDING)[0]
