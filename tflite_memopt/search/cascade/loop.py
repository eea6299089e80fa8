"""A region in stripes as one loop: the operators of a stripe exist once, and WHILE runs them for all stripes.

All loops have two subgraphs:

    body    at = SLICE(table, counter)      rows = SLICE(image, at)      operators over these rows
            result' = DYNAMIC_UPDATE_SLICE(result, made, at)             counter' = SLICE(next, counter)
    cond    SLICE(is_turn, counter)

Where each iteration reads and writes is in tables of four integers per iteration: the begin of a slice in NHWC. The
counter goes up by four; that too, and where it ends, is in tables: SLICE is in the loop anyway, and keeps nothing in
the arena's tail.

The operators of the region are replaced by WHILE:

    main    image -------------------------+
            result (a variable, not set) --+--> WHILE --> y
            rows kept (padding at first) --+

A loop may also run over the *phases* of a dilated sequence, each written over its own input. A convolution with
dilation d reads the steps t, t - d, t - 2 d, ...: where P divides all dilations and paddings of a region, the steps
with the same ``t mod P`` are a sequence of their own, and no two of them ever meet.

    x (1, L, 1, C)  is  (1, L / P, P, C): column p has the steps p, p + P, p + 2 P, ...

    loop over p     column = SLICE(x, p)        the region on (1, L / P, 1, C), dilations and paddings divided by P
                    x' = DYNAMIC_UPDATE_SLICE(x, made, p)

Only one column of each inner tensor is alive at a time, and the result takes the place of the input: these are the same
bytes in the same order. No product is computed twice, and nothing is kept from iteration to iteration. Exactness:
exact. (The converter writes a dilated convolution in the same way, with the phases as a batch: SPACE_TO_BATCH_ND.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from ...model.ir.copying import drop_dead_tensors
from ...model.ir.editor import Array, last_part, stem
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import zero_of
from ...operators.editor import Editor, iteration_condition
from ...operators.rows import Rows
from ...operators.table import kind_of
from .loop_rows import BYTE_COPIED, CALL, PIXEL_WRITTEN, WORTH, Clamped, Masked, Sides, Starts, clamped, masked
from .lower import Held, StripeWriter, padded, remove_unread, rows_of, write_twin
from .region import Region, region_of
from .stripes import input_reads

NHWC = 4
"""Integers that say where a slice begins."""
_ROWS = 1


@dataclass(frozen=True)
class LoopSubgraphs:
    """A loop's subgraphs by index, and the tensors of the main graph that iterations read and never change."""

    condition: int
    body: int
    carried: tuple[Tensor, ...]


class IterationGraph:
    """The body of a loop while it is written.

    ``twins`` gives the body's tensor for a tensor of the region: an input, or a constant. ``result`` has the rows that
    the iterations before have written. ``whole``: what it is like, None for the region's exit; where it is given, an
    iteration reads of it, too, and nothing else is carried. ``axis``: along which iterations read and write, in NHWC.
    ``rows``: those that each writes into the exit, which may have another shape for it; 0: it has its own.
    """

    def __init__(
        self, model: Model, region: Region, count: int, whole: Tensor | None = None, axis: int = _ROWS, rows: int = 0
    ) -> None:
        exit_ = region.exit if whole is None else whole
        self._model, self._count, self._axis = model, count, axis
        self.graph = Graph(f"{stem(exit_)}/turn")
        self.edit = Editor(model, self.graph, 0)
        self.counter = self.edit.integers("counter", (1,))
        self.carried = _read_from_outside(region) if whole is None else ()
        constants = (t for op in region.operators for t in op.present_inputs() if t.is_constant)
        read = dict.fromkeys((*self.carried, *constants))
        self.twins = {
            tensor: self.graph.add_tensor(replace(tensor, name=self.edit.unique(last_part(tensor)))) for tensor in read
        }
        self._is_flat = is_written_flat(exit_, rows)
        shape = flat(exit_.shape) if self._is_flat else exit_.shape
        self.result = self.edit.activation(f"{last_part(exit_)}/rows_so_far", shape, exit_)
        self._begins: dict[tuple[int, ...], Tensor] = {}
        self._flags: dict[tuple[bool, ...], Tensor] = {}

    def rows_like(self, like: Tensor, count: int, name: str) -> Tensor:
        """Return a new activation of ``count`` rows."""
        return self.edit.activation(f"{last_part(like)}/{name}", (like.shape[0], count, *like.shape[2:]), like)

    def cut(self, tensor: Tensor, starts: tuple[int, ...], count: int, name: str) -> Tensor:
        """``count`` rows of a tensor, from row ``starts[t]`` on in iteration t."""
        return self.slice(tensor, self.begin(starts), self.rows_like(tensor, count, name))

    def begin(self, rows: tuple[int, ...]) -> Tensor:
        """Return the begin of a slice: in iteration t at row ``rows[t]``, or that place of the other axis."""
        if rows not in self._begins:
            table = np.zeros((len(rows), NHWC), np.int32)
            table[:, self._axis] = rows
            begin = self.edit.integers("begin", (NHWC,))
            self._begins[rows] = self.slice(self.edit.constant("begins", table.ravel()), self.counter, begin)
        return self._begins[rows]

    def flag(self, holds: tuple[bool, ...]) -> Tensor:
        """Tell whether something holds in this iteration: in iteration t ``holds[t]``."""
        if holds not in self._flags:
            table = np.repeat(np.asarray(holds, np.bool_), NHWC)
            flag = self.edit.integers("flag", (1,), DType.BOOL)
            self._flags[holds] = self.slice(self.edit.constant("flags", table), self.counter, flag)
        return self._flags[holds]

    def grow(self, made: Tensor, writes: tuple[int, ...]) -> Tensor:
        """The result with the rows of this iteration, which are row ``writes[t]`` of it and those that follow."""
        if self._is_flat:
            rows, made = made, self.edit.activation(f"{last_part(self.result)}/in_one_run", flat(made.shape), made)
            self.edit.reshape(rows, made, has_operand=False)
        grown = self.edit.activation(f"{last_part(self.result)}/and_these", self.result.shape, self.result)
        self.edit.update_slice(self.result, made, self.begin(writes), grown)
        return grown

    def finish(self, made: Tensor, writes: tuple[int, ...], kept: Sequence[tuple[Tensor, Tensor]]) -> LoopSubgraphs:
        """Write the rows into the result and add both subgraphs to the model.

        ``kept``: other carried tensors, as they are at the start and at the end of an iteration.
        """
        grown = self.grow(made, writes)
        unchanged = [self.twins[tensor] for tensor in self.carried]
        self.graph.inputs = (self.counter, *unchanged, self.result, *(before for before, _ in kept))
        self.graph.outputs = (self._next(), *unchanged, grown, *(after for _, after in kept))
        self._model.graphs += [iteration_condition(self._model, self.graph, self._count, NHWC), self.graph]
        return LoopSubgraphs(len(self._model.graphs) - 2, len(self._model.graphs) - 1, self.carried)

    def slice(self, tensor: Tensor, begin: Tensor, output: Tensor) -> Tensor:
        size = self.edit.constant(f"{output.name}/size", np.asarray(output.shape, np.int32))
        self.edit.operator("SLICE", (tensor, begin, size), (output,), "SliceOptions")
        return output

    def _next(self) -> Tensor:
        """Return the counter of the next iteration; a table takes fewer bytes of the tail than ADD."""
        table = np.repeat(np.arange(1, self._count + 1, dtype=np.int32) * NHWC, NHWC)
        return self.slice(self.edit.constant("next", table), self.counter, self.edit.integers("counter_next", (1,)))


def is_written_flat(result: Tensor, rows: int) -> bool:
    """Tell whether an iteration writes its ``rows`` rows of the result as one run of channels: the same bytes.

    DYNAMIC_UPDATE_SLICE calls memcpy for each pixel (dynamic_update_slice.cc). A RESHAPE costs a call and a copy.
    """
    _, _, width, depth = result.shape
    pixels = rows * (width - 1)
    return PIXEL_WRITTEN * pixels - CALL - BYTE_COPIED * pixels * depth * result.dtype.arena_bytes > WORTH


def flat(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of rows whose pixels are the channels of one."""
    images, height, width, depth = shape
    return images, height, 1, width * depth


def _read_from_outside(region: Region) -> tuple[Tensor, ...]:
    """Return the tensors from outside that a region reads, without constants: inputs by rows, then those read whole."""
    inside = {operator.outputs[0] for operator in region.operators}
    read = (tensor for operator in region.operators for tensor in operator.present_inputs())
    whole = (tensor for tensor in read if not tensor.is_constant and tensor not in inside)
    return tuple(dict.fromkeys((*region.inputs, *whole)))


NOTHING_GIVEN: Mapping[Tensor, Tensor] = {}


def clamped_body(model: Model, region: Region, loop: Clamped) -> LoopSubgraphs:
    """Return the subgraphs of a clamped loop."""
    body = IterationGraph(model, region, len(loop.writes), rows=loop.rows)
    have: dict[Tensor, Tensor] = dict(body.twins)
    cut = cache(body.cut)
    for operator in region.operators:
        inputs = [None if tensor is None else have[tensor] for tensor in operator.inputs]
        for slot, tensor in enumerate(inputs):
            read = loop.reads.get((operator, slot))
            if read is not None and tensor is not None and not read.is_whole:
                inputs[slot] = cut(tensor, read.starts, read.count, "turn")
        output, makes = operator.outputs[0], loop.makes[operator]
        made = body.rows_like(output, makes.of, "turn")
        write_twin(body.edit, operator, inputs, made)
        have[output] = made if makes.is_whole else body.cut(made, makes.starts, makes.count, "counted")
    return body.finish(have[region.exit], loop.writes, ())


def rolling_body(model: Model, region: Region, loop: Masked) -> LoopSubgraphs:
    """Write the subgraphs of a masked loop."""
    body = IterationGraph(model, region, len(loop.writes), rows=loop.rows)
    made, kept = RollingBody(body, region, loop).write()
    return body.finish(made, loop.writes, kept)


class RollingBody:
    """Writes the operators of an interior stripe into a graph.

    ``given``: rows of inputs that every iteration receives, in place of those that it cuts out of the input.
    """

    def __init__(
        self, body: IterationGraph, region: Region, loop: Masked, given: Mapping[Tensor, Tensor] = NOTHING_GIVEN
    ) -> None:
        self._region, self._loop = region, loop
        self._stripe = self._piece = loop.iteration
        self._masks: Mapping[Tensor, Starts] = {}
        self._body, self._given = body, given
        self._slices: dict[tuple[Tensor, Rows], Tensor] = {}
        self._parts: dict[Tensor, list[Tensor]] = {}
        self._next: dict[Tensor, list[Tensor]] = {}
        self._moved: dict[Tensor, list[Tensor]] = {}

    def write(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Return the rows of the exit, and kept tensors at the start and at the end of an iteration."""
        body, rows_kept = self._body, self._stripe.kept()
        for tensor, rows in rows_kept.items():
            count = self._parts_kept(tensor) or 1
            self._parts[tensor] = [self._rows_like(tensor, rows.count // count, "kept") for _ in range(count)]
        given = {tensor: (self._parts[tensor][0], rows) for tensor, rows in rows_kept.items()}
        # Rows for the next iteration may overwrite the rows that they are cut from, once nobody reads these.
        writer = StripeWriter(
            body.edit, self._region, self._input_rows, given, self._join, body.twins, self._move, self._loop.copies
        )
        kept = ((tensor, window) for tensor, window in self._stripe.windows.items() if tensor in given)
        last = {tensor: Rows(each.needed.end - each.kept.count, each.needed.end) for tensor, each in kept}
        made = self._joined(self._region.exit, list(self._write_pieces(writer, last)), "turn")
        after = {tensor: self._moved.get(tensor, [writer.held[tensor][0]]) for tensor in given}
        return made, [pair for tensor in given for pair in zip(self._parts[tensor], after[tensor], strict=True)]

    def _parts_kept(self, tensor: Tensor) -> int:
        """As ``Masked.parts_kept``; where inputs are given, what is kept goes out of the model and in as one tensor."""
        return 0 if self._given else self._loop.parts_kept(tensor)

    def _move(self, tensor: Tensor) -> bool:
        """Copy the parts that are kept of a tensor, and those that are new, to where the next iteration has them.

        False where rows have to be cut out.
        """
        for part in self._next[tensor] if self._parts_kept(tensor) else ():
            copied = self._body.edit.joined([part], 1, f"{last_part(tensor)}/kept", tensor)
            self._moved.setdefault(tensor, []).append(copied)
        return tensor in self._moved

    def _write_pieces(self, writer: StripeWriter, last: Mapping[Tensor, Rows]) -> Iterator[Tensor]:
        """Yield the rows of the exit that each piece of an iteration makes; ``last``: rows that the next iteration
        keeps.
        """
        pieces = self._loop.pieces
        keeps = [*(piece.kept() for piece in pieces[1:]), last]
        for number, (self._piece, keep) in enumerate(zip(pieces, keeps, strict=True)):
            self._masks = self._loop.masks[number]
            suffix = "turn" if len(pieces) == 1 else f"turn/piece{number + 1}of{len(pieces)}"
            made = writer.write_some(self._piece, suffix, keep)
            if made is not None:
                yield made

    def _input_rows(self, tensor: Tensor, rows: Rows) -> Tensor:
        """Return the rows of an input that every iteration reads elsewhere, cut out where they are needed first."""
        if tensor in self._given:
            (present,) = {read for _, each, read in input_reads(self._region, self._stripe) if each is tensor}
            return rows_of(self._body.edit, self._given[tensor], present, rows, f"{last_part(tensor)}/piece")
        if (tensor, rows) not in self._slices:
            sides = self._loop.read_wide.get((tensor, rows), (0, 0))
            starts, twin = self._loop.reads[tensor, rows], self._body.twins[tensor]
            self._slices[tensor, rows] = self._rows_or_zero(twin, starts, rows.count, sides)
        return self._slices[tensor, rows]

    def _rows_or_zero(self, tensor: Tensor, starts: Starts, count: int, sides: Sides) -> Tensor:
        """Return the rows of the image in every iteration; the zero point for those above and below it.

        image rows      | 5 6 7 |  zero point          cut out of the rows that are next to them, with rows of
                           |_______|                   the zero point on both sides
        """
        height = tensor.shape[1]
        inside = tuple(max(0, min(start, height - count)) for start in starts)
        rows = self._body.cut(tensor, inside, count, "turn")
        if inside == starts:
            return self._padded(rows, (0, 0, *sides))
        above = min(count, max(0, -min(starts)))
        below = min(count, max(0, max(starts) + count - height))
        around = self._between_zeros(tensor, rows, above, below, sides)
        moved = tuple(min(max(above + s - i, 0), above + below) for s, i in zip(starts, inside, strict=True))
        return self._body.cut(around, moved, count, "rows")

    def _join(self, like: Tensor, rows: Rows, parts: Sequence[Tensor], suffix: str) -> Held:
        """Kept and new rows; where some of the new ones are no rows, the zero point is in their place."""
        kept, new, starts = parts[:-1], parts[-1], self._masks.get(like)
        kept = self._parts[like] if like in self._parts and self._parts_kept(like) else kept
        sides = self._loop.wide.get(like, (0, 0)) if new.shape[2] == like.shape[2] else (0, 0)
        held = sum(part.shape[1] for part in kept)
        if starts is not None and set(starts) <= {held, held + new.shape[1]}:
            new, starts = self._rows_or_none(new, tuple(start > held for start in starts)), None
        new = self._padded(new, (0, 0, *sides))
        self._next[like] = [*kept[1:], new]
        if starts is None:
            return self._joined(like, (*kept, new), f"{suffix}/window"), rows
        return self._overwritten(like, (*kept, new), starts, suffix), Rows(rows.start, rows.end + new.shape[1])

    def _rows_or_none(self, new: Tensor, are_rows: tuple[bool, ...]) -> Tensor:
        """Return the new rows in the iterations where they are rows; in the others the zero point takes their place."""
        edit = self._body.edit
        zero = edit.constant(f"{last_part(new)}/zero_point", zero_rows(new, 1).ravel()[:1], new.quantization)
        chosen = edit.activation(f"{last_part(new)}/or_zero", new.shape, new)
        edit.operator("SELECT_V2", (self._body.flag(are_rows), new, zero), (chosen,), "SelectV2Options")
        return chosen

    def _between_zeros(self, like: Tensor, rows: Tensor, above: int, below: int, sides: Sides) -> Tensor:
        """Rows with the zero point around them. PAD is for columns; for rows alone, joining costs less time."""
        if any(sides):
            return self._padded(rows, (above, below, *sides))
        before, after = ([self._zeros(like, count)] if count else [] for count in (above, below))
        return self._joined(like, [*before, rows, *after], f"{last_part(rows)}/padded")

    def _zeros(self, like: Tensor, count: int, sides: Sides = (0, 0)) -> Tensor:
        """Return ``count`` rows of a tensor's zero point."""
        return self._body.edit.constant(f"{last_part(like)}/zero", zero_rows(like, count, sides), like.quantization)

    def _overwritten(self, like: Tensor, parts: Sequence[Tensor], starts: Starts, suffix: str) -> Tensor:
        """Kept and new rows, some of which the zero point is written over; where all are rows, it goes behind them."""
        zeros = self._zeros(like, parts[-1].shape[1], self._loop.wide.get(like, (0, 0)))
        joined = self._joined(like, (*parts, zeros), f"{suffix}/window_and_spare")
        masked = self._rows_like(like, joined.shape[1], f"{suffix}/masked")
        self._body.edit.update_slice(joined, zeros, self._body.begin(starts), masked)
        return masked

    def _joined(self, like: Tensor, parts: Sequence[Tensor], name: str) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        return self._body.edit.joined(parts, 1, f"{last_part(like)}/{name}", like)

    def _padded(self, rows: Tensor, padding: tuple[int, int, int, int]) -> Tensor:
        return padded(self._body.edit, rows, padding, f"{last_part(rows)}/padded", self._loop.copies)

    def _rows_like(self, like: Tensor, count: int, name: str) -> Tensor:
        """Return a new activation of ``count`` rows, with the columns of padding that all readers want."""
        shape = (like.shape[0], count, *wide_shape(like, self._loop.wide.get(like, (0, 0))))
        return self._body.edit.activation(f"{last_part(like)}/{name}", shape, like)


def wide_shape(like: Tensor, sides: Sides) -> tuple[int, int]:
    """Columns, those of padding among them, and channels."""
    return like.shape[2] + sum(sides), like.shape[3]


def zero_rows(like: Tensor, count: int, sides: Sides = (0, 0)) -> Array:
    """``count`` rows of the zero point of a tensor, as in padding."""
    return np.full((like.shape[0], count, *wide_shape(like, sides)), zero_of(like), like.dtype.label)


LoopForm = Literal["clamped", "masked"]
LoopRows = Clamped | Masked


def loop_rows_of(region: Region, rows: int, form: LoopForm) -> LoopRows | str:
    """Return the loop of this form with ``rows`` rows per iteration, or the reason why there is none."""
    reason = reason_against_loops(region)
    if reason is not None:
        return reason
    return clamped(region, rows) if form == "clamped" else masked(region, rows)


def reason_against_loops(region: Region) -> str | None:
    """Return the reason why a region cannot run in iterations over rows; None where it can."""
    if len(region.exit.shape) != 4:
        return "its result has no channels"
    if region.exit.dtype is DType.BOOL:
        return "TFLM cannot write rows of booleans into a larger tensor (dynamic_update_slice.cc)"
    return None


def lower_loop(model: Model, graph: Graph, region: Region, loop: LoopRows) -> None:
    """Replace the region's operators by their loop, in place; two subgraphs are added to the model."""
    subgraphs = clamped_body(model, region, loop) if isinstance(loop, Clamped) else rolling_body(model, region, loop)
    edit = Editor.in_place_of(model, graph, *region.operators)
    exit_ = grown = region.exit
    if is_written_flat(exit_, loop.rows):
        grown = edit.activation(f"{stem(exit_)}/in_one_run", flat(exit_.shape), exit_)
    write_while(edit, subgraphs, _unset(edit, grown), grown, list(_kept_at_first(edit, loop)))
    if grown is not exit_:
        edit.reshape(grown, exit_, has_operand=False)
    remove_unread(model, graph, region)


def _kept_at_first(edit: Editor, loop: LoopRows) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the padding that the first iteration reads in place of kept rows, with the tensor that these are of."""
    if isinstance(loop, Masked):
        for tensor, rows in loop.iteration.kept().items():
            count = loop.parts_kept(tensor) or 1
            zeros = zero_rows(tensor, rows.count // count, loop.wide.get(tensor, (0, 0)))
            for _ in range(count):
                yield tensor, edit.constant(f"{stem(tensor)}/zero", zeros, tensor.quantization)


def _unset(edit: Editor, grown: Tensor) -> Tensor:
    """Add a stand-in for the result before the loop: LiteRT asks for a tensor that has bytes, nobody reads them."""
    result = edit.activation(f"{stem(grown)}/unset", grown.shape, grown)
    result.is_variable = result.is_placeholder = True
    return result


def write_while(
    edit: Editor, subgraphs: LoopSubgraphs, result: Tensor, grown: Tensor, kept: Sequence[tuple[Tensor, Tensor]]
) -> None:
    """Write WHILE over the carried tensors: inputs, the result so far, kept rows with the tensors that they are of."""
    name = stem(grown)
    carried = [edit.activation(f"{stem(t)}/carried", t.shape, t) for t in subgraphs.carried]
    kept_after = [edit.activation(f"{stem(t)}/last/kept", k.shape, k) for t, k in kept]
    start = edit.constant(f"{name}/first_turn", np.zeros(1, np.int32))
    edit.operator(
        "WHILE",
        (start, *subgraphs.carried, result, *(rows for _, rows in kept)),
        (edit.integers(f"{name}/turns", (1,)), *carried, grown, *kept_after),
        "WhileOptions",
        condSubgraphIndex=subgraphs.condition,
        bodySubgraphIndex=subgraphs.body,
    )


_COLUMNS = 2
"""The axis of NHWC that says which phase."""
_SHORTEST = 3
"""Fewest operators of a region for which a loop pays: a PAD, a convolution, and a sum."""


def phase_regions(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Steps ``first`` to ``end``, half-open, and phases: for each number of phases the longest region that has them."""
    dilations = {int(op.option("dilationHFactor", 1)) for op in graph.operators if kind_of(op).by_phase}
    for phases in sorted(each for each in dilations if each > 1):
        fits = [_has_phases(operator, phases) for operator in graph.operators]
        starts = ((_start(graph, fits, end), end) for end in range(len(fits), 0, -1))
        found = ((first, end) for first, end in starts if first is not None)
        longest = max(found, key=lambda each: each[1] - each[0], default=None)
        if longest is not None and longest[1] - longest[0] >= _SHORTEST:
            yield (*longest, phases)


def _start(graph: Graph, fits: Sequence[bool], end: int) -> int | None:
    """Return the first step of the longest region that ends before step ``end`` and has one sequence as input."""
    start = end
    while start and fits[start - 1]:
        start -= 1
    return next((first for first in range(start, end - _SHORTEST + 1) if _is_one(graph, first, end)), None)


def _is_one(graph: Graph, first: int, end: int) -> bool:
    """Tell whether these steps make a sequence of one that nothing else reads, of the same bytes."""
    region = region_of(graph, graph.operators[first:end])
    if isinstance(region, str) or len(region.inputs) != 1:
        return False
    (x,), exit_ = region.inputs, region.exit
    is_read_elsewhere = any(use.operator not in region.operators for use in x.uses)
    is_interface = x in graph.inputs or x in graph.outputs or exit_ in graph.outputs
    return not is_read_elsewhere and not is_interface and x.shape == exit_.shape and x.dtype is exit_.dtype


def _has_phases(operator: Operator, phases: int) -> bool:
    """Tell whether the operator does the same to every phase by itself."""
    if len(operator.outputs) != 1 or not _is_sequence(operator.outputs[0], phases):
        return False
    source = operator.inputs[0]
    if source is None or source.is_constant or not _is_sequence(source, phases):
        return False
    by_phase = kind_of(operator).by_phase
    return by_phase is not None and by_phase.can(operator, phases)


def _is_sequence(tensor: Tensor, phases: int) -> bool:
    shape = tensor.shape
    return len(shape) == 4 and shape[0] == shape[2] == 1 and shape[1] > phases and shape[1] % phases == 0


def lower_phases(model: Model, region: Region, phases: int) -> str | None:
    """Replace the operators of a region of the main graph by the loop, in place; returns why that cannot be."""
    if len(region.inputs) != 1 or not all(_has_phases(operator, phases) for operator in region.operators):
        return f"not one sequence of {phases} phases"
    graph, (x,), exit_ = model.main, region.inputs, region.exit
    if x.shape != exit_.shape or x.dtype is not exit_.dtype:
        return "its result is no sequence such as its input"
    edit = Editor.in_place_of(model, graph, *region.operators)
    shape = (1, x.shape[1] // phases, phases, x.shape[3])
    columns = edit.activation(f"{stem(x)}/columns", shape, x)
    edit.reshape(x, columns, has_operand=False)
    grown = edit.activation(f"{stem(exit_)}/columns", shape, x)
    write_while(edit, _body(model, region, phases, columns), columns, grown, ())
    # The output of the loop has the bytes and the quantization of the exit.
    edit.reshape(grown, exit_, has_operand=False)
    remove_unread(model, graph, region)
    drop_dead_tensors(model)
    return None


def _body(model: Model, region: Region, phases: int, columns: Tensor) -> LoopSubgraphs:
    """Return an iteration: one column of the whole, the operators on it, and the write of the result in its place."""
    body = IterationGraph(model, region, phases, columns, _COLUMNS)
    edit, begin = body.edit, body.begin(tuple(range(phases)))
    (x,) = region.inputs
    have = {x: edit.activation("column", _column(x, phases), x)}
    size = edit.constant("column/size", np.asarray(have[x].shape, np.int32))
    edit.operator("SLICE", (body.result, begin, size), (have[x],), "SliceOptions")
    for operator in region.operators:
        output = operator.outputs[0]
        inputs = [None if each is None else have.get(each) or body.twins[each] for each in operator.inputs]
        by_phase = kind_of(operator).by_phase
        assert by_phase is not None
        overrides = by_phase.overrides_for(edit, operator, phases)
        have[output] = edit.activation(stem(output), _column(output, phases), output)
        edit.twin(operator, overrides.apply_to(inputs), (have[output],), **overrides.fields)
    return body.finish(have[region.exit], tuple(range(phases)), ())


def _column(tensor: Tensor, phases: int) -> tuple[int, ...]:
    return (1, tensor.shape[1] // phases, 1, tensor.shape[3])
