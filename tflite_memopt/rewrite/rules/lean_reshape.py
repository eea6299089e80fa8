"""A RESHAPE without its operand of the shape, or an EXPAND_DIMS: TFLM keeps less for them.

    x (1, 8, 4) -- RESHAPE (1, 8, 1, 4)        =>        x -- EXPAND_DIMS at 2
    x (1, 8, 4) -- RESHAPE (1, 32)             =>        x -- RESHAPE, told by its options

TFLM takes the shape of a RESHAPE from the file's output, and keeps a structure of every tensor of the file: 12 bytes in
the tail on 32 bits, and 24 while it plans. It keeps 36 bytes of options for each RESHAPE, and nothing for EXPAND_DIMS
(micro/kernels/reshape_common.cc, expand_dims.cc, tflite-micro 90b983c2b3f1).

Exact: all of them copy the same bytes, or none. LiteRT takes the shape from the options where there is no operand
(tensorflow/lite/kernels/reshape.cc, ``GetOutputShape``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ..pattern import Match, Pattern
from ..rule import Rule

_EXPANDED = (DType.FLOAT32, DType.INT8, DType.INT16)
"""What TFLM's EXPAND_DIMS copies."""


@dataclass(frozen=True)
class Reshaped:
    """A reshape, its input, and the dimension of 1 that it adds, if that is all that it does."""

    reshape: Operator
    source: Tensor
    added: int | None


def _check(match: Match) -> Reshaped | str | None:
    reshape = match.anchor
    source, output = reshape.inputs[0], reshape.outputs[0]
    said = [tensor for tensor in reshape.inputs[1:] if tensor is not None]
    if source is None or any(not tensor.is_constant for tensor in said):
        return None
    if source.elements != output.elements or min((*source.shape, *output.shape), default=0) < 1:
        return "a shape is not known"
    at = added_dimension(source.shape, output.shape) if source.dtype in _EXPANDED else None
    return Reshaped(reshape, source, at) if said or at is not None else None


def added_dimension(shape: tuple[int, ...], longer: tuple[int, ...]) -> int | None:
    """Where ``longer`` has a dimension of 1 more than ``shape``, and is the same otherwise; None where it is not.

    >>> added_dimension((1, 8, 4), (1, 8, 1, 4))
    2
    """
    places = (at for at in range(len(longer)) if (*shape[:at], 1, *shape[at:]) == longer)
    return max(places, default=None)


def _rewrite(found: Reshaped, edit: Editor) -> None:
    (output,) = found.reshape.outputs
    if found.added is None:
        edit.reshape(found.source, output, has_operand=False)
        return
    axis = edit.constant(f"{output.name}/axis", np.asarray(found.added, np.int32))
    edit.operator("EXPAND_DIMS", (found.source, axis), (output,), "ExpandDimsOptions")


LEAN_RESHAPE = Rule("lean_reshape", Pattern("reshape", ("RESHAPE",)), _check, _rewrite)
