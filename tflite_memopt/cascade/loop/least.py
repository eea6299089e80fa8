"""What a loop takes at least, from its turns alone: enough to leave most loops out before one is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ...analysis.macs import operator_macs
from ...graph.alignment import aligned
from ...ir.model import Operator, Tensor
from ...operators.rows import Rows
from ..lower import row_bytes
from ..region import Region
from .clamped import Clamped
from .lower import Turns
from .masked import Masked

Shares = Callable[[Operator], bool]
"""Whether an operator's output may lie on an input."""


def loop_macs(region: Region, turns: Turns) -> int:
    """MACs of a region as a loop, first and last stripe included."""
    stripes = [] if isinstance(turns, (Clamped, Masked)) else [turns.first, turns.last]
    total = sum(_macs(operator, rows) * len(turns.writes) for operator, _, rows in _work(region, turns))
    for stripe in stripes:
        jobs = {} if stripe is None else stripe.jobs
        total += sum(_macs(operator, job.computed.count) for operator, job in jobs.items())
    return total


def least_head(region: Region, turns: Turns, shares: Shares, lives_on: Collection[Tensor] = ()) -> int:
    """Bytes that no plan of the loop goes below: image, result and kept rows, and the largest operator of a turn.

    ``lives_on``: inputs that are read after the loop.
    """
    kept = {} if isinstance(turns, Clamped) else turns.turn.kept()
    held = sum(aligned(rows.count * row_bytes(tensor)) for tensor, rows in kept.items())
    working = 0
    for operator, read, made in _work(region, turns):
        rows = _rows_beside(region, turns, kept, operator, read)
        before = sum(aligned(count * row_bytes(tensor)) for tensor, count in rows.items())
        after = aligned(made * row_bytes(operator.outputs[0]))
        if not shares(operator):
            working = max(working, before + after)
        elif 0 not in rows.values():  # else the output may lie on what the loop carries
            working = max(working, before, after)
    return _carried(region, turns, lives_on) + held + working


def _rows_beside(
    region: Region, turns: Turns, kept: Mapping[Tensor, Rows], operator: Operator, read: int
) -> dict[Tensor, int]:
    """The rows that an operator reads in a turn, by tensor, without those that the loop carries from turn to turn."""
    found: dict[Tensor, int] = {}
    for slot in _slots(region, operator):
        tensor = operator.inputs[slot]
        if tensor is None:
            continue
        count = read
        if isinstance(turns, Clamped) and tensor in region.inputs:
            part = turns.reads[operator, slot]
            count = 0 if part.is_whole else part.count  # a part is cut out, the whole is read where it lies
        found[tensor] = max(0, count - (kept[tensor].count if tensor in kept else 0))
    return found


def _carried(region: Region, turns: Turns, lives_on: Collection[Tensor]) -> int:
    """Bytes of image and result, which lies over what is not read any more.

    An input is ``distance`` bytes above the result, or beside it. Inputs are beside each other, so that together they
    have no more in common with the result than what is above the smallest distance.
    """
    result = aligned(region.exit.nbytes)
    inputs = {tensor: aligned(tensor.nbytes) for tensor in region.inputs}
    distances = {tensor: _distance(region, turns, tensor) for tensor in inputs if tensor not in lives_on}
    over = {tensor: result - distance for tensor, distance in distances.items() if distance < result}
    shared = sum(min(inputs[tensor], nbytes) for tensor, nbytes in over.items())
    return result + sum(inputs.values()) - min(shared, max(over.values(), default=0))


def _distance(region: Region, turns: Turns, tensor: Tensor) -> int:
    """Bytes that the result's start is below the input's at least, where the two share bytes.

    No turn overwrites what a later one reads: see ``memory/loops.py``. A turn reads before it writes.
    """
    reads = _starts(turns, tensor)
    written, read = row_bytes(region.exit), row_bytes(tensor)
    lowest, found = tensor.nbytes, 0
    for turn in range(len(turns.writes) - 1, -1, -1):
        if lowest < tensor.nbytes:
            found = max(found, (turns.writes[turn] + turns.rows) * written - lowest)
        lowest = min([lowest, *(starts[turn] * read for starts in reads)])
    return found


def _starts(turns: Turns, tensor: Tensor) -> list[Sequence[int]]:
    """For what is read of an input: the first row in each turn. A SLICE of the whole input may begin further on."""
    if isinstance(turns, Clamped):
        read = {key: part for key, part in turns.reads.items() if key[0].inputs[key[1]] is tensor}
        return [part.starts for (operator, _), part in read.items() if not (part.is_whole and operator.name == "SLICE")]
    # Where a turn reads padding, it cuts out the rows that are next to it.
    return [
        [max(0, min(start, tensor.shape[1] - rows.count)) for start in starts]
        for (image, rows), starts in turns.reads.items()
        if image is tensor
    ]


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
