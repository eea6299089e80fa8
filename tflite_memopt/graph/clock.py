"""The package's one clock. It never goes back; the time of day may."""

from __future__ import annotations

import math
import time
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
