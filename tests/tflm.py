"""TFLM for tests: the tflite-micro wheel. Where it is not installed, a test that asks for it is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import pytest

from scripts.makers import runs
from tflite_memopt.evidence.equivalence import tflm
from tflite_memopt.evidence.equivalence.adapter import REFERENCE, ModelRun, RunJob, Sample
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits

HAS_WHEEL = find_spec("tflite_micro") is not None
_REASON = "the tflite-micro wheel is not installed"
needs_wheel = pytest.mark.skipif(not HAS_WHEEL, reason=_REASON)


def litert_and_tflm() -> Interpreters:
    """Start both interpreters, as a verification does."""
    _require()
    return Interpreters(("litert", "tflm"), ProcessLimits())


def run_tflm(job: RunJob) -> ModelRun:
    """Run one job. Raises RuntimeError with TFLM's message when it refuses the model or the arena."""
    _require()
    return tflm.run_tflm(job)


def run_models(
    runtime: str,
    models: Mapping[str, bytes],
    samples: list[Sample] | Mapping[str, list[Sample]],
    arena_bytes: int,
    kernels: str = REFERENCE,
) -> dict[str, ModelRun]:
    """Run the models, by label, over all samples; ``samples`` are the same for all of them, or by label."""
    if runtime == "tflm":
        _require()
    return runs.run_models(runtime, models, samples, arena_bytes, kernels)


def _require() -> None:
    if not HAS_WHEEL:
        pytest.skip(_REASON)
