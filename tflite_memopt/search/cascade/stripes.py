"""The rows that each operator of a region computes in each stripe: integers only, no graph is touched.

    stripe       0        1        2          rows of the exit are cut into stripes; going up, every operator needs a
    exit      |------||------||------|        few more rows (the *halo*), which two stripes share
    above     |--------|                      recompute: every stripe computes its halo again
                   |--------|
                         |--------|
    above     |--------|                      rolling: the rows that the stripe before has computed are kept
                        |------|              (their window is joined from the kept rows and the new ones)
                               |-----|

``Demand`` says it for many ways to cut at once, in arrays with a column for each stripe. The behavior of an operator
depends on the operators below it and not on where the region starts, so that one pass serves all regions with this
exit.

At the edge of the image a SAME window needs padding, at the edge of a stripe it must not have any. Two ways:
``pad``: PAD the rows with the zero point, then a VALID window. ``trim``: a SAME window over a few rows more, whose
outermost output rows are wrong and cut off; pools always take this one, since their padding does not count.

Many ways to cut an image's rows into stripes, laid out flat: numpy works on all of them at once.

    way 0: two stripes     way 1: three stripes        one column for each stripe
    | 0..4 | 4..8 |        | 0..3 | 3..6 | 6..8 |

All arrays of this folder with "a column for each stripe" are in this layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ...model.ir.model import Operator, Tensor
from ...operators.rows import Axis, RowMap, Rows
from ...operators.table import kind_of
from ...solvers.graph.alignment import ARENA_ALIGNMENT
from .region import Region

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Columns = TypeVar("Columns", Integers, Flags)
Ends = tuple[int, ...]
"""The last row of each stripe, half-open, in order; the last of them is the height."""

_FAR = 1 << 42
"""More than any value that is compared."""


def up(sizes: Integers) -> Integers:
    """Return the bytes rounded up to TFLM's alignment."""
    return (sizes + (ARENA_ALIGNMENT - 1)) // ARENA_ALIGNMENT * ARENA_ALIGNMENT


@dataclass(frozen=True)
class CutTable:
    """``ways[w]`` are the ends of the stripes of way w."""

    ways: tuple[Ends, ...]

    @cached_property
    def end(self) -> Integers:
        """The last row of each stripe, half-open."""
        return np.concatenate([np.asarray(ends, np.int64) for ends in self.ways])

    @cached_property
    def start(self) -> Integers:
        """The first row of each stripe."""
        return self.previous(self.end, 0)

    @cached_property
    def first(self) -> npt.NDArray[np.intp]:
        """The column of the first stripe of each way."""
        lengths = [len(ends) for ends in self.ways]
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)

    @cached_property
    def last(self) -> npt.NDArray[np.intp]:
        """The column of the last stripe of each way."""
        return np.concatenate([self.first[1:], [len(self.end)]]).astype(np.intp) - 1

    @cached_property
    def way(self) -> npt.NDArray[np.intp]:
        """The way that each column belongs to."""
        return np.repeat(np.arange(len(self.ways)), [len(ends) for ends in self.ways])

    def previous(self, values: Columns, fill: int) -> Columns:
        """For each stripe the value of the one before it, ``fill`` for the first of a way."""
        moved = np.empty_like(values)
        moved[1:] = values[:-1]
        moved[self.first] = fill
        return moved

    def following(self, values: Columns, fill: int) -> Columns:
        """For each stripe the value of the one after it, ``fill`` for the last of a way."""
        moved = np.empty_like(values)
        moved[:-1] = values[1:]
        moved[self.last] = fill
        return moved

    def sums(self, values: Integers | Flags) -> Integers:
        """Return the sum over the stripes of each way."""
        found: Integers = np.add.reduceat(values.astype(np.int64), self.first)
        return found

    def largest(self, values: Integers) -> Integers:
        """Return the largest value of each way."""
        found: Integers = np.maximum.reduceat(values, self.first)
        return found

    def least_from(self, values: Integers) -> Integers:
        """For each stripe the smallest value of it and those after it."""
        apart = self.way * _FAR  # a later way has larger values, so that it decides nothing in an earlier one
        found: Integers = np.minimum.accumulate((values + apart)[::-1])[::-1] - apart
        return found

    def largest_until(self, values: Integers) -> Integers:
        """For each stripe the largest value of it and those before it."""
        apart = self.way * _FAR
        found: Integers = np.maximum.accumulate(values + apart) - apart
        return found

    def sums_before(self, values: Integers) -> Integers:
        """For each stripe the sum over the stripes before it."""
        total = np.cumsum(values) - values
        return total - total[self.first][self.way]


def even_ends(height: int, count: int, multiple: int = 1) -> Ends:
    """``count`` stripes or fewer of a tensor's rows, as even as multiples of so many rows allow."""
    units = -(-height // multiple)
    count = min(count, units)
    return tuple(min(height, multiple * (units * (k + 1) // count)) for k in range(count))


def ways_to_cut(height: int, counts: Sequence[int], aligned_rows: int) -> CutTable | None:
    """Even stripes of these counts, at any row and at multiples of ``aligned_rows``; None if there are no two rows."""
    found: dict[Ends, None] = {}
    for count in counts:
        for multiple in dict.fromkeys((1, aligned_rows)):
            ends = even_ends(height, count, multiple)
            if len(ends) == count > 1:
                found[ends] = None
    return CutTable(tuple(found)) if found else None


Halo = Literal["recompute", "rolling"]
Edges = Literal["pad", "trim"]


@dataclass(frozen=True)
class Job:
    """One operator in one stripe: it makes ``wanted`` of ``computed`` rows of its output from ``read`` rows.

    ``padding`` is (above, below, left, right) to put around the rows first; the window is then VALID. None: the
    operator stays as it is. ``step``: where it is not 0, the operator pads columns by itself, and its window steps over
    that many rows.
    """

    wanted: Rows
    computed: Rows
    read: Rows
    padding: tuple[int, int, int, int] | None = None
    step: int = 0

    def padding_columns_itself(self) -> Job:
        """Return the same job without a padded copy, where it is a window that makes one row.

        SAME pads by ``max(0, (outputs - 1) * stride + window - inputs)`` (tensorflow/lite/kernels/padding.h): rows get
        none where the window steps over all that there are.
        """
        if self.padding is None or self.computed.count > 1 or not any(self.padding[2:]):
            return self
        above, below = self.padding[:2]
        return replace(self, padding=(above, below, 0, 0), step=above + self.read.count + below)


@dataclass(frozen=True)
class Window:
    """Rows of a tensor that a stripe needs: ``kept`` from the stripe before (may be empty), then ``made`` ones."""

    needed: Rows
    kept: Rows
    made: Rows


@dataclass(frozen=True)
class Stripe:
    """The operators of one stripe: a job for each operator that has something to do, a window for each inner tensor."""

    jobs: Mapping[Operator, Job]
    windows: Mapping[Tensor, Window]

    def kept(self) -> dict[Tensor, Rows]:
        """Return the rows that it gets from the stripe before it, of every tensor that has such rows."""
        return {tensor: window.kept for tensor, window in self.windows.items() if window.kept.count}


def stripes_of(region: Region, cuts: Sequence[Rows], halo: Halo, edges: Edges) -> tuple[Stripe, ...] | str:
    """Return the work of each stripe, for output rows ``cuts`` from row 0 on; or the reason why it cannot be done."""
    demand = Demand(CutTable((tuple(rows.end for rows in cuts),)), halo, edges)
    every: dict[Tensor, OperatorRows] = {}
    for operator, row_map in reversed(region.steps):
        every[operator.outputs[0]] = demand.add(operator, row_map)
        if not demand.possible.all():
            return f"a stripe of '{operator.outputs[0].name}' would be padding only"
    return tuple(_stripe(region, every, at) for at in range(len(cuts)))


def _stripe(region: Region, every: Mapping[Tensor, OperatorRows], at: int) -> Stripe:
    jobs = {rows.operator: job_in(rows, at) for rows in every.values() if rows.has_job[at]}
    inner = {tensor: rows for tensor, rows in every.items() if tensor is not region.exit}
    return Stripe(jobs, {t: Window(r.needed.at(at), r.kept.at(at), r.made.at(at)) for t, r in inner.items()})


def job_in(rows: OperatorRows, at: int) -> Job:
    """Return the work of an operator in one stripe."""
    padding = int(rows.above[at]), int(rows.below[at]), rows.left, rows.right
    is_padded = rows.is_valid or kind_of(rows.operator).is_pad
    return Job(rows.made.at(at), rows.computed.at(at), rows.read.at(at), padding if is_padded else None)


def cuts_at(ends: Ends) -> tuple[Rows, ...]:
    """Return the rows of stripes that end with these rows, half-open."""
    return tuple(Rows(start, end) for start, end in zip((0, *ends), ends, strict=False))


def input_reads(region: Region, stripe: Stripe) -> Iterator[tuple[Operator, Tensor, Rows]]:
    """Yield the operators of a stripe that read rows of the region's inputs, in order, with the input and the rows."""
    for operator, row_map in region.steps:
        if operator in stripe.jobs:
            rows = stripe.jobs[operator].read
            yield from ((operator, tensor, rows) for tensor in row_map.images(operator) if tensor in region.inputs)


@dataclass(frozen=True)
class RowArrays:
    """Rows ``start`` to ``end``, half-open, a column for each stripe; where ``end`` is not above, there are none."""

    start: Integers
    end: Integers

    @cached_property
    def count(self) -> Integers:
        """The number of rows."""
        found: Integers = np.maximum(self.end - self.start, 0)
        return found

    def at(self, column: int) -> Rows:
        """Return the rows of one stripe."""
        return Rows(int(self.start[column]), int(self.end[column]))


@dataclass(frozen=True)
class OperatorRows:
    """An operator's rows in each stripe: it makes ``made`` of ``computed`` rows of its output from ``read`` rows.

    ``needed`` are the rows of the output that readers want, ``kept`` those of them that the stripe before has made.
    ``above`` and ``below``: rows of padding that are written first; ``left`` and ``right`` columns. ``pads``: whether
    there is a PAD. ``has_job``: whether anything is made. ``is_valid``: the window gets no padding of its own.
    """

    operator: Operator
    row_map: RowMap
    needed: RowArrays
    kept: RowArrays
    made: RowArrays
    computed: RowArrays
    read: RowArrays
    above: Integers
    below: Integers
    left: int
    right: int
    pads: Flags
    has_job: Flags
    is_valid: bool

    @cached_property
    def runs(self) -> Flags:
        """The stripes in which the operator is written: a PAD that pads nothing is left out."""
        is_pad = kind_of(self.operator).is_pad
        return self.has_job & ((self.above + self.below + self.left + self.right > 0) | (not is_pad))

    @cached_property
    def sources(self) -> tuple[Tensor, ...]:
        """The tensors whose rows it reads, without duplicates."""
        return tuple(dict.fromkeys(self.row_map.images(self.operator)))


@dataclass
class Demand:
    """``possible[w]``: whether way w can be done for the operators so far.

    A tensor that only a reshape reads exists in the reshape's shape only: its producer writes these rows.
    """

    cuts: CutTable
    halo: Halo
    edges: Edges
    possible: Flags = field(init=False)
    _needs: dict[Tensor, RowArrays] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.possible = np.ones(len(self.cuts.ways), np.bool_)

    def add(self, operator: Operator, row_map: RowMap) -> OperatorRows:
        """Return the next operator upwards. Its readers have been added before; the exit comes first."""
        output = operator.outputs[0]
        if not self._needs:
            needed = RowArrays(self.cuts.start, self.cuts.end)
            kept = RowArrays(needed.start, needed.start)
        else:
            needed = self._needs[output]
            kept = self._kept(needed)
        made = RowArrays(kept.end, needed.end)
        has_job = made.end > made.start
        done = rows_of_operator(operator, row_map, self.edges, needed, kept, made)
        if (has_job & (done.read.end <= done.read.start)).any():
            self.possible &= self.cuts.sums(has_job & (done.read.end <= done.read.start)) == 0
        for tensor in done.sources:
            self._want(tensor, done.read, has_job)
        return done

    def _kept(self, needed: RowArrays) -> RowArrays:
        if self.halo != "rolling":
            return RowArrays(needed.start, needed.start)
        before_start = self.cuts.previous(needed.start, 0)
        before_end = self.cuts.previous(needed.end, 0)
        is_kept = (before_start <= needed.start) & (needed.start < before_end)
        return RowArrays(needed.start, np.where(is_kept, np.minimum(before_end, needed.end), needed.start))

    def _want(self, tensor: Tensor, read: RowArrays, has_job: Flags) -> None:
        start, end = np.where(has_job, read.start, 0), np.where(has_job, read.end, 0)
        other = self._needs.get(tensor)
        if other is not None:
            is_empty = other.end <= other.start
            start = np.where(is_empty, start, np.where(has_job, np.minimum(start, other.start), other.start))
            end = np.maximum(end, other.end)
        self._needs[tensor] = RowArrays(start, end)


def rows_of_operator(
    operator: Operator, row_map: RowMap, edges: Edges, needed: RowArrays, kept: RowArrays, made: RowArrays
) -> OperatorRows:
    """Return what an operator computes and reads in each stripe, in which it makes these rows of its output."""
    axis, columns = row_map.rows, row_map.columns
    zero, has_job = np.zeros_like(made.start), made.end > made.start
    above = below = zero
    left = right = 0
    computed, is_pad = made, kind_of(operator).is_pad
    has_padding = row_map.is_window and any((axis.before, axis.after, columns.before, columns.after))
    is_trimmed = has_padding and (edges == "trim" or kind_of(operator).beyond == "not counted")
    is_valid = row_map.is_window and not is_trimmed
    first, last = axis.reads(made.start, made.end)
    read = RowArrays(np.maximum(first, 0), np.minimum(last, axis.size))
    if axis.factor > 1:
        computed = RowArrays(*axis.makes(read.start, read.end))
    elif is_trimmed:
        computed, read = _trimmed(axis, read)
    elif has_padding or is_pad:
        above, below = np.maximum(-first, 0), np.maximum(last - axis.size, 0)
        left, right = columns.before, columns.after
    pads = zero.astype(np.bool_) if is_pad else ((above + below + left + right) > 0) & has_job
    return OperatorRows(
        operator, row_map, needed, kept, made, computed, read, above, below, left, right, pads, has_job, is_valid
    )


def _trimmed(axis: Axis, needed: RowArrays) -> tuple[RowArrays, RowArrays]:
    """(computed, read) rows of a SAME window that ``needed`` rows at least, so that its padding is that of the whole.

    The padding depends on the number of rows modulo the stride alone; the first row must be a multiple of it.
    """
    first = needed.start // axis.stride * axis.stride
    last = np.minimum(axis.size, needed.end + (axis.size - needed.end) % axis.stride)
    top = first // axis.stride
    return RowArrays(top, top - (first - last) // axis.stride), RowArrays(first, last)
