"""What a turn does, written into the body of its loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ir.making import Array
from ...ir.model import Model, Operator, Tensor
from ...operators.rows import Rows
from ..lower import Held, StripeWriter, padded, write_twin
from ..region import Region, region_of
from ..stripes import Stripe
from .clamped import Clamped
from .masked import Masked, Sides, Starts
from .peeled import Peeled
from .turn_graph import LoopSubgraphs, TurnGraph, last_part


def clamped_body(model: Model, region: Region, turns: Clamped) -> LoopSubgraphs:
    """The subgraphs of a clamped loop."""
    turn = TurnGraph(model, region, len(turns.writes))
    have: dict[Tensor, Tensor] = dict(turn.twins)
    cuts: dict[tuple[Tensor, tuple[int, ...], int], Tensor] = {}

    def part(tensor: Tensor, count: int, starts: tuple[int, ...], name: str) -> Tensor:
        if (tensor, starts, count) not in cuts:
            cuts[tensor, starts, count] = turn.cut(tensor, starts, count, name)
        return cuts[tensor, starts, count]

    for operator in region.operators:
        inputs = [None if tensor is None else have[tensor] for tensor in operator.inputs]
        for slot, tensor in enumerate(inputs):
            read = turns.reads.get((operator, slot))
            if read is not None and tensor is not None and not read.is_whole:
                inputs[slot] = part(tensor, read.count, read.starts, "turn")
        output, makes = operator.outputs[0], turns.makes[operator]
        made = turn.rows_like(output, makes.of, "turn")
        write_twin(turn.edit, operator, inputs, made)
        have[output] = made if makes.is_whole else turn.cut(made, makes.starts, makes.count, "counted")
        turn.note(have[output], output, turns.holds[output])
    return turn.finish(have[region.exit], turns.writes, ())


def rolling_body(model: Model, region: Region, turns: Peeled | Masked) -> LoopSubgraphs:
    """The subgraphs of a peeled or of a masked loop."""
    return _RollingBody(model, region, turns).write()


class _RollingBody:
    """Writes the operators of an interior stripe by way of a copy of the region inside the body."""

    def __init__(self, model: Model, region: Region, turns: Peeled | Masked) -> None:
        self._turns = turns
        self._turn = TurnGraph(model, region, len(turns.writes))
        self._twins, self._region = _copied_region(self._turn, region)
        operators = dict(zip(region.operators, self._region.operators, strict=True))
        self._stripe = Stripe(
            {operators[operator]: job for operator, job in turns.turn.jobs.items()},
            {self._twins[tensor]: window for tensor, window in turns.turn.windows.items()},
        )
        masks = turns.masks if isinstance(turns, Masked) else {}
        wide, read_wide = (turns.wide, turns.read_wide) if isinstance(turns, Masked) else ({}, {})
        self._wide = {self._twins[tensor]: sides for tensor, sides in wide.items()}
        self._masks = {self._twins[tensor]: starts for tensor, starts in masks.items()}
        self._original = {twin: tensor for tensor, twin in self._twins.items()}
        self._reads = {(self._twins[x], rows): starts for (x, rows), starts in turns.reads.items()}
        self._read_wide = {(self._twins[x], rows): sides for (x, rows), sides in read_wide.items()}
        self._slices: dict[tuple[Tensor, Rows], Tensor] = {}

    def write(self) -> LoopSubgraphs:
        """The whole body."""
        turn = self._turn
        given = {
            tensor: (self._rows_like(tensor, rows.count, "kept"), rows) for tensor, rows in self._stripe.kept().items()
        }
        # What the next turn keeps may be written over the rows that it is cut from once nobody reads them any more.
        writer = StripeWriter(turn.edit, self._region, self._input_rows, given, self._join, is_turn=True)
        made = writer.write(self._stripe, "turn", {tensor: self._last_rows(tensor) for tensor in given})
        early = -self._turns.first_turn
        # What the first turns write is no rows yet, and is overwritten.
        ahead = tuple((turn - early) * self._turns.rows for turn in range(early))
        turn.note(made, self._original[self._region.exit], (*ahead, *self._turns.writes[early:]))
        kept = [(before, writer.held[tensor][0]) for tensor, (before, _) in given.items()]
        done = turn.finish(made, self._turns.writes, kept)
        turn.graph.remove_tensors([operator.outputs[0] for operator in self._region.operators])
        return done

    def _last_rows(self, tensor: Tensor) -> Rows:
        """The rows of a tensor that the next turn needs."""
        window = self._stripe.windows[tensor]
        return Rows(window.needed.end - window.kept.count, window.needed.end)

    def _input_rows(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Rows of an input that every turn reads elsewhere, cut out where they are needed first."""
        if (tensor, rows) not in self._slices:
            sides = self._read_wide.get((tensor, rows), (0, 0))
            self._slices[tensor, rows] = self._rows_or_zero(tensor, self._reads[tensor, rows], rows.count, sides)
        return self._slices[tensor, rows]

    def _rows_or_zero(self, tensor: Tensor, starts: Starts, count: int, sides: Sides) -> Tensor:
        """Rows of the image in every turn; the zero point for those above and below it.

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
        sides = self._wide.get(like, (0, 0)) if new.shape[2] == like.shape[2] else (0, 0)
        held = sum(part.shape[1] for part in kept)
        if starts is not None and set(starts) <= {held, held + new.shape[1]}:
            new, starts = self._rows_or_none(new, tuple(start > held for start in starts)), None
        new = self._padded(new, (0, 0, *sides))
        if starts is None:
            return self._joined(like, (*kept, new), f"{suffix}/window"), rows
        return self._overwritten(like, (*kept, new), starts, suffix), Rows(rows.start, rows.end + new.shape[1])

    def _rows_or_none(self, new: Tensor, are_rows: tuple[bool, ...]) -> Tensor:
        """The new rows in the turns where they are rows; in the others the zero point takes their place."""
        edit, zero = self._turn.edit, self._zero_point(new)
        chosen = edit.activation(f"{last_part(new)}/or_zero", new.shape, new)
        edit.operator("SELECT_V2", (self._turn.flag(are_rows), new, zero), (chosen,), "SelectV2Options")
        return chosen

    def _zero_point(self, like: Tensor) -> Tensor:
        """One value of the zero point."""
        value = zero_rows(like, 1).ravel()[:1]
        return self._turn.edit.constant(f"{last_part(like)}/zero_point", value, like.quantization)

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
        zeros = self._zeros(like, parts[-1].shape[1], self._wide.get(like, (0, 0)))
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
        new, step = self._stripe.windows[like].made, self._turns.steps[self._original[like]]
        if new.count:
            first = self._turns.first_turn
            starts = tuple(new.start + (turn + first) * step for turn in range(len(self._turns.writes)))
            self._turn.note(made, self._original[like], starts)

    def _padded(self, rows: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
        return padded(self._turn.edit, rows, padding, f"{last_part(rows)}/padded")

    def _rows_like(self, like: Tensor, count: int, name: str) -> Tensor:
        """A new activation of so many rows, with the columns of padding that all readers want."""
        shape = (1, count, *wide_shape(like, self._wide.get(like, (0, 0))))
        return self._turn.edit.activation(f"{last_part(like)}/{name}", shape, like)


def wide_shape(like: Tensor, sides: Sides) -> tuple[int, int]:
    """Columns, those of padding among them, and channels."""
    return like.shape[2] + sum(sides), like.shape[3]


def zero_rows(like: Tensor, count: int, sides: Sides = (0, 0)) -> Array:
    """``count`` rows of the zero point of a tensor, which is what padding looks like."""
    quantization = like.quantization
    zero = 0 if quantization is None or not quantization.zero_point.size else int(quantization.zero_point[0])
    return np.full((1, count, *wide_shape(like, sides)), zero, like.dtype.label)


def _copied_region(turn: TurnGraph, region: Region) -> tuple[dict[Tensor, Tensor], Region]:
    """The region over tensors of the body, without its operators being in there; weights share the buffers."""
    twins = dict(turn.twins)
    for operator in region.operators:
        twins[operator.outputs[0]] = turn.graph.add_tensor(
            replace(operator.outputs[0], name=last_part(operator.outputs[0]))
        )
    copies: list[Operator] = []
    for operator in region.operators:
        inputs = tuple(None if tensor is None else twins[tensor] for tensor in operator.inputs)
        copies.append(turn.graph.add_operator(replace(operator, inputs=inputs, outputs=(twins[operator.outputs[0]],))))
    inside = region_of(turn.graph, copies)
    assert isinstance(inside, Region)
    for operator in copies:
        turn.graph.remove_operator(operator)
    return twins, inside
