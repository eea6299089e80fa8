"""A STRIDED_SLICE without strides is a SLICE: TFLM keeps less for it.

    x -- STRIDED_SLICE [2:5, 1:9]        =>        x -- SLICE from (2, 1), of 3 x 8

For each STRIDED_SLICE TFLM keeps 108 bytes in the tail on 32 bits, the options of the file and what it makes of them;
for a SLICE it keeps nothing (micro/kernels/strided_slice.cc and slice.cc, tflite-micro 90b983c2b3f1).

Exact: both copy the same elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import Box, strided_slice_box
from ..pattern import Match, Pattern
from ..rule import Rule

_TYPES = (DType.BOOL, DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32)
"""What TFLM's SLICE copies."""


@dataclass(frozen=True)
class PlainSlice:
    """A slice, what it is cut from, and where."""

    slice: Operator
    source: Tensor
    box: Box


def _check(match: Match) -> PlainSlice | str | None:
    cut = match.anchor
    source, output, box = cut.inputs[0], cut.outputs[0], strided_slice_box(cut)
    if source is None or box is None:
        return None  # it has strides, or what it takes is computed
    if tuple(box.count) != output.shape:
        return "it takes a dimension out, which SLICE cannot"
    if source.dtype not in _TYPES:
        return f"TFLM's SLICE does not copy {source.dtype.label}"
    return PlainSlice(cut, source, box)


def _rewrite(found: PlainSlice, edit: Editor) -> None:
    (output,) = found.slice.outputs
    edit.slice(found.source, found.box.first, found.box.count, output)


PLAIN_SLICE = Rule("plain_slice", Pattern("slice", ("STRIDED_SLICE",)), _check, _rewrite)
