"""Numpy's QUANTIZE and DEQUANTIZE against those of the interpreters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import dense_model, float_sum, quantized_at_the_boundary
from tests.profiles import examples
from tests.tflm import run_models
from tflite_memopt.errors import EquivalenceError, ErrorKind, UsageError
from tflite_memopt.evidence.equivalence.inputs import numpy_type
from tflite_memopt.evidence.equivalence.interface import SAME, ConvertedEnd, interface_between
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.boundary import take_integers

F32 = DType.FLOAT32
INTEGERS = (DType.INT8, DType.INT16, DType.UINT8)


def port(dtype: DType, scale: float, zero_point: int, outer: DType = F32) -> ConvertedEnd:
    b = ModelBuilder()
    return ConvertedEnd(b.tensor("outer", (1,), outer, scale), b.tensor("inner", (1,), dtype, scale, zero_point))


def conversions(name: str, dtypes: tuple[DType, ...], rng: np.random.Generator) -> tuple[Model, list[ConvertedEnd]]:
    """One operator for each of 24 random scales and zero points."""
    b = ModelBuilder()
    real = b.input("x", (1, 3000), F32) if name == "QUANTIZE" else None
    ports = []
    for number in range(24):
        dtype = dtypes[number % len(dtypes)]
        info = np.iinfo(numpy_type(dtype))
        scale, zero = float(10 ** rng.uniform(-5, 1)), int(rng.integers(info.min, info.max, endpoint=True))
        zero = 0 if dtype is DType.INT16 else zero  # LiteRT demands it
        whole = b.tensor(f"q{number}", (1, 3000), dtype, scale, zero)
        if real is None:
            b.graph.inputs = (*b.graph.inputs, whole)
        other = real or b.tensor(f"x{number}", whole.shape, F32)
        pair = (other, whole) if name == "QUANTIZE" else (whole, other)
        b.operator(name, pair[:1], pair[1:], f"{name.title()}Options")
        ports.append(ConvertedEnd(other, whole))
    outputs = [op.outputs[0] for op in b.graph.operators]
    return b.finish(*outputs), ports


@pytest.mark.parametrize("runtime", ["litert", "tflm"])
def test_both_directions_are_the_interpreters(runtime: str) -> None:
    rng = np.random.default_rng(5)
    model, ports = conversions("QUANTIZE", INTEGERS if runtime == "litert" else INTEGERS[:2], rng)
    # Exact halves of every scale, where roundings differ, and values far beyond the range.
    halves = [np.float32(p.step) * (np.arange(100, dtype=np.float32) - 50.5) for p in ports]
    values = np.concatenate([*halves, rng.uniform(-1e4, 1e4, 600)]).astype(np.float32).reshape(1, 3000)
    run = run_models(runtime, {"model": write_model(model)}, [[values]], 16 << 20)["model"]
    assert run.ran, run.error
    for at, each in enumerate(ports):
        assert np.array_equal(run.arrays[f"s0_o{at}"], each.quantized(values)), each
    model, ports = conversions("DEQUANTIZE", INTEGERS, rng)
    samples = [[rng.integers(-100, 100, (1, 3000)).astype(numpy_type(p.inner.dtype)) for p in ports]]
    run = run_models(runtime, {"model": write_model(model)}, samples, 16 << 20)["model"]
    assert run.ran, run.error
    for at, each in enumerate(ports):
        assert run.arrays[f"s0_o{at}"].tobytes() == each.restored(samples[0][at]).tobytes(), each


@examples(60)
@given(st.sampled_from(INTEGERS), st.floats(1e-30, 1e30), st.data())
def test_every_integer_comes_back(dtype: DType, scale: float, data: st.DataObject) -> None:
    info = np.iinfo(numpy_type(dtype))
    zero = data.draw(st.integers(int(info.min), int(info.max)))
    values = np.arange(info.min, info.max + 1).astype(numpy_type(dtype))
    found = port(dtype, scale, zero)
    assert np.array_equal(found.quantized(found.restored(values)), values)


def test_half_steps_round_away_from_zero_and_ends_are_clamped() -> None:
    values = np.asarray([0.5, -0.5, 1.5, 0.49999997, 1e9, -1e9], np.float32)
    assert port(DType.INT8, 1.0, 3).quantized(values).tolist() == [4, 2, 5, 3, 127, -128]


@pytest.mark.parametrize("value", [np.nan, np.inf, 2e9])
def test_values_that_quantize_does_not_define_are_refused(value: float) -> None:
    with raises(UsageError, ErrorKind.SAMPLES, "'outer'"):
        port(DType.INT8, 1.0, 0).quantized(np.asarray([0, value], np.float32))


def test_integers_shift_by_their_zero_points() -> None:
    b = ModelBuilder()
    shift = ConvertedEnd(b.tensor("x", (3,), DType.UINT8, zero_point=128), b.tensor("q", (3,), zero_point=2))
    assert shift.quantized(np.asarray([0, 128, 255], np.uint8)).tolist() == [-126, 2, 127]
    assert shift.restored(np.asarray([-128, 2, 127], np.int8)).tolist() == [0, 128, 253]
    assert shift.step == 1.0


def test_only_the_same_interface_in_integers_is_taken() -> None:
    original, optimized = quantized_at_the_boundary(), quantized_at_the_boundary()
    assert interface_between(original, optimized) == SAME
    take_integers(optimized)
    found = interface_between(original, optimized)
    assert (list(found.inputs), list(found.outputs)) == ([0], [0])
    assert found.steps == {0: pytest.approx(0.05)}
    with raises(EquivalenceError, ErrorKind.INTERFACE, "1 inputs", "4"):
        interface_between(float_sum(True), dense_model())
    with raises(EquivalenceError, ErrorKind.INTERFACE, "input 0 'image'"):
        interface_between(original, _renamed(dense_model()))
    with raises(EquivalenceError, ErrorKind.INTERFACE, "input 0 'image'"):
        interface_between(optimized, original)


def _renamed(model: Model) -> Model:
    x: Tensor = model.main.inputs[0]
    x.name = "image"
    return model
