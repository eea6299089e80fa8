"""What inputs exercise."""

from __future__ import annotations

import numpy as np

from tests.models import dense_model
from tflite_memopt.equivalence.adapter import Array, Run
from tflite_memopt.equivalence.coverage import Coverage, coverage_of
from tflite_memopt.ir.model import Model


def covered(model: Model, arrays: list[Array]) -> Coverage:
    """Of the first tensor, with itself as the output."""
    return coverage_of(model.main, Run({0: arrays}, {0: arrays}))


def test_what_never_changed_is_named() -> None:
    model = dense_model()
    still = np.zeros((1, 16), np.int8)
    found = covered(model, [still, still])
    assert (found.samples, found.distinct_outputs, found.never_changed) == (2, 1, ("x",))
    assert (found.channels, found.constant_channels) == (16, 16)
    assert not found.is_complete
    assert "16 of 16 channels always held one value; never changed: 'x'" in found.shortfall
    moved = still.copy()
    moved[0, 3] = 1
    found = covered(model, [still, moved])
    assert (found.never_changed, found.constant_channels, found.distinct_outputs) == ((), 15, 2)


def test_saturation_counts_both_ends_but_not_the_rest_of_a_relu() -> None:
    model = dense_model()
    full = np.full((1, 16), 127, np.int8)
    assert covered(model, [full]).saturated == {"x": 1.0}
    low = np.full((1, 16), -128, np.int8)
    assert covered(model, [low]).saturated == {"x": 1.0}
    quantization = model.main.tensors[0].quantization
    assert quantization is not None
    quantization.zero_point[0] = -128
    assert covered(model, [low]).saturated == {}
