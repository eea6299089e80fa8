"""A RESHAPE of a reshaped tensor: of the tensor itself.

    x -- RESHAPE, SQUEEZE or EXPAND_DIMS -- RESHAPE -- y        =>        x -- RESHAPE -- y

Exact: all of them keep the elements in their order. The second one stays what it is, so that the firmware needs no
other kernel than before.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations.shapes import RESHAPES
from ..copies import source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule


@dataclass(frozen=True)
class ReshapedTwice:
    """The second reshape, and what the first one reshapes."""

    reshape: Operator
    source: Tensor


def _check(match: Match) -> ReshapedTwice | str:
    first, second = match["first"], match.anchor
    if any(tensor is not None and not tensor.is_constant for tensor in (*first.inputs[1:], *second.inputs[1:])):
        return "a shape is computed"
    source = source_for_one_reader(match, first)
    return source if isinstance(source, str) else ReshapedTwice(second, source)


def _rewrite(found: ReshapedTwice, edit: Editor) -> None:
    edit.twin(found.reshape, (found.source, *found.reshape.inputs[1:]), found.reshape.outputs)


CONSECUTIVE_RESHAPES = Rule(
    "consecutive_reshapes",
    Pattern("second", ("RESHAPE",), {0: Pattern("first", RESHAPES)}),
    _check,
    _rewrite,
)
