"""The tool's side of the subprocess: hand over models and inputs, collect outputs or the reason for none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .inputs import Sample

RUNTIMES = ("litert", "tensorflow", "tflm")
TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True)
class Run:
    """What a runtime made of one model. ``error`` is set when it refused or crashed; ``missing`` when the
    runtime is not installed. ``arrays`` and ``facts`` are as in :class:`.adapter.Outcome`."""

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    missing: str | None = None

    @property
    def ran(self) -> bool:
        """Whether there are results."""
        return self.error is None and self.missing is None


def run_models(
    runtime: str,
    models: Mapping[str, bytes],
    samples: list[Sample] | Mapping[str, list[Sample]],
    arena_bytes: int,
    trace: bool = False,
) -> dict[str, Run]:
    """Run each model (label -> bytes) over all samples in one worker process; a crash ends only the worker.

    ``samples`` are the same for all models, or by label.
    """
    given = samples if isinstance(samples, Mapping) else dict.fromkeys(models, samples)
    with tempfile.TemporaryDirectory(prefix="tflite_memopt_") as name:
        folder = Path(name)
        inputs = _write_inputs(folder, {label: given[label] for label in models})
        job = {"runtime": runtime, "models": inputs, "arena_bytes": arena_bytes, "trace": trace}
        (folder / "job.json").write_text(json.dumps(job))
        for label, model in models.items():
            (folder / f"{label}.tflite").write_bytes(model)
        died = _run_worker(folder)
        return {label: _result(folder, label, died) for label in models}


def _write_inputs(folder: Path, given: Mapping[str, list[Sample]]) -> dict[str, str]:
    """One file for each set of samples, however many models share it; returns label -> file name."""
    names = {id(samples): f"inputs{number}.npz" for number, samples in enumerate(given.values())}
    for samples in {id(samples): samples for samples in given.values()}.values():
        arrays = {f"s{s}_i{i}": array for s, sample in enumerate(samples) for i, array in enumerate(sample)}
        np.savez(folder / names[id(samples)], samples=len(samples), **arrays)  # type: ignore[arg-type]
    return {label: names[id(samples)] for label, samples in given.items()}


def _run_worker(folder: Path) -> str:
    command = [sys.executable, "-m", "tflite_memopt.equivalence.worker", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not finish within {TIMEOUT_SECONDS:.0f} s"
    if done.returncode < 0:
        return f"the interpreter crashed ({signal.Signals(-done.returncode).name})"
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return f"the interpreter process ended with code {done.returncode}: {' '.join(last)}"


def _result(folder: Path, label: str, died: str) -> Run:
    status = folder / f"{label}.json"
    if not status.exists():
        return Run(error=died)
    told = json.loads(status.read_text())
    with np.load(folder / f"{label}.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    return Run(arrays, told.get("facts", {}), told.get("error"), told.get("missing"))
