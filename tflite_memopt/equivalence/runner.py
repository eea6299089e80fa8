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
    samples: list[Sample],
    arena_bytes: int,
    trace: bool = False,
) -> dict[str, Run]:
    """Run each model (label -> bytes) over all samples in one worker process; a crash ends only the worker."""
    with tempfile.TemporaryDirectory(prefix="tflite_memopt_") as name:
        folder = Path(name)
        job = {"runtime": runtime, "models": list(models), "samples": len(samples), "arena_bytes": arena_bytes}
        job |= {"inputs": len(samples[0]) if samples else 0, "trace": trace}
        (folder / "job.json").write_text(json.dumps(job))
        arrays = {f"s{s}_i{i}": array for s, sample in enumerate(samples) for i, array in enumerate(sample)}
        np.savez(folder / "inputs.npz", **arrays)  # type: ignore[arg-type]
        for label, model in models.items():
            (folder / f"{label}.tflite").write_bytes(model)
        died = _run_worker(folder)
        return {label: _result(folder, label, died) for label in models}


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
