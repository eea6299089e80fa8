"""A slice that takes nothing of the padding: it is cut out of the tensor that was padded.

    x -- PAD -- STRIDED_SLICE        =>        x -- STRIDED_SLICE

Exact: PAD copies ``x`` into its output, and the slice takes elements of that copy alone.
"""

from __future__ import annotations

from ...ir.constants import integers
from ...ir.editor import Editor
from ...ir.model import Operator
from ...ir.quantization import quantized_alike
from ...kernels.relations.shapes import Grid, operands, strided_slice_grid
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact
from ..slicing import write_slice

_PAD = Pattern("pad", ("MIRROR_PAD", "PAD", "PADV2"))


def _takes_no_padding(match: Match) -> bool:
    return _unpadded(match["pad"], match.anchor) is not None


def _refuse(match: Match) -> str | None:
    pad = match["pad"]
    x, padded = pad.inputs[0], pad.outputs[0]
    if len(padded.uses) > 1 or match.is_returned(padded):
        return f"'{padded.name}' is needed by others too, and what is padded would have to live longer"
    if x is None or x.is_variable:
        return "it pads a variable, which may change before the slice is read"
    if x.dtype is not padded.dtype or not quantized_alike(x.quantization, padded.quantization):
        return f"'{padded.name}' is quantised otherwise than '{x.name}': the same integers mean other numbers"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    grid = _unpadded(match["pad"], match.anchor)
    if grid is not None:
        write_slice(edit, match.anchor, grid, match["pad"].inputs[0], match.anchor.outputs[0])


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
    Pattern("slice", ("STRIDED_SLICE",), {0: _PAD}, where=_takes_no_padding),
    _refuse,
    always_exact,
    _rewrite,
)
