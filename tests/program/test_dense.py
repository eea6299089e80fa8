"""Dense layers as sums over rows: within one step of the kernel's, of floats up to the order; what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.makers.model_builder import ModelBuilder, per_channel
from tests.profiles import examples
from tests.tflm import litert_and_tflm
from tflite_memopt import Options
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.making import NO_ACTIVATION, RELU, RELU6
from tflite_memopt.ir.model import Model
from tflite_memopt.ir.quantization import affine_of, per_tensor
from tflite_memopt.program.dense import Dense, dense_of
from tflite_memopt.program.feeding import fed_outputs
from tflite_memopt.program.fronts import FeedCosts
from tflite_memopt.program.run import optimize_in_parts

PLAIN = Options(target="host", jobs=1)
ALLOWED = Options(target="host", jobs=1, allow_approximate=True)
UNITS = 5


def layer(
    zero: int = -7,
    per_unit: bool = False,
    activation: int = NO_ACTIVATION,
    scale: float = 0.5,
    seed: int = 0,
    size: tuple[int, int] = (12, 9),
    kernel: int = 3,
) -> Model:
    """A convolution and a dense layer of all that it makes, as after Flatten."""
    b, draw = ModelBuilder(), np.random.default_rng(seed)
    y = b.conv(b.input("x", (1, *size, 3), zero_point=zero), 6, kernel=kernel, stride=2)
    flat = b.reshape(y, (1, y.elements))
    scales = per_channel(draw.uniform(0.003, 0.01, UNITS).astype(np.float32), 0) if per_unit else per_tensor(0.01, 0)
    weights = b.constant("w", draw.integers(-127, 128, (UNITS, y.elements)).astype(np.int8), scales)
    bias = b.constant("b", draw.integers(-20000, 20000, UNITS).astype(np.int32))
    z = b.tensor("y", (1, UNITS), scale=scale, zero_point=-20)
    options = {"fusedActivationFunction": activation}
    b.operator("FULLY_CONNECTED", (flat, weights, bias), (z,), "FullyConnectedOptions", **options)
    return b.finish(z)


def of_floats(activation: int = NO_ACTIVATION) -> Model:
    b, draw = ModelBuilder(), np.random.default_rng(1)
    filters = b.constant("filters", draw.normal(0, 0.3, (6, 3, 3, 3)).astype(np.float32))
    y = b.tensor("made", (1, 6, 5, 6), DType.FLOAT32)
    biases = b.constant("biases", draw.normal(0, 0.1, 6).astype(np.float32))
    fields = {"padding": 0, "strideH": 2, "strideW": 2}
    b.operator(
        "CONV_2D", (b.input("x", (1, 12, 9, 3), DType.FLOAT32), filters, biases), (y,), "Conv2DOptions", **fields
    )
    weights = b.constant("w", draw.normal(0, 0.1, (UNITS, 180)).astype(np.float32))
    z = b.tensor("y", (1, UNITS), DType.FLOAT32)
    options = {"fusedActivationFunction": activation}
    inputs = (b.reshape(y, (1, 180)), weights, None)
    b.operator("FULLY_CONNECTED", inputs, (z,), "FullyConnectedOptions", **options)
    return b.finish(z)


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as running:
        yield running


def apart(model: Model, rows: int, runtime: str, interpreters: Interpreters) -> tuple[float, float]:
    """The largest difference between the model as a front and the model itself, and the spread of its outputs."""
    costs = FeedCosts(model, ALLOWED, lambda _: None, rows=rows)
    front = 0, len(model.main.operators)
    assert costs.measure(front, 0) is not None, costs.reasons
    file, samples = costs.chosen(front, 0), seeded_inputs(model, 3, 0)
    whole = interpreters[runtime].run(RunJob(write_model(model), samples, arena_for(model)))
    found = fed_outputs(runtime, file.data, file.feed, samples, interpreters)
    pairs = [(one.astype(float), given[0].astype(float)) for one, given in zip(whole.outputs[0], found, strict=True)]
    return max(np.abs(one - other).max() for one, other in pairs), float(np.ptp([one for one, _ in pairs]))


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@examples(12)
@given(
    zero=st.sampled_from([-128, -7, 60]),
    per_unit=st.booleans(),
    activation=st.sampled_from([NO_ACTIVATION, RELU]),
    rows=st.sampled_from([2, 4, 6]),
    seed=st.integers(0, 1000),
)
def test_integers_are_within_one_step(
    runtime: str, interpreters: Interpreters, zero: int, per_unit: bool, activation: int, rows: int, seed: int
) -> None:
    difference, spread = apart(layer(zero, per_unit, activation, seed=seed), rows, runtime, interpreters)
    assert difference <= 1
    assert spread > (10 if activation == NO_ACTIVATION else -1)


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize("activation", [NO_ACTIVATION, RELU])
def test_floats_are_equal_up_to_the_order(runtime: str, activation: int, interpreters: Interpreters) -> None:
    difference, spread = apart(of_floats(activation), 2, runtime, interpreters)
    assert spread > 0.1
    assert difference < 1e-5 * spread


def test_what_is_lost_is_bounded() -> None:
    """No rows that int8 can hold contribute more than int16 can, and few calls lose little."""
    model = layer(per_unit=True)
    found = dense_of(model.main, True)
    assert isinstance(found, Dense)
    assert found.scales is not None
    source = affine_of(found.rows)
    assert source is not None
    for rows in (1, 2, 3, 6):
        blocks = found.weights.reshape(UNITS, 6 // rows, -1).swapaxes(0, 1)
        step = found.step(blocks)
        worst = np.abs(blocks.astype(float)).sum(-1).max() * max(127 - source.zero_point, source.zero_point + 128)
        assert worst / step <= 32767
        assert 6 / rows * step / 2 * found.scales.factors.max() < 1


@pytest.mark.parametrize(
    ("model", "is_allowed", "said"),
    [
        (layer(), False, "--allow-approximate allows that"),
        (layer(activation=RELU6), True, "its activation is no RELU"),
        (layer(scale=0.01), True, "in sums of int16 it could be off by"),
    ],
)
def test_others_are_refused(model: Model, is_allowed: bool, said: str) -> None:
    found = dense_of(model.main, is_allowed)
    assert isinstance(found, str)
    assert said in found


def test_the_difference_is_told() -> None:
    options = Options(target="cortex-m7", max_extra_work=1.0, effort="quick", allow_approximate=True, samples=2)
    result = optimize_in_parts(write_model(layer(scale=2.0, size=(40, 64), kernel=7)), options, 1, feed=2)
    assert "FULLY_CONNECTED" in {operator.name for operator in read_model(result.models[0]).main.operators}
    words = "but for integers that are rounded once more, at most "
    assert result.program.verified.startswith((f"{words}0 LSB apart, on ", f"{words}1 LSB apart, on "))
