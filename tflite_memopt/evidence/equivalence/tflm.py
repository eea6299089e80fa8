"""TensorFlow Lite Micro, by the tflite-micro wheel: it executes the offline plan itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from .adapter import Array, ModelRun, RunJob, by_position

_FILL_NEW_MEMORY = -6
"""``M_PERTURB`` of glibc's mallopt: new memory holds the complement of this byte; 0 leaves it as it is."""
_ALLOCATION = re.compile(r"Arena allocation (total|head|tail) (\d+) bytes")


def run_tflm(job: RunJob) -> ModelRun:
    """Run on TFLM; facts are ``head``, ``tail`` and ``total`` in bytes.

    Raises RuntimeError with TFLM's message when it refuses the model or the arena.
    """
    from tflite_micro import runtime

    with _c_stderr() as log:
        try:
            with _new_memory_filled(job.fill):
                interpreter = runtime.Interpreter.from_bytes(job.model, arena_size=job.arena_bytes)
            outputs = _invoke(interpreter, job)
        except RuntimeError as error:
            said = "; ".join(line.strip() for line in _text(log).splitlines() if line.strip())
            raise RuntimeError(f"{error} ({said})" if said else str(error)) from error
        interpreter.print_allocations()
        facts = {name: int(size) for name, size in _ALLOCATION.findall(_text(log))}
    return ModelRun(outputs, facts=facts)


def _invoke(interpreter: Any, job: RunJob) -> dict[int, list[Array]]:
    inputs, count = _counts(job.model)
    rows = []
    for number, sample in enumerate(job.samples):
        for position, array in job.placed(sample, inputs).items():
            interpreter.set_input(array, position)
        interpreter.invoke()
        if job.gives_back(number):
            rows.append({position: interpreter.get_output(position).copy() for position in range(count)})
    return by_position(rows)


@contextlib.contextmanager
def _new_memory_filled(byte: int | None) -> Iterator[None]:
    """Fill new allocations, above all TFLM's arena, so that reads of unwritten memory show.

    Only glibc can; the wheel is made for it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if byte is None or mallopt is None:
        yield
        return
    mallopt(_FILL_NEW_MEMORY, 255 - byte or 255)
    try:
        yield
    finally:
        mallopt(_FILL_NEW_MEMORY, 0)


def _counts(model: bytes) -> tuple[int, int]:
    """Of inputs and of outputs."""
    from ai_edge_litert import schema_py_generated as schema

    graph = schema.Model.GetRootAs(model, 0).Subgraphs(0)
    return int(graph.InputsLength()), int(graph.OutputsLength())


@contextlib.contextmanager
def _c_stderr() -> Iterator[IO[bytes]]:
    """Collect output of C++ code on file descriptor 2, where TFLM logs."""
    saved = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode("utf-8", "replace")
