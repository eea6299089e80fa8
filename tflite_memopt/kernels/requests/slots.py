"""Names for an operator's tensors, so that rows can list what Prepare looks at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ...errors import ModelFormatError
from ...ir.model import Operator, Tensor


class Slot(NamedTuple):
    """One input or output of an operator, by position."""

    side: Literal["input", "output"]
    position: int


IN0, IN1, IN2, IN3, IN4, IN5 = (Slot("input", position) for position in range(6))
OUT0, OUT1 = (Slot("output", position) for position in range(2))

UNARY = (IN0, OUT0)
BINARY = (IN0, IN1, OUT0)
TERNARY = (IN0, IN1, IN2, OUT0)


def inputs(count: int, start: int = 0) -> tuple[Slot, ...]:
    """The input slots ``start`` to ``count - 1``."""
    return tuple(Slot("input", position) for position in range(start, count))


def held(operator: Operator, slots: Iterable[Slot]) -> tuple[Tensor, ...]:
    """The tensors at these slots, in order; a slot that is beyond the end or left out holds none.

    Source: micro_context.cc, ``AllocateTempInputTensor``, which allocates nothing for those.
    """
    present = (_at(operator, slot) for slot in slots)
    return tuple(tensor for tensor in present if tensor is not None)


def needed(operator: Operator, slot: Slot) -> Tensor:
    """The tensor at a slot that the kernel cannot do without. Raises ModelFormatError when it is missing."""
    tensor = _at(operator, slot)
    if tensor is None:
        what = f"{operator.opcode.label} lacks its {slot.side} {slot.position}"
        raise ModelFormatError(f"{what}; convert the model again")
    return tensor


def _at(operator: Operator, slot: Slot) -> Tensor | None:
    tensors = operator.inputs if slot.side == "input" else operator.outputs
    return tensors[slot.position] if slot.position < len(tensors) else None
