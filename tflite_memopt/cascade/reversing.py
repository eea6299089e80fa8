"""Stripes with the last one first: they undo the drift of kernels that write over their input.

A kernel that may write over its input wants its output a little below it: what it writes must stay behind what it
reads. In a chain of such operators each output lies lower than the one before, and the arena has room for the sum:

    depthwise   |=========|                          offsets grow to the right; each line is one step later
    pointwise  |=========|
    depthwise |=========|                            four blocks of a MobileNet drift by four windows of rows

An operator of which each row needs the same row of its input, such as a pointwise convolution, can run in stripes, and
the last one first. Then its output grows downwards, over rows that have been read, and lies above its input:

    input            | 1 | 2 | 3 |                   stripe 3 writes above the input, stripe 2 over input rows 3, ...
    output               | 1 | 2 | 3 |

What the chain has drifted down it goes up again. No row is computed twice; the stripes cost tail, so that this is for
the head alone. In mlperf_kws_int8 (reference kernels) the largest step needs 8,448 bytes, and no plan of the original
model less than 10,048.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from ..graph.alignment import ARENA_ALIGNMENT
from ..ir.model import Model, Operator, Tensor
from ..kernels.profiles import PORTABLE
from ..options import Options
from .lower import row_bytes
from .region import Region, region_of
from .stripes import Ends

_SIZES = (1, 2, 4)
"""Rows of a stripe, in the fewest whose bytes are a multiple of the alignment."""


def reversible(model: Model, least: int, options: Options) -> Iterator[tuple[int, Ends]]:
    """Yield single operators, by step, that must share bytes of input and output, with the ends of their stripes.

    Together input and output need more than the ``least`` bytes.

    None where the tail counts, or where kernels are not known to write over their input.
    """
    if options.objective != "head" or options.profile.relations is PORTABLE.relations:
        return
    for step, operator in enumerate(model.main.operators):
        region = region_of(model.main, [operator])
        if isinstance(region, str) or not _is_row_by_row(region, operator):
            continue
        tensors = (*region.inputs, region.exit)
        if sum(each.nbytes for each in tensors) <= least:
            continue
        height, row = region.exit.shape[1], row_bytes(region.exit)
        for size in _SIZES:
            rows = size * ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row)
            if rows < height:
                yield step, (*range(rows, height, rows), height)


def _is_row_by_row(region: Region, operator: Operator) -> bool:
    """Tell whether each row of the output needs the same row of one input, and no other one."""
    axis = region.row_maps[0].rows
    is_same = (axis.reach, axis.stride, axis.factor, axis.before, axis.after) == (1, 1, 1, 0, 0)
    return is_same and len(region.inputs) == 1 and not operator.outputs[0].is_piece


def run_last_first(model: Model, exit_: Tensor) -> None:
    """Run the stripes that are joined to ``exit_`` from the last to the first, then the joins."""
    operators = model.main.operators
    joining, stripes = set[Operator](), list[Operator]()
    pending = [exit_]
    while pending:
        producer = pending.pop().producer
        assert producer is not None
        if producer.name == "CONCATENATION":
            joining.add(producer)
            pending += [tensor for tensor in producer.inputs if tensor is not None]
        else:
            stripes.append(producer)
    position = {operator: at for at, operator in enumerate(operators)}
    stripes.sort(key=position.__getitem__)
    first, end = position[stripes[0]], 1 + max(position[each] for each in joining)
    inner = range(first, end)
    moved = {position[each] for each in (*stripes, *joining)}
    order = (
        *range(first),
        *(at for at in inner if at not in moved),
        *(position[each] for each in reversed(stripes)),
        *(at for at in inner if operators[at] in joining),
        *range(end, len(operators)),
    )
    model.main.reorder(order)
