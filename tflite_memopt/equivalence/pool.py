"""The interpreter processes of one proof, and the runner beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .external_runner import RUNNER, ExternalRunner
from .limits import ProcessLimits
from .runner import GivenUpError, Interpreter, ModelRunner


class Interpreters:
    """One process for each runtime, started when it is first asked for.

    ``runner`` is the command of the one that is called ``RUNNER``. Raises UsageError when there is no such command.
    """

    def __init__(self, limits: ProcessLimits, runner: str | os.PathLike[str] | None = None) -> None:
        self._limits, self._is_closed = limits, False
        self._running: dict[str, ModelRunner] = {}
        if runner is not None:
            self._running[RUNNER] = ExternalRunner(runner, limits.seconds)

    def __getitem__(self, runtime: str) -> ModelRunner:
        if runtime not in self._running:
            self._running[runtime] = Interpreter(runtime, self._limits)
        if self._is_closed:  # by another thread
            self._running[runtime].close()
            raise GivenUpError
        return self._running[runtime]

    def close(self) -> None:
        """End all processes, and give no more: any thread may call it. Who runs a model then sees a GivenUpError."""
        self._is_closed = True
        for each in list(self._running.values()):
            each.close()


@contextmanager
def open_interpreters(
    runtimes: Sequence[str], limits: ProcessLimits, runner: str | os.PathLike[str] | None = None
) -> Iterator[Interpreters]:
    """Processes for these runtimes, starting side by side; all are gone at the end, whatever happens.

    ``runner`` as for :class:`Interpreters`.
    """
    interpreters = Interpreters(limits, runner)
    try:
        for runtime in runtimes:
            interpreters[runtime]
        yield interpreters
    finally:
        interpreters.close()
