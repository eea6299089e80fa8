"""The loops of a model in the report's words: results, iterations, and line buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..model.analysis.loops import Loop, loops_of
from ..model.ir.model import Model, Tensor
from .model import LineBuffer, LoopUse
from .words import short_name

_KEPT = "/last/kept"
"""Behind the name of a tensor, in the names of its rows that a loop kept."""


def loop_uses(model: Model) -> tuple[LoopUse, ...]:
    """Return the loops that fill a result row after row, in order; the author's own are left out if they do not."""
    return tuple(filter(None, map(_use, loops_of(model))))


def said_of_loop(use: LoopUse) -> str:
    """Return one sentence for people."""
    kept = [f"{buffer.rows} rows of '{short_name(buffer.of)}' ({buffer.bytes:,} bytes)" for buffer in use.line_buffers]
    rows = "1 row" if use.rows == 1 else f"{use.rows} rows"
    source = ", ".join(f"'{short_name(name)}'" for name in use.reads)
    return (
        f"loop: {use.iterations} iterations of {rows} write '{short_name(use.result)}' from rows of {source}; "
        f"{len(use.operators)} operators per iteration; line buffers: {', '.join(kept) or 'none'}"
    )


def _use(loop: Loop) -> LoopUse | None:
    results = [slot for slot in loop.slots if _rows_written(loop, slot) is not None]
    if len(results) != 1 or loop.iterations is None:
        return None
    taken, returned = loop.body.inputs, loop.body.outputs
    images = [slot for slot in loop.slots if taken[slot] is returned[slot]]
    kept = [slot for slot in loop.slots if slot not in (*images, *results) and len(taken[slot].shape) > 1]
    return LoopUse(
        result=loop.operator.outputs[results[0]].name,
        iterations=loop.iterations,
        rows=_rows_written(loop, results[0]) or 0,
        operators=tuple(operator.name for operator in loop.body.operators),
        reads=tuple(tensor.name for slot in images if (tensor := loop.operator.inputs[slot]) is not None),
        line_buffers=tuple(_line_buffers((loop.operator.outputs[slot], taken[slot]) for slot in kept)),
    )


def _rows_written(loop: Loop, slot: int) -> int | None:
    """Return the rows that an iteration writes into the tensor in this slot; None if it is not a growing result."""
    writer = loop.body.outputs[slot].producer
    if writer is None or writer.name != "DYNAMIC_UPDATE_SLICE" or writer.inputs[0] is not loop.body.inputs[slot]:
        return None
    rows = writer.inputs[1]
    return None if rows is None or len(rows.shape) < 2 else rows.shape[1]


def _line_buffers(kept: Iterable[tuple[Tensor, Tensor]]) -> Iterator[LineBuffer]:
    """Yield one for each tensor, whose rows may be kept in parts: ``kept`` by what they are called after the loop."""
    of: dict[str, list[Tensor]] = {}
    for after, rows in kept:
        of.setdefault(after.name.partition(_KEPT)[0], []).append(rows)
    for name, parts in of.items():
        yield LineBuffer(name, sum(part.shape[1] for part in parts), sum(part.nbytes for part in parts))
