"""Which bytes of a region's input are alive at which step: rows are released once no later stripe reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Tensor
from .cut_table import CutTable, Flags, Integers
from .lower import row_bytes

if TYPE_CHECKING:
    from .live import StepRows


def up(sizes: Integers) -> Integers:
    """Rounded up to TFLM's alignment."""
    return (sizes + (ARENA_ALIGNMENT - 1)) // ARENA_ALIGNMENT * ARENA_ALIGNMENT


class _OuterRead:
    """The bytes of an input that one operator reads in each stripe."""

    def __init__(self, tensor: Tensor, steps: StepRows) -> None:
        read, row = steps.rows.read, row_bytes(tensor)
        self.steps = steps
        self.has_job = steps.rows.has_job
        self.is_cut = self.has_job & (read.count < tensor.shape[1])
        self.first = np.where(self.has_job, read.start * row, 0)
        self.end = np.where(self.has_job, self.first + up(read.count * row), 0)
        self.bytes = self.end - self.first
        self.is_late = self.is_cut & (self.first % ARENA_ALIGNMENT != 0)


def is_late(cuts: CutTable, tensor: Tensor, readers: Sequence[StepRows]) -> Flags:
    """For each way, whether the slices of an input are made when they are read, since one is a copy."""
    late = np.zeros(len(cuts.end), np.bool_)
    for steps in readers:
        late |= _OuterRead(tensor, steps).is_late
    return cuts.sums(late) > 0


def outer_bytes(
    cuts: CutTable, tensor: Tensor, readers: Sequence[StepRows], lives_on: bool, extra: Integers
) -> Flags:
    """Add the bytes of an input to the table ``extra``; returns whether that is exact, for each way.

    ``readers``: from the last to the first. An input that lives on is in the table already, but for copies.
    """
    reads = [_OuterRead(tensor, steps) for steps in reversed(readers)]
    late = np.logical_or.reduce([read.is_late for read in reads])
    is_late_way = cuts.sums(late) > 0
    late = is_late_way[cuts.way]
    if late.any():
        for read in reads:
            _add(extra, read.steps.read[tensor], read.steps.run, np.where(read.is_late, read.bytes, 0))
            at_run = np.where(read.is_late & ~read.steps.rows.pads, read.bytes, 0)
            _add(extra, read.steps.run, read.steps.run + 1, at_run)
    if lives_on:
        return np.ones(len(cuts.ways), np.bool_)
    early_exact = _add_early(cuts, reads, ~late, extra)
    late_exact = _add_late(cuts, tensor, reads, late, extra)
    return np.where(is_late_way, late_exact, early_exact)


def _add(extra: Integers, first: int, end: int, nbytes: Integers) -> None:
    size = len(extra)
    extra[size + first : size + end] += nbytes


def _add_early(cuts: CutTable, reads: Sequence[_OuterRead], chosen: Flags, extra: Integers) -> Flags:
    """Views, made before the stripes: what this stripe has not yet read, and all that later ones read."""
    later_first, later_end = _later(cuts, reads)
    later = np.where(chosen, later_end - later_first, 0)
    _add(extra, -len(extra), 0, later)
    exact = np.ones(len(cuts.ways), np.bool_)
    if len(reads) > 1:
        exact = _has_no_gap(cuts, reads)
    else:
        gap = _gap_before(cuts, reads[0])
        gaps = cuts.sums_after(gap) - cuts.following(gap, 0)
        _add(extra, -len(extra), 0, np.where(chosen, -gaps, 0))
        resumes = reads[0].has_job & ~cuts.previous(reads[0].has_job, True)
        exact = cuts.sums(resumes & chosen) == 0
    pending = list(reads)
    start = -len(extra)
    while pending:
        more = np.where(chosen, _union(pending, later_first, later_end) - (later_end - later_first), 0)
        if len(reads) == 1:
            common = np.minimum(reads[0].end, later_end) - np.maximum(reads[0].first, later_first)
            more = np.where(chosen, reads[0].bytes - np.maximum(common, 0), 0)
        steps = pending[0].steps
        _add(extra, start, steps.run, more)
        del pending[0]
        rest = np.where(chosen, _union(pending, later_first, later_end) - (later_end - later_first), 0)
        _add(extra, steps.run, steps.run + 1, np.where(steps.rows.pads, rest, more))
        start = steps.run + 1
    return exact


def _gap_before(cuts: CutTable, read: _OuterRead) -> Integers:
    """Bytes between what the stripe before reads and what this one does; 0 for the first."""
    return np.where(read.has_job, np.maximum(read.first - cuts.previous(read.end, 1 << 60), 0), 0)


def _later(cuts: CutTable, reads: Sequence[_OuterRead]) -> tuple[Integers, Integers]:
    """(first, end) of the bytes that later stripes read; an empty range for the last stripe."""
    far = 1 << 60
    first = np.minimum.reduce([np.where(read.has_job, read.first, far) for read in reads])
    end = np.maximum.reduce([read.end for read in reads])
    if (first == far).any():
        for at in range(len(end) - 2, -1, -1):
            if not cuts.is_last[at]:
                first[at] = min(first[at], first[at + 1])
    # Where every stripe reads, rows only move on: the next stripe has the first of them, the last stripe the last.
    first, end = cuts.following(first, far), np.where(cuts.is_last, 0, cuts.largest(end)[cuts.way])
    return np.where(first == far, 0, first), np.where(first == far, 0, end)


def _has_no_gap(cuts: CutTable, reads: Sequence[_OuterRead]) -> Flags:
    """For each way, whether the stripes after the first read bytes without a gap."""
    low = np.minimum.reduce([np.where(read.has_job, read.first, 1 << 60) for read in reads])
    high = np.maximum.reduce([read.end for read in reads])
    zero = np.zeros_like(low)
    inner = _union(reads, zero, zero) < high - low
    reached = cuts.previous(high, 1 << 60)
    is_second = cuts.previous(np.ones(len(low), np.bool_), 0) & ~cuts.previous(
        cuts.previous(np.ones(len(low), np.bool_), 0), 0
    )
    between = (low > reached) & ~is_second
    is_later = cuts.previous(np.ones(len(low), np.bool_), 0)
    return cuts.sums((inner & is_later) | between) == 0


def _union(reads: Sequence[_OuterRead], first: Integers, end: Integers) -> Integers:
    """Bytes in at least one of the reads or in the range; all may be empty."""
    firsts = np.stack([first, *(read.first for read in reads)])
    ends = np.stack([end, *(read.end for read in reads)])
    order = np.argsort(firsts, axis=0, kind="stable")
    firsts, ends = np.take_along_axis(firsts, order, 0), np.take_along_axis(ends, order, 0)
    reached = np.maximum.accumulate(ends, axis=0)
    total: Integers = np.maximum(ends[0] - firsts[0], 0)
    for at in range(1, len(firsts)):
        total = total + np.maximum(ends[at] - np.maximum(firsts[at], reached[at - 1]), 0)
    return total


def _add_late(
    cuts: CutTable, tensor: Tensor, reads: Sequence[_OuterRead], chosen: Flags, extra: Integers
) -> Flags:
    """Slices made when they are read: the whole input is alive until the last of them."""
    exact = np.ones(len(cuts.ways), np.bool_)
    if not chosen.any():
        return exact
    whole = aligned(tensor.nbytes)
    alive = np.where(chosen, whole, 0)
    _add(extra, -len(extra), 0, alive)
    final = reads[-1]
    at_last = chosen & cuts.is_last
    exact &= cuts.sums(at_last & ~np.logical_and.reduce([read.has_job for read in reads])) == 0
    gone = np.where(at_last, whole, 0)
    steps = final.steps
    is_view = at_last & final.is_cut & ~final.is_late
    # After the last slice: a view of it alone, or nothing; an input that is read whole lives until it is read.
    left = np.where(is_view, final.bytes, 0)
    _add(extra, steps.read[tensor] + 1, 0, np.where(final.is_cut, left - gone, 0))
    _add(extra, steps.run, 0, np.where(final.steps.rows.pads, np.where(final.is_cut, -left, -gone), 0))
    unpadded = np.where(final.steps.rows.pads, 0, np.where(final.is_cut, -left, -gone))
    _add(extra, steps.run + 1, 0, unpadded)
    return exact
