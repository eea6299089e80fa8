"""Lower bound on the bytes of all shared objects for a fixed order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from ..problem import Item


def positional_maxima(items: Sequence[Item]) -> tuple[int, ...]:
    """The largest first, second, third, ... size among the items alive in one scope, in bytes.

    Their sum bounds the objects from below. O(n * items alive at once).
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", sections 3 and 4.1.
    """
    births = [(item.start, 1, item.size) for item in items]
    deaths = [(item.end, 0, item.size) for item in items]
    ascending: list[int] = []
    maxima: list[int] = []
    for _, is_birth, size in sorted(births + deaths):
        if not is_birth:
            del ascending[bisect_left(ascending, size)]
            continue
        insort(ascending, size)
        descending = ascending[::-1]
        longer = descending[len(maxima) :]
        maxima = [max(pair) for pair in zip(maxima, descending, strict=False)] + maxima[len(descending) :] + longer
    return tuple(maxima)
