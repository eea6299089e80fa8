"""Half-open intervals ``[start, end)``: lifetimes of tensors, items of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Interval(Protocol):
    """Anything that lasts from ``start`` up to, but without, ``end``."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


def intersect(first: Interval, second: Interval) -> bool:
    """Tell whether some moment lies in both of two intervals, neither of which is empty."""
    return first.start < second.end and second.start < first.end


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Count the integers that are in at least one of the half-open ranges."""
    total = reached = 0
    for start, end in sorted(ranges):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
