"""Scales for the partial sums of a convolution of integers: as fine as their range allows.

Each partial sum and each running sum is rounded to its own scale, with an error of variance scale**2 / 12, and what
falls outside its range is cut off. The output's scale everywhere would be the simplest choice, and a poor one: partial
sums may cancel, so that they need more room than the output, or may be much smaller than it.

The range of one sum, in output channel c, is the intersection of

- mean +- DEVIATIONS standard deviations, for inputs that are independent and uniform over ``usage`` of what their type
  can hold (after a RELU that is from zero on, since the quantization of int8 starts there);
- the worst case: all inputs at the end that hurts;
- what matters: outside [lowest output - largest rest, highest output - smallest rest] the output is cut off anyway,
  whatever the parts that are still to be added give.

``usage``, at most 1, is what the output tells of the inputs: its own range was calibrated with real ones. It is the
share at which the sums of all parts just fill that range, times MARGIN. Real inputs use little of their range most of
the time, so that without it scales come out several times too coarse. An end of the output's range that an activation
clamps tells nothing.

The scale covers the ranges of all channels, and zero, which must be representable. It never is finer than the step of
the accumulator (input scale * weight scale), since there is nothing to see below that.

Measured on LiteRT, differences of one convolution's output in its own steps, root mean square and largest, one input.
"uniform" is a usage of 1; "output" is the output's scale and zero point for all partial sums, "centered" its scale with
zero point 0. MARGIN and DEVIATIONS were chosen on these same four networks: no other network has been tried.

    int8 network, sites one by one              these scales    uniform      output       centered
    SwiftNet, 6 sites                           1.14   6        2.56  18     28.7  153    0.97   90
    DARTS (CIFAR), 5                            1.02   6        2.15  12     20.9  181    5.56  102
    AmoebaNet (CIFAR), 5                        0.83   3        1.65   7     0.61   13    0.59   14
    NASNet (CIFAR), 5                           1.20   5        1.96   9     13.6  117    1.38  102
    240 random patterns, uniform inputs         0.80   6        the same     19.6  255    4.4   173

So the gain is in the largest differences: where nothing is cut off, the output's own scale is the finer one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...ir.model import Quantization
from ...ir.quantization import per_tensor

Floats = npt.NDArray[np.float64]

DEVIATIONS = 5.0
"""Standard deviations on either side of the mean that a scale covers."""
MARGIN = 1.75
"""Room for inputs that the output's range does not show. On the networks above 1.5 cuts off sums that matter: the
largest difference is 21; 2 adds an eighth to the root mean square and gains nothing."""
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
    """Statistics of sums by output channel, as real numbers: what is constant in them, mean and variance of the rest
    for inputs that use their whole range, and the bounds that no sum can pass."""

    constant: Floats
    mean: Floats
    variance: Floats
    low: Floats
    high: Floats

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.constant + other.constant,
            self.mean + other.mean,
            self.variance + other.variance,
            self.low + other.low,
            self.high + other.high,
        )


def sums_of(x: Values, weights: Floats, constant: Floats) -> Sums:
    """Of ``weights``, real numbers [output channels, products], times inputs, plus ``constant`` by channel."""
    ends = np.stack([weights * x.low, weights * x.high])
    return Sums(
        constant,
        (x.low + x.high) / 2 * weights.sum(axis=1),
        (x.high - x.low) ** 2 / 12 * (weights**2).sum(axis=1),
        constant + ends.min(axis=0).sum(axis=1),
        constant + ends.max(axis=0).sum(axis=1),
    )


@dataclass(frozen=True)
class Output:
    """The rounded sum of all parts, and the bounds that its activation clamps to (infinite without one)."""

    values: Values
    clamp: tuple[float, float]
    total: Sums
    step: float
    """The smallest difference between two accumulators, as a real number."""

    def usage(self) -> float:
        """The share of their range that the inputs use, by what the output shows of it; 1 when it shows nothing."""
        total, deviation, y = self.total, DEVIATIONS * np.sqrt(self.total.variance), self.values
        shares = [0.0]
        if y.high < self.clamp[1] - y.scale:
            shares.append(_share(y.high - total.constant, total.mean + deviation))
        if y.low > self.clamp[0] + y.scale:
            shares.append(_share(total.constant - y.low, deviation - total.mean))
        return min(1.0, MARGIN * max(shares)) if len(shares) > 1 else 1.0

    def quantization(self, sums: Sums) -> Quantization:
        """The quantization for ``sums``, which are some terms of the total; type and range are the output's."""
        y, total, usage = self.values, self.total, self.usage()
        mean, deviation = sums.constant + usage * sums.mean, usage * DEVIATIONS * np.sqrt(sums.variance)
        low = np.maximum(mean - deviation, np.maximum(sums.low, y.low - (total.high - sums.high)))
        high = np.minimum(mean + deviation, np.minimum(sums.high, y.high - (total.low - sums.low)))
        return self._covering(min(0.0, float(low.min())), max(0.0, float(high.max())))

    def _covering(self, low: float, high: float) -> Quantization:
        y = self.values
        if y.highest > 127:  # int16 has no zero point (quantization specification of TFLite)
            return per_tensor(self._allowed(max(-low, high) / y.highest), 0)
        scale = self._allowed((high - low) / (y.highest - y.lowest))
        return per_tensor(scale, min(max(round(y.lowest - low / scale), y.lowest), y.highest))

    def _allowed(self, scale: float) -> float:
        return min(max(scale, self.step), self.values.scale * _COARSEST)


def _share(room: Floats, needed: Floats) -> float:
    """The largest share of what is needed that fits into the room in every channel."""
    shares = np.divide(room, needed, out=np.full_like(room, np.inf), where=needed > 0)
    return max(float(shares.min()), 0.0)
