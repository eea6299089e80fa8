"""Inputs that excite, the same on every machine."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain, streaming_model
from tflite_memopt.equivalence.adapter import Sample
from tflite_memopt.equivalence.families import FAMILIES, LEVELS, Stream
from tflite_memopt.equivalence.inputs import inputs_from_npz, range_of, seeded_inputs
from tflite_memopt.errors import UsageError
from tflite_memopt.ir.model import DType


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
INTEGERS = "a9e3de1360c31c49"
FLOATS = "ca313129b1c38d64"


def test_later_samples_do_not_depend_on_how_many_were_drawn_before() -> None:
    model = mobile_chain(24)
    assert digest(seeded_inputs(model, 3, 0)) == digest(seeded_inputs(model, 8, 0)[:3])
    assert digest(seeded_inputs(model, 3, 0)) != digest(seeded_inputs(model, 3, 1))


@pytest.mark.parametrize("shape", [(1, 8, 9, 3), (1, 40), (1, 7, 5), (), (3,), (1, 1, 1, 1), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_keeps_shape_and_range(name: str, shape: tuple[int, ...]) -> None:
    levels = FAMILIES[name](shape, 1000, Stream(0))
    assert levels.shape == shape
    assert levels.min() >= 0
    assert levels.max() < LEVELS


def test_families_are_what_they_say() -> None:
    shape = (1, 32, 32, 2)
    levels = {name: family(shape, 1000, Stream(3))[0] for name, family in FAMILIES.items()}
    assert all(len(np.unique(levels["constants"][..., channel])) == 1 for channel in range(2))
    assert set(np.unique(levels["extremes"]).tolist()) == {0, LEVELS - 1}
    assert set(np.unique(levels["zeros"]).tolist()) == {1000}
    assert np.mean(levels["impulses"] == 1000) > 0.6
    steps = {name: np.abs(np.diff(levels[name].astype(np.int64), axis=0)).mean() for name in ("noise", "image")}
    assert steps["image"] < steps["noise"] / 4
    assert len(np.unique(levels["steps"][..., 0])) <= 4


def test_every_value_of_every_type_is_in_range() -> None:
    for dtype, limits in ((DType.INT4, (-8, 7)), (DType.UINT8, (0, 255)), (DType.INT16, (-32768, 32767))):
        b = ModelBuilder()
        x = b.input("x", (1, 300), dtype)
        found = range_of(x)
        values = found.values(np.arange(LEVELS), dtype)
        assert (int(values.min()), int(values.max())) == limits
        assert len(np.unique(values)) == limits[1] - limits[0] + 1


def test_a_model_with_state_gets_sequences() -> None:
    frames = [sample[0].astype(int) for sample in seeded_inputs(streaming_model(), 9, 0)]
    plain = [np.abs(b - a).max() for a, b in pairwise(frames)]
    whole = np.abs(frames[4] - frames[0]).max()
    assert all(each <= whole // 4 + 2 for each in plain[:4])


def test_nothing_to_prove_with_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "inputs.npz"
    np.savez(path, x=np.zeros((0, 1, 16), np.int8))
    with pytest.raises(UsageError, match="'x' holds no sample at all"):
        inputs_from_npz(path, dense_model())
    b = ModelBuilder()
    with pytest.raises(UsageError, match="the model takes no inputs"):
        inputs_from_npz(path, b.finish(b.constant("c", np.zeros((1, 4), np.int8))))
