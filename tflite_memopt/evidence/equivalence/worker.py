"""An interpreter process. Called as ``python -m ...equivalence.worker RUNTIME MEMORY_BYTES SECONDS``.

It takes pickled jobs from standard input and answers each on standard output, until the input ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
from typing import IO

from . import litert, tflm
from .adapter import Adapter, ModelRun, RunJob

ADAPTERS: dict[str, Adapter] = {"litert": litert.run_litert, "tflm": tflm.run_tflm}
_GIVES_WAY = 10
"""Added to the niceness: workers use the cores that the tool leaves idle."""


def main(runtime: str, memory_bytes: int, seconds: float) -> None:
    """Answer one job after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool decides, Ctrl-C goes to the whole group
    if sys.platform != "win32":
        limit_memory(memory_bytes)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.nice(_GIVES_WAY)
    answers = _own_standard_output()
    while answer_next(runtime, ADAPTERS[runtime], sys.stdin.buffer, answers, seconds):
        pass


def limit_memory(memory_bytes: int) -> None:
    """Limit the address space of this process; 0 bytes are no limit."""
    import resource

    if memory_bytes:
        # A shell may have set a lower limit, which nobody but root may raise.
        allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
        least = memory_bytes if allowed == resource.RLIM_INFINITY else min(memory_bytes, allowed)
        with contextlib.suppress(ValueError):  # macOS has this limit by name only
            resource.setrlimit(resource.RLIMIT_AS, (least, least))


def answer_next(runtime: str, adapter: Adapter, jobs: IO[bytes], answers: IO[bytes], seconds: float) -> bool:
    """Answer one job; False when there is none. Nothing of it is held afterwards: the next may be long in coming.

    The kernel ends the process when its time is up, whatever it does then, and also when the tool is gone.
    """
    try:
        job = pickle.load(jobs)
    except (EOFError, pickle.UnpicklingError):
        return False
    _set_alarm(seconds)
    answer = _result(runtime, adapter, job)
    _set_alarm(0)
    pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
    answers.flush()
    return True


def _set_alarm(seconds: float) -> None:
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _own_standard_output() -> IO[bytes]:
    """The channel for answers; standard output of interpreters goes to standard error from here on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _result(runtime: str, adapter: Adapter, job: RunJob) -> ModelRun:
    try:
        return adapter(job)
    except ImportError as error:
        return ModelRun(missing=f"{runtime} is not installed: {error}")
    except (RuntimeError, ValueError, MemoryError) as error:
        return ModelRun(error=" ".join(str(error).split()) or type(error).__name__)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
