r"""A CONCATENATION that another one on the same axis joins: its inputs go into that one.

    a --\                                    a --\
    b -- CONCATENATION --\              =>   b -- CONCATENATION -- y
    c ------------------- CONCATENATION -- y  c --/

Exact: joining is associative, and no kernel changes a value. Up to the ten inputs that TFLM takes.

The inputs take the place of what they were joined into, so that nearly always memory falls. Not always: each of them is
rounded up to 16 bytes, and the rules that take a concatenation apart would lose the choice to keep the inner one whole.
That is why the search decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from ..concatenation import CONCATENATION, MAX_PARTS, joined_axis
from ..pattern import Match, Pattern
from ..rule import Rule


@dataclass(frozen=True)
class MergedConcatenation:
    """A concatenation, and the inputs that it has once the inner ones are merged into it."""

    outer: Operator
    inputs: Sequence[Tensor | None]


def _check(match: Match) -> MergedConcatenation | str:
    outer = match.anchor
    reasons = {inner: _reason_against(match, inner) for inner in _inner_ones(outer)}
    free = [inner for inner, reason in reasons.items() if reason is None]
    if not free:
        return next(reason for reason in reasons.values() if reason is not None)
    merged = _as_many_as_fit(outer, free)
    if not merged:
        return f"together they have more inputs than TFLM joins, {MAX_PARTS}"
    return MergedConcatenation(outer, _inputs(outer, merged))


def _reason_against(match: Match, inner: Operator) -> str | None:
    outer, between = match.anchor, inner.outputs[0]
    if any(use.operator is not outer for use in between.uses) or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if any(each.option("fusedActivationFunction", 0) for each in (outer, inner)):
        return "one of the two has a fused activation"
    if joined_axis(outer) is None or joined_axis(outer) != joined_axis(inner):
        return "the two are not along one axis"
    if not all(_is_like(tensor, between) for tensor in (*inner.inputs, *outer.outputs)):
        return "types or quantizations differ"
    return None


def _rewrite(found: MergedConcatenation, edit: Editor) -> None:
    edit.twin(found.outer, found.inputs, found.outer.outputs)


def _as_many_as_fit(outer: Operator, inner_ones: Sequence[Operator]) -> list[Operator]:
    """The inner concatenations to merge, in order, as long as the inputs are not too many."""
    chosen: list[Operator] = []
    for inner in inner_ones:
        if len(_inputs(outer, [*chosen, inner])) <= MAX_PARTS:
            chosen.append(inner)
    return chosen


def _inner_ones(outer: Operator) -> list[Operator]:
    writers = (tensor.producer for tensor in outer.present_inputs())
    return list(dict.fromkeys(each for each in writers if each is not None and each.name == "CONCATENATION"))


def _inputs(outer: Operator, merged: list[Operator]) -> list[Tensor | None]:
    """The inputs in order; those of a merged concatenation wherever its output was joined."""
    of_inner = {inner.outputs[0]: inner.inputs for inner in merged}
    pieces = ((tensor,) if tensor is None else of_inner.get(tensor, (tensor,)) for tensor in outer.inputs)
    return [tensor for piece in pieces for tensor in piece]


def _is_like(tensor: Tensor | None, other: Tensor) -> bool:
    if tensor is None or tensor.is_variable:
        return False
    return tensor.dtype is other.dtype and quantized_alike(tensor.quantization, other.quantization)


NESTED_CONCATENATION = Rule(
    "nested_concatenation", Pattern("outer", CONCATENATION.names, any_input=CONCATENATION), _check, _rewrite
)
