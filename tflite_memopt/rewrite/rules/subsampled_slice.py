"""A pointwise operator that skips pixels of a slice: the slice skips them.

    x -- STRIDED_SLICE -- CONV_2D 1x1, stride 2        =>        x -- STRIDED_SLICE, stride 2 -- CONV_2D 1x1

Exact: a window of one pixel, whatever the padding, reads the pixels at multiples of its stride, and each output pixel
comes from one of them. The pools of such windows, behind it, do nothing any more where values are integers.

The slice then has a quarter of the bytes. Networks of cells halve an image in this way ("factorized reduction": Zoph et
al., arXiv 1707.07012; Liu et al., arXiv 1806.09055), and it is often what they need the most memory for.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import Grid, operands, strided_slice_grid, view_reuses
from ..pattern import Match, Pattern
from ..rule import Rule
from ..slicing import write_slice


@dataclass(frozen=True)
class Subsampled:
    """A slice of a tensor, the operator that skips its pixels, and the elements that it leaves."""

    slice: Operator
    source: Tensor
    pointwise: Operator
    grid: Grid


def _check(match: Match) -> Subsampled | str | None:
    cut, pointwise = match["slice"], match.anchor
    if not _skips_pixels(pointwise):
        return None
    between, grid, source = cut.outputs[0], strided_slice_grid(cut), cut.inputs[0]
    if len(between.uses) > 1 or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if view_reuses(cut):
        return "the slice is free: it is a view of its input"
    if grid is None or grid.count != between.shape:
        return "what the slice takes is computed, or of another rank than its input"
    if source is None or source.is_variable:
        return "it slices a variable, which may change before the slice is read"
    thin = _thinned(grid, pointwise)
    if thin.count[:3] != pointwise.outputs[0].shape[:3]:
        return "its output does not have the pixels that its stride leaves"
    return Subsampled(cut, source, pointwise, thin)


def _rewrite(found: Subsampled, edit: Editor) -> None:
    between, pointwise = found.slice.outputs[0], found.pointwise
    fewer = edit.activation(f"{between.name}/thinned", found.grid.count, between)
    write_slice(edit, found.slice, found.grid, found.source, fewer)
    edit.twin(pointwise, (fewer, *pointwise.inputs[1:]), pointwise.outputs, strideH=1, strideW=1)


def _skips_pixels(operator: Operator) -> bool:
    return len(operator.outputs[0].shape) == 4 and _has_window_of_one(operator) and max(_strides(operator)) > 1


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
    Pattern("pointwise", ("AVERAGE_POOL_2D", "CONV_2D", "MAX_POOL_2D"), {0: Pattern("slice", ("STRIDED_SLICE",))}),
    _check,
    _rewrite,
)
