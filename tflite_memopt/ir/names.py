"""Short names for operators and tensors, for reports and for new tensors."""

from __future__ import annotations

from .model import Operator, Tensor


def label(operator: Operator) -> str:
    """How reports name an operator: by its first output."""
    return operator.outputs[0].name if operator.outputs else operator.opcode.label


def stem(tensor: Tensor) -> str:
    """A short name to build others from: the first, where the converter has joined several by ``;``."""
    return tensor.name.partition(";")[0]
