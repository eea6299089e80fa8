"""Comparison of arrays, inputs that exercise a model, and interpreters that may crash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.faults import raises
from tests.interpreters import ending
from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain, streaming_model, transpose_conv_model
from tests.tflm import needs_wheel, run_models
from tests.two_models import compare_models
from tflite_memopt import Options, verify
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.evidence.equivalence.compare import (
    EXACT,
    Tolerance,
    arrays_agree,
    first_output_difference,
    max_abs_diff,
)
from tflite_memopt.evidence.equivalence.inputs import inputs_from_npz, seeded_inputs
from tflite_memopt.evidence.equivalence.runner import CRASHED
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType
from tflite_memopt.model.ir.tensors import per_tensor

ARENA = 4 << 20


def test_exact_agreement_is_to_the_bit() -> None:
    a = np.asarray([0.0, 1.0, np.nan], np.float32)
    assert arrays_agree(a, a.copy())
    assert not arrays_agree(a, np.asarray([-0.0, 1.0, np.nan], np.float32))
    assert arrays_agree(a, np.asarray([-0.0, 1.0, np.nan], np.float32), Tolerance(absolute=1e-6))
    assert not arrays_agree(a, a[:2])
    assert not arrays_agree(a, a.astype(np.float64))


def test_a_tolerance_never_applies_to_integers() -> None:
    a, b = np.asarray([1, 2], np.int8), np.asarray([1, 3], np.int8)
    assert not arrays_agree(a, b, Tolerance(absolute=5.0))
    assert max_abs_diff(a, b) == 1.0
    assert max_abs_diff(np.asarray([-128], np.int8), np.asarray([127], np.int8)) == 255.0


def test_a_difference_in_shape_or_a_lone_nan_is_infinite() -> None:
    a = np.asarray([1.0, np.nan], np.float32)
    assert max_abs_diff(a, a) == 0.0
    assert max_abs_diff(a, a[:1]) == float("inf")
    assert max_abs_diff(a, np.asarray([1.0, 2.0], np.float32)) == float("inf")
    assert max_abs_diff(np.asarray([np.inf]), np.asarray([np.inf])) == 0.0


def test_int8_inputs_take_every_value_and_follow_the_seed() -> None:
    model = mobile_chain(24)
    values = np.concatenate([sample[0].ravel() for sample in seeded_inputs(model, 10, 0)])
    assert set(values.tolist()) == set(range(-128, 128))
    again, other = seeded_inputs(model, 1, 0)[0][0], seeded_inputs(model, 1, 1)[0][0]
    assert np.array_equal(again, seeded_inputs(model, 10, 0)[0][0])
    assert not np.array_equal(again, other)


def test_a_float_input_that_is_quantized_covers_the_whole_int8_range() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4000), DType.FLOAT32)
    y = b.tensor("y", (1, 4000), scale=0.1, zero_point=-20)
    b.operator("QUANTIZE", (x,), (y,), "QuantizeOptions")
    values = seeded_inputs(b.finish(y), 2, 0)[0][0]
    quantized = np.clip(np.round(values / 0.1) - 20, -128, 127)
    assert len(set(quantized.ravel().tolist())) == 256


def test_an_index_input_stays_within_what_it_indexes() -> None:
    b = ModelBuilder()
    index = b.input("index", (50,), DType.INT32)
    table = b.constant("table", np.zeros((7, 4), np.int8), per_tensor(1.0, 0))
    y = b.tensor("y", (50, 4))
    b.operator("GATHER", (table, index), (y,), "GatherOptions", axis=0)
    values = seeded_inputs(b.finish(y), 1, 0)[0][0]
    assert values.min() >= 0
    assert values.max() == 6


def test_own_inputs_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.zeros((1, 16), np.float32))
    with raises(UsageError, ErrorKind.SAMPLES, "'x'", "float32", "int8"):
        inputs_from_npz(path, dense_model())
    np.savez(path, x=np.zeros((2, 3), np.int8))
    with raises(UsageError, ErrorKind.SAMPLES, "'x'", "[2, 3]"):
        inputs_from_npz(path, dense_model())
    path.write_bytes(b"no zip")
    with raises(UsageError, ErrorKind.SAMPLES, str(path)):
        inputs_from_npz(path, dense_model())


@needs_wheel
@pytest.mark.usefixtures("mortal_wheel")
def test_a_crash_of_the_interpreter_is_a_result_not_an_end() -> None:
    model = mobile_chain()
    files = {"good": write_model(model), "bad": ending(model), "next": write_model(model)}
    runs = run_models("tflm", files, seeded_inputs(model, 1, 0), ARENA)
    assert [run.ran for run in runs.values()] == [True, False, True]
    assert str(runs["bad"].error).startswith(CRASHED)


@needs_wheel
@pytest.mark.usefixtures("mortal_wheel")
def test_a_crash_is_no_verdict_and_the_reason_is_given() -> None:
    data = ending(mobile_chain())
    verdicts = verify(data, data, Options(samples=2))
    assert verdicts["litert"].equal
    assert verdicts["tflm"].equal is None
    assert CRASHED in str(verdicts["tflm"].reason)


def test_state_is_carried_from_sample_to_sample() -> None:
    model = streaming_model()
    sample = [np.full((1, 8), 3, np.int8)]
    for runtime in ("litert", "tflm"):
        run = run_models(runtime, {"model": write_model(model)}, [sample, sample, sample], ARENA)["model"]
        sums = [int(run.arrays[f"s{number}_o0"][0, 0]) for number in range(3)]
        assert sums == [3, 6, 9]


def test_a_runtime_that_refuses_the_original_gives_no_verdict() -> None:
    model = dense_model()
    model.opcodes[0].version = 99
    data = write_model(model)
    verdict = compare_models("litert", data, data, seeded_inputs(model, 1, 0), ARENA)
    assert verdict.equal is None
    assert verdict.reason


def test_scratch_is_kept_clear_of_live_tensors() -> None:
    data = write_model(transpose_conv_model())
    verdict = compare_models("tflm", data, data, seeded_inputs(read_model(data), 2, 0), ARENA, EXACT)
    assert verdict.equal


@pytest.mark.parametrize(("lsb", "apart", "is_off"), [(2, 2, False), (2, 3, True), (0, 1, True), (np.inf, 200, False)])
def test_steps_of_integers_that_are_written_as_floats(lsb: float, apart: int, is_off: bool) -> None:
    """The limit of integers holds for them; it does not touch another float."""
    step, limits = 0.1, Tolerance(absolute=1e-6, lsb=lsb)
    before = np.asarray([0.1, 0.2, 0.3], np.float32)
    after = before.copy()
    after[1] = np.float32(before[1] + apart * step)
    assert (first_output_difference({0: [before]}, {0: [after]}, limits, {0: step}) is not None) == is_off
    assert first_output_difference({0: [before]}, {0: [after]}, limits, {1: step}) is not None
