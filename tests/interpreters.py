"""Keep interpreter processes for all tests of a pytest worker: starting one costs as much as a small verification.

A test that hands an interpreter a model that crashes it fails: none is kept here. What the package does after a crash
is tested with a process that ends itself (``mortal_wheel`` of ``conftest.py``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest

from tflite_memopt.evidence.equivalence import runner
from tflite_memopt.evidence.equivalence.adapter import ModelRun, RunJob
from tflite_memopt.evidence.equivalence.runner import CRASHED, GivenUpError, Interpreter, ProcessLimits
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model

ENDS = b"ends its interpreter"
"""In a model: a process of ``mortal_wheel`` ends when it is given one."""
MORTAL_WHEEL = f"""
import os, signal, sys
sys.path.remove(os.path.dirname(os.path.dirname(__file__)))
del sys.modules["tflite_micro"]
from tflite_micro import runtime
load = runtime.Interpreter.from_bytes
def load_or_end(model, *others, **more):
    if {ENDS!r} in model:
        os.kill(os.getpid(), signal.SIGSEGV)
    return load(model, *others, **more)
runtime.Interpreter.from_bytes = load_or_end
"""
"""The source of a package ``tflite_micro`` that becomes the next one on the path."""


def ending(model: Model) -> bytes:
    """The file of a good model on which a process of ``mortal_wheel`` ends."""
    return write_model(replace(model, description=ENDS.decode()))


_Key = tuple[str, ProcessLimits, str]
_PATH = "PYTHONPATH"


class KeptInterpreter:
    """Lends a process from ``idle``, or starts one, and gives it back when it is closed between two jobs."""

    def __init__(self, idle: dict[_Key, list[Interpreter]], runtime: str, limits: ProcessLimits) -> None:
        self._idle = idle.setdefault((runtime, limits, os.environ.get(_PATH, "")), [])
        self._process = self._idle.pop() if self._idle else Interpreter(runtime, limits)
        self._is_closed, self._in_use = False, threading.Lock()

    def run(self, job: RunJob) -> ModelRun:
        """Run one model. Raises GivenUpError once closed."""
        if self._is_closed:
            raise GivenUpError
        with self._in_use:
            return self._process.run(job)

    def close(self) -> None:
        """Give the process back; end it where another thread waits for its answer."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._in_use.locked():
            self._process.close()
        else:
            self._idle.append(self._process)


_run = Interpreter.run


def _run_alive(interpreter: Interpreter, job: RunJob) -> ModelRun:
    """Run one model, which must not end the process by a signal unless it is one of ``ending``."""
    run = _run(interpreter, job)
    assert ENDS in job.model or not (run.error or "").startswith(CRASHED), f"a test has a model, and {run.error}"
    return run


@contextmanager
def kept() -> Iterator[None]:
    """Reuse processes of the same runtime, limits and module path inside, and end all of them at the end."""
    idle: dict[_Key, list[Interpreter]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Interpreter, "run", _run_alive)
        patch.setattr(runner, "Interpreter", partial(KeptInterpreter, idle))
        yield
    for process in chain.from_iterable(idle.values()):
        process.close()
