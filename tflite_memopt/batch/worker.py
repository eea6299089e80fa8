"""The worker's side: it hands a model to a process of its own, watches that process, and outlives it.

A worker belongs to an engine. What a model can do, crash, hang, or take all memory, it does to the process that
the worker keeps, so that an engine sees no failure at all.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..equivalence import wire
from ..graph.clock import deadline_in, now
from .child import IDLE_SECONDS
from .job import BatchJob, BatchSetting, ModelOutcome, Status
from .tree_memory import physical_bytes, resident_bytes

_LOOK_SECONDS = 0.1
"""Between two looks at the clock and at the memory of a process."""
_USABLE = 0.8
"""Of a machine's memory, for the models of all workers."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_MINE = threading.local()
"""The process of each thread of a worker. It lives from job to job: to start it takes longer than many a model."""


def run_job(job: BatchJob, setting: BatchSetting) -> ModelOutcome:
    """What became of one model; never raises for what the model does."""
    started = now()
    kept: ModelProcess | None = getattr(_MINE, "process", None)
    if kept is None or not kept.is_ready_for(setting):
        if kept is not None:
            kept.close()
        kept = _MINE.process = ModelProcess(setting)
    outcome = kept.run(job)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    return replace(outcome, content=job.content, seconds=now() - started, worker=worker)


def end_own_process() -> None:
    """End the process that this thread keeps. With one job at a time, the thread of the run is the worker."""
    kept: ModelProcess | None = _MINE.__dict__.pop("process", None)
    if kept is not None:
        kept.close()


@dataclass
class _Overrun:
    """Why the process was ended by its worker, None while it was not."""

    status: Status | None = None
    error: str = ""


class ModelProcess:
    """A process that works on one model after the other under one setting."""

    def __init__(self, setting: BatchSetting) -> None:
        self._setting = pickle.dumps(setting)
        self._limits, self._memory = setting.limits, memory_limit(setting)
        command = [sys.executable, "-m", "tflite_memopt.batch.child", str(os.getpid())]
        pipe = subprocess.PIPE
        environment = os.environ | _ONE_THREAD
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
        self._last_used = now()
        if self._send({}, {"setting": np.frombuffer(self._setting, np.uint8)}):
            self._receive()

    def is_ready_for(self, setting: BatchSetting) -> bool:
        """Whether it lives, was made for this setting, and has not been idle for so long that it may end itself."""
        is_fresh = now() - self._last_used < IDLE_SECONDS / 2
        return is_fresh and self._process.poll() is None and pickle.dumps(setting) == self._setting

    def run(self, job: BatchJob) -> ModelOutcome:
        """Work on one model, within the limits."""
        arrays = {} if job.model is None else {"model": np.frombuffer(job.model, np.uint8)}
        with self._watched() as overrun:
            is_sent = self._send({"name": job.name, "path": job.path, "output": job.output}, arrays)
            answer = self._receive() if is_sent else None
        self._last_used = now()
        if answer is None:
            self.close()
            if overrun.status is not None:
                return ModelOutcome(overrun.status, overrun.error)
            return ModelOutcome("crashed", _cause(self._process.returncode))
        head, back = answer
        model = back["model"].tobytes() if "model" in back else None
        return ModelOutcome(
            head["status"], head["error"], report=head.get("report"), model=model, times=head.get("times", {})
        )

    def close(self) -> None:
        """End the process."""
        # One that has died has said its code already.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LOOK_SECONDS)
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what it had not read is lost with it
                if stream is not None:
                    stream.close()
        self._process.wait()

    def _send(self, head: dict[str, str | None], arrays: dict[str, wire.Array]) -> bool:
        """Whether the process could still be told."""
        try:
            assert self._process.stdin is not None
            wire.send(self._process.stdin, head, arrays)
        except OSError:
            return False
        return True

    def _receive(self) -> wire.Message | None:
        """Its next answer; None when it has died."""
        assert self._process.stdout is not None
        return wire.receive(self._process.stdout)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[_Overrun]:
        """Inside, the process is ended when it takes too long or too much, and the overrun says why."""
        overrun, over = _Overrun(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(overrun, over), daemon=True)
        watch.start()
        try:
            yield overrun
        finally:
            over.set()
            watch.join()

    def _watch(self, overrun: _Overrun, over: threading.Event) -> None:
        deadline = deadline_in(self._limits.seconds)
        while not over.wait(_LOOK_SECONDS):
            taken = resident_bytes(self._process.pid)
            if deadline.has_passed():
                overrun.status, overrun.error = "timeout", f"it did not finish within {self._limits.seconds:g} s"
            elif self._memory is not None and taken is not None and taken > self._memory:
                overrun.status = "memory"
                overrun.error = f"it took more than {self._memory >> 20:,} MiB of memory"
            else:
                continue
            self._process.kill()
            return


def memory_limit(setting: BatchSetting) -> int | None:
    """Bytes that one model may take on this machine; None where the machine does not say what it has."""
    limits, machine = setting.limits, physical_bytes()
    if limits.memory_bytes is not None or machine is None:
        return limits.memory_bytes
    return int(_USABLE * machine) // (limits.shares or os.cpu_count() or 1)


def _cause(code: int) -> str:
    if code >= 0:
        return f"its process ended with code {code}"
    name = signal.Signals(-code).name
    hint = ": another program ended it, or the system, short of memory" if code == -signal.SIGKILL else ""
    return f"its process was ended by {name}{hint}"
