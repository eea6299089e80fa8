"""Two models on one runtime, side by side."""

from __future__ import annotations

from dataclasses import dataclass

from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.adapter import REFERENCE, Sample
from tflite_memopt.evidence.equivalence.compare import (
    EXACT,
    OutputDifference,
    Tolerance,
    first_output_difference,
    max_abs_diff,
)


@dataclass(frozen=True)
class PairVerdict:
    """``equal`` is None when the first of them did not run, for ``reason``.

    ``difference`` is the first output that differs, where both ran.
    """

    equal: bool | None
    max_abs_diff: float
    reason: str | None
    difference: OutputDifference | None = None


def compare_models(
    runtime: str,
    original: bytes,
    optimized: bytes,
    samples: list[Sample],
    arena_bytes: int,
    tolerance: Tolerance = EXACT,
    kernels: str = REFERENCE,
) -> PairVerdict:
    """Run two models of one interface on ``runtime`` over the same samples and compare all outputs."""
    runs = run_models(runtime, {"original": original, "optimized": optimized}, samples, arena_bytes, kernels=kernels)
    for label, run in runs.items():
        if not run.ran:
            return PairVerdict(False if label == "optimized" else None, 0.0, f"the {label} model fails: {run.reason}")
    before, after = (run.outputs for run in runs.values())
    found = first_output_difference(before, after, tolerance)
    reason = None if found is None else f"outputs differ by up to {found.max_abs_diff:g}"
    distances = [max_abs_diff(a, b) for at, each in before.items() for a, b in zip(each, after[at], strict=True)]
    return PairVerdict(found is None, max(distances, default=0.0), reason, found)
