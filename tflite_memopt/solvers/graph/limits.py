"""The package's one clock, and how much a search may spend: shared by schedulers and planners.

The clock never goes back; the time of day may.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

now = time.monotonic
"""Seconds since some fixed moment."""


@dataclass(frozen=True)
class Deadline:
    """A moment on the clock of :func:`now`."""

    moment: float

    def has_passed(self) -> bool:
        """Tell whether no time is left."""
        return now() >= self.moment

    def left(self) -> float:
        """Seconds that are left; never negative."""
        return max(0.0, self.moment - now())


def deadline_in(seconds: float) -> Deadline:
    """Return the moment after ``seconds``."""
    return Deadline(now() + seconds)


class StageClock:
    """Wall time by stage, in seconds to the microsecond."""

    def __init__(self) -> None:
        self._stages: dict[str, float] = {}
        self._started = now()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times the body of the ``with`` statement; a stage that runs again, or fails, adds up."""
        started = now()
        try:
            yield
        finally:
            self._stages[name] = round(self._stages.get(name, 0) + now() - started, 6)

    def seconds(self) -> dict[str, float]:
        """Seconds by stage so far, and ``total`` since the clock was made."""
        return {**self._stages, "total": round(now() - self._started, 6)}


@dataclass(frozen=True)
class SearchLimit:
    """``effort`` is the part of its own limit that a method may use: 0.1 for a quick answer, 10 for a patient one.

    A method's limit counts iterations of its loops, so that every machine gives the same answer, some of them later.
    ``time_limit`` in seconds of wall time is for comparing methods, and the answer says when it struck; ``optimize``
    has none. ``seed`` makes a randomized method repeatable. ``below``: bytes of a peak or an
    arena; where no order or plan needs less, any is an answer.
    """

    time_limit: float = math.inf
    seed: int = 0
    effort: float = 1.0
    below: int | None = None

    def deadline(self) -> Deadline:
        """Return the moment at which a search that begins now must end."""
        return deadline_in(self.time_limit)


class Allowance:
    """The rest of a limit: ``left`` iterations of loops, for all parts of one search, and the emergency stop."""

    def __init__(self, iterations: int, limit: SearchLimit) -> None:
        """``iterations`` is the method's own limit, of which it may use the limit's part."""
        self.left = int(iterations * limit.effort)
        self.stopped_by_clock = False
        self._deadline = limit.deadline()

    def another(self, iterations: int) -> Allowance:
        """One of so many iterations beside this one, no more than are left of this one, with the same emergency
        stop.
        """
        other = copy(self)
        other.left = min(iterations, self.left)
        return other

    def is_spent(self) -> bool:
        """Tell whether the search must end: the work is done, or it is so late that the clock ends it."""
        return self.left <= 0 or self.is_too_late()

    def is_too_late(self) -> bool:
        """Tell whether the emergency stop has struck, now or before."""
        self.stopped_by_clock = self.stopped_by_clock or self._deadline.has_passed()
        return self.stopped_by_clock

    @contextmanager
    def part_of(self, parts: int) -> Iterator[None]:
        """Leave one of ``parts`` equal shares to the code inside."""
        others = self.left - self.left // parts
        self.left -= others
        yield
        self.left += others

    def seconds_left(self) -> float:
        """Until the emergency stop; never negative."""
        return self._deadline.left()
