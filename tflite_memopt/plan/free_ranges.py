"""Free ranges of offsets among forbidden ones: the one place that finds room for an item."""

from __future__ import annotations

from ..graph.alignment import aligned

Forbidden = list[tuple[int, int]]
"""Open intervals ``(low, high)`` of offsets in bytes, in any order."""
_UNLIMITED = 1 << 62


def lowest_offset(forbidden: Forbidden, floor: int, alignment: int) -> int:
    """Lowest multiple of ``alignment`` that is at least ``floor`` and in none of the intervals (first fit)."""
    lowest = aligned(floor, alignment)
    for low, high in sorted(forbidden):
        if low >= lowest:
            break
        if high > lowest:
            lowest = aligned(high, alignment)
    return lowest


def tightest_offset(forbidden: Forbidden, floor: int, alignment: int) -> int:
    """Begin of the free range that leaves least room to move; above everything when no other holds it (best fit)."""
    lowest = aligned(floor, alignment)
    best, best_room = lowest, _UNLIMITED
    for low, high in sorted(forbidden):
        if lowest <= low and low - lowest < best_room:
            best, best_room = lowest, low - lowest
        if high > lowest:
            lowest = aligned(high, alignment)
    return best if best_room < _UNLIMITED else lowest
