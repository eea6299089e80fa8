"""What the workers of tests run in place of the whole optimizer, in processes of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tflite_memopt.errors import UsageError
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import Result, optimize


def by_fate(data: bytes, options: Options) -> Result:
    """Do what the first word of the bytes says; optimize models."""
    word = data.split(b" ")[0]
    if word in _FATES:
        _FATES[word](data)
    return optimize(data, options)


def _take_memory(data: bytes) -> None:
    taken = []
    for _ in range(200):  # Dask looks every 100 ms
        taken.append(bytearray(b"x" * (16 << 20)))
        time.sleep(0.02)
    raise UsageError(f"{data!r}: {len(taken)} blocks were there")


def _die_once(data: bytes) -> None:
    """The rest of the bytes is a file that says that it has happened."""
    mark = Path(data.split(b" ")[1].decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    raise UsageError("lived on")


def _refuse(_: bytes) -> None:
    raise UsageError("not this one")


def _fault(_: bytes) -> None:
    raise ValueError("a fault of the tool")


_FATES: dict[bytes, Callable[[bytes], None]] = {
    b"die": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    b"memory": _take_memory,
    b"once": _die_once,
    b"refuse": _refuse,
    b"fault": _fault,
}


def worker_of(_: int) -> int:
    """The process that does it, a tenth of a second later."""
    time.sleep(0.1)
    return os.getpid()
