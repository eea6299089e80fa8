r"""A region as one loop, written in stock operators.

    main    image -------------------------+
            result (a variable, not set) --+--> WHILE --> y
            rows kept (padding at first) --+

Exactness: exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Graph, Model, Tensor
from ...ir.names import stem
from ...ir.origin import piece_of
from ..region import Region
from .bodies import clamped_body, rolling_body, zero_rows
from .clamped import Clamped, clamped
from .masked import Masked, masked
from .turn_graph import LoopSubgraphs

LoopForm = Literal["clamped", "masked"]
Turns = Clamped | Masked


def turns_of(region: Region, rows: int, form: LoopForm) -> Turns | str:
    """Return the loop of this form with so many rows per iteration, or the reason why there is none."""
    reason = reason_against_loops(region)
    if reason is not None:
        return reason
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
    write_while(edit, subgraphs, _unset(edit, region), region.exit, _kept_at_first(edit, turns))
    graph.remove_tensors([*(op.outputs[0] for op in region.operators[:-1]), *unread_constants(model, graph, region)])


def _kept_at_first(edit: Editor, turns: Turns) -> dict[Tensor, Tensor]:
    """Return what the first iteration finds in place of kept rows: padding."""
    kept: dict[Tensor, Tensor] = {}
    if isinstance(turns, Masked):
        for tensor, rows in turns.turn.kept().items():
            zeros = zero_rows(tensor, rows.count, turns.wide.get(tensor, (0, 0)))
            kept[tensor] = edit.constant(f"{stem(tensor)}/zero", zeros, tensor.quantization)
    return kept


def _unset(edit: Editor, region: Region) -> Tensor:
    """Add a stand-in for the result before the loop: LiteRT asks for a tensor that has bytes, nobody reads them."""
    exit_ = region.exit
    result = edit.activation(f"{stem(exit_)}/unset", exit_.shape, exit_)
    result.is_variable = result.is_placeholder = True
    return result


def write_while(
    edit: Editor, subgraphs: LoopSubgraphs, result: Tensor, grown: Tensor, kept: Mapping[Tensor, Tensor]
) -> None:
    """Write WHILE over what the loop carries: its inputs, the result so far, kept rows."""
    name = stem(grown)
    carried = [edit.activation(f"{stem(t)}/carried", t.shape, t, origin=piece_of(t, 1, 0)) for t in subgraphs.carried]
    kept_after = [edit.activation(f"{stem(t)}/last/kept", k.shape, k) for t, k in kept.items()]
    start = edit.constant(f"{name}/first_turn", np.zeros(1, np.int32))
    edit.operator(
        "WHILE",
        (start, *subgraphs.carried, result, *kept.values()),
        (edit.integers(f"{name}/turns", (1,)), *carried, grown, *kept_after),
        "WhileOptions",
        condSubgraphIndex=subgraphs.condition,
        bodySubgraphIndex=subgraphs.body,
    )


def unread_constants(model: Model, graph: Graph, region: Region) -> list[Tensor]:
    """Weights of the region that only the loop's body reads now."""
    named = {tensor for each in model.signatures or () for _, tensor in (*each.inputs, *each.outputs)}
    kept = named.union(graph.outputs)
    read = dict.fromkeys(tensor for op in region.operators for tensor in op.present_inputs())
    return [tensor for tensor in read if tensor.is_constant and not tensor.uses and tensor not in kept]
