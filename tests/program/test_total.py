"""Means as sums: what the kernels make of every sum, and what other operators make of it; when there is no such way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.makers.model_builder import ModelBuilder
from tests.profiles import examples
from tests.tflm import litert_and_tflm
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.runner import Interpreters
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.editor import RELU
from tflite_memopt.ir.model import DType, Model
from tflite_memopt.program.total import Total, total_of

CHANNELS = 240


def mean(
    shape: tuple[int, int],
    scales: tuple[float, float] = (0.05, 0.05),
    zeros: tuple[int, int] = (0, 0),
    axes: tuple[int, ...] = (1, 2),
    dtype: DType = DType.INT8,
) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, *shape, CHANNELS), dtype, scale=scales[0], zero_point=zeros[0])
    kept = [1 if at in axes else size for at, size in enumerate(x.shape)]
    y = b.tensor("mean", kept, dtype, scales[1], zeros[1])
    b.operator("MEAN", (x, b.constant("axes", np.asarray(axes, np.int32))), (y,), "ReducerOptions", keepDims=True)
    return b.finish(y)


def pool(size: int, activation: int = 0) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, size, size, CHANNELS), zero_point=5)
    y = b.tensor("pool", (1, 1, 1, CHANNELS), zero_point=5)
    fields = {"padding": 1, "strideH": size, "strideW": size, "filterHeight": size, "filterWidth": size}
    b.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", fusedActivationFunction=activation, **fields)
    return b.finish(y)


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as running:
        yield running


def found(model: Model) -> Total:
    total = total_of(model.main)
    assert isinstance(total, Total), total
    return total


def images(model: Model) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """Channels with sums from the least to the largest, and some that are near one another."""
    _, height, width, _ = model.main.inputs[0].shape
    wanted = np.linspace(-128 * height * width, 127 * height * width, CHANNELS).astype(np.int64)
    each, more = np.divmod(wanted, height * width)
    at = np.arange(height * width)[:, None]
    values = np.where(at < more, each + 1, each).clip(-128, 127).astype(np.int8)
    return values.reshape(1, height, width, CHANNELS)


MODELS = {
    "3x3": mean((3, 3), (0.0231, 0.0197), (-128, 3)),
    "one scale": mean((8, 8), (0.05, 0.05), (-128, -128)),
    "62 steps": mean((62, 1), (0.0231, 0.0113), (-128, -128)),
    "wide": mean((7, 25), (0.0231, 0.0201), (17, -5)),
    "pool 4": pool(4),
    "pool 5": pool(5),
}


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize("name", MODELS)
def test_sums_lead_to_what_kernels_compute(name: str, runtime: str, interpreters: Interpreters) -> None:
    model, x = MODELS[name], images(MODELS[name])
    run = interpreters[runtime].run(RunJob(write_model(model), [[x]], arena_for(model)))
    rounding = found(model).rounding
    sums = x.astype(np.int64).sum((1, 2)).ravel() + rounding.start
    assert np.array_equal(run.outputs[0][0].ravel(), rounding.of(sums))
    assert len(set(rounding.of(sums))) > 90


@examples(40)
@given(
    count=st.integers(2, 120),
    scales=st.tuples(st.floats(1e-3, 0.1), st.floats(0.3, 1.2)),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
)
def test_there_is_a_way_for_most_means(count: int, scales: tuple[float, float], zeros: tuple[int, int]) -> None:
    """Against the fixed-point arithmetic of the kernel, written again in Python's integers, for every sum."""
    scale, share = scales
    model = mean((count, 1), (scale, scale * share), zeros)
    total, (source,), (output,) = total_of(model.main), model.main.inputs, model.main.outputs
    assert source.quantization is not None
    assert output.quantization is not None
    if not isinstance(total, Total):
        return
    real = float(source.quantization.scale[0]) / float(output.quantization.scale[0])
    shift = 0
    while real >= 1:
        real, shift = real / 2, shift + 1
    while real < 0.5:
        real, shift = real * 2, shift - 1
    by = count.bit_length() - 1
    fixed, shift = (int(real * 2**31 + 0.5) << by) // count, shift - by
    sums = range(-128 * count + total.rounding.start, 127 * count + total.rounding.start + 1)
    wanted = [min(127, max(-128, kernel(each, fixed, shift) + zeros[1])) for each in sums]
    assert list(total.rounding.of(np.asarray(sums))) == wanted


def kernel(x: int, fixed: int, shift: int) -> int:
    product = (x << max(0, shift)) * fixed
    nudged = product + (1 << 30 if product >= 0 else 1 - (1 << 30))
    high = abs(nudged) // (1 << 31) * (1 if nudged >= 0 else -1)
    power = 1 << max(0, -shift)
    return (high + power // 2) // power if high >= 0 else -((-high + power // 2) // power)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (mean((40, 40)), "mean: sums of 1600 values are not rounded by other operators exactly as it rounds them"),
        (mean((8, 8)), "mean: sums of 64 values are not rounded"),  # halves: up as they are, away from 0 by QUANTIZE
        (mean((4, 4), dtype=DType.INT16), "mean: only the mean of int8 is summed up row by row"),
        (mean((4, 4), dtype=DType.FLOAT32), "mean: only the mean of int8 is summed up row by row"),
    ],
)
def test_what_is_not_exact_is_refused(model: Model, said: str) -> None:
    assert str(total_of(model.main)).startswith(said)


@pytest.mark.parametrize("model", [mean((4, 4), axes=(2,)), mean((4, 4), axes=(1, 2, 3)), pool(4, RELU)])
def test_other_ends_of_a_front_are_no_means_of_all_rows(model: Model) -> None:
    assert total_of(model.main) is None
