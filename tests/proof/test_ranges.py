"""Channels that interval arithmetic calls the zero point are that on LiteRT and TFLM, behind each kind of operator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import ARENA, LITERT, TFLM
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.inputs import verification_inputs
from tflite_memopt.evidence.proof import ranges as of_the_proof
from tflite_memopt.model.analysis import ranges as of_rewrites
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import NO_ACTIVATION, SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import values

SILENT = (1, 4)
"""Of six channels."""


def silenced(b: ModelBuilder, x: Tensor, channels: int = 6, steps: float = 3.0, activation: int = 1) -> Tensor:
    """A convolution of which some channels are ``steps`` below 0 even where x makes them largest.

    With ``steps`` below 0 they are above 0 there.
    """
    y = b.conv(x, channels, kernel=3, padding=VALID, activation=activation, seed=3)
    weights, bias = (values(each) for each in y.producer.inputs[1:])  # type: ignore[arg-type, union-attr]
    assert weights is not None
    assert bias is not None
    made, scales = bias.copy(), y.producer.inputs[1].quantization.scale  # type: ignore[union-attr]
    for channel in SILENT:
        own = weights[channel].astype(np.int64)
        most = np.maximum(own * 127, own * -128).sum()
        made[channel] = -most - np.ceil(steps / scales[channel])
    y.producer.inputs[2].buffer.data = np.frombuffer(made.tobytes(), np.uint8)  # type: ignore[union-attr]
    return y


def dense(b: ModelBuilder) -> Tensor:
    return b.reshape(b.average_pool(silenced(b, image(b)), 4), (1, 6))


def image(b: ModelBuilder) -> Tensor:
    return b.input("x", (1, 6, 6, 3))


SAME_SCALE = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "RELU6")
"""Kinds that TFLM does not rescale."""


def through(name: str, table: str = "", **fields: int) -> Callable[[ModelBuilder], Tensor]:
    def build(b: ModelBuilder) -> Tensor:
        x = silenced(b, image(b))
        shape = (1, 2, 2, 6) if name.endswith("POOL_2D") else x.shape
        y = b.tensor("y", shape, scale=0.05 if name in SAME_SCALE else 0.03)
        b.operator(name, (x,), (y,), table or None, **fields)
        return y

    return build


def added(b: ModelBuilder) -> Tensor:
    x = image(b)
    return b.add(silenced(b, x), silenced(b, x))


def averaged(b: ModelBuilder) -> Tensor:
    x, y = silenced(b, image(b)), b.tensor("y", (1, 6), zero_point=-9)
    axes = b.constant("axes", np.asarray((1, 2), np.int32))
    b.operator("MEAN", (x, axes), (y,), "ReducerOptions", keepDims=False)
    return y


def padded(b: ModelBuilder) -> Tensor:
    x, y = silenced(b, image(b)), b.tensor("y", (1, 6, 5, 6))
    b.operator("PAD", (x, b.constant("around", np.asarray(((0, 0), (1, 1), (1, 0), (0, 0)), np.int32))), (y,))
    return y


def depthwise(b: ModelBuilder) -> Tensor:
    y = b.depthwise(silenced(b, image(b)), seed=5)
    bias = y.producer.inputs[2]  # type: ignore[union-attr]
    assert bias is not None
    made = np.full(6, 2_000, np.int32)
    made[list(SILENT)] = -20_000
    bias.buffer.data = np.frombuffer(made.tobytes(), np.uint8)
    return y


POOL = {"filterHeight": 2, "filterWidth": 2, "strideH": 2, "strideW": 2, "padding": VALID}
BEHIND: dict[str, Callable[[ModelBuilder], Tensor]] = {
    "CONV_2D": lambda b: silenced(b, image(b)),
    "DEPTHWISE_CONV_2D": depthwise,
    "RESHAPE": dense,
    "ADD": added,
    "PAD": padded,
    "MEAN": averaged,
    "MAX_POOL_2D": through("MAX_POOL_2D", "Pool2DOptions", **POOL),
    "AVERAGE_POOL_2D": through("AVERAGE_POOL_2D", "Pool2DOptions", **POOL),
    "RELU": through("RELU"),
    "RELU6": through("RELU6"),
    "QUANTIZE": through("QUANTIZE", "QuantizeOptions"),
}


def found_in(model: Model) -> list[int]:
    """Silent channels of the output, by both derivations."""
    output = model.main.outputs[0]
    one, other = (each.silent_channels(model.main).get(output) for each in (of_rewrites, of_the_proof))
    found = [] if one is None else np.flatnonzero(one).tolist()
    assert other is None or set(found) <= set(np.flatnonzero(other).tolist())
    return found if other is not None else []


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", BEHIND)
def test_silent_channels_are_the_zero_point_on_both_runtimes(kind: str) -> None:
    b = ModelBuilder()
    model = b.finish(BEHIND[kind](b))
    output = model.main.outputs[0]
    assert output.producer is not None
    assert output.producer.name == kind
    assert found_in(model) == list(SILENT)
    samples = verification_inputs(model, 12, 0)
    draws = np.random.default_rng(0).random((9, 1, 6, 6, 3))
    ends = [[np.where(draw < 0.5, 127, -128).astype(np.int8)] for draw in draws]
    for runtime in (LITERT, TFLM):
        (run,) = run_models(runtime, {"model": write_model(model)}, [*samples, *ends], ARENA).values()
        assert run.ran, run.reason
        assert output.quantization is not None
        made = np.stack(run.outputs[0]).reshape(-1, 6)
        assert (made[:, list(SILENT)] == output.quantization.zero_point[0]).all()
        assert all(len(set(made[:, channel].tolist())) > 1 for channel in (0, 2, 3, 5))


@pytest.mark.parametrize(("steps", "activation"), [(1.0, 1), (-1.0, 1), (3.0, NO_ACTIVATION)])
def test_what_may_be_above_the_zero_point_is_not_silent(steps: float, activation: int) -> None:
    b = ModelBuilder()
    model = b.finish(silenced(b, image(b), steps=steps, activation=activation))
    assert found_in(model) == []


def test_without_a_clamp_at_the_zero_point_the_least_value_is() -> None:
    """Of 8 bits: a zero point of -128 is what a sum far below 0 is clamped to."""
    b = ModelBuilder()
    y = silenced(b, image(b), activation=NO_ACTIVATION)
    y.quantization.zero_point[:] = -128  # type: ignore[union-attr]
    assert found_in(b.finish(y)) == list(SILENT)


@pytest.mark.parametrize("change", ["16 bits", "large scale", "weights zero point", "groups", "scale above 1"])
def test_what_is_not_followed_may_be_anything(change: str) -> None:
    b = ModelBuilder()
    y = silenced(b, image(b))
    model = b.finish(y)
    data, weights, bias = y.producer.inputs  # type: ignore[union-attr]
    assert data is not None
    assert weights is not None
    assert bias is not None
    if change == "16 bits":
        data.dtype = DType.INT16
    elif change == "large scale":
        bias.buffer.data = np.frombuffer(np.full(6, -(2**31), np.int32).tobytes(), np.uint8)
    elif change == "weights zero point":
        weights.quantization.zero_point[:] = 1  # type: ignore[union-attr]
    elif change == "groups":
        data.shape = (1, 6, 6, 6)
    else:
        weights.quantization.scale[:] = 2.0  # type: ignore[union-attr]
    assert found_in(model) == []


def test_padding_counts_as_zero() -> None:
    """Where all inputs are above 0, a window at the edge reads less: the least sum is that of padding."""
    b = ModelBuilder()
    x = b.conv(image(b), 4, seed=1)
    y = b.conv(x, 2, kernel=3, padding=SAME, seed=2)
    weights, bias = y.producer.inputs[1:]  # type: ignore[union-attr]
    assert weights is not None
    assert bias is not None
    weights.buffer.data = np.frombuffer(np.full(weights.elements, -1, np.int8).tobytes(), np.uint8)
    bias.buffer.data = np.frombuffer(np.full(2, 20_000, np.int32).tobytes(), np.uint8)
    assert found_in(b.finish(y)) == []


@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.0, 1e-40])
def test_a_scale_that_is_none_is_not_followed(scale: float) -> None:
    b = ModelBuilder()
    y = silenced(b, image(b), activation=3)
    y.quantization.scale[:] = scale  # type: ignore[union-attr]
    assert found_in(b.finish(y)) == []
