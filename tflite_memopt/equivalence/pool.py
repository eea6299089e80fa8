"""The runtimes of one verification: interpreter processes, TFLM's module, and the user's runner."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .external_runner import RUNNER, ExternalRunner
from .module import ModuleRunner
from .runner import Interpreter, ModelRunner, ProcessLimits


class Interpreters:
    """Runners by the name of their runtime; a process starts when its runtime is first asked for.

    ``runner`` is the command of the one that is called ``RUNNER``. ``module`` is TFLM in this process; without one, the
    wheel is. Raises UsageError when there is no such command.
    """

    def __init__(
        self,
        limits: ProcessLimits,
        runner: str | os.PathLike[str] | None = None,
        module: ModuleRunner | None = None,
    ) -> None:
        self._limits, self.module = limits, module
        self._running: dict[str, ModelRunner] = {}
        if runner is not None:
            self._running[RUNNER] = ExternalRunner(runner, limits.seconds)
        if module is not None:
            self._running["tflm"] = module

    def __getitem__(self, runtime: str) -> ModelRunner:
        if runtime not in self._running:
            self._running[runtime] = Interpreter(runtime, self._limits)
        return self._running[runtime]

    def close(self) -> None:
        """End all processes. Who runs a model in another thread then sees a GivenUpError."""
        for each in self._running.values():
            each.close()


@contextmanager
def open_interpreters(
    runtimes: Sequence[str],
    limits: ProcessLimits,
    runner: str | os.PathLike[str] | None = None,
    module: ModuleRunner | None = None,
) -> Iterator[Interpreters]:
    """Processes for these runtimes, which start side by side; all are gone at the end, whatever happens.

    ``runner`` and ``module`` as for :class:`Interpreters`.
    """
    interpreters = Interpreters(limits, runner, module)
    try:
        for runtime in runtimes:
            interpreters[runtime]
        yield interpreters
    finally:
        interpreters.close()
