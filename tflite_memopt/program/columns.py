"""Blocks in pieces of their columns: wide rows that nothing keeps, made again of narrow ones.

    kept rows and new ones, few channels  | x x x x x x x x |
    expansion, window, projection            for columns 0 to 4, then for columns 4 to 8
    new rows, few channels                | y y y y | y y y y |    joined along the columns

A line buffer of an expansion has all of its channels over the whole width. What they are made of, pixel by pixel, has
few. So a block is one operator of its region: the rows that it reads are kept, and of the wide ones it has those of its
window, a piece of their columns at a time (Lin et al., "MCUNetV2", 2021, section 3.1; github.com/TinyPART/msf-CNN at
fd74a7c, tiles with a cache along one axis).

Of rows outside the image an expansion makes anything. Each gets the zero point written over it; in iterations where
there are fewer of them, over a spare row:

    top of the image    | zero  | row 0 | row 1 | spare |        later    | row 6 | row 7 | row 8 | zero  |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from ..cascade.loop.masked import Starts
from ..cascade.loop.turn_graph import TurnGraph, zeros_like
from ..cascade.lower import padded
from ..cascade.region import Region
from ..cascade.stripes import Job
from ..ir.making import VALID
from ..ir.model import Operator, Tensor
from ..ir.names import last_part
from ..operators.rows import Axis, RowByRow
from ..operators.table import kind_of

Steps = Sequence[tuple[Operator, RowByRow]]
"""Operators with their ways, each read by the next one alone."""


@dataclass(frozen=True)
class Block:
    """``before`` makes wide rows pixel by pixel, or pads them; ``window`` reads them; ``behind`` makes narrow ones.

    ``pieces``: the most pieces that its columns are cut into.
    """

    before: Steps
    window: tuple[Operator, RowByRow]
    behind: Steps
    pieces: int

    @property
    def steps(self) -> Steps:
        """All of it, in order."""
        return (*self.before, self.window, *self.behind)

    @property
    def source(self) -> Tensor:
        """What it reads rows of."""
        return _image(self.steps[0][0])

    def whole(self) -> tuple[Operator, RowByRow]:
        """The block as one operator that reads all that its operators read, and as such row by row."""
        last, constants = self.steps[-1][0], [tensor for operator, _ in self.steps for tensor in operator.inputs[1:]]
        ways = [way for _, way in self.steps]
        rows, columns = _composed([way.rows for way in ways]), _composed([way.columns for way in ways])
        return replace(last, inputs=(self.source, *constants)), RowByRow(rows, columns, (0,), is_window=False)

    def write(self, turn: TurnGraph, rows: Tensor, job: Job, reads: Starts, makes: Starts) -> Tensor:
        """The rows of its result that an iteration makes of ``rows``.

        In iteration t the result begins with row ``makes[t]``, and ``rows`` with row ``reads[t]``.
        """
        return _BlockWriter(self, turn, job, reads, makes).write(rows)


def with_blocks(region: Region, pieces: int) -> tuple[Region, dict[Operator, Block]] | str:
    """The region with each block as one operator, and the block of each; or the reason why it has none.

    ``pieces``: the most pieces that the columns of a block are cut into; with 1 the region stays as it is.
    """
    if pieces == 1:
        return region, {}
    ways, found, inside = dict(region.steps), dict[Operator, Block](), set[Operator]()
    for operator in region.operators:
        block = _block_around(operator, ways, inside, pieces)
        if block is not None:
            found[block.steps[-1][0]] = block
            inside.update(each for each, _ in block.steps)
    if not found:
        return "no window in it reads rows that are made of narrower ones"
    blocks, steps = dict[Operator, Block](), list[tuple[Operator, RowByRow]]()
    for operator, way in region.steps:
        if operator in found:
            steps.append(found[operator].whole())
            blocks[steps[-1][0]] = found[operator]
        elif operator not in inside:
            steps.append((operator, way))
    operators, new_ways = zip(*steps, strict=True)
    return Region(operators, new_ways, region.inputs), blocks


def read_inside_alone(region: Region, blocks: Mapping[Operator, Block]) -> set[Tensor]:
    """What blocks alone read with padding above or below: its rows outside the image may be anything."""
    sources = {block.source for block in blocks.values()}
    for operator, way in region.steps:
        if operator not in blocks and (way.rows.before or way.rows.after):
            sources.difference_update(way.images(operator))
    return sources


def _block_around(
    operator: Operator, ways: Mapping[Operator, RowByRow], taken: set[Operator], pieces: int
) -> Block | None:
    """The block whose window this is: what it reads has more channels than what that is made of, as does its result."""
    way = ways[operator]
    if not (way.is_window and way.rows.reach > 1 and way.sliced == (0,) and kind_of(operator).beyond == "zero point"):
        return None
    before, image = list[tuple[Operator, RowByRow]](), _image(operator)
    while not before or image.shape[3] >= before[0][0].outputs[0].shape[3]:
        maker = image.producer
        if maker is None or maker in taken or len(image.uses) > 1 or not _is_step(maker, ways.get(maker)):
            return None
        if kind_of(maker).is_pad and before and not kind_of(before[0][0]).is_pad:
            return None  # what comes between a PAD and the window makes something else of its zero point
        before.insert(0, (maker, ways[maker]))
        image = _image(maker)
    behind, made = list[tuple[Operator, RowByRow]](), operator.outputs[0]
    while not behind or made.shape[3] >= _image(behind[-1][0]).shape[3]:
        readers = [use.operator for use in made.uses]
        if len(readers) != 1 or not _is_step(readers[0], ways.get(readers[0])) or kind_of(readers[0]).is_pad:
            return None
        behind.append((readers[0], ways[readers[0]]))
        made = readers[0].outputs[0]
    return Block(before, (operator, way), behind, pieces)


def _is_step(operator: Operator, way: RowByRow | None) -> bool:
    """Whether an operator of the region makes each pixel of one pixel of one image, or pads by the zero point."""
    if way is None:
        return False
    kind = kind_of(operator)
    is_one_to_one = kind.is_elementwise and len(operator.inputs) == 1
    is_pixelwise = max(way.rows.reach, way.columns.reach, way.rows.stride, way.columns.stride) == 1
    is_plain = is_one_to_one or ((way.is_window or kind.is_pad) and kind.beyond == "zero point")
    return way.sliced == (0,) and way.rows.factor == 1 and not way.passes_on and is_plain and is_pixelwise


def _image(operator: Operator) -> Tensor:
    image = operator.inputs[0]
    assert image is not None
    return image


def _composed(axes: Sequence[Axis]) -> Axis:
    """What one window would have to be like that does what these do one after the other."""
    size, outputs, stride = axes[0].size, axes[-1].outputs, prod(axis.stride for axis in axes)
    first, end = _reads(axes, 0, 1)
    return Axis(size, outputs, stride, end - first, -first, (outputs - 1) * stride + end - size)


def _reads(axes: Sequence[Axis], start: int, end: int) -> tuple[int, int]:
    """What the first of these reads for places ``start`` to ``end`` of what the last one makes."""
    for axis in reversed(axes):
        start, end = axis.reads(start, end)
    return start, end


class _BlockWriter:
    """Writes a block into an iteration."""

    def __init__(self, block: Block, turn: TurnGraph, job: Job, reads: Starts, makes: Starts) -> None:
        self._turn, self._block, self._job = turn, block, job
        self._outside = self._rows_outside(reads, makes)

    def _rows_outside(self, reads: Starts, makes: Starts) -> list[Starts]:
        """For each iteration where rows lie that are not in the image and are read for rows that are in it.

        The first of them, the second and so on; the spare row where there are fewer.
        """
        height, made = self._block.source.shape[1], self._block.steps[-1][0].outputs[0].shape[1]
        axes = [way.rows for _, way in self._block.steps]
        every = list[list[int]]()
        for read, make in zip(reads, makes, strict=True):
            first, end = max(0, make), min(made, make + self._job.computed.count)
            wanted = range(*_reads(axes, first, end)) if first < end else ()
            every.append([row - read for row in wanted if not 0 <= row < height])
        most = max(map(len, every))
        spare = self._job.read.count
        return list(zip(*([*rows, *[spare] * (most - len(rows))] for rows in every), strict=True))

    def write(self, source: Tensor) -> Tensor:
        """The rows of the result, of the rows that the block reads."""
        exit_ = self._block.steps[-1][0].outputs[0]
        pieces = min(self._block.pieces, exit_.shape[2])
        bounds = [exit_.shape[2] * piece // pieces for piece in range(pieces + 1)]
        made = [
            self._write_piece(source, *columns, f"columns{number}of{pieces}")
            for number, columns in enumerate(pairwise(bounds), 1)
        ]
        rows = self._turn.rows_like(exit_, self._job.computed.count, "turn")
        self._turn.edit.join(made, rows, 2)
        return rows

    def _write_piece(self, source: Tensor, start: int, end: int, suffix: str) -> Tensor:
        """Columns ``start`` to ``end`` of the result."""
        edit, width = self._turn.edit, source.shape[2]
        first, last = _reads([way.columns for _, way in self._block.steps], start, end)
        left, right = max(0, -first), max(0, last - width)
        rows = edit.activation(
            f"{last_part(self._block.source)}/{suffix}",
            (1, source.shape[1], last - right - first - left, source.shape[3]),
            source,
        )
        edit.slice(source, (0, 0, first + left, 0), rows.shape, rows)
        for operator, _ in self._block.before:
            if not kind_of(operator).is_pad:
                rows = self._written(operator, rows, rows.shape[1:3], suffix)
        rows = self._with_padding(rows, left, right)
        operator, _ = self._block.window
        shape = self._job.computed.count, end - start
        rows = self._written(operator, rows, shape, suffix, padding=VALID)
        for operator, _ in self._block.behind:
            rows = self._written(operator, rows, shape, suffix)
        return rows

    def _with_padding(self, rows: Tensor, left: int, right: int) -> Tensor:
        """Rows with columns of the zero point at both sides, and with the zero point in place of rows outside."""
        edit, count, name = self._turn.edit, rows.shape[1], rows.name
        if not self._outside:
            return padded(edit, rows, (0, 0, left, right), f"{name}/padded")
        shape = (1, 1, rows.shape[2] + left + right, rows.shape[3])
        zero = edit.constant(f"{name}/zero", zeros_like(rows, shape), rows.quantization)
        if left or right:
            rows = padded(edit, rows, (0, 1, left, right), f"{name}/padded")
        else:
            joined = edit.activation(f"{name}/and_spare", (1, count + 1, *shape[2:]), rows)
            edit.join((rows, zero), joined, 1)
            rows = joined
        for starts in self._outside:
            masked = edit.activation(f"{name}/masked", rows.shape, rows)
            edit.update_slice(rows, zero, self._turn.begin(starts), masked)
            rows = masked
        taken = edit.activation(f"{name}/rows", (1, count, *rows.shape[2:]), rows)
        edit.slice(rows, (0, 0, 0, 0), taken.shape, taken)
        return taken

    def _written(self, operator: Operator, rows: Tensor, shape: Sequence[int], suffix: str, **fields: int) -> Tensor:
        """One operator on ``rows``, which makes ``shape`` rows and columns."""
        output = operator.outputs[0]
        made = self._turn.edit.activation(f"{last_part(output)}/{suffix}", (1, *shape, output.shape[3]), output)
        others = (None if each is None else self._turn.twins.get(each, each) for each in operator.inputs[1:])
        self._turn.edit.twin(operator, [rows, *others], (made,), **fields)
        return made
