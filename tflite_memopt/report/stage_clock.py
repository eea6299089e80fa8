"""How long the stages of a run take, for its report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..graph.clock import now


class StageClock:
    """Wall time by stage, in seconds to the microsecond."""

    def __init__(self) -> None:
        self._stages: dict[str, float] = {}
        self._started = now()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times what runs inside the ``with`` statement; a stage that runs again, or fails, adds up."""
        started = now()
        try:
            yield
        finally:
            self._stages[name] = round(self._stages.get(name, 0) + now() - started, 6)

    def seconds(self) -> dict[str, float]:
        """Seconds by stage so far, and ``total`` since the clock was made."""
        return {**self._stages, "total": round(now() - self._started, 6)}
