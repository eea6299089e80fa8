"""An elementwise operator of a channel concatenation: one operator for each part.

    a --+                               a -- MUL[Ka] --+
        +-- CONCATENATION -- MUL[K]  =>                +-- CONCATENATION
    b --+                               b -- MUL[Kb] --+

Exact: an output value depends on the input values at its place, by arithmetic whose parameters are those of whole
tensors (TFLM micro/kernels: activations.cc, elementwise.cc, add.cc and so on). Every operand is dealt with by its kind:

- one that does not change along the channels (a scalar, ``[..., 1]``): read by all;
- a constant with channels (``[C]``, ``[1, 1, 1, C]``, full size): cut;
- another concatenation whose parts have the same channels: its parts;
- a computed vector of one value a channel, as in squeeze-and-excitation: taken apart by SPLIT_V, which only has to copy
  ``C`` values, or nothing where the parts are ranges of its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ...ir.channels import channels_of, is_per_channel
from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Tensor
from ...ir.origin import piece_of
from ..channelwise import parts_of, reason_against_parts, run_on_parts
from ..concatenation import CONCATENATION, ROLE, channel_parts
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_UNARY = frozenset(
    {"ABS", "CAST", "CEIL", "COS", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG"}
    | {"LOGICAL_NOT", "LOGISTIC", "NEG", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT"}
    | {"SIGN", "SIN", "SQRT", "SQUARE", "TANH"}
)
_WITH_OPERANDS = frozenset(
    {"ADD", "ADD_N", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE"}
    | {"SUB", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "NOT_EQUAL"}
)
_SPLIT_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32)
"""Of micro/kernels/split_v.cc."""

InParts = Callable[[Tensor, Match, Editor], Sequence[Tensor]]
"""What the operator reads for each part in place of one of its inputs."""


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    for tensor in match.anchor.present_inputs():
        if _way(tensor, match) is None:
            return f"its operand '{tensor.name}' can neither be cut along the channels nor shared"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    count = len(parts_of(match))
    operands: list[Sequence[Tensor | None]] = []
    for tensor in match.anchor.inputs:
        way = None if tensor is None else _way(tensor, match)
        operands.append([None] * count if tensor is None or way is None else way(tensor, match, edit))
    run_on_parts(match, edit, operands)


def _way(tensor: Tensor, match: Match) -> InParts | None:
    """How to get at the channels of each part."""
    if tensor is match[ROLE].outputs[0]:
        return _parts
    if not tensor.shape or tensor.shape[-1] == 1:
        return _shared
    if is_per_channel(tensor.quantization) or tensor.shape[-1] != match[ROLE].outputs[0].shape[-1]:
        return None
    if tensor.is_constant:
        return None if values(tensor) is None else _cut
    if _has_same_parts(tensor, match):
        return _parts_of_other
    if tensor.dtype in _SPLIT_TYPES and prod(tensor.shape[:-1]) == 1 and not tensor.is_variable:
        return _split
    return None


def _parts(_: Tensor, match: Match, edit: Editor) -> Sequence[Tensor]:
    return [part.tensor for part in parts_of(match)]


def _shared(tensor: Tensor, match: Match, edit: Editor) -> Sequence[Tensor]:
    return [tensor] * len(parts_of(match))


def _cut(tensor: Tensor, match: Match, edit: Editor) -> Sequence[Tensor]:
    whole = values(tensor)
    if whole is None:
        return ()
    return [
        edit.constant(
            f"{tensor.name}/part{part.index}",
            channels_of(whole, part.start, part.channels),
            tensor.quantization,
            piece_of(tensor, -1, part.start),
        )
        for part in parts_of(match)
    ]


def _parts_of_other(tensor: Tensor, match: Match, edit: Editor) -> Sequence[Tensor]:
    found = _other_match(tensor, match)
    return () if found is None else [part.tensor for part in parts_of(found)]


def _split(tensor: Tensor, match: Match, edit: Editor) -> Sequence[Tensor]:
    parts = parts_of(match)
    made = [
        edit.activation(
            f"{tensor.name}/part{part.index}",
            (*tensor.shape[:-1], part.channels),
            tensor,
            origin=piece_of(tensor, -1, part.start),
        )
        for part in parts
    ]
    sizes = edit.constant(f"{tensor.name}/sizes", np.asarray([part.channels for part in parts], np.int32))
    axis = edit.constant(f"{tensor.name}/axis", np.asarray(len(tensor.shape) - 1, np.int32))
    edit.operator("SPLIT_V", (tensor, sizes, axis), made, "SplitVOptions", numSplits=len(parts))
    return made


def _has_same_parts(tensor: Tensor, match: Match) -> bool:
    found = _other_match(tensor, match)
    if found is None or isinstance(channel_parts(found), str):
        return False
    return [part.start for part in parts_of(found)] == [part.start for part in parts_of(match)]


def _other_match(tensor: Tensor, match: Match) -> Match | None:
    writer = tensor.producer
    if writer is None or writer.name not in CONCATENATION.names:
        return None
    return Match(match.graph, match.anchor, {ROLE: writer})


SPLIT_ELEMENTWISE = Rule(
    "split_elementwise",
    Pattern("elementwise", _UNARY | _WITH_OPERANDS, any_input=CONCATENATION),
    _refuse,
    always_exact,
    _rewrite,
)
