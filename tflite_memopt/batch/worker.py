"""The worker's side: it hands a model to a process, watches that process, and outlives it.

What a model can do, crash, hang, or take all memory, it does to the process, so that an engine sees no failure at all.
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
from typing import Any

from ..graph.clock import deadline_in, now
from .child import IDLE_SECONDS
from .job import BatchJob, BatchSetting, ModelOutcome, Status
from .machine import physical_bytes, resident_bytes, usable_processors

_LOOK_SECONDS = 0.1
"""Between two looks at the clock and at the memory of a process."""
_USABLE = 0.8
"""Of a machine's memory, for the models of all workers."""
_COMMAND = (sys.executable, "-m", "tflite_memopt.batch.child")
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_OF_THREAD = threading.local()
"""The process of each thread of a cluster's worker."""


def run_job(job: BatchJob, setting: BatchSetting) -> ModelOutcome:
    """What became of one model, in the process that this thread keeps."""
    if not hasattr(_OF_THREAD, "process"):
        _OF_THREAD.process = ModelProcess()
    process: ModelProcess = _OF_THREAD.process
    return process.run(job, setting)


class ModelProcess:
    """A process that works on one model after the other: to start it takes longer than many a model.

    Started with the first model, and again where it has died, or was made for another setting.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._setting: BatchSetting | None = None
        self._last_used = 0.0
        self._is_closed = False

    def run(self, job: BatchJob, setting: BatchSetting) -> ModelOutcome:
        """What became of one model, within the setting's limits; never raises for what the model does."""
        started = now()
        process = self._ready_for(setting)
        with _watched(process, setting) as overrun:
            outcome: ModelOutcome | None = _ask(process, job)
        self._last_used = now()
        if outcome is None:
            _end(process)
            outcome = ModelOutcome(overrun.status, overrun.error) if overrun.status else _crashed(process.returncode)
        worker = f"{socket.gethostname()}:{process.pid}"
        return replace(outcome, content=job.content, seconds=now() - started, worker=worker)

    def kill(self) -> None:
        """End the process, whatever it is doing, so that who waits for it goes on. It is not started again."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Give back what is left of it, when nobody waits for it any more."""
        if self._process is not None:
            _end(self._process)

    def _ready_for(self, setting: BatchSetting) -> subprocess.Popen[bytes]:
        """The process, alive, made for this setting, and not idle for so long that it may end itself."""
        kept, is_fresh = self._process, now() - self._last_used < IDLE_SECONDS / 2
        if kept is not None and is_fresh and kept.poll() is None and setting == self._setting:
            return kept
        if kept is not None:
            _end(kept)
        pipe, environment = subprocess.PIPE, os.environ | _ONE_THREAD
        process = subprocess.Popen(_COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
        self._process, self._setting = process, setting
        if self._is_closed:
            process.kill()
        _ask(process, setting)
        return process


def _ask(process: subprocess.Popen[bytes], question: BatchJob | BatchSetting) -> Any:
    """The answer of a process; None when it has died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(question, process.stdin)
        process.stdin.flush()
        return pickle.load(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    # One that has died has said its code already.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LOOK_SECONDS)
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # what it had not read is lost with it
            if stream is not None:
                stream.close()


@dataclass
class _Overrun:
    """Why the process was ended by its worker, None while it was not."""

    status: Status | None = None
    error: str = ""


@contextlib.contextmanager
def _watched(process: subprocess.Popen[bytes], setting: BatchSetting) -> Iterator[_Overrun]:
    """Inside, the process is ended when it takes too long or too much, and the overrun says why."""
    overrun, over = _Overrun(), threading.Event()
    watch = threading.Thread(target=_watch, args=(process, setting, overrun, over), daemon=True)
    watch.start()
    try:
        yield overrun
    finally:
        over.set()
        watch.join()


def _watch(process: subprocess.Popen[bytes], setting: BatchSetting, overrun: _Overrun, over: threading.Event) -> None:
    seconds, memory = setting.limits.seconds, memory_limit(setting)
    deadline = deadline_in(seconds)
    while not over.wait(_LOOK_SECONDS):
        taken = resident_bytes(process.pid)
        if deadline.has_passed():
            overrun.status, overrun.error = "timeout", f"it did not finish within {seconds:g} s"
        elif memory is not None and taken is not None and taken > memory:
            overrun.status, overrun.error = "memory", f"it took more than {memory >> 20:,} MiB of memory"
        else:
            continue
        process.kill()
        return


def memory_limit(setting: BatchSetting) -> int | None:
    """Bytes that one model may take on this machine; None where the machine does not say what it has."""
    limits, machine = setting.limits, physical_bytes()
    if limits.memory_bytes is not None or machine is None:
        return limits.memory_bytes
    return int(_USABLE * machine) // (limits.shares or usable_processors())


def _crashed(code: int) -> ModelOutcome:
    if code >= 0:
        return ModelOutcome("crashed", f"its process ended with code {code}")
    name = signal.Signals(-code).name
    hint = ": another program ended it, or the system, short of memory" if code == -signal.SIGKILL else ""
    return ModelOutcome("crashed", f"its process was ended by {name}{hint}")
