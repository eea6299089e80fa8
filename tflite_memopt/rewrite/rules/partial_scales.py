"""Scales for the partial sums of a convolution of integers: as fine as their range allows.

Each partial sum and each running sum is rounded to its own scale, with an error of variance scale**2 / 12, and what
falls outside its range is cut off. The output's scale everywhere would be the simplest choice, and a poor one: partial
sums may cancel, so that they need more room than the output, or may be much smaller than it.

The range of one sum, in output channel c, is the intersection of

- mean +- DEVIATIONS standard deviations, for inputs that are independent and uniform over what their type can hold
  (after a RELU that is from zero on, since the quantisation of int8 starts there);
- the worst case: all inputs at the end that hurts;
- what matters: outside [lowest output - largest rest, highest output - smallest rest] the output is cut off anyway,
  whatever the parts that are still to be added give.

The scale covers the ranges of all channels, and zero, which must be representable. It never is finer than the step of
the accumulator (input scale * weight scale), since there is nothing to see below that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...ir.model import Quantization

Floats = npt.NDArray[np.float64]

DEVIATIONS = 5.0
"""Standard deviations on either side of the mean that a scale covers."""
_COARSEST = 4096.0
"""In output scales. ADD needs less than 2**14 for int16 and 2**19 for int8 (TFLM add_common.cc: a multiplier < 1)."""


@dataclass(frozen=True)
class Values:
    """The integers that a tensor can hold, and what they stand for: ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int
    lowest: int
    highest: int

    @property
    def low(self) -> float:
        """The lowest real value."""
        return self.scale * (self.lowest - self.zero_point)

    @property
    def high(self) -> float:
        """The highest real value."""
        return self.scale * (self.highest - self.zero_point)


@dataclass(frozen=True)
class Sums:
    """Statistics of sums by output channel: mean and variance, and the bounds that none can pass."""

    mean: Floats
    variance: Floats
    low: Floats
    high: Floats


def partial_sums(x: Values, weights: Sequence[Floats], bias: Floats) -> list[Sums]:
    """The sums that each part gives; the bias is in the first.

    ``weights`` holds an array [output channels, products] of real values for each part; ``bias`` is of real values.
    """
    mean, variance = (x.low + x.high) / 2, (x.high - x.low) ** 2 / 12
    found = []
    for number, part in enumerate(weights):
        start = bias if number == 0 else np.zeros_like(bias)
        ends = np.stack([part * x.low, part * x.high])
        found.append(
            Sums(
                start + mean * part.sum(axis=1),
                variance * (part**2).sum(axis=1),
                start + ends.min(axis=0).sum(axis=1),
                start + ends.max(axis=0).sum(axis=1),
            )
        )
    return found


def running_sums(parts: Sequence[Sums]) -> list[Sums]:
    """The sums of the first two parts, of the first three, and so on to all of them."""
    found = [parts[0]]
    for part in parts[1:]:
        last = found[-1]
        found.append(
            Sums(
                last.mean + part.mean,
                last.variance + part.variance,
                last.low + part.low,
                last.high + part.high,
            )
        )
    return found[1:]


def quantization_of(sums: Sums, whole: Sums, y: Values, step: float) -> Quantization:
    """The quantisation for ``sums``, some of the terms of ``whole``, which is rounded to ``y`` in the end.

    ``step`` is the smallest difference between two accumulators, as a real number. Type and range are those of ``y``;
    a range around zero without zero point (int16) gives a scale without one.
    """
    deviation = DEVIATIONS * np.sqrt(sums.variance)
    low = np.maximum(sums.mean - deviation, np.maximum(sums.low, y.low - (whole.high - sums.high)))
    high = np.minimum(sums.mean + deviation, np.minimum(sums.high, y.high - (whole.low - sums.low)))
    return _covering(min(0.0, float(low.min())), max(0.0, float(high.max())), y, step)


def _covering(low: float, high: float, y: Values, step: float) -> Quantization:
    if y.highest > 127:  # int16 has no zero point (quantisation specification of TFLite)
        return _quantization(max(-low, high) / y.highest, 0, y, step)
    scale = (high - low) / (y.highest - y.lowest)
    found = _quantization(scale, 0, y, step)
    zero_point = round(y.lowest - low / float(found.scale[0]))
    return _quantization(scale, min(max(zero_point, y.lowest), y.highest), y, step)


def _quantization(scale: float, zero_point: int, y: Values, step: float) -> Quantization:
    scale = min(max(scale, step), y.scale * _COARSEST)
    return Quantization(np.asarray([scale], np.float32), np.asarray([zero_point], np.int64))
