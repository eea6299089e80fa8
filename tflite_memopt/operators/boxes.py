"""Parts that an operator cuts out of a tensor, and whether such a part is one run of elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import integers

_UNSUPPORTED = ("ellipsisMask", "newAxisMask", "offset")
"""Fields of StridedSliceOptions that TFLM ignores (strided_slice_common.cc): no rule should build on them."""

RESHAPES = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
"""Operators that give a tensor another shape and move no element."""


@dataclass(frozen=True)
class Box:
    """The elements ``first[d] <= i < first[d] + count[d]`` of every dimension ``d`` of a tensor."""

    first: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.count)

    def run_start(self, shape: Sequence[int]) -> int | None:
        """Index of its first element in a tensor of this shape; None when the box is not one run of elements.

        A run has all of the inner dimensions, any part of one dimension, and one element of the outer ones.
        """
        inner = len(shape)
        while inner and self.count[inner - 1] == shape[inner - 1]:
            inner -= 1
        if prod(self.count[: max(inner - 1, 0)]) != 1:
            return None
        return sum(first * prod(shape[dim + 1 :]) for dim, first in enumerate(self.first))


def operands(operator: Operator, count: int) -> tuple[Tensor | None, ...]:
    """Return the first inputs; None for those that are not there."""
    return (*operator.inputs, *(None,) * count)[:count]


def axis_of(axis: int, rank: int) -> int | None:
    """Return the axis counted from the front; None when there is no such axis."""
    return axis % rank if -rank <= axis < rank else None


def slice_box(operator: Operator) -> Box | None:
    """Return the box that SLICE cuts out of its input; None unless begin and size are constants that fit the input.

    A size of -1 means all that is left. Source: tensorflow/lite/kernels/internal/reference/slice.h.
    """
    source, begin, size = operands(operator, 3)
    first, count = integers(begin), integers(size)
    if source is None or first is None or count is None or not first.size == count.size == len(source.shape):
        return None
    count = np.where(count == -1, np.asarray(source.shape) - first, count)
    return _box_inside(source, first, count)


@dataclass(frozen=True)
class Grid:
    """The elements ``first[d] + i * stride[d]``, ``0 <= i < count[d]``, of every dimension ``d`` of a tensor."""

    first: tuple[int, ...]
    stride: tuple[int, ...]
    count: tuple[int, ...]


def strided_slice_box(operator: Operator) -> Box | None:
    """Return the box that STRIDED_SLICE cuts out of its input; None unless begin, end and strides are constants that
    make it a box.

    A stride other than 1 is a box where one element is taken.
    """
    grid = strided_slice_grid(operator)
    if grid is None or any(stride > 1 and count > 1 for stride, count in zip(grid.stride, grid.count, strict=True)):
        return None
    return Box(grid.first, grid.count)


def strided_slice_grid(operator: Operator) -> Grid | None:
    """Return the grid that STRIDED_SLICE takes of its input, with steps forward; None unless begin, end and strides are
    constants.

    Sources: micro/kernels/strided_slice_common.cc, tensorflow/lite/kernels/internal/strided_slice_logic.h.
    """
    source, *limits = operands(operator, 4)
    if source is None or any(operator.option(name, 0) for name in _UNSUPPORTED):
        return None
    # TFLM reads the three as int32 whatever their type.
    values = [integers(tensor) for tensor in limits if tensor is not None and tensor.dtype is DType.INT32]
    found = [value for value in values if value is not None and value.size == len(source.shape)]
    if len(found) != 3:
        return None
    begin, end, strides = found
    sizes = np.asarray(source.shape)
    first = np.where(_mask(operator, "beginMask", sizes.size), 0, _clamped(begin, sizes))
    last = np.where(_mask(operator, "endMask", sizes.size), sizes, _clamped(end, sizes))
    last = np.where(_mask(operator, "shrinkAxisMask", sizes.size), first + 1, last)
    if (strides < 1).any():
        return None
    count = -((first - last) // strides)
    if (count < 1).any() or (first + strides * (count - 1) >= sizes).any():
        return None
    return Grid(tuple(first.tolist()), tuple(strides.tolist()), tuple(count.tolist()))


CUTS: Mapping[str, Callable[[Operator], Box | None]] = {"SLICE": slice_box, "STRIDED_SLICE": strided_slice_box}
"""The operators that cut a box out of their input, and which."""


def _mask(operator: Operator, name: str, rank: int) -> npt.NDArray[np.bool_]:
    bits = int(operator.option(name, 0))
    return np.asarray([bool(bits >> axis & 1) for axis in range(rank)])


def _clamped(index: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the indices counted from the front, between 0 and the size."""
    return np.clip(np.where(index < 0, index + sizes, index), 0, sizes)


def _box_inside(source: Tensor, first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> Box | None:
    """Return the box, if it has elements and none of them is outside the tensor."""
    if (first < 0).any() or (count < 1).any() or (first + count > np.asarray(source.shape)).any():
        return None
    return Box(tuple(first.tolist()), tuple(count.tolist()))
