"""Concatenations that can be taken apart along channels, and the reasons against it that hold for every reader."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import assert_refused, refusals, rule_named
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_ELEMENTWISE = rule_named("split_elementwise")


def inputs(b: ModelBuilder, *channels: int) -> list[Tensor]:
    return [b.input(f"x{number}", (1, 4, 4, count)) for number, count in enumerate(channels)]


def relu_of(b: ModelBuilder, joined: Tensor, dtype: DType = DType.INT8) -> Model:
    y = b.tensor("y", joined.shape, dtype)
    b.operator("RELU", (joined,), (y,))
    return b.finish(y)


def rows(b: ModelBuilder) -> Tensor:
    return b.concat(inputs(b, 3, 3), axis=1)


def single(b: ModelBuilder) -> Tensor:
    return b.concat(inputs(b, 3))


def many(b: ModelBuilder) -> Tensor:
    return b.concat(inputs(b, *[2] * 11))


def activation(b: ModelBuilder) -> Tensor:
    y = b.tensor("joined", (1, 4, 4, 5))
    b.operator("CONCATENATION", inputs(b, 2, 3), (y,), "ConcatenationOptions", axis=3, fusedActivationFunction=1)
    return y


def unlike(b: ModelBuilder) -> Tensor:
    return b.concat((b.input("x", (1, 4, 4, 2), scale=0.1), b.input("z", (1, 4, 4, 3))))


def short(b: ModelBuilder) -> Tensor:
    y = b.tensor("joined", (1, 4, 4, 6))
    b.operator("CONCATENATION", inputs(b, 2, 3), (y,), "ConcatenationOptions", axis=3)
    return y


def constant(b: ModelBuilder) -> Tensor:
    quantization = b.tensor("like", ()).quantization
    return b.concat((*inputs(b, 2), b.constant("c", np.zeros((1, 4, 4, 3), np.int8), quantization)))


def free(b: ModelBuilder) -> Tensor:
    return b.concat([b.input(f"x{number}", (1, 1, 1, 16)) for number in range(2)])


def per_channel_all(b: ModelBuilder) -> Tensor:
    parts = inputs(b, 2, 3)
    joined = b.concat(parts)
    for tensor in (*parts, joined):
        tensor.quantization = per_channel(np.ones(2, np.float32), 3)
    return joined


@pytest.mark.parametrize(
    ("joined", "reason"),
    [
        (rows, "the concatenation is not along the channels"),
        (single, "the concatenation has fewer than two inputs, or a missing one"),
        (many, "the concatenation has 11 inputs, and TFLM joins at most 10"),
        (activation, "the concatenation has a fused activation"),
        (unlike, "the concatenation's input 'x' has another type or quantization than its output"),
        (short, "the shapes of the concatenation's inputs do not make up its output"),
        (constant, "the concatenation's input 'c' is a constant or a variable"),
        (free, "the concatenation is free: its inputs are views of it"),
        (per_channel_all, "an activation is quantized per channel"),
    ],
)
def test_refusals(joined: Callable[[ModelBuilder], Tensor], reason: str) -> None:
    b = ModelBuilder()
    assert refusals(relu_of(b, joined(b)), SPLIT_ELEMENTWISE) == [reason]


def test_what_tflm_cannot_join_is_refused() -> None:
    for dtype, zero_point, reason in (
        (DType.UINT8, 0, "TFLM does not join tensors of type uint8"),
        (DType.INT16, 5, "TFLM joins int16 tensors only if their zero point is 0"),
    ):
        b = ModelBuilder()
        x = b.concat(inputs(b, 2, 3))
        y = b.tensor("y", x.shape, dtype, zero_point=zero_point)
        b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
        assert refusals(b.finish(y), SPLIT_ELEMENTWISE) == [reason]


def test_an_output_with_other_channels_is_refused() -> None:
    b = ModelBuilder()
    x = b.concat(inputs(b, 2, 3))
    y = b.tensor("y", (1, 4, 4, 6))
    b.operator("RELU", (x,), (y,))
    assert_refused(b.finish(y), SPLIT_ELEMENTWISE, "channels")


def test_the_output_stays_the_same_tensor_and_a_concat_with_other_readers_stays() -> None:
    b = ModelBuilder()
    x = b.concat(inputs(b, 2, 3))
    other = b.conv(x, 4)
    model = relu_of(b, x)
    y = model.main.outputs[0]
    model.main.outputs = (y, other, x)
    Driver(model).apply_everywhere((SPLIT_ELEMENTWISE,))
    assert model.main.outputs == (y, other, x)
    assert [op.name for op in model.main.operators] == ["CONCATENATION", "CONV_2D", "RELU", "RELU", "CONCATENATION"]
    assert y.producer is model.main.operators[-1]
    assert [tensor.name for tensor in y.producer.present_inputs()] == ["y/part0", "y/part1"]


def test_a_concat_that_nobody_reads_any_more_goes() -> None:
    b = ModelBuilder()
    model = relu_of(b, b.concat(inputs(b, 2, 3)))
    Driver(model).apply_everywhere((SPLIT_ELEMENTWISE,))
    assert [op.name for op in model.main.operators] == ["RELU", "RELU", "CONCATENATION"]
