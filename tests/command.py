"""The command line in the process of a test: starting Python and two interpreters costs more than most commands."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tflite_memopt.cli import main


def run(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``tflite-memopt``, in a folder, with what it prints in pipes."""
    command = ["tflite-memopt", *map(str, arguments)]
    with _pipe() as out, _pipe() as err, _in(folder), mock.patch.object(sys, "argv", command):
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as end:
            return subprocess.CompletedProcess(command, _code(end), _text(out), _text(err))
        finally:
            signal.signal(signal.SIGTERM, handler)
    raise AssertionError("it has returned")


def _pipe() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")


def _text(pipe: io.TextIOWrapper) -> str:
    pipe.seek(0)
    return pipe.read()


def _code(end: SystemExit) -> int:
    return end.code if isinstance(end.code, int) else 1


@contextlib.contextmanager
def _in(folder: Path | None) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)
