"""How far two outputs may be apart, and how far they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """How far a value may be off: a float ``absolute + relative * largest magnitude of all``, an integer ``lsb``.

    The largest magnitude, and not the value's own, because a sum that cancels keeps the rounding of its terms.
    """

    absolute: float = 0.0
    relative: float = 0.0
    lsb: float = 0.0

    def limit(self, values: Array) -> float:
        """The largest difference from these values that is tolerated."""
        if values.dtype.kind not in "fc":
            return self.lsb
        finite = np.abs(values[np.isfinite(values)])
        return self.absolute + self.relative * float(finite.max(initial=0.0))


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


def arrays_agree(a: Array, b: Array, tolerance: Tolerance = EXACT) -> bool:
    """Same shape, same type, and every element of ``b`` equal to that of ``a`` within the tolerance.

    To the bit when the tolerance is EXACT. What is not finite must be the same in both.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if tolerance == EXACT:
        return False
    gaps = abs_diff(a, b)
    return bool(np.all(np.isfinite(gaps) & (gaps <= tolerance.limit(a))))


def max_abs_diff(a: Array, b: Array) -> float:
    """Largest |a - b|; infinite when the shapes differ or a value is not a number on one side only."""
    if a.shape != b.shape:
        return float("inf")
    return float(abs_diff(a, b).max(initial=0.0))


def abs_diff(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|a - b| of two arrays of one shape, element by element; infinite where only one is a number."""
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):  # infinity minus infinity, which the next line settles
        gap = np.abs(a.astype(wide) - b.astype(wide))
    gap = np.where(a == b, 0.0, gap)
    gap = np.where((a != a) & (b != b), 0.0, gap)
    return np.nan_to_num(gap, nan=np.inf, posinf=np.inf)
