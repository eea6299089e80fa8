"""Concatenations: along which axis, and when one along the channels can be taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..ir.model import Operator, Tensor
from ..ir.quantization import quantized_alike
from ..kernels.relations import axis_of, view_reuses
from .pattern import Pattern

ROLE = "concatenation"
CONCATENATION = Pattern(ROLE, ("CONCATENATION",))
"""The concatenation of a rule's pattern, and the role under which a match has it."""
MAX_PARTS = 10
"""TFLM joins no more: ``kMaxInputNum`` of micro/kernels/concatenation.cc."""


@dataclass(frozen=True)
class ChannelPart:
    """Input ``index`` of a channel concatenation; ``start`` is its first channel in the output."""

    index: int
    tensor: Tensor
    start: int

    @property
    def channels(self) -> int:
        """How many channels it has."""
        return self.tensor.shape[-1]


def channel_parts(concatenation: Operator) -> tuple[ChannelPart, ...] | str:
    """The tensors that a concatenation joins along their last axis, or the reason to leave it whole.

    All have the type and the quantization of the whole: the kernels copy bytes and never requantize
    (TFLM concatenation.cc), so that a reader of a part may read it as it would read those channels of the whole.
    """
    parts = tuple(concatenation.present_inputs())
    reason = _against(concatenation, parts) or _against_parts(concatenation.outputs[0], parts)
    if reason is None and _is_free(concatenation):
        reason = "the concatenation is free: its inputs are views of it"
    if reason is not None:
        return reason
    starts = accumulate((part.shape[-1] for part in parts), initial=0)
    return tuple(
        ChannelPart(index, part, start) for index, (part, start) in enumerate(zip(parts, starts, strict=False))
    )


def joined_axis(concatenation: Operator) -> int | None:
    """The axis along which it joins, counted from the front; None when the output has no such axis."""
    return axis_of(int(concatenation.option("axis", 0)), len(concatenation.outputs[0].shape))


def _is_free(operator: Operator) -> bool:
    """Whether every input may lie inside the output from the start, under every kernel profile.

    Not where a tensor is joined twice: it cannot be in two places.
    """
    inputs = {id(tensor) for tensor in operator.present_inputs() if not tensor.is_constant}
    return len(inputs) == len(operator.inputs) == len(view_reuses(operator))


def _against(operator: Operator, parts: Sequence[Tensor]) -> str | None:
    if len(parts) < 2 or len(parts) != len(operator.inputs):
        return "the concatenation has fewer than two inputs, or a missing one"
    if operator.option("fusedActivationFunction", 0):
        return "the concatenation has a fused activation"
    if joined_axis(operator) != len(operator.outputs[0].shape) - 1:
        return "the concatenation is not along the channels"
    return None


def _against_parts(whole: Tensor, parts: Sequence[Tensor]) -> str | None:
    rows = whole.shape[:-1]
    if any(part.shape[:-1] != rows for part in parts) or sum(part.shape[-1] for part in parts) != whole.shape[-1]:
        return "the shapes of the concatenation's inputs do not make up its output"
    for part in parts:
        if part.is_constant or part.is_variable:
            return f"the concatenation's input '{part.name}' is a constant or a variable"
        if part.nbytes == 0:
            return f"the concatenation's input '{part.name}' is empty"
        if part.dtype is not whole.dtype or not quantized_alike(part.quantization, whole.quantization):
            return f"the concatenation's input '{part.name}' has another type or quantization than its output"
    return None
