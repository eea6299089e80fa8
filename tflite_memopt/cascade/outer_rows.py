"""Which bytes of a region's input are alive at which step: rows are released once no later stripe reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Tensor
from .credits import Credits
from .cut_table import CutTable, Flags, Integers, up
from .lower import may_spread, row_bytes
from .view_ends import ViewEnds

if TYPE_CHECKING:
    from .live import StepRows
    from .sweep import RowArrays
    from .twins import Twins


class _OuterRead:
    """The bytes of an input that one operator reads in each stripe.

    ``spread_bytes``: copies made before the stripes, each with the last stripe that reads it: one slice serves all
    stripes that read the very same rows. ``is_repeated``: a later stripe reads the same rows.
    """

    def __init__(self, cuts: CutTable, tensor: Tensor, steps: StepRows) -> None:
        read, row = steps.rows.read, row_bytes(tensor)
        self.cuts, self.steps = cuts, steps
        self.has_job = steps.rows.has_job
        self.is_cut = self.has_job & (read.count < tensor.shape[1])
        self.first = np.where(self.has_job, read.start * row, 0)
        self.end = np.where(self.has_job, self.first + up(read.count * row), 0)
        self.bytes = self.end - self.first
        self.is_late = self.is_cut & (self.first % ARENA_ALIGNMENT != 0)
        self.is_view = self.has_job & ~self.is_late

    @cached_property
    def is_repeated(self) -> Flags:
        return _reads_again(self.cuts, self.steps.rows.read, self.has_job)

    @cached_property
    def spread_bytes(self) -> Integers:
        return np.where(self.is_late & ~self.is_repeated, self.bytes, 0)


@dataclass(frozen=True)
class SliceTimes:
    """For each way, when slices of an input are made that are copies: ``late``, when they are read; or ``spread``.

    Spread copies are all made before the stripes. Ways without copies are neither.
    """

    late: Flags
    spread: Flags


def _times_of(cuts: CutTable, tensor: Tensor, reads: Sequence[_OuterRead], at_end: Integers) -> SliceTimes:
    late = cuts.sums(np.logical_or.reduce([read.is_late for read in reads])) > 0
    if len(reads) > 1 or not late.any():
        return SliceTimes(late, np.zeros_like(late))
    copies = cuts.sums(reads[0].spread_bytes)
    spread = late & may_spread(tensor, copies, at_end)
    return SliceTimes(late & ~spread, spread)


_TOP = -(1 << 30)
"""The first step, counted from the last one, of however many there are."""
_Added = tuple[int, int, Integers]
"""(first step, end, bytes): steps are counted from the end of the table, half-open."""
_Saved = tuple[int, Integers, Integers]
"""(step, bytes saved exactly, and at most)."""


class OuterReads:
    """What a region's operators read of one input. ``readers``: from the last to the first.

    ``lives_on``: whether the input is read after the region. ``at_end``: see ``lower.bytes_at_end``, for each way; 0
    where copies must not be spread. All is the same wherever the region starts, as long as it has these readers.
    """

    def __init__(
        self,
        cuts: CutTable,
        tensor: Tensor,
        readers: Sequence[StepRows],
        lives_on: bool,
        at_end: Integers,
        twins: Twins,
    ) -> None:
        self.tensor, self._cuts, self._lives_on, self._at_end, self._twins = tensor, cuts, lives_on, at_end, twins
        self.reads = [_OuterRead(cuts, tensor, steps) for steps in reversed(readers)]
        self.times = _times_of(cuts, tensor, self.reads, at_end)
        self._late = self.times.late[cuts.way]

    def are_of(self, readers: Sequence[StepRows], at_end: Integers) -> bool:
        """Whether they were worked out for these readers of the tensor, all of them, and these bytes at the end."""
        return len(readers) == len(self.reads) and np.array_equal(at_end, self._at_end)

    @cached_property
    def at_start(self) -> tuple[Integers, Integers]:
        """(need, bound) of the copies that are made before the stripes, for each way: bytes beside the input."""
        read, cuts, last, twins = self.reads[0], self._cuts, self._cuts.last, self._twins
        if not self.times.spread.any():
            return np.zeros(len(cuts.ways), np.int64), np.zeros(len(cuts.ways), np.int64)
        copies = np.where(self.times.spread, cuts.sums(read.spread_bytes), 0)
        if self._lives_on or not twins.has_reuse:
            return copies, copies
        rows = np.full_like(read.first, self.tensor.shape[1])
        own = read.steps.rows.read
        # The last of the slices is the last to read the input, which dies there.
        saved = twins.sliced(self.tensor, read.is_late & cuts.is_last, rows, own.start, own.count)[last]
        before = copies - np.where(read.is_late, read.bytes, 0)[last]
        exact = np.where(self._is_cut_up[last], 0, saved)
        return np.maximum(before, copies - exact), np.maximum(before, copies - saved)

    def add_to(self, extra: Integers) -> Flags:
        """Add the bytes of the input to a table; returns whether that is exact, for each way.

        An input that lives on is in the table already, but for copies.
        """
        added, exact = self._added
        size = len(extra)
        for first, end, nbytes in added:
            extra[max(0, size + first) : size + end] += nbytes
        return exact

    @cached_property
    def _added(self) -> tuple[list[_Added], Flags]:
        """What is added to a table, and whether that is exact, for each way."""
        tensor, late, times = self.tensor, self._late, self.times
        added: list[_Added] = []
        if late.any():
            for read in self.reads:
                copied = np.where(late & read.is_late, read.bytes, 0)
                added.append((read.steps.read[tensor], read.steps.run, copied))
                added.append((read.steps.run, read.steps.run + 1, np.where(read.steps.rows.pads, 0, copied)))
        if times.spread.any():
            added += self._spread()
        if self._lives_on:
            return added, np.ones(len(self._cuts.ways), np.bool_)
        early, early_exact = self._early()
        lately, late_exact = _late_slices(self._cuts, tensor, self.reads, late)
        ends = read_by_last(self._cuts, self.reads[0])
        exact = np.where(times.late, late_exact, np.where(times.spread, ends, early_exact))
        return [*added, *early, *lately], exact

    def _spread(self) -> Iterator[_Added]:
        """Slices made before the stripes, some of them copies: what this stripe and later ones read of them."""
        read, cuts = self.reads[0], self._cuts
        before, after = np.zeros_like(read.bytes), np.zeros_like(read.bytes)
        for way in np.flatnonzero(self.times.spread):
            copies, views = 0, 0
            reached = 1 << 60
            for at in range(cuts.last[way], cuts.first[way] - 1, -1):
                after[at] = copies + views
                if read.is_late[at]:
                    copies += read.spread_bytes[at]
                elif read.has_job[at] and not self._lives_on:
                    views += max(0, min(read.end[at], reached) - read.first[at])
                    reached = min(reached, read.first[at])
                before[at] = copies + views
        steps = read.steps
        yield _TOP, steps.run, before
        yield steps.run, steps.run + 1, np.where(steps.rows.pads, after, before)
        yield steps.run + 1, 0, after

    def save_to(self, saved_bytes: Credits) -> None:
        """Bytes that kernels save where rows of the input die as they are read."""
        for step, exact, bound in self._saved:
            saved_bytes.save(step, exact, bound)

    @cached_property
    def _saved(self) -> list[_Saved]:
        tensor, cuts = self.tensor, self._cuts
        found: list[_Saved] = []
        for at, read in enumerate(self.reads):
            steps = read.steps
            one, bound = self._dying(at)
            pads = steps.rows.pads
            pairs = [(steps.pad, steps.pad_saved, pads)]
            if tensor in steps.saved:
                pairs.append((steps.run, steps.saved[tensor], ~pads & read.has_job))
            for step, saved, chosen in pairs:
                exact = np.where(chosen & one, saved, 0)
                found.append((step, exact, np.where(chosen, np.minimum(saved, bound), 0)))
        if self._lives_on or not self._late.any():
            return found
        final = self.reads[-1]
        ends_here = self._late & cuts.is_last & final.is_late
        rows = np.full_like(final.first, tensor.shape[1])
        saved = self._twins.sliced(tensor, ends_here, rows, final.steps.rows.read.start, final.steps.rows.read.count)
        return [*found, (final.steps.read[tensor], np.where(self._is_cut_up, 0, saved), saved)]

    @cached_property
    def _later(self) -> tuple[Integers, Integers]:
        return _later(self._cuts, self.reads)

    def _early(self) -> tuple[list[_Added], Flags]:
        """Views, made before the stripes: what this stripe has not yet read, and all that later ones read.

        Also whether that is exact, for each way.
        """
        cuts, reads, later = self._cuts, self.reads, self._later
        chosen = ~(self.times.late | self.times.spread)[cuts.way]
        whole = later[1] - later[0]
        if len(reads) > 1:
            exact = _has_no_gap(cuts, reads)
        else:
            gap = _gap_before(cuts, reads[0])
            whole = whole - (cuts.sums_after(gap) - cuts.following(gap, 0))
            resumes = reads[0].has_job & ~cuts.previous(reads[0].has_job, True)
            exact = cuts.sums(resumes & chosen) == 0
        added: list[_Added] = [(_TOP, 0, np.where(chosen, whole, 0))]
        pending, start = list(reads), _TOP
        more = np.where(chosen, _beyond(pending, *later), 0)
        while pending:
            steps = pending.pop(0).steps
            added.append((start, steps.run, more))
            rest = np.where(chosen, _beyond(pending, *later), 0)
            added.append((steps.run, steps.run + 1, np.where(steps.rows.pads, rest, more)))
            start, more = steps.run + 1, rest
        return added, exact

    @cached_property
    def _view_ends(self) -> ViewEnds:
        """Of all slices of the input that are views, in any stripe."""
        views = [(each, each.is_cut & ~each.is_late) for each in self.reads]
        return ViewEnds(self._cuts.way, [(view, at) for each, view in views for at in (each.first, each.end)])

    @property
    def _is_cut_up(self) -> Flags:
        """For each stripe, whether a view of the input starts or ends inside it, in any stripe."""
        return self._view_ends.are_inside(0, aligned(self.tensor.nbytes))

    def _dying(self, at: int) -> tuple[Flags, Integers]:
        """(whether all that a reader takes dies as one range, bytes that die) in each stripe."""
        read, cuts = self.reads[at], self._cuts
        is_copy = read.is_late
        stays = is_copy & self.times.spread[cuts.way] & read.is_repeated if self.times.spread.any() else False
        if self._lives_on:
            dies = is_copy & np.logical_not(stays)
            return dies, np.where(dies, read.bytes, 0)
        pending = self.reads[at + 1 :]
        left = _beyond([read, *pending], *self._later) - _beyond(pending, *self._later)
        is_split = self._view_ends.are_inside(read.first, read.end)
        early = ~self._late
        # Of slices made late, the last one ends the input; what is left of it then is this slice alone.
        ends = self._late & cuts.is_last & (at == len(self.reads) - 1)
        bound = np.where(is_copy, read.bytes, np.where(early, left, np.where(ends, read.bytes, 0)))
        one = is_copy | ((early | ends) & ~is_split & (left == read.bytes))
        return one & np.logical_not(stays), np.where(stays, 0, bound)


def read_by_last(cuts: CutTable, read: _OuterRead) -> Flags:
    """For each way, whether the last stripe reads rows of its own."""
    is_new = read.has_job & ((read.first != cuts.previous(read.first, -1)) | (read.end != cuts.previous(read.end, -1)))
    found: Flags = is_new[cuts.last]
    return found


def _reads_again(cuts: CutTable, read: RowArrays, has_job: Flags) -> Flags:
    """For each stripe, whether the next one that reads anything reads the very same rows."""
    count = len(has_job)
    columns = np.where(has_job, np.arange(count), count - 1)
    after = np.append(np.minimum.accumulate(columns[::-1])[::-1][1:], count - 1)
    same = (read.start[after] == read.start) & (read.end[after] == read.end) & (cuts.way[after] == cuts.way)
    found: Flags = same & has_job & has_job[after] & (after > np.arange(count))
    return found


def _beyond(reads: Sequence[_OuterRead], first: Integers, end: Integers) -> Integers:
    """Bytes of the reads outside a range."""
    if not reads:
        return np.zeros_like(first)
    if len(reads) == 1:
        common = np.minimum(reads[0].end, end) - np.maximum(reads[0].first, first)
        found: Integers = reads[0].bytes - np.maximum(common, 0)
        return found
    return _union(reads, first, end) - (end - first)


def _gap_before(cuts: CutTable, read: _OuterRead) -> Integers:
    """Bytes between what the stripe before reads and what this one does; 0 for the first."""
    return np.where(read.has_job, np.maximum(read.first - cuts.previous(read.end, 1 << 60), 0), 0)


def _later(cuts: CutTable, reads: Sequence[_OuterRead]) -> tuple[Integers, Integers]:
    """(first, end) of the bytes that later stripes read in place; an empty range for the last stripe."""
    far = 1 << 60
    first = np.minimum.reduce([np.where(read.is_view, read.first, far) for read in reads])
    end = np.maximum.reduce([np.where(read.is_view, read.end, 0) for read in reads])
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
    found: Flags = cuts.sums((inner & is_later) | between) == 0
    return found


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


def _late_slices(
    cuts: CutTable, tensor: Tensor, reads: Sequence[_OuterRead], chosen: Flags
) -> tuple[list[_Added], Flags]:
    """Slices made when they are read: the whole input is alive until the last of them.

    Also whether that is exact, for each way.
    """
    exact = np.ones(len(cuts.ways), np.bool_)
    if not chosen.any():
        return [], exact
    whole = aligned(tensor.nbytes)
    alive = np.where(chosen, whole, 0)
    final = reads[-1]
    at_last = chosen & cuts.is_last
    exact &= cuts.sums(at_last & ~np.logical_and.reduce([read.has_job for read in reads])) == 0
    gone = np.where(at_last, whole, 0)
    steps = final.steps
    is_view = at_last & final.is_cut & ~final.is_late
    # After the last slice: a view of it alone, or nothing; an input that is read whole lives until it is read.
    left = np.where(is_view, final.bytes, 0)
    after_slice = np.where(final.is_cut, left - gone, 0)
    padded = np.where(final.steps.rows.pads, np.where(final.is_cut, -left, -gone), 0)
    unpadded = np.where(final.steps.rows.pads, 0, np.where(final.is_cut, -left, -gone))
    added = [
        (_TOP, 0, alive),
        (steps.read[tensor] + 1, 0, after_slice),
        (steps.run, 0, padded),
        (steps.run + 1, 0, unpadded),
    ]
    return added, exact
