"""Run models, label by label: in an interpreter process, by a runner, or by a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflite_memopt.evidence.equivalence import external_runner
from tflite_memopt.evidence.equivalence.adapter import REFERENCE, TIMEOUT_SECONDS, ModelRun, RunJob, Sample
from tflite_memopt.evidence.equivalence.runner import Interpreters, ModelRunner, ProcessLimits


def run_models(
    runtime: str | ModelRunner,
    models: Mapping[str, bytes],
    samples: list[Sample] | Mapping[str, list[Sample]],
    arena_bytes: int,
    kernels: str = REFERENCE,
) -> dict[str, ModelRun]:
    """Run each model (label -> bytes) over all samples: by a runner, or in a process of the runtime.

    A crash ends only that one. ``samples`` are the same for all models, or by label.
    """
    if isinstance(runtime, str):
        with Interpreters((), ProcessLimits()) as interpreters:
            return run_models(interpreters[runtime], models, samples, arena_bytes, kernels)
    given = samples if isinstance(samples, Mapping) else dict.fromkeys(models, samples)
    return {
        label: runtime.run(RunJob(model, given[label], arena_bytes, kernels=kernels)) for label, model in models.items()
    }


def run_external(
    command: Sequence[str],
    model: bytes,
    samples: list[Sample],
    arena_bytes: int = 0,
    search: bool = True,
    timeout: float = TIMEOUT_SECONDS,
) -> ModelRun:
    """Run one model over the samples, in sequence on one interpreter."""
    return external_runner.run_external(command, RunJob(model, samples, arena_bytes, measure=search), timeout)
