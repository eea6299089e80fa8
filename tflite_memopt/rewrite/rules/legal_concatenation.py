r"""A CONCATENATION of more inputs than TFLM takes: nested ones.

    a1 ---\                       a1  ... a10 -- CONCATENATION --\
    ...    CONCATENATION -- y =>  a11 ... a17 -- CONCATENATION --- CONCATENATION -- y
    a25 --/                       a18 ... a25 ------------------/

Exact: on one axis, joining runs of neighbours first gives the same whole, and no kernel changes a value. A model with
such an operator does not load in TFLM at all: ``kMaxInputNum`` of micro/kernels/concatenation.cc.

Inputs are joined in runs of up to ten until ten are left, in as many rounds as it takes. That makes the fewest
operators, and copies the fewest bytes twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.editor import Editor
from ...ir.model import Tensor
from ...ir.origin import piece_of
from ..channelwise import MAX_PARTS
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact


def _has_too_many(match: Match) -> bool:
    return len(match.anchor.inputs) > MAX_PARTS


def _refuse(match: Match) -> str | None:
    operator = match.anchor
    rank = len(operator.outputs[0].shape)
    if operator.option("fusedActivationFunction", 0):
        return "it has a fused activation, which TFLM does not take either"
    fits = -rank <= _axis(match) < rank
    if not fits or any(tensor is None or len(tensor.shape) != rank for tensor in operator.inputs):
        return "its inputs do not make up its output"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    parts = list(match.anchor.present_inputs())
    while len(parts) > MAX_PARTS:
        parts = _round(match, edit, parts)
    edit.twin(match.anchor, parts, match.anchor.outputs)


def _round(match: Match, edit: Editor, parts: Sequence[Tensor]) -> list[Tensor]:
    """Join runs of ten from the front on, as long as more than ten inputs are left, but none twice."""
    joined: list[Tensor] = []
    rest = list(parts)
    while len(rest) > 1 and len(joined) + len(rest) > MAX_PARTS:
        size = min(MAX_PARTS, len(joined) + len(rest) - MAX_PARTS + 1, len(rest))
        start = sum(part.shape[_axis(match)] for part in joined)
        joined.append(_join(match, edit, rest[:size], start))
        rest = rest[size:]
    return joined + rest


def _join(match: Match, edit: Editor, parts: Sequence[Tensor], start: int) -> Tensor:
    whole, axis = match.anchor.outputs[0], _axis(match)
    shape = list(whole.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    joined = edit.activation(f"{whole.name}/joined", shape, whole, origin=piece_of(whole, axis, start))
    edit.twin(match.anchor, parts, (joined,))
    return joined


def _axis(match: Match) -> int:
    return int(match.anchor.option("axis", 0))


LEGAL_CONCATENATION = Rule(
    "legal_concatenation",
    Pattern("concatenation", ("CONCATENATION",), where=_has_too_many),
    _refuse,
    always_exact,
    _rewrite,
)
