"""Short names for operators and tensors, for reports and for new tensors."""

from __future__ import annotations

from .model import Operator, Tensor


def label(operator: Operator) -> str:
    """How reports name an operator: by its first output."""
    return operator.outputs[0].name if operator.outputs else operator.opcode.label


def stem(tensor: Tensor) -> str:
    """A short name to build others from: the first, where the converter has joined several by ``;``."""
    return tensor.name.partition(";")[0]


def last_part(tensor: Tensor) -> str:
    """The short name without what stands before its last ``/``: for names of a subgraph, which are its own."""
    return stem(tensor).rsplit("/", 1)[-1]
