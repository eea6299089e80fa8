"""The subprocess side: runs models on one interpreter and leaves the outputs in files.

A malformed model can crash an interpreter with a signal, so nothing here runs in the tool's own process.
Called as ``python -m tflite_memopt.equivalence.worker FOLDER``; FOLDER holds ``job.json``, the models as
``LABEL.tflite`` and the inputs as ``.npz`` files; each model leaves ``LABEL.npz`` and then ``LABEL.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import litert, tflm
from .adapter import Adapter, Job

ADAPTERS: dict[str, Adapter] = {
    "litert": litert.run_litert,
    "tensorflow": litert.run_tensorflow,
    "tflm": tflm.run_tflm,
}


def main(folder: Path) -> None:
    """Run every model of the job, one after the other; a failure is that model's result, not the job's."""
    description = json.loads((folder / "job.json").read_text())
    for label, inputs in description["models"].items():
        model = (folder / f"{label}.tflite").read_bytes()
        job = Job(model, _read_samples(folder / inputs), int(description["arena_bytes"]), bool(description["trace"]))
        _write_result(folder, label, _run(description["runtime"], job))


def _read_samples(path: Path) -> list[list[Any]]:
    with np.load(path) as archive:
        inputs = [name for name in archive.files if name.startswith("s0_")]
        return [[archive[f"s{s}_i{i}"] for i in range(len(inputs))] for s in range(int(archive["samples"]))]


def _run(runtime: str, job: Job) -> dict[str, Any]:
    try:
        result = ADAPTERS[runtime](job)
    except ImportError as error:
        return {"missing": f"{runtime} is not installed: {error}"}
    except (RuntimeError, ValueError, MemoryError) as error:
        return {"error": " ".join(str(error).split())}
    return {"arrays": result.arrays, "facts": result.facts}


def _write_result(folder: Path, label: str, result: dict[str, Any]) -> None:
    arrays = result.pop("arrays", {})
    np.savez(folder / f"{label}.npz", **arrays)
    (folder / f"{label}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
