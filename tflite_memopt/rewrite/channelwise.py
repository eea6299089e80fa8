"""Runs an operator on every part of a channel concatenation, and joins what comes out.

    a --+                             a -- op --+
        +-- CONCATENATION -- op  =>             +-- CONCATENATION
    b --+                             b -- op --+

True of operators whose output channels come each from input channels of their own. Channels are the last dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..ir.channels import is_per_channel
from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from .concatenation import ROLE, channel_parts
from .pattern import Match

MAX_PARTS = 10
"""TFLM joins no more: ``kMaxInputNum`` of micro/kernels/concatenation.cc."""


@dataclass(frozen=True)
class Part:
    """Input ``index`` of a concatenation; ``start`` is its first channel in the output."""

    index: int
    tensor: Tensor
    start: int

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self.tensor.shape[-1]


OperandsOf = Callable[[Part, Editor], Sequence[Tensor | None]]
"""The inputs of the operator that makes one part."""


def parts_of(match: Match) -> tuple[Part, ...]:
    """The parts of the match's concatenation; none unless :func:`reason_against_parts` has nothing against them."""
    tensors = channel_parts(match)
    if isinstance(tensors, str):
        return ()
    starts = accumulate((tensor.shape[-1] for tensor in tensors), initial=0)
    return tuple(Part(index, *pair) for index, pair in enumerate(zip(tensors, starts, strict=False)))


def reason_against_parts(match: Match) -> str | None:
    """Why the operator cannot run part by part, as far as it does not depend on which operator it is."""
    tensors = channel_parts(match)
    if isinstance(tensors, str):
        return tensors
    if len(tensors) > MAX_PARTS:
        return f"the concatenation has {len(tensors)} inputs, and TFLM joins at most {MAX_PARTS}"
    anchor = match.anchor
    if len(anchor.outputs) != 1:
        return "the operator has more than one output"
    if any(is_per_channel(tensor.quantization) for tensor in (match[ROLE].outputs[0], anchor.outputs[0])):
        return "an activation is quantised per channel"
    return None


def data_slots(match: Match) -> tuple[int, ...]:
    """The inputs of the anchor that read the concatenation."""
    joined = match[ROLE].outputs[0]
    return tuple(slot for slot, tensor in enumerate(match.anchor.inputs) if tensor is joined)


def run_on_parts(match: Match, edit: Editor, operands_of: OperandsOf, multiplier: int = 1) -> None:
    """Write the anchor's output as the concatenation of the anchor run on each part.

    ``multiplier``: output channels for one input channel.
    """
    anchor = match.anchor
    made = [_run(anchor, edit, part, operands_of(part, edit), multiplier) for part in parts_of(match)]
    output = anchor.outputs[0]
    edit.operator("CONCATENATION", made, (output,), "ConcatenationOptions", axis=len(output.shape) - 1)


def _run(anchor: Operator, edit: Editor, part: Part, inputs: Sequence[Tensor | None], multiplier: int) -> Tensor:
    output = anchor.outputs[0]
    made = edit.activation(f"{output.name}/part{part.index}", (*output.shape[:-1], part.channels * multiplier), output)
    edit.twin(anchor, inputs, (made,))
    return made
