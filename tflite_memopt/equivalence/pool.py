"""The interpreter processes of one proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .limits import ProcessLimits
from .runner import Interpreter


class Interpreters:
    """One process for each runtime, started when it is first asked for."""

    def __init__(self, limits: ProcessLimits) -> None:
        self._limits = limits
        self._running: dict[str, Interpreter] = {}

    def __getitem__(self, runtime: str) -> Interpreter:
        if runtime not in self._running:
            self._running[runtime] = Interpreter(runtime, self._limits)
        return self._running[runtime]

    def close(self) -> None:
        """End all processes."""
        for each in self._running.values():
            each.close()


@contextmanager
def open_interpreters(runtimes: Sequence[str], limits: ProcessLimits) -> Iterator[Interpreters]:
    """Processes for these runtimes, starting side by side; all are gone at the end, whatever happens."""
    interpreters = Interpreters(limits)
    try:
        for runtime in runtimes:
            interpreters[runtime]
        yield interpreters
    finally:
        interpreters.close()
