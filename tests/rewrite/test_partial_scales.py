"""Scales of partial sums: which range they cover, and its limits."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from tflite_memopt.search.rewrite.partial import DEVIATIONS, MARGIN, Output, Sums, Values, sums_of

INT8 = Values(0.1, 0, -128, 127)
INT16 = Values(0.001, 0, -32768, 32767)
UNCLAMPED = (-inf, inf)


def output(y: Values, total: Sums, clamp: tuple[float, float] = UNCLAMPED, step: float = 1e-9) -> Output:
    return Output(y, clamp, total, step)


def covered(made: Output, sums: Sums) -> tuple[float, float]:
    """The lowest and the highest real number of the quantization that is chosen."""
    found, y = made.quantization(sums), made.values
    scale, zero_point = float(found.scale[0]), int(found.zero_point[0])
    assert y.lowest <= zero_point <= y.highest
    return scale * (y.lowest - zero_point), scale * (y.highest - zero_point)


def sums(constant: float, mean: float, deviation: float, worst: float = 1e6) -> Sums:
    one = np.ones(1)
    return Sums(constant * one, mean * one, deviation**2 * one, -worst * one, worst * one)


REST = sums(0, 0, 1000, worst=1e9)
"""The rest of the total: so large that no partial sum is cut off because of the output's range."""


def test_statistics_are_those_of_uniform_inputs() -> None:
    x, weights = Values(0.5, -128, -128, 127), np.asarray([[1.0, -2.0, 0.5]])
    found = sums_of(x, weights, np.asarray([3.0]))
    drawn = np.random.default_rng(0).uniform(x.low, x.high, (200_000, 3)) @ weights[0]
    assert found.mean[0] == pytest.approx(drawn.mean(), abs=0.5)
    assert np.sqrt(found.variance[0]) == pytest.approx(drawn.std(), rel=0.01)
    assert (found.low[0], found.high[0]) == (3 - 2 * 127.5, 3 + 1.5 * 127.5)


def test_the_range_is_that_of_the_deviations() -> None:
    low, high = covered(output(INT8, REST, (-12.8, 12.7)), sums(1, 2, 3))
    assert low == pytest.approx(3 - 3 * DEVIATIONS, rel=0.02)
    assert high == pytest.approx(3 + 3 * DEVIATIONS, rel=0.02)


def test_the_worst_case_is_wide_enough() -> None:
    low, high = covered(output(INT8, REST, (-12.8, 12.7)), sums(0, 0, 3, worst=4))
    assert low == pytest.approx(-4, rel=0.02)
    assert high == pytest.approx(4, rel=0.02)


def test_what_the_output_cuts_off_anyway_needs_no_room() -> None:
    part, rest = sums(0, 0, 100, worst=1000), sums(0, 0, 1, worst=5)
    low, high = covered(output(INT8, part + rest, (-12.8, 12.7)), part)
    assert low == pytest.approx(-12.8 - 5, rel=0.02)
    assert high == pytest.approx(12.7 + 5, rel=0.02)


def test_zero_is_covered_when_the_sums_are_far_from_it() -> None:
    low, high = covered(output(INT8, REST, (-12.8, 12.7)), sums(50, 0, 1))
    assert low <= 0
    assert high >= 55 * 0.99


def test_inputs_that_use_less_of_their_range_get_finer_scales() -> None:
    part = sums(0, 0, 10)
    wide, narrow = sums(0, 0, 12.7 / DEVIATIONS), sums(0, 0, 4 * MARGIN * 12.7 / DEVIATIONS)
    assert output(INT8, wide).usage() == 1.0
    assert output(INT8, narrow).usage() == pytest.approx(0.25, rel=0.02)
    assert covered(output(INT8, narrow), part)[1] == pytest.approx(0.25 * 10 * DEVIATIONS, rel=0.05)


def test_an_output_that_its_activation_clamps_tells_nothing() -> None:
    total = sums(0, 0, 1000)
    relu6 = Values(6 / 255, -128, -128, 127)
    assert output(relu6, total, (0.0, 6.0)).usage() == 1.0
    assert output(relu6, total, (0.0, inf)).usage() < 0.01


def test_int16_is_symmetric() -> None:
    low, high = covered(output(INT16, REST, (-32.768, 32.767)), sums(2, 0, 1))
    assert (low, high) == pytest.approx((-7.0, 7.0), rel=1e-3)


def test_weights_of_zero_give_the_step_of_the_accumulator() -> None:
    found = output(INT8, sums(0, 0, 0, worst=0), step=0.25).quantization(sums(0, 0, 0, worst=0))
    assert found.scale.tolist() == [0.25]


@pytest.mark.parametrize(("y", "bits"), [(INT8, 20), (INT16, 15)])
def test_no_scale_is_too_coarse_for_add(y: Values, bits: int) -> None:
    huge = sums(0, 0, 1e12, worst=1e15)
    scale = float(output(y, huge + huge).quantization(huge).scale[0])
    assert 2 * scale / (2**bits * y.scale) < 1
