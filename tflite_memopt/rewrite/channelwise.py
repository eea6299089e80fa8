"""Runs an operator on every part of a channel concatenation, and joins what comes out.

    a --+                             a -- op --+
        +-- CONCATENATION -- op  =>             +-- CONCATENATION
    b --+                             b -- op --+

True of operators whose output channels come each from input channels of their own. Channels are the last dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..ir.channels import is_per_channel
from ..ir.dtype import DType
from ..ir.editor import Editor
from ..ir.model import Tensor
from ..ir.origin import piece_of
from .concatenation import ROLE, channel_parts
from .pattern import Match

MAX_PARTS = 10
"""TFLM joins no more: ``kMaxInputNum`` of micro/kernels/concatenation.cc."""
_JOINED_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL)


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


def parts_of(match: Match) -> tuple[Part, ...]:
    """The parts of the match's concatenation; none where :func:`reason_against_parts` has something against them."""
    tensors = channel_parts(match)
    if isinstance(tensors, str):
        return ()
    starts = accumulate((tensor.shape[-1] for tensor in tensors), initial=0)
    return tuple(Part(index, *pair) for index, pair in enumerate(zip(tensors, starts, strict=False)))


def reason_against_parts(match: Match, multiplier: int = 1) -> str | None:
    """Why the operator cannot run part by part, as far as it does not depend on which operator it is.

    ``multiplier``: output channels for one input channel.
    """
    tensors = channel_parts(match)
    if isinstance(tensors, str):
        return tensors
    if len(tensors) > MAX_PARTS:
        return f"the concatenation has {len(tensors)} inputs, and TFLM joins at most {MAX_PARTS}"
    joined, outputs = match[ROLE].outputs[0], match.anchor.outputs
    if len(outputs) != 1 or not outputs[0].shape or outputs[0].shape[-1] != joined.shape[-1] * multiplier:
        return "its output has other channels than the concatenation"
    if any(is_per_channel(tensor.quantization) for tensor in (joined, outputs[0])):
        return "an activation is quantised per channel"
    return None if outputs[0].dtype is joined.dtype else _reason_against_joining(outputs[0])


def run_on_parts(match: Match, edit: Editor, operands: Sequence[Sequence[Tensor | None]], **fields: Any) -> None:
    """Write the anchor's output as the concatenation of the anchor run on each part.

    ``operands[slot][part]`` are its inputs; ``fields`` of its options are changed.
    """
    anchor, output, joined = match.anchor, match.anchor.outputs[0], match[ROLE].outputs[0]
    multiplier = output.shape[-1] // joined.shape[-1]
    made = []
    for part in parts_of(match):
        shape = (*output.shape[:-1], part.channels * multiplier)
        origin = piece_of(output, -1, part.start * multiplier)
        made.append(edit.activation(f"{output.name}/part{part.index}", shape, output, origin=origin))
        edit.twin(anchor, [operand[part.index] for operand in operands], made[-1:], **fields)
    edit.operator("CONCATENATION", made, (output,), "ConcatenationOptions", axis=len(output.shape) - 1)


def run_on_data(match: Match, edit: Editor) -> None:
    """:func:`run_on_parts` of an operator that reads the parts in place of the whole, and all else as it does now."""
    joined, parts = match[ROLE].outputs[0], parts_of(match)
    whole = [[part.tensor if tensor is joined else tensor for part in parts] for tensor in match.anchor.inputs]
    run_on_parts(match, edit, whole)


def reads_once(match: Match) -> bool:
    """Whether the concatenation is the anchor's first input and no other."""
    joined = match[ROLE].outputs[0]
    return [slot for slot, tensor in enumerate(match.anchor.inputs) if tensor is joined] == [0]


def _reason_against_joining(output: Tensor) -> str | None:
    """Of parts whose type the operator has made."""
    if output.dtype not in _JOINED_TYPES:
        return f"TFLM does not join tensors of type {output.dtype.label}"
    quantization = output.quantization
    if output.dtype is DType.INT16 and quantization is not None and quantization.zero_point.any():
        return "TFLM joins int16 tensors only if their zero point is 0"
    return None
