"""Operands and options that an operator gets where it is written for other shapes.

*Phases*: the steps t of a sequence with the same ``t mod P`` are a sequence of their own. Where P divides dilations and
paddings, no two phases meet (``cascade/loop.py``).

*Along H*: sequences (1, L, C), (1, 1, L, C) or (L, C) become (1, L, 1, C), the same bytes in the same order. The files
of the families have the operators that compute the same then, and the changes of their rows and columns; the shapes of
their tensors are still as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.ir.editor import Array, GraphWriter
from ..model.ir.model import Operator, Tensor
from ..model.ir.tensors import integers


@dataclass(frozen=True)
class Overrides:
    """``operands``: by slot; ``fields``: of the options."""

    operands: Mapping[int, Tensor] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def apply_to(self, inputs: Iterable[Tensor | None]) -> list[Tensor | None]:
        """These inputs, with the operands in their slots."""
        return [self.operands.get(slot, tensor) for slot, tensor in enumerate(inputs)]


NO_OVERRIDES = Overrides()
RANK = 4
"""Dimensions of images."""


@dataclass(frozen=True)
class ShapeOperand:
    """The input in ``slot``, which says dimensions ``first`` to ``end`` of the output's shape, half-open.

    ``option``: the field that says them too.
    """

    slot: int
    first: int = 0
    end: int = 4
    option: str | None = None

    def of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return its value for an output of this shape."""
        return shape[self.first : self.end]

    def overrides_for(self, edit: GraphWriter, output: Tensor) -> Overrides:
        """For an output of another shape."""
        shape = np.asarray(self.of(output.shape), np.int32)
        return Overrides(
            {self.slot: edit.constant(f"{output.name}/shape", shape)},
            {} if self.option is None else {self.option: shape},
        )


@dataclass(frozen=True)
class PaddingsOperand:
    """The input in ``slot``, a constant with the paddings before and behind the four dimensions of an image."""

    slot: int = 1

    def of(self, operator: Operator, above: int, below: int) -> Array:
        """Return its value for these rows of padding above and below."""
        amounts = integers(operator.inputs[self.slot])
        assert amounts is not None
        amounts[2:4] = above, below
        return amounts.reshape(4, 2).astype(np.int32)

    def overrides_for(self, edit: GraphWriter, operator: Operator, output: Tensor, rows: tuple[int, int]) -> Overrides:
        """Return the values for an output with these rows of padding above and below."""
        return Overrides({self.slot: edit.constant(f"{output.name}/paddings", self.of(operator, *rows))})


_SWAPPED = (("strideH", "strideW"), ("dilationHFactor", "dilationWFactor"), ("filterHeight", "filterWidth"))
Sequences = Collection[Tensor]


def laid_along_h(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a sequence, or of a filter of 1 x k, laid along H."""
    return (1, *shape[-2:-1], 1, *shape[-1:]) if len(shape) < 4 else (shape[0], shape[2], shape[1], shape[3])


def swapped_options(operator: Operator) -> dict[str, Any]:
    """Swap the options of rows and columns."""
    fields = {} if operator.options is None else operator.options.fields
    return {a: fields[b] for pair in _SWAPPED for a, b in (pair, pair[::-1]) if b in fields}
