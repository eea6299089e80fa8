"""Which rows every operator reads and makes in each stripe, from the exit upwards, for many ways to cut at once.

The same as ``stripes.py`` says for one way, in arrays with a column for each stripe. What an operator does depends on
the operators below it and not on where the region starts, so that one sweep serves all regions with this exit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..ir.model import Operator, Tensor
from ..operators.rows import Axis, RowByRow
from ..operators.table import kind_of
from .cut_table import CutTable, Flags, Integers
from .stripes import Edges, Halo


@dataclass(frozen=True)
class RowArrays:
    """Rows ``start`` to ``end``, half-open, a column for each stripe; where ``end`` is not above, there are none."""

    start: Integers
    end: Integers

    @cached_property
    def count(self) -> Integers:
        """How many rows."""
        found: Integers = np.maximum(self.end - self.start, 0)
        return found


@dataclass(frozen=True)
class OperatorRows:
    """What an operator does in each stripe: it makes ``made`` of ``computed`` rows of its output from ``read`` rows.

    ``needed`` are the rows of the output that readers want, ``kept`` those of them that the stripe before has made.
    ``above`` and ``below``: rows of padding that are written first; ``left`` and ``right`` columns. ``pads``: whether
    there is a PAD. ``has_job``: whether anything is made. ``is_valid``: the window gets no padding of its own.
    """

    operator: Operator
    way: RowByRow
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
    def sources(self) -> tuple[Tensor, ...]:
        """The tensors of which it reads rows, each once."""
        return tuple(dict.fromkeys(t for slot in self.way.sliced if (t := self.operator.inputs[slot]) is not None))


@dataclass
class Sweep:
    """``possible[w]``: whether way w can be done for the operators so far.

    What only a reshape reads is held in the reshape's shape alone: the operator that makes it makes these rows.
    """

    cuts: CutTable
    halo: Halo
    edges: Edges
    possible: Flags = field(init=False)
    _needs: dict[Tensor, RowArrays] = field(default_factory=dict)
    _passed: dict[Tensor, tuple[RowArrays, RowArrays]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.possible = np.ones(len(self.cuts.ways), np.bool_)

    def add(self, operator: Operator, way: RowByRow) -> OperatorRows:
        """The next operator upwards. Its readers have been added before; the exit comes first."""
        output = operator.outputs[0]
        if not self._needs:
            needed = RowArrays(self.cuts.start, self.cuts.end)
            kept = RowArrays(needed.start, needed.start)
        elif output in self._passed:
            needed, kept = self._passed[output]
        else:
            needed = self._needs[output]
            kept = self._kept(needed)
        made = RowArrays(kept.end, needed.end)
        has_job = made.end > made.start
        done = self._job(operator, way, needed, kept, made, has_job)
        if (has_job & (done.read.end <= done.read.start)).any():
            self.possible &= self.cuts.sums(has_job & (done.read.end <= done.read.start)) == 0
        for tensor in done.sources:
            self._want(tensor, done.read, has_job)
            if way.passes_on:
                self._passed[tensor] = needed, kept
        return done

    def _kept(self, needed: RowArrays) -> RowArrays:
        if self.halo != "rolling":
            return RowArrays(needed.start, needed.start)
        before_start = self.cuts.previous(needed.start, 0)
        before_end = self.cuts.previous(needed.end, 0)
        is_kept = (before_start <= needed.start) & (needed.start < before_end)
        return RowArrays(needed.start, np.where(is_kept, np.minimum(before_end, needed.end), needed.start))

    def _job(
        self,
        operator: Operator,
        way: RowByRow,
        needed: RowArrays,
        kept: RowArrays,
        made: RowArrays,
        has_job: Flags,
    ) -> OperatorRows:
        axis, columns = way.rows, way.columns
        zero = np.zeros_like(made.start)
        above = below = zero
        left = right = 0
        computed, is_pad = made, kind_of(operator).is_pad
        has_padding = way.is_window and any((axis.before, axis.after, columns.before, columns.after))
        is_trimmed = has_padding and (self.edges == "trim" or kind_of(operator).beyond == "not counted")
        is_valid = way.is_window and not is_trimmed
        if axis.factor > 1:
            computed, read = _enlarged(axis, made)
        elif is_trimmed:
            computed, read = _trimmed(axis, made)
        else:
            first, last = (
                made.start * axis.stride - axis.before,
                (made.end - 1) * axis.stride - axis.before + axis.reach,
            )
            read = RowArrays(np.maximum(first, 0), np.minimum(last, axis.size))
            if has_padding or is_pad:
                above, below = np.maximum(-first, 0), np.maximum(last - axis.size, 0)
                left, right = columns.before, columns.after
        pads = zero.astype(np.bool_) if is_pad else ((above + below + left + right) > 0) & has_job
        return OperatorRows(
            operator, way, needed, kept, made, computed, read, above, below, left, right, pads, has_job, is_valid
        )

    def _want(self, tensor: Tensor, read: RowArrays, has_job: Flags) -> None:
        start, end = np.where(has_job, read.start, 0), np.where(has_job, read.end, 0)
        other = self._needs.get(tensor)
        if other is not None:
            is_empty = other.end <= other.start
            start = np.where(is_empty, start, np.where(has_job, np.minimum(start, other.start), other.start))
            end = np.maximum(end, other.end)
        self._needs[tensor] = RowArrays(start, end)


def _trimmed(axis: Axis, made: RowArrays) -> tuple[RowArrays, RowArrays]:
    """(computed, read) rows: see ``stripes._trimmed``."""
    start = np.maximum(made.start * axis.stride - axis.before, 0)
    end = np.minimum((made.end - 1) * axis.stride - axis.before + axis.reach, axis.size)
    first = start // axis.stride * axis.stride
    last = np.minimum(axis.size, end + (axis.size - end) % axis.stride)
    top = first // axis.stride
    return RowArrays(top, top - (first - last) // axis.stride), RowArrays(first, last)


def _enlarged(axis: Axis, made: RowArrays) -> tuple[RowArrays, RowArrays]:
    """(computed, read) rows where one row becomes several: see ``Axis.reads`` and ``Axis.makes``."""
    first = np.maximum((made.start - axis.above) // axis.factor, 0)
    last = np.minimum((made.end - 1 + axis.below) // axis.factor + 1, axis.size)
    beyond = axis.outputs - axis.size * axis.factor
    return RowArrays(first * axis.factor, last * axis.factor + beyond), RowArrays(first, last)
