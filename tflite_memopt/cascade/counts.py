"""What stripes add to a model, counted: operators, tensors, constants, persistent bytes, MACs, work.

The same as ``lower.py`` writes, for many ways to cut at once and all places where the region can start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..analysis.macs import operator_macs
from ..ir.constants import integers
from ..ir.model import Operator, Tensor
from ..memory.work import copied_work, prices_of
from ..operators.table import kind_of
from ..operators.told import ShapeOperand
from .cut_table import CutTable, Flags, Integers
from .held_rows import HeldRows
from .live import LiveBytes
from .outer_rows import OuterReads
from .sweep import OperatorRows
from .twins import ColumnFigures, TwinFigures, Twins

_ROWS = 1 << 16
_BEGIN, _SIZE, _PADDINGS, _SIDES = 1 << 50, 2 << 50, 3 << 50, 4 << 50
_WAY = 1 << 53


@dataclass(frozen=True)
class Additions:
    """What each way adds: ``activations`` and other ``tensors`` (negative where more are removed), ``constants`` apart.

    ``params`` and ``buffers``: persistent bytes of operators, see ``TwinFigures``; ``requests``: of scratch.
    ``work``: see ``memory/work.py``.
    """

    operators: Integers
    activations: Integers
    tensors: Integers
    params: Integers
    buffers: Integers
    requests: Integers
    macs: Integers
    work: Integers
    constants: Integers

    def constants_of(self, way: int) -> frozenset[int]:
        """The new constants of one way, as numbers that are equal for equal constants."""
        return frozenset((self.constants[self.constants // _WAY == way] % _WAY).tolist())


@dataclass
class Counter:
    """Adds operators upwards from the exit, beside ``LiveBytes``."""

    cuts: CutTable
    twins: Twins
    operators: Integers = field(init=False)
    slices: Integers = field(init=False)
    pads: Integers = field(init=False)
    joins: Integers = field(init=False)
    runs: Integers = field(init=False)
    params: Integers = field(init=False)
    buffers: Integers = field(init=False)
    requests: Integers = field(init=False)
    macs: Integers = field(init=False)
    work: Integers = field(init=False)
    removed: list[Operator] = field(default_factory=list)
    codes: list[Integers] = field(default_factory=list)
    _said: set[Tensor | None] = field(default_factory=set)
    _inputs: dict[OuterReads, Counter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        zero = np.zeros(len(self.cuts.ways), np.int64)
        self.slices = self.pads = self.joins = self.runs = zero
        self.params = self.buffers = self.requests = self.macs = self.work = zero

    def add(self, rows: OperatorRows, held: HeldRows | None, figures: ColumnFigures) -> None:
        """The next operator upwards; ``figures``: of its twins."""
        operator, sums = rows.operator, self.cuts.sums
        self.removed.append(operator)
        resized = kind_of(operator).resized
        if isinstance(resized, ShapeOperand):
            self._said.add(operator.inputs[resized.slot])
        self.runs = self.runs + sums(rows.has_job)
        params, buffers, requests = map(sums, (figures.params, figures.buffers, figures.requests))
        self.params, self.buffers, self.requests = (
            self.params + params,
            self.buffers + buffers,
            self.requests + requests,
        )
        self.work = self.work + sums(figures.work) - self.twins.whole(operator).work
        macs, axis = operator_macs(operator), rows.way.rows
        # A transposed convolution multiplies every row that it reads.
        counted, height = (rows.read, axis.size) if axis.factor > 1 else (rows.computed, axis.outputs)
        self.macs = self.macs + macs // height * sums(np.where(rows.has_job, counted.count, 0)) - macs
        self._paddings(rows)
        self._shapes(rows)
        output = operator.outputs[0]
        trimmed = rows.has_job & (rows.computed.count != rows.made.count)
        self._slice(output, trimmed, rows.made.start - rows.computed.start, rows.made.count)
        if held is not None:
            self._held(held, held.tensor)

    def _held(self, held: HeldRows, output: Tensor) -> None:
        self.joins = self.joins + self.cuts.sums(held.is_joined)
        prices = prices_of(output, self.twins.prices)
        self._works(held.is_joined, prices.call, prices.joined * held.needed.count * held.row)
        for read in held.reads:
            count = read.steps.rows.read.count
            self._slice(output, read.is_cut, read.steps.rows.read.start - held.needed.start, count)
        start = self.cuts.following(held.kept.start, 0) - held.needed.start
        self._slice(output, held.keep_is_cut, start, self.cuts.following(held.kept.count, 0))

    def _paddings(self, rows: OperatorRows) -> None:
        self.pads = self.pads + self.cuts.sums(rows.pads)
        amounts = integers(rows.operator.inputs[1]) if kind_of(rows.operator).is_pad else None
        present, depth = (rows.pads, 0) if amounts is None else (rows.has_job, int(amounts[6] * 32 + amounts[7]))
        if rows.pads.any():
            _, _, columns, depth_of_source = rows.sources[0].shape
            elements = (
                (rows.read.count + rows.above + rows.below) * (columns + rows.left + rows.right) * depth_of_source
            )
            prices = prices_of(rows.sources[0], self.twins.prices)
            self._works(rows.pads, prices.call, prices.padded * elements)
        if present.any():
            left, right = rows.left, rows.right
            codes = ((rows.above * 256 + rows.below) * 256 + left) * 256 + right + (depth << 34)
            self._code(present, codes + _PADDINGS)

    def _shapes(self, rows: OperatorRows) -> None:
        """The constant that says a stripe's shape; a whole shape is the same constant as that of a slice."""
        said, output = kind_of(rows.operator).resized, rows.operator.outputs[0]
        if not isinstance(said, ShapeOperand) or not rows.has_job.any():
            return
        if (said.first, said.end) == (0, 4):
            self._code(rows.has_job, rows.computed.count + (_SIZE + self.twins.shape_number(output.shape[2:]) * _ROWS))
        else:
            self._code(rows.has_job, rows.computed.count + (_SIDES + output.shape[2] * _ROWS))

    def _slice(self, tensor: Tensor, present: Flags, begin: Integers, count: Integers) -> None:
        if present.any():
            self.slices = self.slices + self.cuts.sums(present)
            prices = prices_of(tensor, self.twins.prices)
            self._works(present, prices.call, copied_work(tensor.shape[2:], prices) * count)
            self._code(present, begin + _BEGIN)
            self._code(present, count + (_SIZE + self.twins.shape_number(tensor.shape[2:]) * _ROWS))

    def _works(self, present: Flags, call: int, more: Integers) -> None:
        """One operator in each of these stripes."""
        self.work = self.work + self.cuts.sums(np.where(present, call + more, 0))

    def _code(self, present: Flags, codes: Integers) -> None:
        self.codes.append((codes + self.cuts.way * _WAY)[present])

    def additions(self, live: LiveBytes) -> Additions:
        """What the region adds that starts at the operator added last."""
        slices, work, parts = self.slices, self.work, list(self.codes)
        for reads in live.outer:
            added = self._of_input(reads)
            slices, work = slices + added.slices, work + added.work
            parts += added.codes
        codes = np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        last, prices = live.joined.counts, prices_of(self.removed[0].outputs[0], self.twins.prices)
        work = work + last * prices.call + live.joined.written * prices.joined
        joins = self.joins + last
        new = slices + self.pads + self.joins + self.runs + last
        whole = self._whole()
        figures: list[tuple[Integers, TwinFigures]] = [
            (slices, self.twins.plain("SLICE")),
            (self.pads, self.twins.plain("PAD")),
        ]
        figures.append((joins, self.twins.plain("CONCATENATION")))
        count = len(self.removed)
        return Additions(
            operators=new - count,
            activations=new - count,
            tensors=np.full_like(new, -self._unread_constants()),
            params=self.params + sum(n * each.params for n, each in figures) - sum(each.params for each in whole),
            buffers=self.buffers + sum(n * each.buffers for n, each in figures) - sum(each.buffers for each in whole),
            requests=self.requests - sum(each.requests for each in whole),
            macs=self.macs,
            work=work,
            constants=codes,
        )

    def _whole(self) -> list[TwinFigures]:
        return [self.twins.whole(operator) for operator in self.removed]

    def _unread_constants(self) -> int:
        """Paddings of PAD operators, and shapes, that nothing reads any more."""
        gone = set(self.removed)
        read = {op.inputs[1] for op in self.removed if kind_of(op).is_pad} | self._said
        return sum(t is not None and all(use.operator in gone for use in t.uses) for t in read)

    def _of_input(self, reads: OuterReads) -> Counter:
        """What the slices of an input add: counted once for all regions with the same reads."""
        if reads not in self._inputs:
            self._inputs[reads] = Counter(self.cuts, self.twins)
            self._inputs[reads]._add_slices(reads)
        return self._inputs[reads]

    def _add_slices(self, reads: OuterReads) -> None:
        """Slices of an input: one for each reader where they are late, else one for each range of rows."""
        tensor, late = reads.tensor, reads.times.late[self.cuts.way]
        keys = []
        for each in reads.reads:
            steps = each.steps
            read = steps.rows.read
            is_cut = steps.rows.has_job & (read.count > 0) & (read.count < tensor.shape[1])
            self._slice(tensor, is_cut & late, read.start, read.count)
            early = is_cut & ~late
            keys.append(((self.cuts.way * _ROWS + read.start) * _ROWS + read.end)[early])
        different = np.unique(np.concatenate(keys))
        if len(different):
            way, start, end = different // (_ROWS * _ROWS), different // _ROWS % _ROWS, different % _ROWS
            self.slices = self.slices + np.bincount(way, minlength=len(self.cuts.ways))
            prices = prices_of(tensor, self.twins.prices)
            row = copied_work(tensor.shape[2:], prices)
            added = np.zeros_like(self.work)
            np.add.at(added, way, prices.call + (end - start) * row)
            self.work = self.work + added
            self.codes.append(way * _WAY + _BEGIN + start)
            number = self.twins.shape_number(tensor.shape[2:])
            self.codes.append(way * _WAY + _SIZE + number * _ROWS + end - start)
