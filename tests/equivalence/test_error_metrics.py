"""What is measured of two models' outputs."""

from __future__ import annotations

import numpy as np
import pytest

from tflite_memopt.evidence.equivalence.adapter import Array
from tflite_memopt.evidence.equivalence.compare import (
    ANY,
    FLOAT_SUMS,
    Gap,
    Tolerance,
    arrays_agree,
    gap_between,
    signal_to_noise,
)


def test_steps_shares_and_scores_are_counted_over_all_samples() -> None:
    before: dict[int, list[Array]] = {
        0: [np.asarray([[1, 5, 2], [9, 0, 0]], np.int8)] * 2,
        1: [np.asarray([2.0, -4.0], np.float32), np.asarray([0.0, 8.0], np.float32)],
    }
    after = {output: [array.copy() for array in arrays] for output, arrays in before.items()}
    after[0][1][0] = [7, 5, 2]
    after[1][1][0] = 0.5
    found = gap_between(before, after, {})
    assert found == Gap(6.0, 0.5 / 8, 6.0, values=16, differing=2, rows=4, agreeing_rows=3)
    assert (found.differing_share, found.agreeing_argmax_share) == (0.125, 0.75)
    assert gap_between(before, before, {}) == Gap(0.0, 0.0, 0.0, values=16, rows=4, agreeing_rows=4)


def test_floats_that_stand_for_integers_are_measured_in_steps() -> None:
    before = {0: [np.asarray([0.3, 0.6], np.float32)]}
    found = gap_between(before, {0: [np.asarray([0.3, 0.9], np.float32)]}, {0: 0.1})
    assert found.max_lsb_diff == 3
    assert found.max_relative_diff is None
    assert found.max_abs_diff == pytest.approx(0.3)


def test_what_is_missing_is_infinitely_far() -> None:
    before = {0: [np.zeros((2, 2), np.float32)]}
    assert gap_between(before, {}, {}) == Gap(float("inf"), values=4, differing=4)
    off = gap_between(before, {0: [np.ones((2, 2), np.float32)]}, {})
    assert off.max_relative_diff == float("inf")
    assert Gap().agreeing_argmax_share is None


def test_the_tolerance_is_relative_to_the_largest_of_the_tensor() -> None:
    a = np.asarray([1000.0, 0.0], np.float32)
    assert arrays_agree(a, a + np.float32(0.09), FLOAT_SUMS)
    assert not arrays_agree(a, a + np.float32(0.11), FLOAT_SUMS)
    assert not arrays_agree(a / 1000, a / 1000 + np.float32(0.09), FLOAT_SUMS)
    assert arrays_agree(np.zeros(2), np.full(2, 1e-7), FLOAT_SUMS)


def test_floats_have_a_tolerance_for_each_channel() -> None:
    wide = np.zeros((1, 2, 2, 2), np.float32)
    wide[..., 0], wide[0, 0, 0, 1] = 1000.0, 0.1
    off = wide.copy()
    off[0, 1, 1, 1] = 0.001
    assert not arrays_agree(wide, off, FLOAT_SUMS)
    assert arrays_agree(wide[0, 0, :1], off[0, 0, :1] + np.float32(0.09), FLOAT_SUMS)
    louder = np.full_like(wide, 20.0)
    assert arrays_agree(wide, off, FLOAT_SUMS, FLOAT_SUMS.limit([wide, louder]))


def test_signal_to_noise_is_that_of_the_worst_output() -> None:
    before: dict[int, list[Array]] = {0: [np.asarray([1, -1], np.int8)] * 2, 1: [np.asarray([10, -10], np.int8)] * 2}
    assert signal_to_noise(before, before) == float("inf")
    after = {0: before[0], 1: [np.asarray([9, -10], np.int8), before[1][1]]}
    assert signal_to_noise(before, after) == pytest.approx(10 * np.log10(400 / 1))
    constant: dict[int, list[Array]] = {0: [np.asarray([3, 3], np.int8)]}
    assert signal_to_noise(constant, {0: [np.asarray([3, 4], np.int8)]}) == -float("inf")


def test_any_difference_that_is_finite() -> None:
    a = np.asarray([1, 2], np.int8)
    assert arrays_agree(a, a + np.int8(100), ANY)
    assert not arrays_agree(a, a.astype(np.int16), ANY)
    assert not arrays_agree(a, a + np.int8(2), Tolerance(lsb=1))
    real = np.asarray([1.0, np.inf], np.float32)
    assert arrays_agree(real, np.asarray([7.0, np.inf], np.float32), ANY)
    assert not arrays_agree(real, np.asarray([7.0, 1.0], np.float32), ANY)
    assert not arrays_agree(real, np.asarray([np.nan, np.inf], np.float32), ANY)
