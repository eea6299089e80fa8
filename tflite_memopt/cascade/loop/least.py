"""What a loop takes at least, from its turns alone: enough to leave most loops out before one is written."""

from __future__ import annotations

from collections.abc import Iterator

from ...analysis.macs import operator_macs
from ...graph.alignment import aligned
from ...ir.model import Operator
from ..lower import row_bytes
from ..region import Region
from .clamped import Clamped
from .lower import Turns
from .masked import Masked


def loop_macs(region: Region, turns: Turns) -> int:
    """MACs of a region as a loop, first and last stripe included."""
    stripes = [] if isinstance(turns, (Clamped, Masked)) else [turns.first, turns.last]
    total = sum(_macs(operator, rows) * len(turns.writes) for operator, _, rows in _work(region, turns))
    for stripe in stripes:
        jobs = {} if stripe is None else stripe.jobs
        total += sum(_macs(operator, job.computed.count) for operator, job in jobs.items())
    return total


def least_head(region: Region, turns: Turns, shares: bool) -> int:
    """Bytes that no plan of the loop goes below: image, result and kept rows, and the largest operator of a turn.

    ``shares``: whether an operator's output may lie on its input.
    """
    inputs = sum(aligned(tensor.nbytes) for tensor in region.inputs)
    kept = {} if isinstance(turns, Clamped) else turns.kept()
    carried = max(aligned(region.exit.nbytes), inputs)
    carried += sum(aligned(rows.count * row_bytes(tensor)) for tensor, rows in kept.items())
    working = 0
    for operator, read, made in _work(region, turns):
        sources = {t for slot in _slots(region, operator) if (t := operator.inputs[slot]) is not None}
        before = sum(aligned(read * row_bytes(tensor)) for tensor in sources - set(region.inputs) - set(kept))
        after = aligned(made * row_bytes(operator.outputs[0]))
        working = max(working, max(before, after) if shares else before + after)
    return carried + working


def _slots(region: Region, operator: Operator) -> tuple[int, ...]:
    return region.ways[region.operators.index(operator)].sliced


def _work(region: Region, turns: Turns) -> Iterator[tuple[Operator, int, int]]:
    """Each operator of a turn, with the rows that it reads of each input, and those that it makes."""
    for operator in region.operators:
        if isinstance(turns, Clamped):
            reads = [turns.reads[operator, slot].count for slot in _slots(region, operator)]
            yield operator, min(reads), turns.makes[operator].of
        elif operator in turns.turn.jobs:
            job = turns.turn.jobs[operator]
            yield operator, job.read.count, job.computed.count


def _macs(operator: Operator, rows: int) -> int:
    return operator_macs(operator) // operator.outputs[0].shape[1] * rows
