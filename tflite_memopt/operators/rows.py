"""Which rows of its inputs an operator reads for some rows of its output: the receptive rows.

Rows are positions along H of an NHWC tensor. An operator is *row by row* when its output rows [a, b) are a function of
the input rows

    [a * stride - before, (b - 1) * stride - before + reach), clipped to the input

and of nothing else that changes from row to row. Outside the input a convolution and a pool see padding.

An operator that makes ``factor`` rows of one reads the rows

    [(a - above) // factor, (b - 1 + below) // factor + 1), clipped to the input

and makes all rows of these; those that are not wanted, which lack a neighbor, are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..ir.model import Operator, Tensor

Row = TypeVar("Row", int, npt.NDArray[np.int64])
"""The number of a row, or an array of them."""


@dataclass(frozen=True)
class Rows:
    """Rows ``start`` to ``end``, half-open."""

    start: int
    end: int

    @property
    def count(self) -> int:
        """How many rows; never negative."""
        return max(0, self.end - self.start)

    def hull(self, other: Rows) -> Rows:
        """The smallest range that has the rows of both."""
        return Rows(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Axis:
    """A window that moves along one axis, in pixels: ``reach`` of the kernel with its dilation.

    ``before`` and ``after`` are the pixels of padding that the whole tensor gets at its two ends. ``factor``: pixels
    that are made of one; with more than one there is no stride and no padding, and an output pixel depends on what
    ``above`` output pixels before it and ``below`` after it are made of.
    """

    size: int
    outputs: int
    stride: int = 1
    reach: int = 1
    before: int = 0
    after: int = 0
    factor: int = 1
    above: int = 0
    below: int = 0

    def reads(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The input rows for output rows ``start`` to ``end``, half-open and not clipped: rows outside are padding."""
        if self.factor > 1:
            return (start - self.above) // self.factor, (end - 1 + self.below) // self.factor + 1
        return start * self.stride - self.before, (end - 1) * self.stride - self.before + self.reach

    def makes(self, start: Row, end: Row) -> tuple[Row, Row]:
        """The output rows that come of these input rows, where ``factor`` is more than one."""
        beyond = self.outputs - self.size * self.factor
        return start * self.factor, end * self.factor + beyond


@dataclass(frozen=True)
class RowByRow:
    """How a row-by-row operator uses its inputs: ``sliced`` are the slots of which it reads rows.

    The other slots are read whole: weights, and tensors that are the same for all rows. ``passes_on``: the output is
    its input's bytes in another shape.
    """

    rows: Axis
    columns: Axis
    sliced: tuple[int, ...]
    is_window: bool
    passes_on: bool = False

    def images(self, operator: Operator) -> list[Tensor]:
        """The inputs of which the operator reads rows, by slot."""
        return [tensor for slot in self.sliced if (tensor := operator.inputs[slot]) is not None]


def is_image(tensor: Tensor) -> bool:
    """Whether it is an NHWC tensor with batch 1."""
    return len(tensor.shape) == 4 and tensor.shape[0] == 1 and bool(np.all(np.asarray(tensor.shape) > 0))
