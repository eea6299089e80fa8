"""The package's one clock. It never goes back; the time of day may."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

now = time.monotonic
"""Seconds since some fixed moment."""


@dataclass(frozen=True)
class Deadline:
    """A moment on the clock of :func:`now`."""

    moment: float

    def has_passed(self) -> bool:
        """Whether no time is left."""
        return now() >= self.moment

    def left(self) -> float:
        """Seconds that are left; never negative."""
        return max(0.0, self.moment - now())


NO_DEADLINE = Deadline(math.inf)


def deadline_in(seconds: float, until: Deadline = NO_DEADLINE) -> Deadline:
    """The moment that comes after so many seconds, and no later than ``until``."""
    return Deadline(min(now() + seconds, until.moment))


class EmergencyStop:
    """Wall time at which a search ends; it is no part of the answer unless it strikes, and then it stays struck."""

    def __init__(self, seconds: float) -> None:
        self._deadline = deadline_in(seconds)
        self.has_struck = False

    def strikes(self) -> bool:
        """Whether the time is over."""
        self.has_struck = self.has_struck or self._deadline.has_passed()
        return self.has_struck


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
