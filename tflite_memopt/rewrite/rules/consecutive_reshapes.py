"""A RESHAPE of a reshaped tensor: of the tensor itself.

    x -- RESHAPE, SQUEEZE or EXPAND_DIMS -- RESHAPE -- y        =>        x -- RESHAPE -- y

Exact: all of them keep the elements in their order. The second one stays what it is, so that the firmware needs no
other kernel than before.
"""

from __future__ import annotations

from ...ir.editor import Editor
from ...ir.quantization import quantized_alike
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_FIRST = Pattern("first", ("EXPAND_DIMS", "RESHAPE", "SQUEEZE"))


def _refuse(match: Match) -> str | None:
    first = match["first"]
    x, between = first.inputs[0], first.outputs[0]
    if any(tensor is not None and not tensor.is_constant for tensor in (*first.inputs[1:], *match.anchor.inputs[1:])):
        return "a shape is computed"
    if len(between.uses) > 1 or match.is_returned(between):
        return f"'{between.name}' is needed by others too, and '{x.name if x else ''}' would have to live longer"
    if x is None or x.is_variable:
        return "it copies a variable, which may change before the copy is read"
    if x.dtype is not between.dtype or not quantized_alike(x.quantization, between.quantization):
        return f"'{between.name}' is quantised otherwise than '{x.name}': the same integers mean other numbers"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    anchor, first = match.anchor, match["first"]
    edit.twin(anchor, (first.inputs[0], *anchor.inputs[1:]), anchor.outputs)


CONSECUTIVE_RESHAPES = Rule(
    "consecutive_reshapes", Pattern("reshape", ("RESHAPE",), {0: _FIRST}), _refuse, always_exact, _rewrite
)
