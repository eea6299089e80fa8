"""The runtimes of one verification: interpreter processes and the user's runner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager

from .external_runner import RUNNER, ExternalRunner
from .runner import Interpreter, ModelRunner, ProcessLimits


class Interpreters(AbstractContextManager["Interpreters"]):
    """Runners by the name of their runtime; all are gone at the end of the context, whatever happens.

    Processes for ``runtimes`` start at once, side by side, those for others when they are first asked for. ``runner``
    is the command of the one that is called ``RUNNER``. Raises UsageError when there is no such command.
    """

    def __init__(
        self,
        runtimes: Sequence[str],
        limits: ProcessLimits,
        runner: str | os.PathLike[str] | None = None,
    ) -> None:
        self._limits = limits
        self._running: dict[str, ModelRunner] = {}
        if runner is not None:
            self._running[RUNNER] = ExternalRunner(runner, limits.seconds)
        for runtime in runtimes:
            self[runtime]

    def __getitem__(self, runtime: str) -> ModelRunner:
        if runtime not in self._running:
            self._running[runtime] = Interpreter(runtime, self._limits)
        return self._running[runtime]

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes. Who runs a model in another thread then sees a GivenUpError."""
        for each in self._running.values():
            each.close()
