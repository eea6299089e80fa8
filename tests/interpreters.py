"""Keep interpreter processes for all tests of a pytest worker: starting one costs as much as a small verification."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import pytest

from tflite_memopt.evidence.equivalence import runner
from tflite_memopt.evidence.equivalence.adapter import ModelRun, RunJob
from tflite_memopt.evidence.equivalence.runner import GivenUpError, Interpreter, ProcessLimits

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


@contextmanager
def kept() -> Iterator[None]:
    """Reuse processes of the same runtime, limits and module path inside, and end all of them at the end."""
    idle: dict[_Key, list[Interpreter]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Interpreter", partial(KeptInterpreter, idle))
        yield
    for process in chain.from_iterable(idle.values()):
        process.close()
