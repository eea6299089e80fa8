"""Run time of one model against another's on TFLM, both in one process and in turns.

A subprocess, because TFLM writes to stdout and may crash. In turns, because other work on the machine then slows both.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.reader import read_model

TIMEOUT_SECONDS = 600.0
ENOUGH_SECONDS = 40.0
"""No new pair is begun after so long: large models get fewer than they were asked for."""
_SHORTEST_SECONDS = 0.01
"""Shorter invocations are repeated until they take about so long together."""


def time_ratio(original: bytes, other: bytes, repeats: int) -> float | None:
    """Median over up to ``repeats`` pairs of the other's time divided by the original's; None where TFLM fails."""
    with tempfile.TemporaryDirectory(prefix="tflite_memopt_") as name:
        folder = Path(name)
        (folder / "original.tflite").write_bytes(original)
        (folder / "other.tflite").write_bytes(other)
        command = [sys.executable, __file__, name, str(repeats)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        ratios: list[float] = json.loads((folder / "ratios.json").read_text())
        return statistics.median(ratios)


def _main(folder: Path, repeats: int) -> None:
    started = time.perf_counter()
    original, other = (_invocation(folder / f"{name}.tflite") for name in ("original", "other"))
    loops = max(1, int(_SHORTEST_SECONDS / max(_seconds(original, 1), 1e-6)))
    _seconds(other, 1)
    ratios: list[float] = []
    while len(ratios) < repeats and (not ratios or time.perf_counter() - started < ENOUGH_SECONDS):
        base = _seconds(original, loops)
        ratios.append(_seconds(other, loops) / base)
    (folder / "ratios.json").write_text(json.dumps(ratios))


def _invocation(path: Path) -> Callable[[], None]:
    from tflite_micro import runtime

    data = path.read_bytes()
    model = read_model(data)
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=arena_for(model))
    sample = seeded_inputs(model, 1, 0)[0]

    def invoke() -> None:
        # Each time: what an invocation leaves where its inputs were would be the next one's input.
        for position, array in enumerate(sample):
            interpreter.set_input(array, position)
        interpreter.invoke()

    return invoke


def _seconds(invoke: Callable[[], None], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        invoke()
    return time.perf_counter() - started


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
