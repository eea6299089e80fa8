"""TFLM for tests: the tflite-micro wheel where it is installed, else the module with the reference kernels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from importlib.util import find_spec

import pytest

from scripts.device_lab import runs
from tflite_memopt.equivalence import tflm
from tflite_memopt.equivalence.adapter import REFERENCE, Run, RunJob, Sample
from tflite_memopt.equivalence.module import ModuleRunner, module_for
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.equivalence.runner import ProcessLimits
from tflite_memopt.kernels.targets import profile_for

HAS_WHEEL = find_spec("tflite_micro") is not None
needs_wheel = pytest.mark.skipif(not HAS_WHEEL, reason="the tflite-micro wheel is not installed")


def reference_module() -> ModuleRunner:
    """The module in the wheel's place; the test is skipped where it was not built either."""
    found = module_for(profile_for(None, "reference"))
    if found is None:
        pytest.skip("neither the tflite-micro wheel nor the modules of scripts/runners are here")
    return ModuleRunner(found)


def litert_and_tflm() -> Interpreters:
    """Both, as a verification has them."""
    module = None if HAS_WHEEL else reference_module()
    return Interpreters(("litert", "tflm"), ProcessLimits(), module=module)


def run_tflm(job: RunJob) -> Run:
    """One run. Raises RuntimeError with what TFLM says when it refuses the model or the arena."""
    if HAS_WHEEL:
        return tflm.run_tflm(job)
    with closing(reference_module()) as module:
        run = module.run(job)
    if run.error is not None:
        raise RuntimeError(run.error)
    return run


def run_models(
    runtime: str,
    models: Mapping[str, bytes],
    samples: list[Sample] | Mapping[str, list[Sample]],
    arena_bytes: int,
    kernels: str = REFERENCE,
) -> dict[str, Run]:
    """Run each model, by label, over all samples; ``samples`` are the same for all of them, or by label."""
    if runtime != "tflm" or HAS_WHEEL:
        return runs.run_models(runtime, models, samples, arena_bytes, kernels)
    with closing(reference_module()) as module:
        return runs.run_models(module, models, samples, arena_bytes)
