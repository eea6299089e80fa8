"""The rows of each iteration of a loop: integers only, no graph is touched.

**Clamped** loops: everything is in the loop, and an iteration at an edge of the image is moved inwards.

Every iteration runs the operators as they are, with their own padding, over the same number of rows. Padding at the
upper or lower end of these rows is wrong unless that end is an edge of the image, so that a few rows there are invalid.
The valid rows are cut out, and where they are depends on the iteration:

    rows of the image            0                                            height
    iteration at the top         |=======xxx|            x: invalid; another iteration makes them right
    iteration in between                 |xxx=====xxx|
    iteration at the bottom                              |xxx=======|

An iteration's first row is a multiple of the stride, and so are the rows that are left out: then an operator pads its
rows like those of the whole image. Iterations that are moved inwards make some rows again that another one has made.

An iteration in **pieces**: all operators on some of the new rows, then on the next ones.

    rows of each     image 4                      A 3x3, stride 2: 2       B 3x3, stride 2: 1
    piece 1          0 1  are there               makes 0                  -
    piece 2          0 1 2 3                      makes 1                  makes 0

With strides, an iteration takes many rows of the image for one of its result. As a whole it has all of the first, wide
tensors at once; in pieces a few rows of them. No row is made twice, but a piece has operators of its own.

**Masked** loops: rows are kept from iteration to iteration, and everything is in the loop.

All tensors go through the image in step. A tensor that is read with a window must be ahead of its reader. So the first
iterations only fill the line buffers (the rows that are kept), and in the last ones some tensors are past the end:

    iteration       0    1    2    3    4
    image rows      0    1    2    3    -          -: a row outside the image
    A  3x3          -    0    1    2    3
    B  3x3          -    -    0    1    2  ...     rows of the first iterations are written again

An operator that makes n rows of one, such as RESIZE_NEAREST_NEIGHBOR, makes all of them at once: an iteration makes a
multiple of n rows of its output, of which the last ones may be ahead of their reader.

Windows are VALID and see the rows that are kept and the new ones. A padded window expects the zero point above and
below the image: new rows outside the image are overwritten by it, and the line buffers start with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...model.ir.model import DType, Operator, Tensor
from ...operators.rows import Axis, Rows
from ...operators.table import kind_of
from .region import Region
from .stripes import Job, Stripe, Window, input_reads

CALL, BYTE_COPIED, ELEMENT_CUT, PIXEL_CUT, PIXEL_WRITTEN = 650, 0.53, 4, 8, 56
"""Instructions, about (kernels/prices.py): of a call; a byte that CONCATENATION and RESHAPE copy; an element and a
pixel that SLICE copies; a pixel that DYNAMIC_UPDATE_SLICE writes."""
WORTH = 5_000
"""Instructions that an iteration saves at least where more operators make the same: each takes some tail."""
MAKES_SEVERAL = "an operator in it makes several rows of one"
Starts = tuple[int, ...]
"""The first row in each iteration."""


@dataclass(frozen=True)
class PartialRows:
    """``count`` rows of a tensor that has ``of`` rows, from row ``starts[t]`` on in iteration t."""

    count: int
    of: int
    starts: Starts

    @property
    def is_whole(self) -> bool:
        """Tell whether these are all rows."""
        return self.count == self.of


@dataclass(frozen=True)
class Clamped:
    """A region as a loop whose iterations write ``rows`` rows of the exit each, the first one being ``writes[t]``.

    ``reads[o, k]``: rows that operator o reads in its input slot k: of the image where that comes from outside, else of
    the rows that the iteration has. ``makes[o]``: the rows that o computes, and which of them count.
    """

    rows: int
    writes: Starts
    reads: Mapping[tuple[Operator, int], PartialRows]
    makes: Mapping[Operator, PartialRows]


@dataclass(frozen=True)
class _IterationRows:
    """``count`` rows of a tensor from row ``starts[t]`` on."""

    count: int
    starts: Starts


def clamped(region: Region, rows: int) -> Clamped | str:
    """Return the loop with ``rows`` rows per iteration, or the reason why there is none."""
    height = region.exit.shape[1]
    if rows >= height:
        return f"{rows} rows are all of {height}"
    if any(row_map.rows.factor > 1 for row_map in region.row_maps):
        return MAKES_SEVERAL
    writes = tuple(min(row, height - rows) for row in range(0, height, rows))
    asked: dict[Tensor, list[_IterationRows]] = {region.exit: [_IterationRows(rows, writes)]}
    held: dict[Tensor, _IterationRows] = {}
    inputs: dict[tuple[Operator, int], tuple[Tensor, _IterationRows]] = {}
    makes: dict[Operator, PartialRows] = {}
    for operator, row_map in reversed(region.steps):
        output = operator.outputs[0]
        held[output] = wanted = _hull(asked[output], output.shape[1])
        made = _computed(row_map.rows, wanted)
        makes[operator] = _part_of(wanted, made)
        needed = _needed(row_map.rows, made)
        if needed.count < 1:
            return f"an iteration of '{output.name}' would be padding only"
        for slot in row_map.sliced:
            tensor = operator.inputs[slot]
            if tensor is not None:
                inputs[operator, slot] = tensor, needed
                asked.setdefault(tensor, []).append(needed)
    reads = {
        key: _part_of(window, held.get(tensor, _IterationRows(tensor.shape[1], (0,) * len(writes))))
        for key, (tensor, window) in inputs.items()
    }
    return Clamped(rows, writes, reads, makes)


def _computed(axis: Axis, wanted: _IterationRows) -> _IterationRows:
    """Return the rows to compute for those that are wanted: a few more where a window can meet padding."""
    past = (axis.outputs - 1) * axis.stride - axis.before + axis.reach - axis.size
    above, below = -(-axis.before // axis.stride), max(0, -(-past // axis.stride))  # whose window reaches beyond it
    if above == below == 0:
        return wanted
    count = min(axis.outputs, wanted.count + above + below)
    starts = tuple(max(0, min(start - above, axis.outputs - count)) for start in wanted.starts)
    return _IterationRows(count, starts)


def _needed(axis: Axis, made: _IterationRows) -> _IterationRows:
    """Return the input rows from which exactly these output rows are computed, with the padding of the whole."""
    count = axis.size - (axis.outputs - made.count) * axis.stride
    starts = made.starts if axis.stride == 1 else tuple(start * axis.stride for start in made.starts)
    return _IterationRows(count, starts)


def _hull(windows: Sequence[_IterationRows], height: int) -> _IterationRows:
    """Return the rows that all of them are in; a single window is within the height already."""
    if len(windows) == 1:
        return windows[0]
    lowest = [min(starts) for starts in zip(*(window.starts for window in windows), strict=True)]
    ends = [max(iteration) for iteration in zip(*([s + w.count for s in w.starts] for w in windows), strict=True)]
    count = max(end - start for start, end in zip(lowest, ends, strict=True))
    return _IterationRows(count, tuple(min(start, height - count) for start in lowest))


def _part_of(part: _IterationRows, whole: _IterationRows) -> PartialRows:
    if part.starts is whole.starts:
        return PartialRows(part.count, whole.count, (0,) * len(part.starts))
    starts = tuple(start - first for start, first in zip(part.starts, whole.starts, strict=True))
    return PartialRows(part.count, whole.count, starts)


Ends = Mapping[Tensor, list[int]]
"""For each tensor the row that it ends with before the first piece, and after each."""


def pieces_of(region: Region, iteration: Stripe, steps: Mapping[Tensor, int], count: int) -> tuple[Stripe, ...] | str:
    """``iteration`` in pieces of equally many new rows of the inputs, or why there are none; ``steps`` as of
    ``Masked``.
    """
    if count == 1:
        return (iteration,)
    if any(row_map.rows.factor > 1 for row_map in region.row_maps):
        return MAKES_SEVERAL
    ends = _ends(region, iteration, steps, count)
    if isinstance(ends, str):
        return ends
    found = list[Stripe]()
    # The first row of each tensor that the pieces from this one on read, or the next iteration.
    first = {tensor: window.needed.start + steps[tensor] for tensor, window in iteration.windows.items()}
    for piece in reversed(range(count)):
        made = {tensor: Rows(*each[piece : piece + 2]) for tensor, each in ends.items()}
        jobs = _jobs(region, iteration, made)
        for operator, row_map in region.steps:
            for tensor in row_map.images(operator):
                if operator in jobs and tensor in first:
                    first[tensor] = min(first[tensor], jobs[operator].read.start)
        windows = {tensor: _window(start, made[tensor]) for tensor, start in first.items()}
        found.insert(0, Stripe(jobs, windows))
    return tuple(found)


def _ends(region: Region, iteration: Stripe, steps: Mapping[Tensor, int], count: int) -> Ends | str:
    """Every operator computes an even share of rows in each piece, or as many as there are."""
    ends: dict[Tensor, list[int]] = {}
    for operator, row_map in region.steps:
        output, last = operator.outputs[0], iteration.jobs[operator].computed.end
        before, step = last - steps[output], steps[output]
        sources = [ends[tensor] for tensor in row_map.images(operator) if tensor in ends]
        if not sources and step % count:
            return f"{step} new rows of '{output.name}' are no {count} pieces"
        ends[output] = [before]
        for piece in range(1, count + 1):
            end = before - (-step * piece // count)
            for source in sources:
                end = min(end, (source[piece] + row_map.rows.before - row_map.rows.reach) // row_map.rows.stride + 1)
            ends[output].append(max(before, end))
        assert ends[output][-1] == last
    return ends


def _jobs(region: Region, iteration: Stripe, made: Mapping[Tensor, Rows]) -> dict[Operator, Job]:
    jobs = {}
    for operator, row_map in region.steps:
        rows = made[operator.outputs[0]]
        if rows.count:
            read = Rows(*row_map.rows.reads(rows.start, rows.end))
            job = replace(iteration.jobs[operator], wanted=rows, computed=rows, read=read)
            jobs[operator] = job.padding_columns_itself() if row_map.is_window else job
    return jobs


def _window(first: int, made: Rows) -> Window:
    kept = Rows(min(first, made.start), made.start)
    return Window(Rows(kept.start, made.end), kept, made)


Read = tuple[Tensor, Rows]
"""An input of a region, and rows that an operator reads of it in the iteration that writes the exit's first rows."""
Sides = tuple[int, int]
"""Columns of padding, left and right."""
Wanted = TypeVar("Wanted", Tensor, Read)
"""A tensor, or rows of one, that readers want with columns of padding."""


@dataclass(frozen=True)
class Masked:
    """A region as a loop whose iterations write ``rows`` rows of the exit each, the first one being ``writes[t]``.

    ``iteration``: the jobs of an iteration, in rows of the one that writes the exit's first rows; these may be outside
    the image. ``pieces``: the same jobs, in the order in which it does them. ``first_iteration``: minus the iterations
    that only fill what is kept. ``steps[k]``: rows of tensor k from iteration to iteration.

    Of an image of 4 rows, A 3x3 and B 3x3, which is the exit, in 1 row an iteration:

        iteration               -1       0       1       2       3        first_iteration = -1
        image   read          -1 0 1   0 1 2   1 2 3   2 3 4   1 2 3      reads[image, rows 0 to 3] = -1, 0, 1, 2, 1
        A       kept           -2 -1    -1 0    0 1     1 2     2 3       pieces[0].windows[A].kept.count = 2
                new              0       1       2       3       4        pieces[0].windows[A].made.count = 1
                zero             -       -       -       -       4        masks[0][A] = 3, 3, 3, 3, 2
        B       written          0       0       1       2       3        writes = 0, 0, 1, 2, 3

    ``reads[x, rows][t]``: the row of input x from which iteration t reads in place of ``rows``; it is outside where
    padding is read. ``masks[p][k][t]``: the place among the rows that piece p of iteration t has of tensor k, kept and
    then new ones, where it writes the zero point, as many rows as are new; a place behind the new ones changes none.

    ``wide[k]``: columns of the zero point left and right of inner tensor k, where all that read it want them: they are
    put around new rows once. ``read_wide[x, rows]``: those for what is read of an input. ``copies``: whether rows are
    copied where that saves time and takes tensors: those that are kept, in parts; floats, between columns of padding.
    """

    rows: int
    iteration: Stripe
    pieces: tuple[Stripe, ...]
    reads: Mapping[Read, Starts]
    writes: Starts
    masks: tuple[Mapping[Tensor, Starts], ...]
    wide: Mapping[Tensor, Sides]
    read_wide: Mapping[Read, Sides]
    steps: Mapping[Tensor, int]
    first_iteration: int
    copies: bool = True

    def parts_kept(self, tensor: Tensor) -> int:
        """Return in how many parts the rows of a tensor are kept, each as many as are new; 0 where they are cut out.

        Rows that move up by a part are copied whole, which takes a fraction of the instructions of a SLICE::

            kept       a  b              kept'   b  c          where c has the zero point, or all of its rows
            new              c
        """
        window = self.iteration.windows[tensor]
        kept, new = window.kept.count, window.made.count
        place = set(self.masks[0].get(tensor, ()))
        if not self.copies or len(self.pieces) > 1 or not place <= {kept, kept + new} or not new or kept % new:
            return 0
        pixels = kept * (tensor.shape[2] + sum(self.wide.get(tensor, (0, 0))))
        elements = pixels * tensor.shape[3]
        cut = PIXEL_CUT * pixels + ELEMENT_CUT * elements
        copied = BYTE_COPIED * elements * tensor.dtype.arena_bytes + CALL * (kept // new - 1)
        return kept // new if cut - copied > WORTH else 0

    def takes_more_tensors(self) -> bool:
        """Tell whether ``copies`` does: with rows in more than two parts, as a SLICE has two operands; and where floats
        get rows and columns of padding, which one PAD puts around them.
        """
        has_parts = any(self.parts_kept(each) > 2 for each in self.iteration.kept())
        return has_parts or any(self._is_padded_twice(*read) for read in self.read_wide)

    def _is_padded_twice(self, x: Tensor, rows: Rows) -> bool:
        starts = self.reads[x, rows]
        return x.dtype is DType.FLOAT32 and (min(starts) < 0 or max(starts) + rows.count > x.shape[1])


def masked(
    region: Region, rows: int, is_padded: Collection[Tensor] = (), in_step: Collection[Tensor] = (), pieces: int = 1
) -> Masked | str:
    """Return the loop with ``rows`` rows per iteration, or the reason why there is none.

    ``is_padded``: inner tensors whose new rows outside the image are the zero point as they come. ``in_step``: those of
    which the new rows of an iteration begin with a multiple of their number, so that none is half above the image;
    more of their rows are kept. ``pieces``: how many an iteration has, where its inputs are new rows.
    """
    height = region.exit.shape[1]
    if height % rows or rows >= height:
        return f"{rows} rows an iteration are no part of {height}"
    steps = steps_of(region, rows)
    if isinstance(steps, str):
        return steps
    wide = _wide(region, {tensor: -(-step // pieces) for tensor, step in steps.items()})
    iteration = _iteration(region, steps, wide, in_step)
    if not isinstance(iteration, str) and _is_wasteful(iteration, wide):
        wide = {}
        iteration = _iteration(region, steps, wide, in_step)
    if isinstance(iteration, str):
        return iteration
    read_wide = _sides_of_reads(region, iteration)
    iteration = _without_columns(iteration, read_wide)
    low = _lower_than_an_iteration(region, iteration)
    if low is not None:
        return f"'{low.name}' has fewer rows than an iteration reads or makes"
    every = pieces_of(region, iteration, steps, pieces)
    if isinstance(every, str):
        return every
    iterations = range(-_early(iteration, steps), height // rows)
    is_masked = padded_in(region).difference(is_padded)
    masks = tuple(_masks(piece, is_masked, steps, iterations) for piece in every)
    missing = [tensor for each in masks for tensor, starts in each.items() if min(starts) < 0]
    if missing:
        return f"too few rows of '{missing[0].name}' are kept"
    reads = _reads(region, iteration, steps, iterations)
    writes = tuple(max(0, rows * t) for t in iterations)
    return Masked(rows, iteration, every, reads, writes, masks, wide, read_wide, steps, iterations.start)


def _without_columns(iteration: Stripe, read_wide: Collection[Read]) -> Stripe:
    """Return the iteration whose operators pad nothing where what they read has the columns already."""
    is_there = {op for op, job in iteration.jobs.items() if (op.inputs[0], job.read) in read_wide}
    jobs = {op: replace(job, padding=(0, 0, 0, 0)) if op in is_there else job for op, job in iteration.jobs.items()}
    return replace(iteration, jobs=jobs)


def _masks(
    piece: Stripe, is_masked: Collection[Tensor], steps: Mapping[Tensor, int], iterations: range
) -> dict[Tensor, Starts]:
    """Return the rows where a piece of each iteration writes the zero point, for each tensor that has such rows."""
    found = {}
    for tensor, window in piece.windows.items():
        if tensor in is_masked and window.made.count:
            firsts = (window.made.start + iteration * steps[tensor] for iteration in iterations)
            starts = tuple(window.kept.count + _mask(first, window.made.count, tensor.shape[1]) for first in firsts)
            if min(starts) < window.needed.count:
                found[tensor] = starts
    return found


def _early(iteration: Stripe, steps: Mapping[Tensor, int]) -> int:
    """Iterations before the one that writes the exit's first rows: as many as a tensor is ahead of the exit by.

    Rows that a PAD puts above the image need no iteration, since kept rows start as padding: a causal convolution,
    whose padding is all above, is not ahead.
    """
    above = {
        operator.outputs[0]: job.computed.start - job.read.start
        for operator, job in iteration.jobs.items()
        if kind_of(operator).is_pad
    }
    ends = ((tensor, window.needed.end - above.get(tensor, 0)) for tensor, window in iteration.windows.items())
    ahead = max((-(-end // steps[tensor]) for tensor, end in ends), default=1)
    return max(0, ahead - 1)


def _lower_than_an_iteration(region: Region, iteration: Stripe) -> Tensor | None:
    """Return a tensor of fewer rows than an iteration reads of an input, or makes; None when there is none."""
    for operator, row_map in region.steps:
        job = iteration.jobs[operator]
        if job.computed.count > operator.outputs[0].shape[1]:
            return operator.outputs[0]
        for tensor in row_map.images(operator):
            if tensor in region.inputs and job.read.count > tensor.shape[1]:
                return tensor
    return None


def steps_of(region: Region, rows: int) -> dict[Tensor, int] | str:
    """For every tensor with rows: how many of its rows stand for ``rows`` rows of the exit; or why no number does."""
    steps = {region.exit: rows}
    for operator, row_map in reversed(region.steps):
        output, axis = operator.outputs[0], row_map.rows
        step, rest = divmod(steps[output] * axis.stride, axis.factor)
        if rest:
            return f"{steps[output]} rows of '{output.name}' are not made of whole rows"
        if axis.factor > 1 and (axis.above or axis.below or axis.outputs != axis.size * axis.factor):
            return f"a row of '{output.name}' is made of several"
        for tensor in row_map.images(operator):
            if steps.setdefault(tensor, step) != step:
                return f"'{tensor.name}' is read at two strides"
    return steps


def _reads(
    region: Region, iteration: Stripe, steps: Mapping[Tensor, int], iterations: Sequence[int]
) -> dict[Read, Starts]:
    """Return the first row of the inputs that each iteration reads.

    Where an iteration makes no row of a tensor, any rows may be read: rows of the image are the cheapest.
    """
    readers: dict[Read, list[Operator]] = {}
    for operator, tensor, rows in input_reads(region, iteration):
        readers.setdefault((tensor, rows), []).append(operator)

    def makes_a_row(operator: Operator, number: int) -> bool:
        rows, ahead = iteration.jobs[operator].computed, number * steps[operator.outputs[0]]
        return rows.end + ahead > 0 and rows.start + ahead < operator.outputs[0].shape[1]

    def start(read: Read, number: int) -> int:
        (x, rows), at = read, read[1].start + number * steps[read[0]]
        return (
            at
            if any(makes_a_row(operator, number) for operator in readers[read])
            else max(0, min(at, x.shape[1] - rows.count))
        )

    return {read: tuple(start(read, number) for number in iterations) for read in readers}


def _sides_of_reads(region: Region, iteration: Stripe) -> dict[Read, Sides]:
    """Return the columns of padding that all who read the same rows of an input want."""
    found: dict[Read, set[Sides]] = {}
    for operator, tensor, rows in input_reads(region, iteration):
        padding = iteration.jobs[operator].padding
        is_window = padding is not None and not kind_of(operator).is_pad
        found.setdefault((tensor, rows), set()).add(padding[2:] if is_window and padding is not None else (0, 0))
    return _in_common(found)


def _wide(region: Region, rows_made: Mapping[Tensor, int]) -> dict[Tensor, Sides]:
    """The columns of padding of inner tensors that are read by windows with the same padding, and by nothing else.

    A window that makes one row in an iteration pads columns by itself.
    """
    found: dict[Tensor, set[Sides]] = {operator.outputs[0]: set() for operator in region.operators}
    for operator, row_map in region.steps:
        for tensor in row_map.images(operator):
            if tensor in found:
                is_wanted = row_map.is_window and rows_made[operator.outputs[0]] > 1
                found[tensor].add((row_map.columns.before, row_map.columns.after) if is_wanted else (0, 0))
    return _in_common(found)


def _in_common(found: Mapping[Wanted, Collection[Sides]]) -> dict[Wanted, Sides]:
    """Return the columns of padding on which all readers agree, where there are any."""
    return {of: sides for of, every in found.items() for sides in every if len(every) == 1 and any(sides)}


def _is_wasteful(iteration: Stripe, wide: Mapping[Tensor, Sides]) -> bool:
    """Tell whether the columns that all rows have at all times are more bytes than one padded copy of the rows of a
    tensor.

    Otherwise every window makes that copy, one after the other.
    """
    added, largest = 0, 0
    for tensor, window in iteration.windows.items():
        if tensor in wide:
            column = window.needed.count * tensor.shape[3]
            added += column * sum(wide[tensor])
            largest = max(largest, column * (tensor.shape[2] + sum(wide[tensor])))
    return added > largest


def _iteration(
    region: Region, steps: Mapping[Tensor, int], wide: Mapping[Tensor, Sides], in_step: Collection[Tensor]
) -> Stripe | str:
    """The jobs and windows of the iteration that writes the exit's first rows, without regard to the image's edges.

    Several rows that are made of one are made at once.
    """
    needed = {region.exit: Rows(0, steps[region.exit])}
    jobs: dict[Operator, Job] = {}
    windows: dict[Tensor, Window] = {}
    for operator, row_map in reversed(region.steps):
        output = operator.outputs[0]
        step = steps[output]
        at_once = step if output in in_step else row_map.rows.factor
        end = -(-needed[output].end // at_once) * at_once
        made = Rows(end - step, end)
        needed[output] = Rows(min(needed[output].start, made.start), end)
        windows[output] = Window(needed[output], Rows(needed[output].start, made.start), made)
        beyond = (row_map.rows.before, row_map.rows.after, row_map.columns.before, row_map.columns.after)
        if any(beyond) and kind_of(operator).beyond != "zero point":
            return f"'{output.name}' is padded by something else than the zero point"
        read = Rows(*row_map.rows.reads(made.start, made.end))
        is_padded = row_map.is_window or kind_of(operator).is_pad
        sides = (0, 0) if operator.inputs[0] in wide else (row_map.columns.before, row_map.columns.after)
        job = Job(made, made, read, (0, 0, *sides) if is_padded else None)
        jobs[operator] = job.padding_columns_itself() if row_map.is_window else job
        for tensor in row_map.images(operator):
            needed[tensor] = read if tensor not in needed else needed[tensor].hull(read)
    return Stripe(jobs, {tensor: window for tensor, window in windows.items() if tensor is not region.exit})


def padded_in(region: Region) -> set[Tensor]:
    """Return the tensors that some operator reads with padding above or below."""
    return {
        tensor
        for operator, row_map in region.steps
        for tensor in row_map.images(operator)
        if row_map.rows.before or row_map.rows.after
    }


def _mask(first: int, count: int, height: int) -> int:
    """Return the place to write ``count`` rows of the zero point, from the new rows on, the first of which is row
    ``first``.
    """
    if first >= 0:
        return max(0, min(count, height - first))
    return max(-count, -first - count) if first > -count else 0
