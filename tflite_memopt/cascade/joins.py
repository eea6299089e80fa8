"""What joining the parts of a region's exit takes: bytes, and how many CONCATENATIONs write how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from .cut_table import CutTable, Ends, Flags, Integers
from .lower import MAX_CONCATENATION_INPUTS, groups_of


@dataclass(frozen=True)
class JoinNeeds:
    """For each way: the largest need in bytes while parts are joined; whether it is exact; how many joins there are.

    ``written``: bytes that they write together.
    """

    needs: Integers
    exact: Flags
    counts: Integers
    written: Integers


def join_needs(cuts: CutTable, row: int) -> JoinNeeds:
    """``row`` is the bytes of one row of the exit."""
    found = [_one(ends, row) for ends in cuts.ways]
    needs, counts, written = (np.asarray(each, np.int64) for each in zip(*found, strict=True))
    exact = np.asarray([_is_plain(ends, row) for ends in cuts.ways], np.bool_)
    return JoinNeeds(needs, exact, counts, written)


def _is_plain(ends: Ends, row: int) -> bool:
    """Whether all parts are views, or few enough for one join; behind a part of less than 16 bytes views may touch."""
    is_aligned = all(end * row % ARENA_ALIGNMENT == 0 for end in ends[:-1])
    least = min(end - start for start, end in zip((0, *ends), ends, strict=False)) * row
    return is_aligned or (least >= ARENA_ALIGNMENT and len(ends) <= MAX_CONCATENATION_INPUTS)


def _one(ends: Ends, row: int) -> tuple[int, int, int]:
    spans = list(zip([0, *ends], ends, strict=False))
    joins = written = 0
    live = sum(aligned((end - start) * row) for start, end in spans)
    peak = live
    while len(spans) > 1:
        grouped = []
        for first, last in groups_of(len(spans)):
            parts = spans[first:last]
            start, end = parts[0][0], parts[-1][1]
            views = [(a - start) * row % ARENA_ALIGNMENT == 0 for a, _ in parts]
            sizes = [aligned((b - a) * row) for a, b in parts]
            live += aligned((end - start) * row) - sum(size for size, view in zip(sizes, views, strict=True) if view)
            peak = max(peak, live)
            live -= sum(size for size, view in zip(sizes, views, strict=True) if not view)
            grouped.append((start, end))
            joins += 1
            written += (end - start) * row
        spans = grouped
    return peak, joins, written
