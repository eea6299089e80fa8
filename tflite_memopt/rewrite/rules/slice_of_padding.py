"""A slice that takes nothing of the padding: it is cut out of the tensor that was padded.

    x -- PAD -- STRIDED_SLICE        =>        x -- STRIDED_SLICE

Exact: PAD copies ``x`` into its output, and the slice takes elements of that copy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.constants import integers
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import Grid, operands, strided_slice_grid
from ..copies import source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule
from ..slicing import write_slice


@dataclass(frozen=True)
class UnpaddedSlice:
    """A slice, the tensor before it is padded, and what the slice takes of that."""

    slice: Operator
    source: Tensor
    grid: Grid


def _check(match: Match) -> UnpaddedSlice | str | None:
    grid = _unpadded(match["pad"], match.anchor)
    if grid is None:
        return None
    source = source_for_one_reader(match, match["pad"])
    return source if isinstance(source, str) else UnpaddedSlice(match.anchor, source, grid)


def _rewrite(found: UnpaddedSlice, edit: Editor) -> None:
    write_slice(edit, found.slice, found.grid, found.source, found.slice.outputs[0])


def _unpadded(pad: Operator, cut: Operator) -> Grid | None:
    """What the slice takes, counted in the tensor before it is padded; None where it takes of the padding."""
    x, chosen = operands(pad, 2)
    grid, paddings = strided_slice_grid(cut), integers(chosen)
    if x is None or grid is None or paddings is None or paddings.size != 2 * len(x.shape):
        return None
    first = tuple(start - before for start, before in zip(grid.first, paddings[::2].tolist(), strict=True))
    last = (start + stride * (count - 1) for start, stride, count in zip(first, grid.stride, grid.count, strict=True))
    is_inside = min(first) >= 0 and all(at < size for at, size in zip(last, x.shape, strict=True))
    # A dimension that the slice takes out (shrinkAxisMask) would be back in the new one.
    return Grid(first, grid.stride, grid.count) if is_inside and grid.count == cut.outputs[0].shape else None


SLICE_OF_PADDING = Rule(
    "slice_of_padding",
    Pattern("slice", ("STRIDED_SLICE",), {0: Pattern("pad", ("MIRROR_PAD", "PAD", "PADV2"))}),
    _check,
    _rewrite,
)
