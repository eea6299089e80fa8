"""What an operator is told anew where it is written for other shapes: operands, and fields of its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.constants import integers
from ..ir.editor import Editor
from ..ir.making import Array
from ..ir.model import Operator, Tensor


@dataclass(frozen=True)
class Told:
    """``operands``: by slot; ``fields``: of the options."""

    operands: Mapping[int, Tensor] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def given(self, inputs: Iterable[Tensor | None]) -> list[Tensor | None]:
        """These inputs, with the operands in their slots."""
        return [self.operands.get(slot, tensor) for slot, tensor in enumerate(inputs)]


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
        """What it says of an output of this shape."""
        return shape[self.first : self.end]

    def told(self, edit: Editor, output: Tensor) -> Told:
        """For an output of another shape."""
        said = np.asarray(self.of(output.shape), np.int32)
        return Told(
            {self.slot: edit.constant(f"{output.name}/shape", said)}, {} if self.option is None else {self.option: said}
        )


@dataclass(frozen=True)
class PaddingsOperand:
    """The input in ``slot``, a constant that says what is put before and behind the four dimensions of an image."""

    slot: int = 1

    def of(self, operator: Operator, above: int, below: int) -> Array:
        """What it says where so many rows are put above and below."""
        amounts = integers(operator.inputs[self.slot])
        assert amounts is not None
        amounts[2:4] = above, below
        return amounts.reshape(4, 2).astype(np.int32)

    def told(self, edit: Editor, operator: Operator, output: Tensor, rows: tuple[int, int]) -> Told:
        """For an output with so many rows of padding above and below."""
        return Told({self.slot: edit.constant(f"{output.name}/paddings", self.of(operator, *rows))})
