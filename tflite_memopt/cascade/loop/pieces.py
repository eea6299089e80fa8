"""An iteration in pieces: all operators on some of the new rows, then on the next ones.

    rows a turn      image 4                      A 3x3, stride 2: 2       B 3x3, stride 2: 1
    piece 1          0 1  are there               makes 0                  -
    piece 2          0 1 2 3                      makes 1                  makes 0

With strides, an iteration takes many rows of the image for one of its result. As a whole it has all of the first, wide
tensors at once; in pieces a few rows of them. No row is made twice, but a piece has operators of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.model import Operator, Tensor
from ...operators.rows import Rows
from ..region import Region
from ..stripes import Job, Stripe, Window

Ends = Mapping[Tensor, list[int]]
"""For each tensor the row that it ends with before the first piece, and after each."""


def pieces_of(region: Region, turn: Stripe, steps: Mapping[Tensor, int], count: int) -> tuple[Stripe, ...] | str:
    """``turn`` in pieces of equally many new rows of the inputs, or why there are none; ``steps`` as of ``Masked``."""
    if count == 1:
        return (turn,)
    ends = _ends(region, turn, steps, count)
    if isinstance(ends, str):
        return ends
    found = list[Stripe]()
    # The first row of each tensor that the pieces from this one on read, or the next iteration.
    first = {tensor: window.needed.start + steps[tensor] for tensor, window in turn.windows.items()}
    for piece in reversed(range(count)):
        made = {tensor: Rows(*each[piece : piece + 2]) for tensor, each in ends.items()}
        jobs = _jobs(region, turn, made)
        for operator, way in region.steps:
            for tensor in way.images(operator):
                if operator in jobs and tensor in first:
                    first[tensor] = min(first[tensor], jobs[operator].read.start)
        windows = {tensor: _window(start, made[tensor]) for tensor, start in first.items()}
        found.insert(0, Stripe(jobs, windows))
    return tuple(found)


def _ends(region: Region, turn: Stripe, steps: Mapping[Tensor, int], count: int) -> Ends | str:
    """An operator makes its even share in each piece, or what it can of the rows that there are."""
    ends: dict[Tensor, list[int]] = {}
    for operator, way in region.steps:
        output, last = operator.outputs[0], turn.jobs[operator].computed.end
        before, step = last - steps[output], steps[output]
        sources = [ends[tensor] for tensor in way.images(operator) if tensor in ends]
        if not sources and step % count:
            return f"{step} new rows of '{output.name}' are no {count} pieces"
        ends[output] = [before]
        for piece in range(1, count + 1):
            end = before - (-step * piece // count)
            for source in sources:
                end = min(end, (source[piece] + way.rows.before - way.rows.reach) // way.rows.stride + 1)
            ends[output].append(max(before, end))
        assert ends[output][-1] == last
    return ends


def _jobs(region: Region, turn: Stripe, made: Mapping[Tensor, Rows]) -> dict[Operator, Job]:
    jobs = {}
    for operator, way in region.steps:
        rows = made[operator.outputs[0]]
        if rows.count:
            read = Rows(*way.rows.reads(rows.start, rows.end))
            job = replace(turn.jobs[operator], wanted=rows, computed=rows, read=read)
            jobs[operator] = job.padding_columns_itself() if way.is_window else job
    return jobs


def _window(first: int, made: Rows) -> Window:
    kept = Rows(min(first, made.start), made.start)
    return Window(Rows(kept.start, made.end), kept, made)
