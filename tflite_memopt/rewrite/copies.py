"""Copies that can be left out: when an operator may read what was copied in place of the copy, and how it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..ir.quantization import quantized_alike
from .pattern import Match


@dataclass(frozen=True)
class Copy:
    """An output that is the same as an earlier tensor."""

    source: Tensor
    output: Tensor

    def leave_out(self, edit: Editor) -> None:
        """Let its readers read the source."""
        edit.graph.replace_uses(self.output, self.source)


@dataclass(frozen=True)
class CopyReader:
    """An operator, and the source of the copy that it reads."""

    operator: Operator
    source: Tensor

    def read_source(self, edit: Editor, **fields: Any) -> None:
        """Let it read the source; ``fields``: options that are then others."""
        edit.twin(self.operator, (self.source, *self.operator.inputs[1:]), self.operator.outputs, **fields)


def is_shape_computed(reshape: Operator) -> bool:
    """Whether an operand of a reshape is known at run time only."""
    return any(tensor is not None and not tensor.is_constant for tensor in reshape.inputs[1:])


def source_of(source: Tensor | None, copied: Tensor) -> Tensor | str:
    """``source``, where its integers mean the same numbers as those of ``copied`` and stay; or why they do not."""
    if source is None or source.is_variable or copied.is_variable:
        return "it copies a variable, which may change before the copy is read"
    if source.dtype is not copied.dtype or not quantized_alike(source.quantization, copied.quantization):
        return f"'{copied.name}' is quantized otherwise than '{source.name}': the same integers mean other numbers"
    return source


def source_for_one_reader(match: Match, copying: Operator) -> Tensor | str:
    """What ``copying`` copies, for the match's anchor to read in its place; or why it must not.

    Where others read the copy too it stays, and the source would have to live longer beside it.
    """
    copied = copying.outputs[0]
    if len(copied.uses) > 1 or match.is_returned(copied):
        return f"'{copied.name}' is needed by others too"
    return source_of(copying.inputs[0], copied)
