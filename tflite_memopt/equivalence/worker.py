"""The subprocess side: runs models on an interpreter and sends the outputs back.

A malformed model can crash an interpreter with a signal, so nothing here runs in the tool's own process.
Called as ``python -m tflite_memopt.equivalence.worker RUNTIME MEMORY_BYTES PARENT``; it takes jobs from standard input
and answers each on standard output, in the words of :mod:`.wire`, until the input ends.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from . import litert, tflm, wire
from .adapter import Adapter, RunJob
from .limits import apply_in_process

ADAPTERS: dict[str, Adapter] = {
    "litert": litert.run_litert,
    "tensorflow": litert.run_tensorflow,
    "tflm": tflm.run_tflm,
}


_GIVES_WAY = 10
"""What is added to the niceness: the search beside it comes first, and what it leaves of the cores is taken."""


def main(runtime: str, memory_bytes: int, parent: int) -> None:
    """Run one job after the other; a failure is that job's result."""
    apply_in_process(memory_bytes, parent)
    if sys.platform != "win32":
        os.nice(_GIVES_WAY)
    answers = _own_standard_output()
    while answer_next(ADAPTERS[runtime], sys.stdin.buffer, answers):
        pass


def answer_next(adapter: Adapter, jobs: IO[bytes], answers: IO[bytes]) -> bool:
    """Answer one job; False when there is none. Nothing of it is held afterwards: the next may be long in coming."""
    message = wire.receive(jobs)
    if message is None:
        return False
    head, arrays = _result(adapter, message)
    wire.send(answers, head, arrays)
    return True


def _own_standard_output() -> IO[bytes]:
    """The channel for answers; what interpreters print to standard output goes to standard error from here on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _job(message: wire.Message) -> RunJob:
    head, arrays = message
    samples = [[arrays[f"s{s}_i{i}"] for i in range(head["inputs"])] for s in range(head["samples"])]
    model = arrays["model"].tobytes()
    wanted, kernels = tuple(head["tensors"]), head["kernels"]
    return RunJob(model, samples, head["arena_bytes"], wanted, kernels, head["fill"], turns=head["turns"])


def _result(adapter: Adapter, message: wire.Message) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        result = adapter(_job(message))
    except ImportError as error:
        return {"missing": str(error)}, {}
    except (RuntimeError, ValueError, MemoryError) as error:
        return {"error": " ".join(str(error).split()) or type(error).__name__}, {}
    # Strings and the like are no plain memory.
    return {"facts": result.facts}, {name: array for name, array in result.arrays.items() if array.dtype.kind != "O"}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
