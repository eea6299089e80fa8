"""The interpreter processes of one proof, and the runner beside them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from .external_runner import RUNNER, ExternalRunner
from .limits import ProcessLimits
from .module import ModuleRunner
from .runner import GivenUpError, Interpreter, ModelRunner

_MUCH = 300_000_000
"""Multiply-accumulates from which on a second process is worth its start."""
_SECOND = ", second"
"""What the name of a second process of a runtime ends with."""


class Interpreters:
    """One process for each runtime, started when it is first asked for; any thread may ask for it, and run it.

    ``runner`` is the command of the one that is called ``RUNNER``. ``jobs``: with more than one there may be a second
    process of a runtime. ``module`` is TFLM in this process; without one, the wheel is. Raises UsageError when there is
    no such command.
    """

    def __init__(
        self,
        limits: ProcessLimits,
        runner: str | os.PathLike[str] | None = None,
        jobs: int = 1,
        module: ModuleRunner | None = None,
    ) -> None:
        self._limits, self._jobs, self._is_closed = limits, jobs, False
        self.module = module
        self._starter = ThreadPoolExecutor(max_workers=1)
        """Starts them all, since Linux ends a process with the thread that started it."""
        self._asking = threading.Lock()
        self._running: dict[str, ModelRunner] = {}
        if runner is not None:
            self._running[RUNNER] = ExternalRunner(runner, limits.seconds)
        if module is not None:
            self._running["tflm"] = module

    def __getitem__(self, runtime: str) -> ModelRunner:
        with self._asking:
            if self._is_closed:  # by another thread
                raise GivenUpError
            if runtime not in self._running:
                self._running[runtime] = Interpreter(runtime.removesuffix(_SECOND), self._limits, self._starter)
            return self._running[runtime]

    def second(self, runtime: str, macs: int) -> ModelRunner | None:
        """What runs beside a runtime, where there may be so many and it has much to do; not of the user's runner.

        Another process, or the module, which threads share. ``macs``: multiply-accumulates of all samples.
        """
        is_worth_it = self._jobs > 1 and macs >= _MUCH
        if is_worth_it and runtime == "tflm" and self.module is not None:
            return self.module
        return self[f"{runtime}{_SECOND}"] if is_worth_it and runtime != RUNNER else None

    def close(self) -> None:
        """End all processes, and give no more: any thread may call it. Who runs a model then sees a GivenUpError."""
        with self._asking:
            self._is_closed = True
        for each in self._running.values():
            each.close()
        self._starter.shutdown()


@contextmanager
def open_interpreters(
    runtimes: Sequence[str],
    limits: ProcessLimits,
    runner: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    module: ModuleRunner | None = None,
) -> Iterator[Interpreters]:
    """Processes for these runtimes, starting side by side; all are gone at the end, whatever happens.

    ``runner``, ``jobs`` and ``module`` as for :class:`Interpreters`.
    """
    interpreters = Interpreters(limits, runner, jobs, module)
    try:
        for runtime in runtimes:
            interpreters[runtime]
        yield interpreters
    finally:
        interpreters.close()
