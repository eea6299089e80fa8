"""A pointwise operator that skips pixels of a slice: the slice skips them.

    x -- STRIDED_SLICE -- CONV_2D 1x1, stride 2        =>        x -- STRIDED_SLICE, stride 2 -- CONV_2D 1x1

Exact: a window of one pixel, whatever the padding, reads the pixels at multiples of its stride, and each output pixel
comes from one of them. The pools of such windows, behind it, do nothing any more where values are integers.

The slice then has a quarter of the bytes. Networks of cells halve an image in this way ("factorized reduction": Zoph et
al., arXiv 1707.07012; Liu et al., arXiv 1806.09055), and it is often what they need the most memory for.
"""

from __future__ import annotations

from ...ir.editor import Editor
from ...ir.model import Operator
from ...kernels.relations.shapes import Grid, operands, strided_slice_grid
from ...kernels.relations.views import view_shares
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact
from ..slicing import write_slice

_SLICE = Pattern("slice", ("STRIDED_SLICE",))


def _skips_pixels(match: Match) -> bool:
    operator = match.anchor
    return len(operator.outputs[0].shape) == 4 and _has_window_of_one(operator) and max(_strides(operator)) > 1


def _refuse(match: Match) -> str | None:
    cut = match["slice"]
    between, grid = cut.outputs[0], strided_slice_grid(cut)
    if len(between.uses) > 1 or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if view_shares(cut):
        return "the slice is free: it is a view of its input"
    if grid is None or grid.count != between.shape:
        return "what the slice takes is computed, or of another rank than its input"
    if cut.inputs[0] is None or cut.inputs[0].is_variable:
        return "it slices a variable, which may change before the slice is read"
    if _thinned(grid, match.anchor).count[:3] != match.anchor.outputs[0].shape[:3]:
        return "its output does not have the pixels that its stride leaves"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    cut, anchor = match["slice"], match.anchor
    between, grid = cut.outputs[0], strided_slice_grid(cut)
    if grid is not None:
        thin = _thinned(grid, anchor)
        fewer = edit.activation(f"{between.name}/thinned", thin.count, between)
        write_slice(edit, cut, thin, cut.inputs[0], fewer)
        edit.twin(anchor, (fewer, *anchor.inputs[1:]), anchor.outputs, strideH=1, strideW=1)


def _thinned(grid: Grid, operator: Operator) -> Grid:
    """What is left of the slice's rows and columns when the operator's stride is taken in it."""
    steps = (1, *_strides(operator), 1)
    stride = tuple(old * step for old, step in zip(grid.stride, steps, strict=True))
    return Grid(grid.first, stride, tuple(-(-count // step) for count, step in zip(grid.count, steps, strict=True)))


def _strides(operator: Operator) -> tuple[int, int]:
    return int(operator.option("strideH", 0)), int(operator.option("strideW", 0))


def _has_window_of_one(operator: Operator) -> bool:
    if min(_strides(operator)) < 1:
        return False
    if operator.name == "CONV_2D":
        filters = operands(operator, 2)[1]
        return filters is not None and filters.shape[1:3] == (1, 1)
    return all(operator.option(name, 0) == 1 for name in ("filterHeight", "filterWidth"))


SUBSAMPLED_SLICE = Rule(
    "subsampled_slice",
    Pattern("pointwise", ("AVERAGE_POOL_2D", "CONV_2D", "MAX_POOL_2D"), {0: _SLICE}, where=_skips_pixels),
    _refuse,
    always_exact,
    _rewrite,
)
