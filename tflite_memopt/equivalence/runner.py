"""The tool's side of the interpreter processes: hand over models and inputs, collect outputs or the reason for none."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from . import wire
from .adapter import REFERENCE, RunJob
from .inputs import Sample
from .limits import ProcessLimits

_LOG_BYTES = 4096
"""Of the last output that is looked at for a reason."""
_PIPE_BYTES = 1 << 20
"""What Linux gives to anybody who asks: traces are some hundred million bytes. Elsewhere it is not asked for."""
_DYING_SECONDS = 5.0
"""From the end of its answers to the end of the process, where a core is written."""


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


class GivenUpError(Exception):
    """Nobody waits for the run any more."""


class ModelRunner(Protocol):
    """What runs models, one after the other.

    ``shows_tensors``: on TFLM, whether it shows a job's ``tensors``; where it does not, models that have them as
    outputs stand in (``exposure.py``).
    """

    @property
    def shows_tensors(self) -> bool: ...

    def run(self, job: RunJob) -> Run:
        """Run one model; never raises for what the model does."""

    def close(self) -> None:
        """Give up what it holds."""


class Interpreter:
    """A process that runs models on one runtime, started at once; a crash ends it, and the next job starts another.

    ``starter``: a thread that outlives it, where it may be run by threads that do not: Linux ends the process with the
    thread that started it. None: it is started by whoever makes and runs it.
    """

    shows_tensors = False

    def __init__(self, runtime: str, limits: ProcessLimits = ProcessLimits(), starter: Executor | None = None) -> None:
        self.runtime, self._limits, self._starter, self._is_closed = runtime, limits, starter, False
        self._in_use = threading.Lock()
        """Held by a run: nobody closes the files that another thread reads or writes."""
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._process = self._started()

    def close(self) -> None:
        """End the process, be it in a run of another thread. Any thread may call it, and more than once."""
        self._is_closed = True
        self._process.kill()  # which ends the run
        with self._in_use:
            self._end()
            self._log.close()

    def run(self, job: RunJob) -> Run:
        """Run one model; never raises for what the model does to the interpreter. Raises GivenUpError once closed."""
        with self._in_use:
            return self._run(job)

    def _run(self, job: RunJob) -> Run:
        if not self._is_closed and self._process.poll() is not None:
            self._end()  # it may have died between two runs, with its files open here
            self._process = self._started()
        if self._is_closed:  # looked at after the start: who closes has seen the process before it
            self._process.kill()
            raise GivenUpError
        with self._watch() as expired:
            answer = self._exchange(job)
        if self._is_closed:
            raise GivenUpError
        if answer is None:
            return Run(error=self._last_words(expired.is_set()))
        head, arrays = answer
        missing = f"{self.runtime} is not installed: {head['missing']}" if "missing" in head else None
        return Run(arrays, head.get("facts", {}), head.get("error"), missing)

    def _started(self) -> subprocess.Popen[bytes]:
        return self._start() if self._starter is None else self._starter.submit(self._start).result()

    def _start(self) -> subprocess.Popen[bytes]:
        memory = str(self._limits.memory_bytes or 0)
        command = [sys.executable, "-m", "tflite_memopt.equivalence.worker", self.runtime, memory, str(os.getpid())]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, bufsize=-1, pipesize=_PIPE_BYTES)

    def _exchange(self, job: RunJob) -> wire.Message | None:
        head = {
            "samples": len(job.samples),
            "inputs": len(job.samples[0]) if job.samples else 0,
            "arena_bytes": job.arena_bytes,
            "tensors": job.tensors,
            "kernels": job.kernels,
            "fill": job.fill,
            "turns": job.turns,
        }
        arrays: dict[str, npt.NDArray[Any]] = {"model": np.frombuffer(job.model, np.uint8)}
        arrays |= {f"s{s}_i{i}": each for s, sample in enumerate(job.samples) for i, each in enumerate(sample)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            wire.send(self._process.stdin, head, arrays)
        except OSError:
            return None
        return wire.receive(self._process.stdout, is_private=True)  # the search beside it copies this process

    @contextlib.contextmanager
    def _watch(self) -> Iterator[threading.Event]:
        """End the process when its time is up."""
        expired, process = threading.Event(), self._process

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(self._limits.seconds, expire)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()

    def _end(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what it had not read is lost with it
                    stream.close()
        self._process.wait()

    def _last_words(self, expired: bool) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_SECONDS)
        self._end()
        code = self._process.returncode
        if expired:
            return f"it did not finish within {self._limits.seconds:g} s"
        if code < 0 and code != -signal.SIGKILL:
            return f"the interpreter crashed ({signal.Signals(-code).name})"
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_BYTES))
        last = self._log.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"the interpreter process ended with code {code}: {' '.join(last)}"


def run_models(
    runtime: str,
    models: Mapping[str, bytes],
    samples: list[Sample] | Mapping[str, list[Sample]],
    arena_bytes: int,
    kernels: str = REFERENCE,
) -> dict[str, Run]:
    """Run each model (label -> bytes) over all samples in a process of its own making; a crash ends only that one.

    ``samples`` are the same for all models, or by label.
    """
    given = samples if isinstance(samples, Mapping) else dict.fromkeys(models, samples)
    with contextlib.closing(Interpreter(runtime)) as interpreter:
        return {
            label: interpreter.run(RunJob(model, given[label], arena_bytes, kernels=kernels))
            for label, model in models.items()
        }
