"""Concatenations along the channels: when one can be taken apart, and when there is nothing to gain."""

from __future__ import annotations

from ..ir.model import Operator, Tensor
from ..ir.quantization import quantized_alike
from ..kernels.relations.views import view_shares
from .pattern import Match, Pattern

ROLE = "concatenation"
CONCATENATION = Pattern(ROLE, ("CONCATENATION",))
"""The concatenation of a rule's pattern, under the role that ``channel_parts`` looks for."""


def channel_parts(match: Match) -> tuple[Tensor, ...] | str:
    """The tensors that the match's concatenation joins along their last axis, or the reason to leave it whole.

    All have the type and the quantisation of the whole: the kernels copy bytes and never requantise
    (TFLM concatenation.cc), so that a reader of a part may read it as it would read those channels of the whole.
    """
    operator = match[ROLE]
    parts = tuple(operator.present_inputs())
    reason = _against(operator, parts) or _against_parts(operator.outputs[0], parts)
    if reason is None and is_free(operator):
        reason = "the concatenation is free: its inputs are views of it"
    return reason or parts


def is_free(operator: Operator) -> bool:
    """Whether every input may lie inside the output from the start, under every kernel profile.

    Not where a tensor is joined twice: it cannot be in two places.
    """
    inputs = {id(tensor) for tensor in operator.present_inputs() if not tensor.is_constant}
    return len(inputs) == len(operator.inputs) == len(view_shares(operator))


def _against(operator: Operator, parts: tuple[Tensor, ...]) -> str | None:
    whole = operator.outputs[0]
    if len(parts) < 2 or len(parts) != len(operator.inputs):
        return "the concatenation has fewer than two inputs, or a missing one"
    if operator.option("fusedActivationFunction", 0):
        return "the concatenation has a fused activation"
    if int(operator.option("axis", 0)) not in (-1, len(whole.shape) - 1):
        return "the concatenation is not along the channels"
    return None


def _against_parts(whole: Tensor, parts: tuple[Tensor, ...]) -> str | None:
    rows = whole.shape[:-1]
    if any(part.shape[:-1] != rows for part in parts) or sum(part.shape[-1] for part in parts) != whole.shape[-1]:
        return "the shapes of the concatenation's inputs do not make up its output"
    for part in parts:
        if part.is_constant or part.is_variable:
            return f"the concatenation's input '{part.name}' is a constant or a variable"
        if part.nbytes == 0:
            return f"the concatenation's input '{part.name}' is empty"
        if part.dtype is not whole.dtype or not quantized_alike(part.quantization, whole.quantization):
            return f"the concatenation's input '{part.name}' has another type or quantisation than its output"
    return None
