"""Bytes alive at every step of a region in stripes, for many ways to cut and all places where the region can start.

    rows of the table: the steps of one stripe      columns: the stripes of all ways

    READ    slices of what the operator reads
    KEEP    slices of rows that the next stripe keeps, before the last reader runs
    PAD     padding that a window needs
    RUN     the operator
    TRIM    the slice of the rows that count
    JOIN    kept and new rows together

A step that a stripe does not have counts what is alive between its neighbours, so that no largest value changes. What
the table adds up is what ``lower.py`` writes and what ``memory`` makes of it: views where offsets are multiples of 16
bytes and no other view contradicts, copies elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Tensor
from .credits import Credits
from .cut_table import CutTable, Flags, Integers, up
from .held_rows import HeldRows
from .joins import JoinNeeds
from .lower import row_bytes
from .outer_rows import OuterReads
from .sweep import OperatorRows
from .twins import ColumnFigures, Twins

_FEW_ROWS = 64


def padded_bytes(rows: OperatorRows) -> Integers:
    """Bytes of the padded rows that an operator reads, 0 where there is no PAD before it."""
    tensor = rows.sources[0]
    _, _, columns, depth = tensor.shape
    size = (columns + rows.left + rows.right) * depth * tensor.dtype.arena_bytes
    return np.where(rows.pads, up((rows.read.count + rows.above + rows.below) * size), 0)


@dataclass(frozen=True)
class StepRows:
    """Where the steps of one operator are in the table, counted from its end: the table grows upwards.

    ``saved[source]``: bytes that the operator saves at most where ``source`` dies; ``pad_saved``: its padding.
    """

    rows: OperatorRows
    read: dict[Tensor, int]
    keep: dict[Tensor, int]
    pad: int
    run: int
    trim: int
    join: int
    saved: Mapping[Tensor, Integers]
    pad_saved: Integers

    @property
    def top(self) -> int:
        """The first of them."""
        return self.join + 1 - (len(self.read) + len(self.keep) + 4)


class StepTable:
    """The table of one sweep. ``after`` are bytes that are alive in all steps that are still to be added above.

    ``credits``: what kernels may save where an input dies, if anything: see ``Credits``.
    """

    def __init__(self, cuts: CutTable, has_credits: bool) -> None:
        self.cuts = cuts
        self.after: Integers = np.zeros(len(cuts.end), np.int64)
        self._cells: Integers = np.zeros((_FEW_ROWS, len(cuts.end)), np.int64)
        self._credits = Credits(_FEW_ROWS, len(cuts.end)) if has_credits else None
        self.used = 0

    def add_rows(self, count: int) -> int:
        """Make room for so many steps above; returns the first one, counted from the end (a negative number)."""
        while self.used + count > len(self._cells):
            self._cells = np.concatenate([np.zeros_like(self._cells), self._cells])
            if self._credits is not None:
                self._credits = self._credits.doubled()
        self.used += count
        self._cells[-self.used : len(self._cells) - self.used + count] = self.after
        return -self.used

    def add(self, first: int, end: int, nbytes: Integers | int) -> None:
        """Add bytes to steps ``first`` to ``end``, half-open."""
        size = len(self._cells)
        self._cells[size + first : size + end] += nbytes

    def save(self, step: int, exact: Integers, bound: Integers) -> None:
        """Bytes that a step saves, if no other input saves more."""
        if self._credits is not None:
            self._credits.save(step, exact, bound)

    def outer_credits(self) -> Credits | None:
        """A copy of the credits, to add those of the region's inputs to."""
        return None if self._credits is None else self._credits.last(self.used)

    def largest(self, extra: Integers, saved: Credits | None) -> tuple[Integers, Integers]:
        """(need, bound on what a plan needs) of each way, with ``extra`` bytes for each cell."""
        cells = self._cells[len(self._cells) - self.used :] + extra
        if saved is None:
            found = self.cuts.largest(cells.max(axis=0))
            return found, found
        pair = [self.cuts.largest((cells - each).max(axis=0)) for each in (saved.exact, saved.bound)]
        return pair[0], pair[1]


def _may_be_view(rows: OperatorRows) -> bool:
    """Whether the operator joins or cuts columns or channels, so that for a single row one is a range of the other."""
    operator = rows.operator
    if operator.name == "SLICE":
        return True
    if operator.name != "CONCATENATION":
        return False
    return int(operator.option("axis", 0)) % 4 == 2 or operator.outputs[0].shape[2] == 1


@dataclass
class LiveBytes:
    """Adds operators upwards from the exit; ``peak`` may be asked for after each.

    ``lives_on``: tensors that are read after the region. ``regular[w]``: whether the table is exact for way w.
    ``_shapes``: tensors, and in which other shape they are held.
    """

    cuts: CutTable
    joined: JoinNeeds
    twins: Twins
    lives_on: Collection[Tensor]
    regular: Flags = field(init=False)
    table: StepTable = field(init=False)
    readers: dict[Tensor, list[StepRows]] = field(default_factory=dict)
    whole: dict[Tensor, int] = field(default_factory=dict)
    made: dict[Tensor, HeldRows] = field(default_factory=dict)
    _shapes: dict[Tensor, Tensor] = field(default_factory=dict)
    _outer: dict[Tensor, OuterReads] = field(default_factory=dict)
    _parts: Integers = field(init=False)
    _exit: Tensor = field(init=False)
    _last: OperatorRows = field(init=False)

    def __post_init__(self) -> None:
        self.regular = np.ones(len(self.cuts.ways), np.bool_)
        self.table = StepTable(self.cuts, self.twins.has_reuse)

    def add(self, rows: OperatorRows, figures: ColumnFigures) -> HeldRows | None:
        """The next operator upwards; returns how its output is held, None for the exit's."""
        table, is_exit = self.table, not self.made and not self.readers
        output = rows.operator.outputs[0]
        if self._shapes and output not in self._shapes:
            self.regular &= False  # a reshape does not stand behind the operator that it reads
        if rows.way.passes_on:
            self._shapes[rows.sources[0]] = self._shapes.pop(output, output)
            return None
        if is_exit:
            self._start(rows)
        if _may_be_view(rows):
            self.regular &= self.cuts.sums(rows.has_job & (rows.computed.count == 1)) == 0
        steps = self._steps(rows, figures)
        table.add(steps.run, steps.run + 1, figures.scratch)
        table.add(steps.pad, steps.run + 1, padded_bytes(rows))
        held = None
        if is_exit:
            self._add_exit(rows, steps)
        else:
            output = self._shapes.pop(output, output)
            held = HeldRows(self.cuts, rows, output, self.readers[output], self.twins)
            self.regular &= held.regular
            held.add_to(table, steps)
            self.made[output] = held
        self._save_padded(steps)
        for tensor in rows.sources:
            self.readers.setdefault(tensor, []).append(steps)
        for slot, source in enumerate(rows.operator.inputs):
            if source is not None and not source.is_constant and slot not in rows.way.sliced:
                self.whole.setdefault(source, steps.run)
        return held

    def _save_padded(self, steps: StepRows) -> None:
        """The padded rows are read by the operator alone, and die there."""
        rows = steps.rows
        if self.twins.has_reuse and rows.pads.any():
            saved = np.where(rows.pads, steps.saved.get(rows.sources[0], 0), 0)
            self.table.save(steps.run, saved, saved)

    @property
    def is_whole(self) -> bool:
        """Whether what reshapes stand behind is inside: a region does not begin with a reshape."""
        return not self._shapes

    @property
    def at_end(self) -> Integers:
        """For each way what ``lower.bytes_at_end`` says; 0 if the region has more than one input, or readers of it."""
        outer = [readers for tensor, readers in self.readers.items() if tensor not in self.made]
        if len(outer) != 1 or len(outer[0]) != 1:
            return np.zeros(len(self.cuts.ways), np.int64)
        inner = [tensor for tensor in self._last.sources if tensor in self.made]
        rows = self._last.read.count[self.cuts.last]
        found = np.full(len(self.cuts.ways), aligned(self._exit.nbytes), np.int64)
        for tensor in inner:
            found = found + up(rows * row_bytes(tensor))
        return found

    def _start(self, rows: OperatorRows) -> None:
        self._exit, self._last = rows.operator.outputs[0], rows
        self._parts = up(rows.made.count * row_bytes(self._exit))
        self.table.after = self.cuts.sums_before(self._parts)

    def _steps(self, rows: OperatorRows, figures: ColumnFigures) -> StepRows:
        sources = rows.sources
        ends = [tensor for tensor in sources if tensor not in self.readers]
        first = self.table.add_rows(len(sources) + len(ends) + 4)
        read = {tensor: first + at for at, tensor in enumerate(sources)}
        keep = {tensor: first + len(sources) + at for at, tensor in enumerate(ends)}
        last = first + len(sources) + len(ends)
        return StepRows(rows, read, keep, last, last + 1, last + 2, last + 3, figures.saved, figures.pad_saved)

    def _add_exit(self, rows: OperatorRows, steps: StepRows) -> None:
        size = row_bytes(self._exit)
        computed = up(rows.computed.count * size)
        skipped = rows.made.start - rows.computed.start
        is_trimmed = rows.computed.count != rows.made.count
        is_part = rows.made.start * size % ARENA_ALIGNMENT == 0
        is_copy = is_trimmed & (is_part | (skipped * size % ARENA_ALIGNMENT != 0))
        self.table.add(steps.run, steps.trim + 1, computed)
        self.table.add(steps.trim, steps.trim + 1, np.where(is_copy, self._parts, 0))
        self.table.add(steps.join, steps.join + 1, self._parts)
        if self.twins.has_reuse:
            saved = self.twins.sliced(self._exit, is_copy, rows.computed.count, skipped, rows.made.count)
            self.table.save(steps.trim, saved, saved)

    @property
    def outer(self) -> list[OuterReads]:
        """The reads of each input of the region that ``peak`` was last asked for."""
        return [reads for tensor, reads in self._outer.items() if tensor not in self.made]

    def _read(self, inputs: Sequence[Tensor]) -> list[OuterReads]:
        """The reads of these inputs; those that have the readers of the region before are known."""
        at_end = self.at_end
        for tensor in inputs:
            readers, known = self.readers[tensor], self._outer.get(tensor)
            if known is None or not known.are_of(readers, at_end):
                lives_on = tensor in self.lives_on
                self._outer[tensor] = OuterReads(self.cuts, tensor, readers, lives_on, at_end, self.twins)
        return self.outer

    def peak(self) -> tuple[Integers, Integers, Flags]:
        """The largest need of each way when the region starts at the operator added last.

        Also a bound on what any plan needs for this order, and whether the need is exact.
        """
        outer = [tensor for tensor in self.readers if tensor not in self.made]
        staying = sum(aligned(tensor.nbytes) for tensor in {*outer, *self.whole} if tensor in self.lives_on)
        extra: Integers = np.full((self.table.used, len(self.cuts.end)), staying, np.int64)
        exact = self.regular.copy()
        start = np.full(len(self.cuts.ways), sum(aligned(t.nbytes) for t in {*outer, *self.whole}), np.int64)
        start_bound = start
        saved = self.table.outer_credits()
        for reads in self._read(outer):
            copies, copies_bound = reads.at_start
            start, start_bound = start + copies, start_bound + copies_bound
            exact &= reads.add_to(extra)
            if saved is not None:
                reads.save_to(saved)
        for tensor, run in self.whole.items():
            if tensor not in self.lives_on:
                extra += aligned(tensor.nbytes)
                extra[self.table.used + run + 1 :, self.cuts.last] -= aligned(tensor.nbytes)
        joined = self.joined.needs + staying
        need, bound = self.table.largest(extra, saved)
        need, bound = np.maximum(need, np.maximum(joined, start)), np.maximum(bound, np.maximum(joined, start_bound))
        return need, bound, exact & self.joined.exact
