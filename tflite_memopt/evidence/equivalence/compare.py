"""Outputs of two runs compared: how far they may be apart, and how far they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from .adapter import Array, Values

_LEAST_RANK_WITH_CHANNELS = 3
_NUMBERS = "biuf"
"""Kinds of types whose values are one word."""


@dataclass(frozen=True)
class Tolerance:
    """Allowed error of a value: a float ``absolute + relative * largest magnitude``, an integer ``lsb``.

    The largest magnitude of the value's channel over all samples, and not its own, because a sum that cancels keeps the
    rounding of its terms. Channels are the last axis of tensors with at least three; otherwise the limit is that of the
    whole tensor.
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
The absolute part is that of sums of terms around 1 that cancel out; outputs that are all smaller show nothing.
"""

ANY = Tolerance(absolute=math.inf, lsb=math.inf)
"""Any finite difference: to measure it, not to judge it."""


def largest_magnitudes(samples: Sequence[Array]) -> npt.NDArray[np.float64]:
    """The largest finite magnitude of each channel over all samples, or of everything where there are no channels."""
    axes = tuple(range(samples[0].ndim - 1)) if samples[0].ndim >= _LEAST_RANK_WITH_CHANNELS else None
    largest = [np.abs(_finite(each)).max(axis=axes, initial=0).astype(np.float64) for each in samples]
    return np.asarray(np.max(largest, axis=0))


def _finite(array: Array) -> Array:
    """Return the array with 0 for non-finite values, in a type that holds the magnitude of each value."""
    if array.dtype.kind not in "fc":
        return array.astype(np.float64)
    is_finite = np.isfinite(array)
    return array if is_finite.all() else np.where(is_finite, array, 0)


def arrays_agree(
    a: Array, b: Array, tolerance: Tolerance = EXACT, limit: npt.NDArray[np.float64] | None = None
) -> bool:
    """Same shape, same type, and every element of ``b`` equal to that of ``a`` within the tolerance.

    To the bit when the tolerance is EXACT. Non-finite values must be the same in both. ``limit``: of the tensor over
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
    """Return the largest |a - b|; infinite when the shapes differ or a value is not a number on one side only."""
    return float(abs_diff(a, b).max(initial=0.0)) if a.shape == b.shape else float("inf")


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


@dataclass(frozen=True)
class OutputDifference:
    """The first output that differs: its sample, its position, and the largest difference of any output."""

    sample: int
    output: int
    max_abs_diff: float


def first_output_difference(
    before: Values, after: Values, tolerance: Tolerance = EXACT, steps: Mapping[int, float] = MappingProxyType({})
) -> OutputDifference | None:
    """By position of the output, the values for each sample. An output that ``after`` lacks is infinitely far off.

    ``steps``: as for :func:`gap_between`; the tolerance of integers holds for such outputs, too.
    """
    found = []
    for output, wanted in before.items():
        got, limit = after.get(output, ()), tolerance.limit(wanted)
        if output in steps:
            limit = limit + tolerance.lsb * steps[output]
        for sample, a in enumerate(wanted):
            b = got[sample] if sample < len(got) else None
            if b is None or not arrays_agree(a, b, tolerance, limit):
                found.append((sample, output, float("inf") if b is None else max_abs_diff(a, b)))
    return OutputDifference(*min(found)[:2], max(each[2] for each in found)) if found else None


@dataclass
class Gap:
    """Differences of outputs from the original's.

    ``max_abs_diff``: the largest, in the outputs' own units. ``max_relative_diff``: the largest of float outputs, as a
    share of the largest magnitude in the tensor. ``max_lsb_diff``: the largest of integer outputs, in steps. Both are
    None without such outputs. ``values`` were compared, ``differing`` of them differ. ``rows``: of outputs of rank 2
    with several columns, scores of classes as a rule; in ``agreeing_rows`` the largest is in the same column.
    """

    max_abs_diff: float = 0.0
    max_relative_diff: float | None = None
    max_lsb_diff: float | None = None
    values: int = 0
    differing: int = 0
    rows: int = 0
    agreeing_rows: int = 0

    def add(self, a: Array, b: Array | None, step: float | None) -> None:
        """Take in one output of one sample; ``step`` as for :func:`gap_between`."""
        self.values += a.size
        if b is None or a.shape != b.shape:
            self.differing, self.max_abs_diff = self.differing + a.size, math.inf
            return
        gaps = abs_diff(a, b)
        largest = float(gaps.max(initial=0.0))
        self.differing += int(np.count_nonzero(gaps))
        self.max_abs_diff = max(self.max_abs_diff, largest)
        if a.ndim == 2 and a.shape[1] > 1:
            self.rows += a.shape[0]
            self.agreeing_rows += int(np.count_nonzero(a.argmax(axis=1) == b.argmax(axis=1)))
        is_integer = a.dtype.kind not in "fc"
        if is_integer or step is not None:
            in_steps = largest if is_integer or step is None else float(np.round(largest / step))
            self.max_lsb_diff = max(self.max_lsb_diff or 0.0, in_steps)
            return
        magnitude = float(np.abs(a[np.isfinite(a)]).max(initial=0.0))
        share = 0.0 if not largest else largest / magnitude if magnitude else math.inf
        self.max_relative_diff = max(self.max_relative_diff or 0.0, share)

    @property
    def figures(self) -> dict[str, Any]:
        """The fields of a verdict that say how far values are apart, by name."""
        names = ("max_abs_diff", "max_relative_diff", "max_lsb_diff", "differing_share", "agreeing_argmax_share")
        return {name: getattr(self, name) for name in names}

    @property
    def differing_share(self) -> float:
        """Share of all output values that differ."""
        return self.differing / self.values if self.values else 0.0

    @property
    def agreeing_argmax_share(self) -> float | None:
        """Share of rows of scores whose largest is in the same place; None without such outputs."""
        return self.agreeing_rows / self.rows if self.rows else None


def gap_between(before: Values, after: Values, steps: Mapping[int, float]) -> Gap:
    """Return the gap over all samples of all outputs of ``before``; one that ``after`` lacks is infinitely far off.

    ``steps``: by position, the distance of two neighboring values of outputs that are integers written as floats.
    """
    gap = Gap()
    for output, wanted in before.items():
        for a, b in zip_longest(wanted, after.get(output, ())[: len(wanted)]):
            gap.add(a, b, steps.get(output))
    return gap


def signal_to_noise(before: Values, after: Values) -> float:
    """In dB, of the output that is worst: how much the original's values vary, against how far the others are off.

    Infinite if nothing differs; minus infinity if the differing values never vary.
    """
    return min((_decibels(wanted, after[output]) for output, wanted in before.items()), default=math.inf)


def _decibels(before: Sequence[Array], after: Sequence[Array]) -> float:
    if all(np.array_equal(*pair) for pair in zip(before, after, strict=True)):
        return math.inf  # as the sums below say; of integers most tensors are the same
    wanted, got = (np.concatenate([np.ravel(each).astype(np.float64) for each in side]) for side in (before, after))
    signal, noise = float(np.sum((wanted - wanted.mean()) ** 2)), float(np.sum((wanted - got) ** 2))
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf
