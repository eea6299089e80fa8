"""Original against optimised on one runtime: same inputs, compared element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .inputs import Sample
from .runner import Run, run_models

ORIGINAL, OPTIMISED = "original", "optimised"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """How far float outputs may differ, |a - b| <= absolute + relative * |a|; integers never may."""

    absolute: float = 0.0
    relative: float = 0.0


EXACT = Tolerance()


@dataclass(frozen=True)
class Difference:
    """The first output that differs: its sample, its position among the outputs, and how far it is off."""

    sample: int
    output: int
    max_abs_diff: float


@dataclass(frozen=True)
class Comparison:
    """The verdict of one runtime.

    ``equal`` is None when the runtime could not judge: it is not installed, or refuses the original too
    (``reason`` says which). ``original`` and ``optimised`` hold what the runtime said of its memory.
    """

    runtime: str
    samples: int
    equal: bool | None
    max_abs_diff: float
    reason: str | None
    difference: Difference | None
    original: Run
    optimised: Run


def compare_models(
    runtime: str,
    original: bytes,
    optimised: bytes,
    samples: list[Sample],
    arena_bytes: int,
    tolerance: Tolerance = EXACT,
) -> Comparison:
    """Run both models on ``runtime`` over the same samples and compare all outputs."""
    runs = run_models(runtime, {ORIGINAL: original, OPTIMISED: optimised}, samples, arena_bytes)
    before, after = runs[ORIGINAL], runs[OPTIMISED]
    unable = before.missing or before.error
    if unable:
        return Comparison(runtime, 0, None, 0.0, unable, None, before, after)
    if not after.ran:
        reason = f"the optimised model fails where the original runs: {after.missing or after.error}"
        return Comparison(runtime, len(samples), False, 0.0, reason, None, before, after)
    first, largest = _differences(before.arrays, after.arrays, tolerance)
    gap = f"outputs differ by up to {largest:g}" if first else None
    return Comparison(runtime, len(samples), first is None, largest, gap, first, before, after)


def arrays_agree(a: Array, b: Array, tolerance: Tolerance = EXACT) -> bool:
    """Same shape, same type, and every element equal (to the bit, unless a float tolerance is given)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind not in "fc" or tolerance == EXACT:
        return False
    return bool(np.allclose(b, a, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True))


def max_abs_diff(a: Array, b: Array) -> float:
    """Largest |a - b|; infinite when the shapes differ or a value is not a number on one side only."""
    if a.shape != b.shape:
        return float("inf")
    if a.size == 0:
        return 0.0
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    with np.errstate(invalid="ignore"):  # infinity minus infinity, which the next line settles
        gap = np.abs(a.astype(wide) - b.astype(wide))
    gap = np.where(a == b, 0.0, gap)
    gap = np.where((a != a) & (b != b), 0.0, gap)
    return float(np.nan_to_num(gap, nan=np.inf).max())


def _differences(
    before: Mapping[str, Array], after: Mapping[str, Array], tolerance: Tolerance
) -> tuple[Difference | None, float]:
    first: Difference | None = None
    largest = 0.0
    for key, expected in before.items():
        found = after.get(key)
        gap = float("inf") if found is None else max_abs_diff(expected, found)
        largest = max(largest, gap)
        if first is None and (found is None or not arrays_agree(expected, found, tolerance)):
            sample, output = key[1:].split("_o")
            first = Difference(int(sample), int(output), gap)
    return first, largest
