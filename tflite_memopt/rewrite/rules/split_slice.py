"""A slice of a channel concatenation that keeps all channels: one slice of each part.

    a --+                            a -- SLICE --+
        +-- CONCATENATION -- SLICE =>             +-- CONCATENATION
    b --+                            b -- SLICE --+

Exact: elements are copied. Crops and steps of STRIDED_SLICE along height and width do not touch the channels. Sources:
TFLM reference/slice.h, micro/kernels/strided_slice_common.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...ir.constants import integers
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ..channelwise import Part, parts_of, reads_once, reason_against_parts, run_on_parts
from ..concatenation import CONCATENATION, ROLE
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_MASKS = ("shrinkAxisMask", "ellipsisMask", "newAxisMask", "offset")
"""With one of these, input and output dimensions are not the same ones."""


def _refuse(match: Match) -> str | None:
    reason = reason_against_parts(match)
    if reason is not None:
        return reason
    anchor = match.anchor
    operands = _operands(anchor)
    rank = len(match[ROLE].outputs[0].shape)
    if not reads_once(match) or operands is None or any(operand.size != rank for operand in operands):
        return "its operands are not constant, or not one for each dimension"
    if anchor.name == "STRIDED_SLICE" and any(anchor.option(name, 0) for name in _MASKS):
        return "it adds or drops dimensions"
    if anchor.name == "STRIDED_SLICE" and operands[2][-1] != 1:
        return "it steps through the channels"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    parts, anchor = parts_of(match), match.anchor
    operands: list[Sequence[Tensor | None]] = [[tensor] * len(parts) for tensor in anchor.inputs]
    operands[0] = [part.tensor for part in parts]
    operands[2] = [_of_part(anchor, part, edit) for part in parts]
    run_on_parts(match, edit, operands)


def _of_part(anchor: Operator, part: Part, edit: Editor) -> Tensor | None:
    """The size or end, with all channels of the part."""
    extent = anchor.inputs[2]
    found = integers(extent)
    if extent is None or found is None:
        return None
    kept = [*found[:-1].tolist(), part.channels]
    values = np.asarray(kept, np.int32 if extent.dtype is DType.INT32 else np.int64)
    return edit.constant(f"{extent.name}/part{part.index}", values)


def _operands(anchor: Operator) -> list[npt.NDArray[np.int64]] | None:
    """Begin and size, or begin, end and strides."""
    wanted = 3 if anchor.name == "SLICE" else 4
    found = [integers(tensor) for tensor in anchor.inputs[1:]]
    present = [each for each in found if each is not None]
    return present if len(present) == len(found) == wanted - 1 else None


SPLIT_SLICE = Rule(
    "split_slice", Pattern("slice", ("SLICE", "STRIDED_SLICE"), {0: CONCATENATION}), _refuse, always_exact, _rewrite
)
