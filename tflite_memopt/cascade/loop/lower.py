r"""A region as one loop, written in stock operators.

    main    image --SLICE--> first stripe --DYNAMIC_UPDATE_SLICE--+
                                  |kept rows                      result (a variable: nobody reads what it holds first)
            image ----------------+--------------> WHILE <--------+
            image --SLICE--> last stripe <-kept rows-|----result--DYNAMIC_UPDATE_SLICE--> y

A clamped loop, and a peeled one that needs no first or last stripe, is WHILE alone. Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal

import numpy as np

from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Graph, Model, Tensor
from ...ir.names import stem
from ...ir.origin import piece_of
from ...operators.rows import Rows
from ..lower import StripeWriter, rows_of
from ..region import Region
from ..stripes import Edges, Halo
from .bodies import clamped_body, rolling_body, zero_rows
from .clamped import Clamped, clamped
from .masked import Masked, masked
from .peeled import Peeled, peeled
from .turn_graph import LoopSubgraphs

LoopForm = Literal["peeled", "clamped", "masked"]
Turns = Peeled | Clamped | Masked


def turns_of(region: Region, rows: int, form: LoopForm, halo: Halo, edges: Edges) -> Turns | str:
    """The loop of this form with so many rows per iteration, or why there is none.

    ``halo`` and ``edges`` are for peeled loops; the others have their own.
    """
    reason = reason_against_loops(region)
    if reason is not None:
        return reason
    if form == "peeled":
        return peeled(region, rows, halo, edges)
    return clamped(region, rows) if form == "clamped" else masked(region, rows)


def reason_against_loops(region: Region) -> str | None:
    """Why a region cannot run in iterations over rows; None where it can."""
    if any(way.rows.factor > 1 for way in region.ways):
        return "an operator in it makes several rows of one"
    if len(region.exit.shape) != 4:
        return "its result has no channels"
    if region.exit.dtype is DType.BOOL:
        return "TFLM cannot write rows of booleans into a larger tensor (dynamic_update_slice.cc)"
    return None


def lower_loop(model: Model, graph: Graph, region: Region, turns: Turns) -> None:
    """Replace the region's operators by their loop, in place; two subgraphs are added to the model."""
    subgraphs = clamped_body(model, region, turns) if isinstance(turns, Clamped) else rolling_body(model, region, turns)
    last = graph.operators.index(region.operators[-1])
    edit = Editor(model, graph, last + 1)
    for operator in region.operators:
        edit.remove(operator)
    if isinstance(turns, Peeled):
        _write_peeled(edit, region, turns, subgraphs)
    else:
        _write_whole(edit, region, turns, subgraphs)
    graph.remove_tensors([*(op.outputs[0] for op in region.operators[:-1]), *unread_constants(model, graph, region)])


def _write_whole(edit: Editor, region: Region, turns: Clamped | Masked, subgraphs: LoopSubgraphs) -> None:
    """WHILE alone; what is kept starts as padding."""
    kept: dict[Tensor, Tensor] = {}
    if isinstance(turns, Masked):
        for tensor, rows in turns.turn.kept().items():
            zeros = zero_rows(tensor, rows.count, turns.wide.get(tensor, (0, 0)))
            kept[tensor] = edit.constant(f"{stem(tensor)}/zero", zeros, tensor.quantization)
    write_while(edit, subgraphs, _unset(edit, region), region.exit, kept)


def _write_peeled(edit: Editor, region: Region, turns: Peeled, subgraphs: LoopSubgraphs) -> None:
    """The first stripe, WHILE, and the last stripe."""
    exit_, result = region.exit, _unset(edit, region)
    kept: dict[Tensor, Tensor] = {}
    if turns.first is not None:
        writer = StripeWriter(edit, region, _slices(edit, "first", {}))
        made = writer.write(turns.first, "first", turns.turn.kept())
        kept = {tensor: writer.held[tensor][0] for tensor in turns.turn.kept()}
        result = _put(edit, result, made, 0, edit.activation(f"{stem(exit_)}/first_rows", exit_.shape, exit_))
    if turns.last is None:
        write_while(edit, subgraphs, result, exit_, kept)
        return
    grown = edit.activation(f"{stem(exit_)}/all_but_last_rows", exit_.shape, exit_)
    carried, kept_after = write_while(edit, subgraphs, result, grown, kept)
    for tensor, k in kept_after.items():
        k.origin = piece_of(tensor, 1, turns.kept_after[tensor].start)
    held = {tensor: (k, turns.kept_after[tensor]) for tensor, k in kept_after.items()}
    made = StripeWriter(edit, region, _slices(edit, "last", carried), held).write(turns.last, "last")
    _put(edit, grown, made, exit_.shape[1] - made.shape[1], exit_)


def _slices(edit: Editor, suffix: str, sources: Mapping[Tensor, Tensor]) -> Callable[[Tensor, Rows], Tensor]:
    """Rows of the region's inputs, cut where they are read first; ``sources`` are read in their place."""

    @cache
    def cut(tensor: Tensor, rows: Rows) -> Tensor:
        whole = Rows(0, tensor.shape[1])
        return rows_of(edit, sources.get(tensor, tensor), whole, rows, f"{stem(tensor)}/{suffix}")

    return cut


def _unset(edit: Editor, region: Region) -> Tensor:
    """What stands for the result before the loop: LiteRT asks for a tensor that has bytes, nobody for their values."""
    exit_ = region.exit
    result = edit.activation(f"{stem(exit_)}/unset", exit_.shape, exit_)
    result.is_variable = result.is_placeholder = True
    return result


def write_while(
    edit: Editor, subgraphs: LoopSubgraphs, result: Tensor, grown: Tensor, kept: Mapping[Tensor, Tensor]
) -> tuple[dict[Tensor, Tensor], dict[Tensor, Tensor]]:
    """WHILE; returns what it gives back of what it carries unchanged, and of the kept rows."""
    name = stem(grown)
    carried = {
        t: edit.activation(f"{stem(t)}/carried", t.shape, t, origin=piece_of(t, 1, 0)) for t in subgraphs.carried
    }
    kept_after = {t: edit.activation(f"{stem(t)}/last/kept", k.shape, k) for t, k in kept.items()}
    start = edit.constant(f"{name}/first_turn", np.zeros(1, np.int32))
    edit.operator(
        "WHILE",
        (start, *subgraphs.carried, result, *kept.values()),
        (edit.integers(f"{name}/turns", (1,)), *carried.values(), grown, *kept_after.values()),
        "WhileOptions",
        condSubgraphIndex=subgraphs.condition,
        bodySubgraphIndex=subgraphs.body,
    )
    return carried, kept_after


def _put(edit: Editor, whole: Tensor, rows: Tensor, first: int, output: Tensor) -> Tensor:
    """Write rows into a tensor, from row ``first`` on; TFLM does that in place where both lie at one offset."""
    begin = edit.constant(f"{output.name}/begin", np.asarray([0, first, 0, 0], np.int32))
    edit.update_slice(whole, rows, begin, output)
    return output


def unread_constants(model: Model, graph: Graph, region: Region) -> list[Tensor]:
    """Weights of the region that only the loop's body reads now."""
    named = {tensor for each in model.signatures or () for _, tensor in (*each.inputs, *each.outputs)}
    kept = named.union(graph.outputs)
    read = dict.fromkeys(tensor for op in region.operators for tensor in op.present_inputs())
    return [tensor for tensor in read if tensor.is_constant and not tensor.uses and tensor not in kept]
