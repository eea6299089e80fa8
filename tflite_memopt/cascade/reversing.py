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
from ..ir.model import Model, Operator
from ..kernels.portable import PORTABLE
from ..options import Options
from .lower import row_bytes
from .region import Region, region_of
from .tiling import Reversed, Tiling

_SIZES = (1, 2, 4)
"""Rows of a stripe, in the fewest whose bytes are a multiple of the alignment."""


def reversible(model: Model, least: int, options: Options) -> Iterator[Tiling]:
    """Single operators whose input and output must share bytes: together they need more than the ``least`` bytes.

    None where the tail counts, or where kernels are not known to write over their input.
    """
    if options.objective != "head" or options.profile.relations is PORTABLE.relations:
        return
    pinned = {name for name, _ in options.pins}
    for step, operator in enumerate(model.main.operators):
        region = region_of(model.main, [operator])
        if isinstance(region, str) or not _is_row_by_row(region, operator):
            continue
        tensors = (*region.inputs, region.exit)
        if sum(each.nbytes for each in tensors) <= least or pinned & {each.name for each in tensors}:
            continue
        height, row = region.exit.shape[1], row_bytes(region.exit)
        for size in _SIZES:
            rows = size * ARENA_ALIGNMENT // gcd(ARENA_ALIGNMENT, row)
            if rows < height:
                yield Tiling(step, step + 1, Reversed((*range(rows, height, rows), height)))


def _is_row_by_row(region: Region, operator: Operator) -> bool:
    """Whether each row of the output needs the same row of one input, and no other one."""
    axis = region.ways[0].rows
    is_same = (axis.reach, axis.stride, axis.factor, axis.before) == (1, 1, 1, 0)
    return is_same and len(region.inputs) == 1 and operator.outputs[0].origin is None
