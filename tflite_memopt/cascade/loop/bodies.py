"""What an iteration does, written into the body of its loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ...ir.making import Array
from ...ir.model import Model, Tensor
from ...ir.names import last_part
from ...operators.rows import Rows
from ..lower import Held, StripeWriter, padded, rows_of, write_twin
from ..region import Region
from ..stripes import input_reads
from .clamped import Clamped
from .masked import Masked, Sides, Starts
from .turn_graph import LoopSubgraphs, TurnGraph

NOTHING_GIVEN: Mapping[Tensor, Tensor] = {}


def clamped_body(model: Model, region: Region, turns: Clamped) -> LoopSubgraphs:
    """The subgraphs of a clamped loop."""
    turn = TurnGraph(model, region, len(turns.writes))
    have: dict[Tensor, Tensor] = dict(turn.twins)
    cut = cache(turn.cut)
    for operator in region.operators:
        inputs = [None if tensor is None else have[tensor] for tensor in operator.inputs]
        for slot, tensor in enumerate(inputs):
            read = turns.reads.get((operator, slot))
            if read is not None and tensor is not None and not read.is_whole:
                inputs[slot] = cut(tensor, read.starts, read.count, "turn")
        output, makes = operator.outputs[0], turns.makes[operator]
        made = turn.rows_like(output, makes.of, "turn")
        write_twin(turn.edit, operator, inputs, made)
        have[output] = made if makes.is_whole else turn.cut(made, makes.starts, makes.count, "counted")
        turn.note(have[output], output, turns.holds[output])
    return turn.finish(have[region.exit], turns.writes, ())


def rolling_body(model: Model, region: Region, turns: Masked) -> LoopSubgraphs:
    """Write the subgraphs of a masked loop."""
    turn = TurnGraph(model, region, len(turns.writes))
    made, kept = RollingBody(turn, region, turns).write()
    return turn.finish(made, turns.writes, kept)


class RollingBody:
    """Writes the operators of an interior stripe into a graph.

    ``given``: rows of inputs that come anew in each iteration, in place of those that it cuts out of the input.
    """

    def __init__(
        self, turn: TurnGraph, region: Region, turns: Masked, given: Mapping[Tensor, Tensor] = NOTHING_GIVEN
    ) -> None:
        self._region, self._turns = region, turns
        self._stripe = self._piece = turns.turn
        self._masks: Mapping[Tensor, Starts] = {}
        self._turn, self._given = turn, given
        self._slices: dict[tuple[Tensor, Rows], Tensor] = {}

    def write(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The rows of the exit, and what is kept: as it is at the start of an iteration, and at its end."""
        turn = self._turn
        given = {
            tensor: (self._rows_like(tensor, rows.count, "kept"), rows) for tensor, rows in self._stripe.kept().items()
        }
        # What the next iteration keeps may be written over the rows that it is cut from, once nobody reads these.
        writer = StripeWriter(turn.edit, self._region, self._input_rows, given, self._join, turn.twins)
        kept = ((tensor, window) for tensor, window in self._stripe.windows.items() if tensor in given)
        last = {tensor: Rows(each.needed.end - each.kept.count, each.needed.end) for tensor, each in kept}
        made = self._joined(self._region.exit, list(self._write_pieces(writer, last)), "turn")
        early = -self._turns.first_turn
        # What the first iterations write lies outside the image, and is overwritten.
        ahead = tuple((turn - early) * self._turns.rows for turn in range(early))
        turn.note(made, self._region.exit, (*ahead, *self._turns.writes[early:]))
        return made, [(before, writer.held[tensor][0]) for tensor, (before, _) in given.items()]

    def _write_pieces(self, writer: StripeWriter, last: Mapping[Tensor, Rows]) -> Iterator[Tensor]:
        """What the pieces of an iteration make of the exit; ``last``: what the next iteration keeps."""
        pieces = self._turns.pieces
        keeps = [*(piece.kept() for piece in pieces[1:]), last]
        for number, (self._piece, keep) in enumerate(zip(pieces, keeps, strict=True)):
            self._masks = self._turns.masks[number]
            suffix = "turn" if len(pieces) == 1 else f"turn/piece{number + 1}of{len(pieces)}"
            made = writer.write_some(self._piece, suffix, keep)
            if made is not None:
                yield made

    def _input_rows(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Rows of an input that every iteration reads elsewhere, cut out where they are needed first."""
        if tensor in self._given:
            (present,) = {read for _, each, read in input_reads(self._region, self._stripe) if each is tensor}
            return rows_of(self._turn.edit, self._given[tensor], present, rows, f"{last_part(tensor)}/piece")
        if (tensor, rows) not in self._slices:
            sides = self._turns.read_wide.get((tensor, rows), (0, 0))
            starts, twin = self._turns.reads[tensor, rows], self._turn.twins[tensor]
            self._slices[tensor, rows] = self._rows_or_zero(twin, starts, rows.count, sides)
        return self._slices[tensor, rows]

    def _rows_or_zero(self, tensor: Tensor, starts: Starts, count: int, sides: Sides) -> Tensor:
        """Rows of the image in every iteration; the zero point for those above and below it.

        image rows      | 5 6 7 |  zero point          cut out of the rows that are next to them, with rows of
                           |_______|                   the zero point on both sides
        """
        height = tensor.shape[1]
        inside = tuple(max(0, min(start, height - count)) for start in starts)
        rows = self._turn.cut(tensor, inside, count, "turn")
        if inside == starts:
            return self._padded(rows, (0, 0, *sides))
        above = min(count, max(0, -min(starts)))
        below = min(count, max(0, max(starts) + count - height))
        around = self._between_zeros(tensor, rows, above, below, sides)
        moved = tuple(min(max(above + s - i, 0), above + below) for s, i in zip(starts, inside, strict=True))
        return self._turn.cut(around, moved, count, "rows")

    def _join(self, like: Tensor, rows: Rows, parts: Sequence[Tensor], suffix: str) -> Held:
        """Kept and new rows; where some of the new ones are no rows, the zero point is in their place."""
        self._note_new(like, parts[-1])
        kept, new, starts = parts[:-1], parts[-1], self._masks.get(like)
        sides = self._turns.wide.get(like, (0, 0)) if new.shape[2] == like.shape[2] else (0, 0)
        held = sum(part.shape[1] for part in kept)
        if starts is not None and set(starts) <= {held, held + new.shape[1]}:
            new, starts = self._rows_or_none(new, tuple(start > held for start in starts)), None
        new = self._padded(new, (0, 0, *sides))
        if starts is None:
            return self._joined(like, (*kept, new), f"{suffix}/window"), rows
        return self._overwritten(like, (*kept, new), starts, suffix), Rows(rows.start, rows.end + new.shape[1])

    def _rows_or_none(self, new: Tensor, are_rows: tuple[bool, ...]) -> Tensor:
        """The new rows in the iterations where they are rows; in the others the zero point takes their place."""
        edit = self._turn.edit
        zero = edit.constant(f"{last_part(new)}/zero_point", zero_rows(new, 1).ravel()[:1], new.quantization)
        chosen = edit.activation(f"{last_part(new)}/or_zero", new.shape, new)
        edit.operator("SELECT_V2", (self._turn.flag(are_rows), new, zero), (chosen,), "SelectV2Options")
        return chosen

    def _between_zeros(self, like: Tensor, rows: Tensor, above: int, below: int, sides: Sides) -> Tensor:
        """Rows with the zero point around them. PAD is for columns; for rows alone, joining costs less time."""
        if any(sides):
            return self._padded(rows, (above, below, *sides))
        before, after = ([self._zeros(like, count)] if count else [] for count in (above, below))
        return self._joined(like, [*before, rows, *after], f"{last_part(rows)}/padded")

    def _zeros(self, like: Tensor, count: int, sides: Sides = (0, 0)) -> Tensor:
        """So many rows of the zero point of a tensor."""
        return self._turn.edit.constant(f"{last_part(like)}/zero", zero_rows(like, count, sides), like.quantization)

    def _overwritten(self, like: Tensor, parts: Sequence[Tensor], starts: Starts, suffix: str) -> Tensor:
        """Kept and new rows, some of which the zero point is written over; where all are rows, it goes behind them."""
        zeros = self._zeros(like, parts[-1].shape[1], self._turns.wide.get(like, (0, 0)))
        joined = self._joined(like, (*parts, zeros), f"{suffix}/window_and_spare")
        masked = self._rows_like(like, joined.shape[1], f"{suffix}/masked")
        self._turn.edit.update_slice(joined, zeros, self._turn.begin(starts), masked)
        return masked

    def _joined(self, like: Tensor, parts: Sequence[Tensor], name: str) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        joined = self._rows_like(like, sum(part.shape[1] for part in parts), name)
        self._turn.edit.join(parts, joined, 1)
        return joined

    def _note_new(self, like: Tensor, made: Tensor) -> None:
        new, step = self._piece.windows[like].made, self._turns.steps[like]
        if new.count:
            first = self._turns.first_turn
            starts = tuple(new.start + (turn + first) * step for turn in range(len(self._turns.writes)))
            self._turn.note(made, like, starts)

    def _padded(self, rows: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
        return padded(self._turn.edit, rows, padding, f"{last_part(rows)}/padded")

    def _rows_like(self, like: Tensor, count: int, name: str) -> Tensor:
        """A new activation of ``count`` rows, with the columns of padding that all readers want."""
        shape = (1, count, *wide_shape(like, self._turns.wide.get(like, (0, 0))))
        return self._turn.edit.activation(f"{last_part(like)}/{name}", shape, like)


def wide_shape(like: Tensor, sides: Sides) -> tuple[int, int]:
    """Columns, those of padding among them, and channels."""
    return like.shape[2] + sum(sides), like.shape[3]


def zero_rows(like: Tensor, count: int, sides: Sides = (0, 0)) -> Array:
    """``count`` rows of the zero point of a tensor, which is what padding looks like."""
    quantization = like.quantization
    zero = 0 if quantization is None or not quantization.zero_point.size else int(quantization.zero_point[0])
    return np.full((1, count, *wide_shape(like, sides)), zero, like.dtype.label)
