r"""A CONCATENATION of more inputs than TFLM takes: nested ones.

    a1 ---\                       a1  ... a10 -- CONCATENATION --\
    ...    CONCATENATION -- y =>  a11 ... a17 -- CONCATENATION --- CONCATENATION -- y
    a25 --/                       a18 ... a25 ------------------/

Exact: on one axis, joining runs of neighbors first gives the same whole, and no kernel changes a value. A model with
such an operator does not load in TFLM at all: ``kMaxInputNum`` of micro/kernels/concatenation.cc.

Inputs are joined in runs of up to ten until ten are left, in as many rounds as it takes. That makes the fewest
operators, and copies the fewest bytes twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.origin import piece_of
from ..concatenation import CONCATENATION, MAX_PARTS, joined_axis
from ..pattern import Match
from ..rule import Rule


@dataclass(frozen=True)
class LongConcatenation:
    """A concatenation of too many inputs, and the axis along which it joins them, counted from the front."""

    operator: Operator
    axis: int

    @property
    def whole(self) -> Tensor:
        """What it writes."""
        return self.operator.outputs[0]


def _check(match: Match) -> LongConcatenation | str | None:
    operator = match.anchor
    if len(operator.inputs) <= MAX_PARTS:
        return None
    if operator.option("fusedActivationFunction", 0):
        return "it has a fused activation, which TFLM does not take either"
    axis, rank = joined_axis(operator), len(operator.outputs[0].shape)
    if axis is None or any(tensor is None or len(tensor.shape) != rank for tensor in operator.inputs):
        return "its inputs do not make up its output"
    return LongConcatenation(operator, axis)


def _rewrite(found: LongConcatenation, edit: Editor) -> None:
    parts = list(found.operator.present_inputs())
    while len(parts) > MAX_PARTS:
        parts = _round(found, edit, parts)
    edit.twin(found.operator, parts, found.operator.outputs)


def _round(found: LongConcatenation, edit: Editor, parts: Sequence[Tensor]) -> list[Tensor]:
    """Join runs of ten from the front on, as long as more than ten inputs are left, but none twice."""
    joined: list[Tensor] = []
    rest = list(parts)
    while len(rest) > 1 and len(joined) + len(rest) > MAX_PARTS:
        size = min(MAX_PARTS, len(joined) + len(rest) - MAX_PARTS + 1, len(rest))
        start = sum(part.shape[found.axis] for part in joined)
        joined.append(_join(found, edit, rest[:size], start))
        rest = rest[size:]
    return joined + rest


def _join(found: LongConcatenation, edit: Editor, parts: Sequence[Tensor], start: int) -> Tensor:
    shape = list(found.whole.shape)
    shape[found.axis] = sum(part.shape[found.axis] for part in parts)
    origin = piece_of(found.whole, found.axis, start)
    joined = edit.activation(f"{found.whole.name}/joined", shape, found.whole, origin=origin)
    edit.twin(found.operator, parts, (joined,))
    return joined


LEGAL_CONCATENATION = Rule("legal_concatenation", CONCATENATION, _check, _rewrite)
