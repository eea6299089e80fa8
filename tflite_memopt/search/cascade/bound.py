"""Lower bounds of tilings, without writing them: cheap enough for all of them, so that only the best are measured.

Stripes: bytes alive while every operator of every stripe runs, for many ways to cut at once.

    parts of the exit made before | rows of this stripe, from its maker to its last reader | rows kept for the next one
    inputs, from the first row that this stripe or a later one reads

Loops: image, result and kept rows, and the largest operator of an iteration. Bytes are of the head, on 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernels.arena import EVAL_TENSOR, NODE_AND_REGISTRATION
from ...kernels.prices import Prices
from ...kernels.profile import KernelProfile
from ...memory.figures import ArenaTerms, params_bytes
from ...memory.loops import least_distance
from ...memory.work import call_work, operator_work, prices_of, skips_padding
from ...model.ir.model import Buffer, DType, OpCode, Operator, OperatorOptions, Tensor
from ...operators.overrides import ShapeOperand
from ...operators.requests import ILP32
from ...operators.rows import RowMap, Rows
from ...operators.table import SHARED_CODE, kind_of, operator_macs, row_map_of
from ...operators.window import CONVOLUTIONS
from ...solvers.graph.alignment import aligned
from .loop import LoopRows
from .loop_rows import Clamped, Masked
from .lower import row_bytes
from .region import Region
from .select import Figures
from .stripes import CutTable, Demand, Flags, Integers, OperatorRows, up

_NO_DATA = Buffer()


class MayShare:
    """Says of an operator under one kernel profile whether the same operator on fewer rows may share bytes.

    An operator on all rows and on a single one are asked: rules look at types, windows and channels, and at whether
    there is more than one row. ``pads_in_place``: whether the result of a PAD may lie on what it pads.
    """

    def __init__(self, profile: KernelProfile) -> None:
        self._relations = profile.relations
        self.pads_in_place = bool(profile.relations(_padded_row()))
        self._known: dict[Operator, bool] = {}

    def __call__(self, operator: Operator) -> bool:
        """Tell whether the output of the operator, on whatever rows, may lie on an input."""
        if operator not in self._known:
            self._known[operator] = self._may(operator)
        return self._known[operator]

    def _may(self, operator: Operator) -> bool:
        if any(len(tensor.shape) != 4 for tensor in (operator.inputs[0], *operator.outputs) if tensor is not None):
            return True
        return any(self._relations(each) for each in (operator, one_row(operator)))


def one_row(operator: Operator) -> Operator:
    """Return the operator as a stripe of one row; itself where it has no rows."""
    has_image = any(len(tensor.shape) == 4 and not tensor.is_constant for tensor in operator.present_inputs())
    has_rows = has_image and all(len(each.shape) == 4 for each in operator.outputs)
    if not has_rows or not operator.outputs:
        return operator
    inputs = [tensor if tensor is None or not _is_cut(tensor) else _row_of(tensor) for tensor in operator.inputs]
    made, resized = _row_of(operator.outputs[0]), kind_of(operator).resized
    if isinstance(resized, ShapeOperand) and not isinstance(row_map_of(operator), str):
        inputs[resized.slot] = _integers(resized.of(made.shape))
    return replace(operator, inputs=tuple(inputs), outputs=(made,))


def _is_cut(tensor: Tensor) -> bool:
    return not tensor.is_constant and len(tensor.shape) == 4 and tensor.shape[1] > 1


def _row_of(like: Tensor) -> Tensor:
    return Tensor(like.name, (like.shape[0], 1, *like.shape[2:]), like.dtype, _NO_DATA, like.quantization)


def _padded_row() -> Operator:
    row, padded = (Tensor("", (1, 1, columns, 1), DType.INT8, _NO_DATA) for columns in (1, 2))
    paddings = replace(_integers((0, 0, 0, 0, 0, 1, 0, 0)), shape=(4, 2))
    return Operator(OpCode("PAD"), (row, paddings), (padded,), OperatorOptions("PadOptions", {}))


def _integers(values: tuple[int, ...]) -> Tensor:
    data = np.frombuffer(np.asarray(values, np.int32).tobytes(), np.uint8)
    return Tensor("", (len(values),), DType.INT32, Buffer(data))


_SPOILT = 0.6
"""The least part of its run time that a row costs if it sees padding, where kernels skip padding."""
Floats = npt.NDArray[np.floating[Any]]
_FAR = 1 << 40
"""More than any row."""


@dataclass(frozen=True)
class RunCosts:
    """Of one run of an operator, whatever its rows: ``tail`` bytes, scratch ``requests`` and ``scratch`` bytes.

    ``macs`` and ``work`` of one row of its output at least, on average; ``call`` is the work beside that. With all rows
    at once it takes ``whole_tail`` and ``whole_work``. ``padded_row_cost``: the part of ``work`` that a row takes at
    least which sees padding.
    """

    tail: int
    whole_tail: int
    requests: int
    scratch: int
    macs: float
    work: float
    call: int
    whole_work: int
    padded_row_cost: float


class Costs:
    """The costs of a model's operators under one kernel profile."""

    def __init__(self, profile: KernelProfile) -> None:
        self.profile, self.shares = profile, MayShare(profile)
        self.plain_tail = NODE_AND_REGISTRATION.on(profile.abi) + EVAL_TENSOR.on(profile.abi)
        self._without_leftovers = replace(profile.prices, block=1)  # pixels of some rows may fill all blocks
        self.of = cache(self._of)

    def _of(self, operator: Operator) -> RunCosts:
        asked, row = self.profile.requests(operator, self.profile.abi), one_row(operator)
        rows = operator.outputs[0].shape[1]
        call = call_work(operator, self.profile.prices)
        work = (operator_work(operator, self._without_leftovers) - call) / rows
        if operator.name not in CONVOLUTIONS:
            work = min(work, operator_work(row, self.profile.prices) - call)
        structures = self.plain_tail + params_bytes(asked)
        return RunCosts(
            tail=structures + min(self._buffers(operator), self._buffers(row)),
            whole_tail=structures + self._buffers(operator),
            requests=len(asked.scratch),
            scratch=min(self._scratch(operator), self._scratch(row)),
            macs=operator_macs(operator) / rows,
            work=max(0, work),
            call=call,
            whole_work=operator_work(operator, self.profile.prices),
            padded_row_cost=_SPOILT if skips_padding(operator, self.profile.prices) else 1.0,
        )

    def _buffers(self, operator: Operator) -> int:
        asked = self.profile.requests(operator, self.profile.abi)
        return sum(aligned(size) for size in (*asked.init, *asked.prepare))

    def _scratch(self, operator: Operator) -> int:
        return sum(aligned(size) for size in self.profile.requests(operator, ILP32).scratch)


@dataclass(frozen=True)
class StripeBytes:
    """Bytes that are alive while each operator of each stripe runs, from the operators at their birth and death.

    Operators count from the exit (0) upwards, and run downwards. ``changes[r, s]``: how many bytes more are alive in
    stripe ``s`` while operator ``r`` runs than while ``r - 1`` does, which runs next.
    """

    changes: Integers

    @classmethod
    def none(cls, operators: int, stripes: int) -> StripeBytes:
        """Nothing is alive yet."""
        return cls(np.zeros((operators + 1, stripes), np.int64))

    def first(self, operators: int) -> StripeBytes:
        """Return a copy for the operators next to the exit."""
        return StripeBytes(self.changes[: operators + 1].copy())

    def add(self, nbytes: Integers | int, birth: int | None = None, death: int = 0) -> None:
        """Add bytes that are alive from operator ``birth`` down to ``death``, both included; none if it is one less.

        Without ``birth`` they are alive from the beginning of the stripe, without ``death`` until its end.
        """
        self.changes[death] += nbytes
        if birth is not None:
            self.changes[birth + 1] -= nbytes

    def most(self, runs: Flags) -> Integers:
        """Return the most bytes of each stripe, over its operators that run."""
        alive = np.cumsum(self.changes[: len(runs)], axis=0)
        alive[~runs] = 0
        found: Integers = alive.max(axis=0)
        return found


class StripeBounder:
    """Bounds of all regions with one exit, cut in many ways with one treatment of halo and edges.

    Operators are added from the exit (0) upwards. ``_runs``: which of them do anything in which stripe. While the
    operators of a stripe run, from top to bottom, these bytes of a tensor inside are alive, beside what the kernels
    take: ``scratch``, less what they ``save`` ::

        operator    tensor that ``at`` makes and ``last`` reads as the last one
        above       kept                 rows that the stripe before has kept
        at          kept  made           and those that this one makes
        between     needed               both together
        last        needed, if read      the others may be dead
        below       kept by the next     rows that the next stripe needs again

    Of the exit: the parts that stripes before have made, all the time, and the part that this one makes. Of an input of
    the region: rows that this stripe's last reader or a later stripe reads, until that reader; below it rows that later
    stripes read. An input that is read after the region: all of it, all the time.
    """

    def __init__(self, cuts: CutTable, demand: Demand, costs: Costs, lives_on: Collection[Tensor], most: int) -> None:
        self._cuts, self._demand, self._costs, self._lives_on = cuts, demand, costs, lives_on
        self._alive = StripeBytes.none(most, len(cuts.end))
        self._runs: Flags = np.zeros((most, len(cuts.end)), np.bool_)
        self._at: dict[Tensor, int] = {}
        self._readers: dict[Tensor, list[int]] = {}
        self._steps: list[OperatorRows] = []
        ways = len(cuts.ways)
        self._jobs, self._extra, self._tail, self._requests, self._macs = (np.zeros(ways, np.int64) for _ in range(5))
        self._work = np.zeros(ways, np.float64)
        self._before = np.zeros(3, np.int64)  # MACs, tail and operators of the region as it is
        self._work_before = 0

    def add(self, rows: OperatorRows) -> None:
        """The next operator upwards."""
        at, operator = len(self._steps), rows.operator
        output, cost, cuts = operator.outputs[0], self._costs.of(operator), self._cuts
        made = np.where(rows.runs, up(rows.computed.count * row_bytes(output)), 0)
        if at == 0:
            made_before = cuts.sums_before(up(rows.made.count * row_bytes(output)))
            self._alive.add(made_before)
        else:
            self._add_inner(at, output, rows)
        for tensor in rows.sources:
            self._readers.setdefault(tensor, []).append(at)
        kernel = np.where(rows.runs, cost.scratch - self._saved(at, rows, made), 0)
        self._alive.add(made + kernel, birth=at, death=at)
        self._at[output], self._runs[at] = at, rows.has_job
        self._steps.append(rows)
        self._count(rows, cost)

    def _add_inner(self, at: int, output: Tensor, rows: OperatorRows) -> None:
        """Rows of a tensor inside, but for those that are made: see the picture."""
        last, row = self._readers[output][0], row_bytes(output)
        kept, needed = up(rows.kept.count * row), up(rows.needed.count * row)
        read = up(np.minimum(rows.needed.count, self._steps[last].read.count) * row)
        kept_by_the_next = self._cuts.following(kept, 0)
        self._alive.add(kept, death=at)
        self._alive.add(needed, birth=at - 1, death=last + 1)
        self._alive.add(read, birth=last, death=last)
        self._alive.add(kept_by_the_next, birth=last - 1)

    def _saved(self, at: int, rows: OperatorRows, computed: Integers) -> Integers:
        """Compute the most that kernel and padding save, or the least that they take, beside rows that are read and
        made.
        """
        shares, joins = self._costs.shares(rows.operator), rows.operator.name in SHARED_CODE
        saved: Integers = np.zeros_like(computed)
        dying: Integers = np.zeros_like(computed)
        for tensor in rows.sources:
            if self._readers[tensor][0] != at or tensor in self._lives_on:
                continue
            read = up(rows.read.count * row_bytes(tensor))
            dying = dying + read
            if shares:
                each = np.minimum(computed, read)
                saved = saved + each if joins else np.maximum(saved, each)
        saved = np.minimum(saved, computed)
        if not rows.pads.any():
            return saved
        source = rows.sources[0]
        _, _, width, depth = source.shape
        line = (width + rows.left + rows.right) * depth * source.dtype.arena_bytes
        padded = up((rows.read.count + rows.above + rows.below) * line)
        shared = np.minimum(padded, computed) if shares else 0
        # First the rows and their padded copy, then that copy and its result.
        padding = padded - np.minimum(padded, dying) if self._costs.shares.pads_in_place else padded
        most = np.maximum(padding, padded + computed - shared - dying)
        return np.where(rows.pads, computed - most, saved)

    def _count(self, rows: OperatorRows, cost: RunCosts) -> None:
        sums, jobs = self._cuts.sums, self._cuts.sums(rows.runs)
        computed, made = self._rows_of_work(rows)
        pads, windows = sums(rows.pads), sums((rows.kept.count > 0) & rows.runs)
        output = rows.operator.outputs[0]
        price = prices_of(output, self._costs.profile.prices)
        self._jobs += jobs
        self._extra += pads + windows
        self._tail += jobs * cost.tail
        self._requests += (jobs - 1) * cost.requests
        self._macs += np.rint(computed * cost.macs).astype(np.int64)
        padded_row_cost = (computed - made) * cost.padded_row_cost
        self._work += (made + padded_row_cost) * cost.work + jobs * cost.call + (pads + windows) * price.call
        if windows.any():
            joined = sums(np.where((rows.kept.count > 0) & rows.runs, rows.needed.count, 0))
            self._work += joined * row_bytes(output) * price.joined
        if pads.any():
            source = rows.sources[0]
            _, _, width, depth = source.shape
            lines = sums(np.where(rows.pads, rows.read.count + rows.above + rows.below, 0))
            self._work += lines * (width + rows.left + rows.right) * depth * price.padded
        self._before += (round(cost.macs * output.shape[1]), cost.whole_tail, 1)
        self._work_before += cost.whole_work

    def _rows_of_work(self, rows: OperatorRows) -> tuple[Floats, Floats]:
        """Return the rows of the output that are computed, and those of them that are wanted.

        Where one row of the input becomes several, it is those that are read that cost.
        """
        axis, sums = rows.row_map.rows, self._cuts.sums
        if axis.factor > 1:
            read: Floats = sums(np.where(rows.runs, rows.read.count, 0)) * (axis.outputs / axis.size)
            return read, read
        both = (np.where(rows.runs, each.count, 0) for each in (rows.computed, rows.made))
        computed, made = (sums(each).astype(np.float64) for each in both)
        return computed, made

    def bounds(self, terms: ArenaTerms) -> tuple[Flags, Integers]:
        """Return whether the region of all operators so far can be cut, and its ``Figures``, a row for each way to."""
        count, cuts = len(self._steps), self._cuts
        alive = self._alive.first(count)
        slices, work = np.zeros(len(cuts.ways), np.int64), self._work - self._work_before
        exit_ = self._steps[0].operator.outputs[0]
        for tensor, readers in self._readers.items():
            if tensor in self._at:
                continue
            last, row = readers[0], row_bytes(tensor)
            reads = [self._steps[reader] for reader in readers]
            is_cut = self._is_cut(reads[0], tensor.shape[1])
            price, calls = prices_of(tensor, self._costs.profile.prices), cuts.sums(is_cut)
            lines = cuts.sums(np.where(is_cut, reads[0].read.count, 0))
            slices += calls
            pixels = lines * tensor.shape[0] * tensor.shape[2]
            work += calls * price.call + pixels * (price.copied * tensor.shape[3] + price.run)
            if tensor in self._lives_on:
                alive.add(aligned(tensor.nbytes))
                continue
            here = self._still_needed(reads, row)
            read_by_later_ones = cuts.following(here, 0)
            alive.add(here, death=last)
            alive.add(read_by_later_ones, birth=last - 1)
        head = cuts.largest(alive.most(self._runs[:count]))
        least = sum(aligned(tensor.nbytes) for tensor in self._readers if tensor not in self._at)
        head = np.maximum(up(head), max(least, aligned(exit_.nbytes)))
        extra = self._extra + slices + 1
        added = extra + self._jobs - self._before[2]
        _, temporaries = terms.more(added, added, added, self._requests)
        price = prices_of(exit_, self._costs.profile.prices)
        work += price.call + price.joined * exit_.nbytes
        tail = self._tail - self._before[1] + extra * self._costs.plain_tail
        figures = (head, tail, temporaries, self._macs - self._before[0], added, work, np.zeros_like(head))
        return self._demand.possible.copy(), np.stack(figures, axis=1).astype(np.int64)

    def _is_cut(self, rows: OperatorRows, height: int) -> Flags:
        """Tell whether a stripe has a slice of an input of its own: not of all rows, nor those of the stripe before."""
        start, end = rows.read.start, rows.read.end
        is_same = (self._cuts.previous(start, -1) == start) & (self._cuts.previous(end, -1) == end)
        found: Flags = rows.has_job & ~is_same & (rows.read.count < height)
        return found

    def _still_needed(self, reads: Sequence[OperatorRows], row: int) -> Integers:
        """Return the bytes of an input from the first row that this stripe's last reader or a later stripe reads.

        Rows between two stripes that none of them reads may be given up: a window may be smaller than its stride.
        """
        cuts, lowest = self._cuts, _FAR
        first = np.where(reads[0].has_job, reads[0].read.start, _FAR)
        later = np.minimum.reduce([np.where(each.has_job, each.read.start, _FAR) for each in reads])
        end = np.maximum.reduce([np.where(each.has_job, each.read.end, 0) for each in reads])
        begins = cuts.least_from(later)
        from_here = np.minimum(first, cuts.following(begins, lowest))
        unread = np.where(begins < _FAR, np.maximum(0, begins - cuts.previous(cuts.largest_until(end), 0)), 0)
        unread[cuts.first] = 0
        skipped = cuts.sums(unread)[cuts.way] - cuts.sums_before(unread) - unread
        return np.maximum(0, cuts.largest(end)[cuts.way] - from_here - skipped) * row


def loop_bounds(
    region: Region, loop: LoopRows, costs: Costs, terms: ArenaTerms, lives_on: Collection[Tensor]
) -> Figures:
    """The least that a loop takes: the operators of its iterations, and what is certain of those that move rows."""
    count, tail, work = len(loop.writes), 0, 0.0
    for operator, _, _, rows in _work(region, loop):
        cost, made = costs.of(operator), float(rows)
        if isinstance(loop, Clamped):
            part = loop.makes[operator]
            made = part.count + cost.padded_row_cost * (part.of - part.count)
        work += _CERTAIN_ROWS * count * (cost.work * made + cost.call) - cost.whole_work
        tail += cost.tail - cost.whole_tail
    kept = 0 if isinstance(loop, Clamped) else len(loop.iteration.kept())
    joins = () if isinstance(loop, Clamped) else tuple(_joins(loop))
    masks = sum(each.is_masked for each in joins)
    tensors = _TENSORS_OF_LOOP + 3 * (len(region.inputs) + kept) + masks
    # Kept rows are joined with new ones and cut out again; a PAD that adds nothing may be left out.
    operators = _OPERATORS_OF_LOOP + 2 * kept + masks - sum(kind_of(each).is_pad for each in region.operators)
    work += count * (_work_of_result(region, loop, costs.profile.prices) + _work_of_joins(joins, costs.profile.prices))
    structures, temporaries = terms.more(operators, tensors, 1, 0)
    macs = loop_macs(region, loop) - sum(operator_macs(operator) for operator in region.operators)
    head = least_head(region, loop, costs.shares, lives_on)
    return Figures(head, tail + structures, temporaries, macs, operators, int(work))


def _work_of_result(region: Region, loop: LoopRows, prices: Prices) -> int:
    """What an iteration takes at least to cut out rows, to write the result, and to count."""
    exit_ = prices_of(region.exit, prices)
    rows = loop.rows * region.exit.shape[0]
    written = exit_.call + rows * region.exit.shape[2] * (exit_.updated * region.exit.shape[3] + exit_.updated_run)
    return written + _OPERATORS_THAT_COUNT * prices.call


@dataclass(frozen=True)
class _Join:
    """Rows of a tensor that an iteration joins: kept and new ones; where it is masked, as many as are new once more.

    ``nbytes``: of them together, ``new`` of the new ones, in columns as wide as they are kept.
    """

    tensor: Tensor
    nbytes: int
    new: int
    is_masked: bool


def _joins(loop: Masked) -> Iterator[_Join]:
    for piece, masks in zip(loop.pieces, loop.masks, strict=True):
        for tensor, window in piece.windows.items():
            held, new = window.kept.count, window.made.count
            is_masked = not {held, held + new}.issuperset(masks.get(tensor, ()))
            if new and (held or is_masked):
                row = _wide_row(loop, tensor)
                yield _Join(tensor, (held + new + is_masked * new) * row, new * row, is_masked)


def _wide_row(loop: Masked, tensor: Tensor) -> int:
    return row_bytes(tensor) // tensor.shape[2] * (tensor.shape[2] + sum(loop.wide.get(tensor, (0, 0))))


def _work_of_joins(joins: Iterable[_Join], prices: Prices) -> int:
    """What an iteration takes at least to join rows and to write the zero point over some."""
    found = 0
    for each in joins:
        price = prices_of(each.tensor, prices)
        found += price.call + price.joined * each.nbytes
        if each.is_masked:
            found += price.call + price.updated * each.new // each.tensor.dtype.arena_bytes
    return found


_OPERATORS_THAT_COUNT = 3
"""The counter of the next iteration, the condition, and the place of the new rows in the result."""
_TENSORS_OF_LOOP = 15
"""Result, counter, loop condition, and outputs, without the tensors that several loops share."""
_OPERATORS_OF_LOOP = 5
"""The fewest beside those of the region and those that move kept rows."""
_CERTAIN_ROWS = 0.97
"""The part of the run time of rows that is certain: a few of them are cheaper than the average."""


def loop_macs(region: Region, loop: LoopRows) -> int:
    """Compute the MACs of a region as a loop."""
    return sum(_macs(operator, rows) * len(loop.writes) for operator, _, _, rows in _work(region, loop))


def least_head(
    region: Region, loop: LoopRows, shares: Callable[[Operator], bool], lives_on: Collection[Tensor] = ()
) -> int:
    """Bytes that no plan of the loop goes below: image, result and kept rows, and the largest operator of an iteration.

    ``lives_on``: inputs that are read after the loop.
    """
    kept, held, working = dict[Tensor, Rows](), 0, 0
    if isinstance(loop, Masked):
        kept = loop.iteration.kept()
        bytes_of = {tensor: aligned(rows.count * _wide_row(loop, tensor)) for tensor, rows in kept.items()}
        held = sum(bytes_of.values())
        working = max((aligned(each.nbytes) - bytes_of.get(each.tensor, 0) for each in _joins(loop)), default=0)
    for operator, row_map, read, made in _work(region, loop):
        rows = _rows_beside(region, loop, kept, operator, row_map, read)
        before = sum(aligned(count * row_bytes(tensor)) for tensor, count in rows.items())
        after = aligned(made * row_bytes(operator.outputs[0]))
        if not shares(operator):
            working = max(working, before + after)
        elif 0 not in rows.values():  # else the output may lie on what the loop carries
            working = max(working, before, after)
    return _carried(region, loop, lives_on) + held + working


def _rows_beside(
    region: Region, loop: LoopRows, kept: Mapping[Tensor, Rows], operator: Operator, row_map: RowMap, read: int
) -> dict[Tensor, int]:
    """Return the rows that an operator reads in an iteration, by tensor, without those that the loop carries along."""
    found: dict[Tensor, int] = {}
    for slot in row_map.sliced:
        tensor = operator.inputs[slot]
        if tensor is None:
            continue
        count = read
        if isinstance(loop, Clamped) and tensor in region.inputs:
            part = loop.reads[operator, slot]
            count = 0 if part.is_whole else part.count  # a part is cut out, the whole is read where it lies
        found[tensor] = max(0, count - (kept[tensor].count if tensor in kept else 0))
    return found


def _carried(region: Region, loop: LoopRows, lives_on: Collection[Tensor]) -> int:
    """Return the bytes of image and result, which lies over rows that nobody reads any more.

    An input is ``distance`` bytes above the result, or beside it. Inputs are beside each other, so that together they
    share with the result no more than the part above the smallest distance.
    """
    result = aligned(region.exit.nbytes)
    inputs = {tensor: aligned(tensor.nbytes) for tensor in region.inputs}
    distances = {tensor: _distance(region, loop, tensor) for tensor in inputs if tensor not in lives_on}
    over = {tensor: result - distance for tensor, distance in distances.items() if distance < result}
    shared = sum(min(inputs[tensor], nbytes) for tensor, nbytes in over.items())
    return result + sum(inputs.values()) - min(shared, max(over.values(), default=0))


def _distance(region: Region, loop: LoopRows, tensor: Tensor) -> int:
    """Return the bytes that the result's start is below the input's at least, where the two share bytes.

    No iteration overwrites what a later one reads: see ``memory/loops.py``. An iteration reads before it writes.
    """
    read, written = (row_bytes(each) // each.shape[0] for each in (tensor, region.exit))  # of the first of a stack
    starts = [np.asarray(each, np.int64) * read for each in _starts(loop, tensor)]
    writes = (np.asarray(loop.writes, np.int64) + loop.rows) * written
    at = np.stack([*starts, writes], axis=1)
    is_of_result = np.arange(at.shape[1]) == len(starts)
    return max(0, least_distance(np.tile(is_of_result, len(at)), at.ravel(), tensor.nbytes, tensor.nbytes))


def _starts(loop: LoopRows, tensor: Tensor) -> list[Sequence[int]]:
    """First row of an input that every iteration reads. A SLICE of the whole may begin further on."""
    if isinstance(loop, Clamped):
        read = {key: part for key, part in loop.reads.items() if key[0].inputs[key[1]] is tensor}
        return [part.starts for (operator, _), part in read.items() if not (part.is_whole and operator.name == "SLICE")]
    # Where an iteration reads padding, it cuts out the rows that are next to it.
    return [
        [max(0, min(start, tensor.shape[1] - rows.count)) for start in starts]
        for (image, rows), starts in loop.reads.items()
        if image is tensor
    ]


def _work(region: Region, loop: LoopRows) -> Iterator[tuple[Operator, RowMap, int, int]]:
    """Each operator of an iteration, with the rows that it reads of each input, and those that it makes."""
    for operator, row_map in region.steps:
        if isinstance(loop, Clamped):
            reads = [loop.reads[operator, slot].count for slot in row_map.sliced]
            yield operator, row_map, min(reads), loop.makes[operator].of
        elif operator in loop.iteration.jobs:
            job = loop.iteration.jobs[operator]
            yield operator, row_map, job.read.count, job.computed.count


def _macs(operator: Operator, rows: int) -> int:
    return operator_macs(operator) // operator.outputs[0].shape[1] * rows
