"""How a tensor inside a region is held in each stripe, and which bytes of it are alive at which step.

    kept     rows that the stripe before has made: a view of them, or a copy
    run      what the operator computes; trimmed where some rows do not count
    joined   kept and new rows in one tensor, the *held* one, which readers take rows from

Which slices and joins are views follows ``memory/storages.py``: joins first, then slices in order, and none that
would lay different bytes on the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT
from ..ir.model import Tensor
from .cut_table import CutTable, Flags, Integers, up
from .lower import row_bytes
from .sweep import OperatorRows
from .twins import Twins
from .view_ends import ViewEnds

if TYPE_CHECKING:
    from .live import StepRows, StepTable


class ReadRows:
    """What one reader takes of the held rows."""

    def __init__(self, held: HeldRows, steps: StepRows) -> None:
        read = steps.rows.read
        self.steps = steps
        self.has_job = steps.rows.has_job
        self.is_cut = self.has_job & ((read.start != held.needed.start) | (read.end != held.needed.end))
        skipped = (read.start - held.needed.start) * held.row
        self.is_copy = self.is_cut & (skipped % ARENA_ALIGNMENT != 0)
        self.first = skipped
        self.bytes = np.where(self.has_job, up(read.count * held.row), 0)
        self.copied = np.where(self.is_copy, self.bytes, 0)


class HeldRows:
    """The rows of one tensor, a column for each stripe. ``readers``: from the last to the first.

    ``rows`` are those of the operator that makes them, ``tensor`` its output, or that in another shape.
    """

    def __init__(
        self, cuts: CutTable, rows: OperatorRows, tensor: Tensor, readers: Sequence[StepRows], twins: Twins
    ) -> None:
        self.cuts, self.rows, self.tensor, self._twins = cuts, rows, tensor, twins
        self.row = row_bytes(self.tensor)
        self.needed, self.kept, self.made, self.computed = rows.needed, rows.kept, rows.made, rows.computed
        self._held = up(self.needed.count * self.row)
        self._kept = up(self.kept.count * self.row)
        self._made = up(self.made.count * self.row)
        self._computed = np.where(rows.has_job, up(self.computed.count * self.row), 0)
        self.is_joined = (self.kept.count > 0) & rows.has_job
        self.reads = [ReadRows(self, steps) for steps in readers]
        self.last = self.reads[0]

    @cached_property
    def regular(self) -> Flags:
        """Whether the table says exactly what the memory model does, for each way."""
        lacks = self._lacks_last_reader if len(self.reads) > 1 else np.zeros_like(self.is_joined)
        # Rows of less than 16 bytes: what is rounded up lies on the next row but one.
        small = self.is_joined & (self.row < ARENA_ALIGNMENT) & (self.row * self.kept.count < ARENA_ALIGNMENT)
        keeps_only = (self.kept.count > 0) & ~self.rows.has_job
        found: Flags = self.cuts.sums(lacks | small | (keeps_only & (self._next_kept > 0))) == 0
        return found

    @property
    def _lacks_last_reader(self) -> Flags:
        others = np.logical_or.reduce([read.has_job for read in self.reads[1:]])
        found: Flags = others & ~self.last.has_job
        return found

    @cached_property
    def is_trimmed(self) -> Flags:
        """Whether some computed rows do not count."""
        found: Flags = self.rows.has_job & (self.computed.count != self.made.count)
        return found

    @cached_property
    def _made_is_part(self) -> Flags:
        """Whether the new rows are a view of the joined ones."""
        found: Flags = self.is_joined & (self.kept.count * self.row % ARENA_ALIGNMENT == 0)
        return found

    @cached_property
    def _next_kept(self) -> Integers:
        return self.cuts.following(self._kept, 0)

    @cached_property
    def _keeps_whole(self) -> Flags:
        """Whether the next stripe keeps all that is held, so that there is no slice."""
        start, end = self.cuts.following(self.kept.start, -1), self.cuts.following(self.kept.end, -1)
        found: Flags = (self._next_kept > 0) & (start == self.needed.start) & (end == self.needed.end)
        return found

    @cached_property
    def trim_is_copy(self) -> Flags:
        """A trimmed slice is a copy where the rows that do not count would lie on others that do."""
        skipped = (self.made.start - self.computed.start) * self.row
        over_kept = self._made_is_part & (self.computed.start < self.made.start)
        next_is_joined = self.cuts.following(self.is_joined, 0)
        shared = self._keeps_whole & next_is_joined & (self._made_is_part | ~self.is_joined)
        over_next = shared & (self.computed.end > self.made.end)
        found: Flags = self.is_trimmed & ((skipped % ARENA_ALIGNMENT != 0) | over_kept | over_next)
        return found

    @cached_property
    def keep_is_cut(self) -> Flags:
        """Whether there is a slice of the rows that the next stripe keeps."""
        return (self._next_kept > 0) & ~self._keeps_whole

    @cached_property
    def _kept_at(self) -> Integers:
        """The first byte that the next stripe keeps, from the first one held."""
        return (self.cuts.following(self.kept.start, 0) - self.needed.start) * self.row

    @cached_property
    def _keeps_view(self) -> Flags:
        """Whether the rows that the next stripe keeps are a slice that is a view."""
        return self.keep_is_cut & ~self.keep_is_copy

    @cached_property
    def keep_is_copy(self) -> Flags:
        """Whether the slice of the rows that the next stripe keeps is a copy."""
        has_more = self.is_trimmed & ~self.trim_is_copy & (self._made_is_part | ~self.is_joined)
        next_is_joined = self.cuts.following(self.is_joined, 0)
        over_next = has_more & next_is_joined & (self.computed.end > self.needed.end)
        found: Flags = self.keep_is_cut & ((self._kept_at % ARENA_ALIGNMENT != 0) | over_next)
        return found

    def add_to(self, table: StepTable, steps: StepRows) -> None:
        """Add the bytes of this tensor to the table; ``steps`` are those of the operator that makes it."""
        kept = self._kept
        table.add(steps.top, steps.run, kept)
        table.add(steps.run, steps.trim + 1, kept + self._computed)
        table.add(steps.trim, steps.trim + 1, np.where(self.trim_is_copy, self._made, 0))
        filled = np.where(self.is_joined & ~self._made_is_part, self._held - kept, 0)
        table.add(steps.join, steps.join + 1, kept + self._made + filled)
        table.add(steps.join + 1, self.last.steps.top, self._held)
        for read in self.reads[1:]:
            self._add_copy(table, read)
        self._add_last(table)
        if self._twins.has_reuse:
            self._save(table, steps)
        table.after = table.after + kept

    def _add_copy(self, table: StepTable, read: ReadRows) -> None:
        """The copied slice of a reader that is not the last: alive until the padding or the operator reads it."""
        if not read.is_copy.any():
            return
        steps, tensor = read.steps, self.tensor
        table.add(steps.read[tensor], steps.run, read.copied)
        table.add(steps.run, steps.run + 1, np.where(steps.rows.pads, 0, read.copied))

    def _add_last(self, table: StepTable) -> None:
        """From the last reader on: what is read, what is kept, and in the end only that."""
        read, steps, tensor = self.last, self.last.steps, self.tensor
        held, kept, copied = self._held, self._next_kept, read.copied
        at_read, at_keep = steps.read[tensor], steps.keep[tensor]
        kept_copy = np.where(self.keep_is_copy, kept, 0)
        table.add(steps.top, at_read, held)
        table.add(at_read, at_read + 1, held + copied)
        stays = ~read.is_cut | self.keep_is_cut | self._keeps_whole
        before_keep = np.where(stays, held + copied, read.bytes)
        table.add(at_read + 1, at_keep, before_keep)
        table.add(at_keep, at_keep + 1, before_keep + np.where(self.keep_is_cut, kept_copy, 0))
        both = np.where(read.is_copy | self.keep_is_copy, read.bytes + kept, self._read_or_kept())
        at_pad = np.where(self._keeps_whole, held + copied, np.where(read.is_cut, both, held + kept_copy))
        table.add(at_keep + 1, steps.run, at_pad)
        table.add(steps.run, steps.run + 1, np.where(steps.rows.pads | ~read.has_job, kept, at_pad))
        table.add(steps.trim, 0, kept)

    def _read_or_kept(self) -> Integers:
        """Bytes that the read rows and the kept ones take together, both views of the held rows."""
        read, kept = self.last, self._next_kept
        common = np.minimum(read.first + read.bytes, self._kept_at + kept) - np.maximum(read.first, self._kept_at)
        return np.where(kept > 0, read.bytes + kept - np.maximum(common, 0), read.bytes)

    def _save(self, table: StepTable, steps: StepRows) -> None:
        """What kernels save: slices that are copies, and operators that read the held rows or a slice of them."""
        skipped = self.made.start - self.computed.start
        made = self.rows.operator.outputs[0]
        trim = self._twins.sliced(made, self.trim_is_copy, self.computed.count, skipped, self.made.count)
        table.save(steps.trim, trim, trim)
        for read in self.reads:
            is_last, own = read is self.last, read.steps
            for step, saved, chosen in (
                (own.pad, own.pad_saved, rows_that_pad(own)),
                (own.run, own.saved.get(self.tensor), ~rows_that_pad(own) & own.rows.has_job),
            ):
                if saved is not None:
                    exact, bound = self._dying(read, is_last)
                    one = np.where(chosen & (exact > 0), saved, 0)
                    table.save(step, one, np.where(chosen, np.minimum(saved, bound), 0))
        self._save_slices(table)

    def _dying(self, read: ReadRows, is_last: bool) -> tuple[Integers, Integers]:
        """(bytes that die as one range, bytes that die) where a reader takes its rows; 0 where none do."""
        alive = self._keeps_whole if is_last else np.ones_like(self._keeps_whole)
        start = self._kept_at
        first, end = np.where(read.is_cut, read.first, 0), np.where(read.is_cut, read.first + read.bytes, self._held)
        common = np.maximum(np.minimum(end, start + self._next_kept) - np.maximum(first, start), 0)
        rest = np.where(self._keeps_view, end - first - common, end - first)
        bound = np.where(read.is_copy, read.bytes, np.where(alive, 0, rest))
        is_one = (rest == end - first) & ~self._is_split(first, end)
        return np.where(read.is_copy | (is_one & ~alive), bound, 0), bound

    @cached_property
    def _place(self) -> tuple[Integers, Integers]:
        """(number of the storage that the held rows lie in, their first byte there) of each stripe.

        Rows that are kept as a view lie in the storage of the stripe before.
        """
        is_view = (self._next_kept > 0) & ~self.keep_is_copy
        starts_anew = ~self.cuts.previous(is_view, 0)
        number: Integers = np.cumsum(starts_anew.astype(np.int64))
        moved = np.where(starts_anew, 0, (self.kept.start - self.cuts.previous(self.needed.start, 0)) * self.row)
        total: Integers = np.cumsum(moved)
        place: Integers = total - total[np.flatnonzero(starts_anew)[number - 1]]
        return number, place

    @cached_property
    def _view_ends(self) -> ViewEnds:
        """The ends of all that lies in a storage of held rows."""
        number, place = self._place
        own = ~self.is_joined | self._made_is_part  # the new rows lie in the storage
        made = np.where(self.is_joined, self.kept.count * self.row, 0)
        computed = made - (self.made.start - self.computed.start) * self.row
        parts = [
            (self.needed.count > 0, 0, self._held),
            (self.is_joined, 0, self._kept),
            (self.rows.has_job & own, made, self._made),
            (self.is_trimmed & own & ~self.trim_is_copy, computed, self._computed),
            (self._keeps_view, self._kept_at, self._next_kept),
            *((read.is_cut & ~read.is_copy, read.first, read.bytes) for read in self.reads),
        ]
        return ViewEnds(
            number, [(is_view, place + at) for is_view, first, size in parts for at in (first, first + size)]
        )

    def _is_split(self, first: Integers | int, end: Integers) -> Flags:
        """Whether a view starts or ends inside this range of the held rows."""
        _, place = self._place
        return self._view_ends.are_inside(place + first, place + end)

    def _save_slices(self, table: StepTable) -> None:
        """Slices of the held rows that are copies, where the held rows die."""
        read, steps = self.last, self.last.steps
        whole_is_split = self._is_split(0, self._held)
        ends_here = read.is_copy & ~self.keep_is_cut & ~self._keeps_whole
        skipped = steps.rows.read.start - self.needed.start
        saved = self._twins.sliced(self.tensor, ends_here, self.needed.count, skipped, steps.rows.read.count)
        one = np.where(whole_is_split, 0, saved)
        table.save(steps.read[self.tensor], one, np.minimum(saved, self._held))
        ends_here = self.keep_is_copy & read.is_cut
        skipped = self.cuts.following(self.kept.start, 0) - self.needed.start
        saved = self._twins.sliced(
            self.tensor, ends_here, self.needed.count, skipped, self.cuts.following(self.kept.count, 0)
        )
        viewed = np.where(read.is_copy, 0, read.bytes)
        one = np.where(whole_is_split | (read.is_cut & ~read.is_copy), 0, saved)
        table.save(steps.keep[self.tensor], one, np.minimum(saved, self._held - viewed))


def rows_that_pad(steps: StepRows) -> Flags:
    """The stripes in which the operator has a PAD before it."""
    return steps.rows.pads
