"""Inputs that are drawn, the same on every machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.evidence.equivalence.adapter import Sample
from tflite_memopt.evidence.equivalence.inputs import LEVELS, Stream, inputs_from_npz, range_of, seeded_inputs
from tflite_memopt.model.ir.model import DType


def digest(arrays: list[Sample]) -> str:
    found = hashlib.sha256()
    for sample in arrays:
        for array in sample:
            found.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()[:16]


def test_the_seed_gives_the_same_bytes_everywhere() -> None:
    """Written down once: another machine, or another numpy, must draw the same."""
    assert Stream(1, 2).integers(0, 9, (12,)).tolist() == STREAM
    assert digest(seeded_inputs(mobile_chain(24), 30, 0)) == INTEGERS
    b = ModelBuilder()
    assert digest(seeded_inputs(b.finish(b.add(*[b.input("x", (1, 5, 5, 3), DType.FLOAT32)] * 2)), 30, 7)) == FLOATS


STREAM = [4, 4, 4, 2, 8, 0, 0, 8, 6, 2, 5, 9]
INTEGERS = "a69cf082f5ae2e9a"
FLOATS = "1dbaf5d48e0c1f7a"


def test_later_samples_do_not_depend_on_how_many_were_drawn_before() -> None:
    model = mobile_chain(24)
    assert digest(seeded_inputs(model, 3, 0)) == digest(seeded_inputs(model, 8, 0)[:3])
    assert digest(seeded_inputs(model, 3, 0)) != digest(seeded_inputs(model, 3, 1))


def test_every_value_of_every_type_is_in_range() -> None:
    for dtype, limits in ((DType.INT4, (-8, 7)), (DType.UINT8, (0, 255)), (DType.INT16, (-32768, 32767))):
        b = ModelBuilder()
        x = b.input("x", (1, 300), dtype)
        found = range_of(x)
        values = found.values(np.arange(LEVELS), dtype)
        assert (int(values.min()), int(values.max())) == limits
        assert len(np.unique(values)) == limits[1] - limits[0] + 1


def test_samples_are_strong_weak_and_zero_in_turn() -> None:
    model = mobile_chain(24)
    quantization = model.main.inputs[0].quantization
    assert quantization is not None
    strong, weak, zero = (np.abs(each[0].astype(int)) for each in seeded_inputs(model, 3, 0))
    assert weak.max() < strong.max() == 128
    assert len(np.unique(weak)) > 1
    assert set(zero.ravel().tolist()) == {abs(int(quantization.zero_point[0]))}


def test_nothing_to_prove_with_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.zeros((0, 1, 16), np.int8))
    with raises(UsageError, ErrorKind.SAMPLES, "'x'"):
        inputs_from_npz(path, dense_model())
    b = ModelBuilder()
    with raises(UsageError, ErrorKind.SAMPLES, "--inputs"):
        inputs_from_npz(path, b.finish(b.constant("c", np.zeros((1, 4), np.int8))))
