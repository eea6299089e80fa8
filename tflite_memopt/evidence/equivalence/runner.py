"""Interpreter processes, each of which runs the models of one runtime: a malformed model may crash an interpreter.

Jobs and answers travel as pickles on the pipes of a process that runs :mod:`.worker`. A pool of the standard library
would import the user's main program into every process, and would neither tell a crash's signal nor limit its time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import IO, Protocol

from .adapter import TIMEOUT_SECONDS, ModelRun, RunJob
from .external_runner import RUNNER, ExternalRunner

CRASHED = "the interpreter crashed"
"""How the error begins where a signal has ended the process."""
_LOG_BYTES = 4096
"""Of the last output that is looked at for a reason."""
_PIPE_BYTES = 1 << 20
"""Linux gives so much to anybody who asks; elsewhere it is not asked for."""
_ALARM, _KILLED = (None, None) if sys.platform == "win32" else (-signal.SIGALRM, -signal.SIGKILL)
"""Codes of a process that a signal ended; on Windows there are no such signals."""
_DYING_SECONDS = 5.0
"""From the end of its answers to the end of the process, where a core is written."""


@dataclass(frozen=True)
class ProcessLimits:
    """For each interpreter process: ``seconds`` for one job, ``memory_bytes`` of address space (None: no limit)."""

    seconds: float = TIMEOUT_SECONDS
    memory_bytes: int | None = 16 << 30


class GivenUpError(Exception):
    """Nobody waits for the run any more."""


class ModelRunner(Protocol):
    """It runs models, one after the other."""

    def run(self, job: RunJob) -> ModelRun:
        """Run one model; a failing model never raises. Raises GivenUpError once closed."""

    def close(self) -> None:
        """Release all resources. Any thread may call it, more than once."""


class Interpreter:
    """A process that runs models on one runtime, started at once. After a crash the next job starts another one."""

    def __init__(self, runtime: str, limits: ProcessLimits = ProcessLimits()) -> None:
        self.runtime, self._limits, self._is_closed = runtime, limits, False
        self._is_overdue = False
        self._in_use = threading.Lock()
        """Held by a run: nobody closes the files that another thread reads or writes."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._process = self._start()

    def close(self) -> None:
        """End the process, be it in a run of another thread."""
        self._is_closed = True
        self._process.kill()  # which ends the run
        with self._in_use:
            self._end()
            self._log.close()

    def run(self, job: RunJob) -> ModelRun:
        """Run one model; see :class:`ModelRunner`."""
        with self._in_use:
            if not self._is_closed and self._process.poll() is not None:
                self._end()  # it may have died between two runs, with its files open here
                self._process = self._start()
            if self._is_closed:  # looked at after the start: who closes has seen the process before it
                self._process.kill()
                raise GivenUpError
            answer = self._exchange(job)
            if self._is_closed:
                raise GivenUpError
            return ModelRun(error=self._last_words()) if answer is None else answer

    def _start(self) -> subprocess.Popen[bytes]:
        limits = (str(self._limits.memory_bytes or 0), str(self._limits.seconds))
        command = [sys.executable, "-m", "tflite_memopt.evidence.equivalence.worker", self.runtime, *limits]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, pipesize=_PIPE_BYTES)

    def _exchange(self, job: RunJob) -> ModelRun | None:
        """Return the answer; None when the process has ended before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(job, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            with self._time_limit():
                answer: ModelRun = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return answer

    @contextlib.contextmanager
    def _time_limit(self) -> Iterator[None]:
        """Inside, the process is ended when its time is up: where the system has no alarm that would do so."""
        self._is_overdue = False
        if sys.platform != "win32":
            yield
            return
        timer = threading.Timer(self._limits.seconds, self._end_overdue)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _end_overdue(self) -> None:
        self._is_overdue = True
        self._process.kill()

    def _end(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # unread data is lost with it
                    stream.close()
        self._process.wait()

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_SECONDS)
        self._end()
        code = self._process.returncode
        if self._is_overdue or code == _ALARM:
            return f"it did not finish within {self._limits.seconds:g} s"
        if code < 0 and code != _KILLED:
            return f"{CRASHED} ({signal.Signals(-code).name})"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_BYTES))
        last = self._log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"the interpreter process ended with code {code}: {' '.join(last)}"


@dataclass(frozen=True)
class WithKernels:
    """A runner of LiteRT that runs every job on the same choice of its kernels."""

    runner: ModelRunner
    kernels: str

    def run(self, job: RunJob) -> ModelRun:
        """Run one model; see :class:`ModelRunner`."""
        return self.runner.run(replace(job, kernels=self.kernels))

    def close(self) -> None:
        """Release the runner's resources."""
        self.runner.close()


class Interpreters(AbstractContextManager["Interpreters"]):
    """Runners by the name of their runtime; all are gone at the end of the context, whatever happens.

    Processes for ``runtimes`` start at once, side by side, those for others when they are first asked for. ``runner``
    is the command of the one that is called ``RUNNER``. Raises UsageError when there is no such command.
    """

    def __init__(
        self, runtimes: Sequence[str], limits: ProcessLimits, runner: str | os.PathLike[str] | None = None
    ) -> None:
        self._limits = limits
        self._running: dict[str, ModelRunner] = {}
        if runner is not None:
            self._running[RUNNER] = ExternalRunner(runner, limits.seconds)
        for runtime in runtimes:
            self[runtime]

    def __getitem__(self, runtime: str) -> ModelRunner:
        if runtime not in self._running:
            self._running[runtime] = Interpreter(runtime, self._limits)
        return self._running[runtime]

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes. Who runs a model in another thread then sees a GivenUpError."""
        for each in self._running.values():
            each.close()
