"""One process of the tool: what the benchmarks of the search share."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS = 900
"""The emergency stop of each search: far more than any needs here, so that work alone ends it."""


@dataclass(frozen=True)
class WholeRun:
    """One process: its report, the SHA-256 of the file that it wrote, and the seconds that it and its children took."""

    report: dict[str, Any]
    digest: str
    processor: float
    clock: float


def whole_run(model: Path, flags: Sequence[str], before: Sequence[str] = ()) -> WholeRun | str:
    """Run ``optimize`` on a model; the last line of what it says where it gives no report.

    ``before``: a command that starts it, such as ``taskset``.
    """
    with tempfile.TemporaryDirectory() as folder:
        report, output = Path(folder) / "report.json", Path(folder) / "out.tflite"
        command = [*before, sys.executable, "-m", "tflite_memopt", "optimize", str(model), "--quiet", *flags]
        command += ["-o", str(output), "--report", str(report), "--time-limit", str(_SECONDS)]
        started, used = time.monotonic(), _processor()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not report.exists():
            return (done.stderr.strip().splitlines() or ["no report"])[-1]
        digest = hashlib.sha256(output.read_bytes()).hexdigest()
        return WholeRun(json.loads(report.read_text()), digest, _processor() - used, time.monotonic() - started)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
