"""Concatenation + depthwise convolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, refusals, weights_quantization
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Quantization, Tensor
from tflite_memopt.model.ir.tensors import values
from tflite_memopt.search.rewrite.channels import SPLIT_DEPTHWISE
from tflite_memopt.search.rewrite.engine import Driver


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
    drawn = np.random.default_rng(channels).integers(-9000, 9000, channels)
    wide = drawn.astype(np.int32 if dtype is I8 else np.int64)
    scales = Quantization(found.scale * np.float32(0.05), found.zero_point, 0)
    return weights, branch.constant(wide, scales) if has_bias else None


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_DEPTHWISE, depthwise, seed, 70)


def small() -> ModelBuilder:
    """Channels 1 + 2, depth multiplier 2, per-channel weights and bias."""
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (1, 2)])
    y = b.depthwise(x, multiplier=2, seed=1)
    b.finish(y)
    return b


def test_the_golden_dump_and_the_cut_weights() -> None:
    model = small().model
    weights, bias = model.main.operators[1].inputs[1:]
    assert weights is not None
    assert bias is not None
    Driver(model).apply_everywhere((SPLIT_DEPTHWISE,))
    assert dump_model(model) == (Path(__file__).parent / "golden_split_depthwise.txt").read_text()
    for start, count, operator in ((0, 2, model.main.operators[0]), (2, 4, model.main.operators[1])):
        for whole, part in zip((weights, bias), operator.inputs[1:], strict=True):
            assert part is not None
            assert part.quantization is not None
            assert whole.quantization is not None
            expected, found = values(whole), values(part)
            assert expected is not None
            assert found is not None
            assert np.array_equal(expected[..., start : start + count], found)
            assert np.array_equal(whole.quantization.scale[start : start + count], part.quantization.scale)
            assert part.quantization.axis == whole.quantization.axis


def computed(b: ModelBuilder) -> None:
    b.graph.set_input(b.graph.operators[1], 1, b.input("weights", (1, 3, 3, 6)))


def hybrid(b: ModelBuilder) -> None:
    for tensor in b.graph.tensors:
        if not tensor.is_constant:
            tensor.dtype, tensor.quantization = F32, None


def other_axis(b: ModelBuilder) -> None:
    weights = b.graph.operators[1].inputs[1]
    assert weights is not None
    weights.quantization = per_channel(np.ones(3, np.float32), 1)


def wrong_multiplier(b: ModelBuilder) -> None:
    options = b.graph.operators[1].options
    assert options is not None
    b.graph.operators[1].options = replace(options, fields={**options.fields, "depthMultiplier": 1})


def short_bias(b: ModelBuilder) -> None:
    b.graph.set_input(b.graph.operators[1], 2, b.constant("bias", np.zeros(1, np.int32)))


def as_weights(b: ModelBuilder) -> None:
    operator = b.graph.operators[1]
    b.graph.set_input(operator, 1, operator.inputs[0])


def computed_extra(b: ModelBuilder) -> None:
    """A computed input behind the bias: it was left out of the parts, without a word."""
    operator = b.graph.operators[1]
    extra = b.input("extra", (6,))
    b.graph.remove_operator(operator)
    b.graph.add_operator(replace(operator, inputs=(*operator.inputs, extra)))


def computed_bias(b: ModelBuilder) -> None:
    b.graph.set_input(b.graph.operators[1], 2, b.input("bias", (6,), DType.INT32))


def int4(b: ModelBuilder) -> None:
    weights = b.graph.operators[1].inputs[1]
    assert weights is not None
    weights.dtype, weights.buffer.data = DType.INT4, np.zeros(27, np.uint8)


def sparse(b: ModelBuilder) -> None:
    weights = b.graph.operators[1].inputs[1]
    assert weights is not None
    weights.extras = {"sparsity": object()}


def custom(b: ModelBuilder) -> None:
    weights = b.graph.operators[1].inputs[1]
    assert weights is not None
    assert weights.quantization is not None
    weights.quantization = replace(weights.quantization, extras={"details": object()})


NOT_PLAIN = "its weights or bias are computed, sparse, of a packed type, or quantized in a custom way"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (computed, NOT_PLAIN),
        (computed_bias, NOT_PLAIN),
        (computed_extra, "it has more inputs than data, weights and bias"),
        (int4, NOT_PLAIN),
        (sparse, NOT_PLAIN),
        (custom, NOT_PLAIN),
        (hybrid, "its types do not fit together: float32 with weights of int8"),
        (other_axis, "its weights or bias are quantized along another axis than the channels"),
        (wrong_multiplier, "its output has other channels than the concatenation"),
        (short_bias, "its weights or bias do not have one value for each channel"),
        (as_weights, "it reads the concatenation as weights"),
    ],
)
def test_refusals(change: Callable[[ModelBuilder], None], reason: str) -> None:
    b = small()
    change(b)
    assert refusals(b.model, SPLIT_DEPTHWISE) == [reason]
