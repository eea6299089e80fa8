"""One optimization, as a process of the command line in a temporary folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

State = Literal["running", "done", "failed", "canceled"]
_PATIENCE = 5.0
"""Seconds that a canceled process has before it is killed."""


def safe_name(given: str) -> str:
    """Return a name for the file of an upload: letters, digits, ``_``, ``-``, and dots, none of them first."""
    stem = re.sub(r"[^\w-]+", "_", given.removesuffix(".tflite"), flags=re.ASCII).strip("_-")[:80]
    return f"{stem or 'model'}.tflite"


class PageJob:
    """A process that optimizes ``data``; ``options``: more words of its command line."""

    def __init__(self, name: str, data: bytes, options: Sequence[str]) -> None:
        self._folder = TemporaryDirectory(prefix="tflite-memopt-", ignore_cleanup_errors=True)
        self.name = safe_name(name)
        self._is_canceled = False
        source = self._path("model") / self.name
        for folder in ("model", "made"):
            self._path(folder).mkdir()
        source.write_bytes(data)
        words = ["optimize", *options, "--progress", f"--report={self.report}", "-o", str(self.result), str(source)]
        with self._path("answer").open("wb") as answer, self._path("progress").open("wb") as progress:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tflite_memopt", *words],
                cwd=self._path("made"),
                env=os.environ | {"PYTHONUTF8": "1"},
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=progress,
                start_new_session=True,
            )

    def _path(self, name: str) -> Path:
        return Path(self._folder.name, name)

    @property
    def result(self) -> Path:
        """The optimized file; it is there when the job is done."""
        return self._path("made") / self.name.replace(".tflite", "_small.tflite")

    @property
    def report(self) -> Path:
        """The page of the report."""
        return self._path("made") / "report.html"

    @property
    def answer(self) -> str:
        """What the process has printed so far: its answer, once it has ended."""
        return self._path("answer").read_text("utf-8", "replace")

    @property
    def progress(self) -> str:
        """The last line that the process said: how far it is, or why it failed."""
        lines = self._path("progress").read_text("utf-8", "replace").splitlines()
        return lines[-1].strip().removeprefix("tflite-memopt: ") if lines else "starting"

    @property
    def state(self) -> State:
        """Whether it runs, and how it ended."""
        if self._process.poll() is None:
            return "running"
        if self._is_canceled:
            return "canceled"
        return "done" if self.result.exists() else "failed"

    def cancel(self) -> None:
        """End the process, and the runtimes that it has started."""
        if self._process.poll() is not None:
            return
        self._is_canceled = True
        self._process.terminate()  # it ends its runtimes, and leaves nothing
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """End it and delete its files."""
        self.cancel()
        self._folder.cleanup()
