"""What the workers of tests run in place of the whole optimizer, in processes of their own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tflite_memopt.errors import UsageError
from tflite_memopt.options import Options
from tflite_memopt.pipeline import Result, optimize


def optimized(data: bytes, options: Options) -> Result:
    return optimize(data, options)


def by_fate(data: bytes, options: Options) -> Result:
    """Does what the first word of the bytes says; optimizes models."""
    word = data.split(b" ")[0]
    if word in _FATES:
        _FATES[word](data)
    return optimize(data, options)


def _take_memory(_: bytes) -> None:
    taken = [bytearray(b"x" * (16 << 20)) for _ in range(40)]
    time.sleep(2)  # its worker looks ten times a second
    raise UsageError(f"{len(taken)} blocks were there")


def _kill_worker_once(data: bytes) -> None:
    """The rest of the bytes is a file that says that it has happened."""
    mark = Path(data.split(b" ")[1].decode())
    if not mark.exists():
        mark.touch()
        os.kill(os.getppid(), signal.SIGKILL)
    raise UsageError("lived on")


def _kill_worker(_: bytes) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)


def _refuse(_: bytes) -> None:
    raise UsageError("not this one")


def _fault(_: bytes) -> None:
    raise ValueError("a fault of the tool")


_FATES: dict[bytes, Callable[[bytes], None]] = {
    b"segv": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    b"kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    b"exit": lambda _: os._exit(7),
    b"sleep": lambda _: time.sleep(60),
    b"nap": lambda _: time.sleep(0.3),
    b"memory": _take_memory,
    b"refuse": _refuse,
    b"fault": _fault,
    b"once": _kill_worker_once,
    b"always": _kill_worker,
}


def worker_of(_: int) -> int:
    """The process that does it, a tenth of a second later."""
    time.sleep(0.1)
    return os.getpid()
