"""Rows or columns that are repeated by a TILE become a RESIZE_NEAREST_NEIGHBOR, which TFLM has.

    x (1, H, W, C) -- EXPAND_DIMS (1, H, 1, W, C) -- TILE (1, H, k, W, C) -- RESHAPE (1, k * H, W, C)
                                                        =>        x -- RESIZE_NEAREST_NEIGHBOR to (k * H, W)

Keras 3 writes UpSampling2D so, once for the rows and once for the columns; TFLM has no TILE. Two resizes in a row
become one.

Exact: output row r is row floor(r * (1 / k)) of the input, computed in float32 (tensorflow/lite/kernels/internal/
reference/resize_nearest_neighbor.h); the rule applies where that is r // k for all rows and all columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.constants import integers
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from ...kernels.relations import operands
from ..pattern import Match, Pattern
from ..rule import Rule

_RESIZE = "RESIZE_NEAREST_NEIGHBOR"
_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


@dataclass(frozen=True)
class RepeatedPixels:
    """An image, and the output that has its pixels several times."""

    source: Tensor
    output: Tensor


def _check(match: Match) -> RepeatedPixels | str | None:
    expand, tile, output = match["expand"], match["tile"], match.anchor.outputs[0]
    source, expanded, tiled = expand.inputs[0], expand.outputs[0], tile.outputs[0]
    times = integers(operands(tile, 2)[1])
    if source is None or times is None or times.size != 5 or len(source.shape) != 4 or len(output.shape) != 4:
        return "it repeats no image, or a number of times that is computed"
    axis = _axis_of_repeats(source, expanded, times.tolist())
    if axis is None:
        return "it repeats other things than rows or columns"
    wanted = tuple(size * (times[axis + 1] if at == axis else 1) for at, size in enumerate(source.shape))
    if output.shape != wanted or tiled.elements != output.elements:
        return "what is repeated does not stay beside what it repeats"
    return _reason_against_values(source, output) or RepeatedPixels(source, output)


def _check_joined(match: Match) -> RepeatedPixels | str | None:
    first, second = match["first"], match.anchor
    source, between, output = first.inputs[0], first.outputs[0], second.outputs[0]
    if source is None or any(_centers(each) or each.option("alignCorners", False) for each in (first, second)):
        return None
    if len(between.uses) > 1 or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if not (_repeats(source, between) and _repeats(between, output)):
        return None
    return _reason_against_values(source, output) or RepeatedPixels(source, output)


def _rewrite(found: RepeatedPixels, edit: Editor) -> None:
    size = edit.constant(f"{found.output.name}/size", np.asarray(found.output.shape[1:3], np.int32))
    fields = {"alignCorners": False, "halfPixelCenters": False}
    edit.operator(_RESIZE, (found.source, size), (found.output,), "ResizeNearestNeighborOptions", **fields)


def _axis_of_repeats(source: Tensor, expanded: Tensor, times: list[int]) -> int | None:
    """1 or 2, where the axis behind it is new and the only one that is repeated."""
    for axis in (1, 2):
        shape = (*source.shape[: axis + 1], 1, *source.shape[axis + 1 :])
        if expanded.shape == shape and all(count == 1 for at, count in enumerate(times) if at != axis + 1):
            return axis
    return None


def _reason_against_values(source: Tensor, output: Tensor) -> str | None:
    if source.dtype not in _TYPES or not quantized_alike(source.quantization, output.quantization):
        return f"'{output.name}' is of another type or scale than '{source.name}', or TFLM cannot resize it"
    return None if _repeats(source, output) else "float32 does not find the right pixel"


def _repeats(source: Tensor, output: Tensor) -> bool:
    """Whether RESIZE_NEAREST_NEIGHBOR makes every pixel as often as every other one."""
    return all(_repeats_along(source.shape[axis], output.shape[axis]) for axis in (1, 2))


def _repeats_along(size: int, made: int) -> bool:
    if not size or made % size:
        return False
    found = np.floor(np.arange(made, dtype=np.float32) * (np.float32(size) / np.float32(made)))
    return bool((found.astype(np.int64) == np.arange(made) // (made // size)).all())


def _centers(operator: Operator) -> bool:
    return bool(operator.option("halfPixelCenters", False))


_TILED = Pattern("tile", ("TILE",), {0: Pattern("expand", ("EXPAND_DIMS", "RESHAPE"))})
REPEATED_PIXELS = (
    Rule("repeated_pixels", Pattern("flat", ("RESHAPE",), {0: _TILED}), _check, _rewrite),
    Rule("repeated_pixels", Pattern("second", (_RESIZE,), {0: Pattern("first", (_RESIZE,))}), _check_joined, _rewrite),
)
"""A TILE, and two resizes in a row."""
