"""How far two outputs may be apart, and how far they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .adapter import Array

_LEAST_RANK_WITH_CHANNELS = 3
_NUMBERS = "biuf"
"""Kinds of types, of which each value is one word."""


@dataclass(frozen=True)
class Tolerance:
    """How far a value may be off: a float ``absolute + relative * largest magnitude``, an integer ``lsb``.

    The largest magnitude of the value's channel over all samples, and not its own, because a sum that cancels keeps the
    rounding of its terms. Channels are the last axis of what has at least three; else it is that of the whole tensor.
    """

    absolute: float = 0.0
    relative: float = 0.0
    lsb: float = 0.0

    def limit(self, samples: Sequence[Array]) -> npt.NDArray[np.float64]:
        """The largest difference from these values of one tensor that is tolerated, one for all or one a channel."""
        if not samples or samples[0].dtype.kind not in "fc":
            return np.asarray(self.lsb)
        return np.asarray(self.absolute + self.relative * largest_magnitudes(samples))


EXACT = Tolerance()
"""The same bits."""

FLOAT_SUMS = Tolerance(absolute=1e-6, relative=1e-4)
"""float32 sums in another order, integers the same.

A float32 sum of n terms is off by about sqrt(n) * 2**-24 of its terms' magnitude, in either order. Measured in the sums
that a split makes: 3e-6 of the largest value for 4,096 terms, and as much after twenty layers of 1,024 channels. A
softmax multiplies that by the magnitude of its logits, some tens: 1e-4. A wrong slice of weights or a missing term
changes outputs by 1e-2 and more; one step of an int8 output is 4e-3 of its range.
The absolute part is that of sums of terms around 1 that cancel out; outputs that are all smaller prove nothing.
"""

ANY = Tolerance(absolute=math.inf, lsb=math.inf)
"""Any finite difference: to measure it, not to judge it."""


def largest_magnitudes(samples: Sequence[Array]) -> npt.NDArray[np.float64]:
    """The largest finite magnitude of each channel over all samples, or of everything where there are no channels."""
    axes = tuple(range(samples[0].ndim - 1)) if samples[0].ndim >= _LEAST_RANK_WITH_CHANNELS else None
    largest = [np.abs(_finite(each)).max(axis=axes, initial=0).astype(np.float64) for each in samples]
    return np.asarray(np.max(largest, axis=0))


def _finite(array: Array) -> Array:
    """The array with 0 for what is not finite, in a type that holds the magnitude of each value."""
    if array.dtype.kind not in "fc":
        return array.astype(np.float64)
    is_finite = np.isfinite(array)
    return array if is_finite.all() else np.where(is_finite, array, 0)


def arrays_agree(
    a: Array, b: Array, tolerance: Tolerance = EXACT, limit: npt.NDArray[np.float64] | None = None
) -> bool:
    """Same shape, same type, and every element of ``b`` equal to that of ``a`` within the tolerance.

    To the bit when the tolerance is EXACT. What is not finite must be the same in both. ``limit``: of the tensor over
    all samples, where it is known; else it is that of ``a``.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if _have_same_bits(a, b):
        return True
    if tolerance == EXACT:
        return False
    gaps = abs_diff(a, b)
    return bool(np.all(np.isfinite(gaps) & (gaps <= (tolerance.limit([a]) if limit is None else limit))))


def _have_same_bits(a: Array, b: Array) -> bool:
    """Of two arrays of one shape and type."""
    if a.dtype.kind in _NUMBERS and a.dtype.itemsize in (1, 2, 4, 8):
        bits = f"u{a.dtype.itemsize}"
        return bool(np.array_equal(a.view(bits), b.view(bits)))
    return a.tobytes() == b.tobytes()


def max_abs_diff(a: Array, b: Array) -> float:
    """Largest |a - b|; infinite when the shapes differ or a value is not a number on one side only."""
    if a.shape != b.shape:
        return float("inf")
    return float(abs_diff(a, b).max(initial=0.0))


def abs_diff(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|a - b| of two arrays of one shape, element by element; infinite where only one is a number."""
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):  # infinity minus infinity, which the lines below settle
        gap: npt.NDArray[np.float64] = np.abs(np.subtract(a, b, dtype=wide))
    if np.isfinite(gap).all():
        return gap
    gap = np.where(a == b, 0.0, gap)
    gap = np.where((a != a) & (b != b), 0.0, gap)
    return np.nan_to_num(gap, nan=np.inf, posinf=np.inf)
