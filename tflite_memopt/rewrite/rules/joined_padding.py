"""A PAD of whole rows is a concatenation of constant rows and the image: it need not copy the image.

    x -- PAD by 2 rows above        =>        0 0 --+
                                                    +-- CONCATENATION
                                              x ----+

The rows of the image are a range of bytes of the padded one, so that both may be the same bytes: a view, which holds
for every kernel library. With PAD both exist at once, as long as others read the image too: a residual sum beside a
causal convolution does. CONCATENATION takes less of the tail than PAD and copies by memcpy. The constant rows are in
the file.

Exact: the constant has the value that PAD writes, the zero point of integers (micro/kernels/pad_common.cc), or PADV2's.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ...ir.constants import integers, values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.quantization import is_quantized
from ...kernels.relations import operands
from ..copies import source_of
from ..pattern import Match, Pattern
from ..rule import Rule

_TYPES = {DType.FLOAT32: np.float32, DType.INT8: np.int8, DType.INT16: np.int16}


@dataclass(frozen=True)
class RowsOfPadding:
    """A PAD, its input, and how many rows of which value it adds before and after along ``axis``."""

    pad: Operator
    source: Tensor
    axis: int
    before: int
    after: int
    value: float


def _check(match: Match) -> RowsOfPadding | str | None:
    pad = match.anchor
    x, chosen, given = operands(pad, 3)
    paddings, output = integers(chosen), pad.outputs[0]
    if x is None or x.is_constant or paddings is None or paddings.size != 2 * len(x.shape):
        return "its paddings are computed"
    padded = [axis for axis, amounts in enumerate(paddings.reshape(-1, 2)) if amounts.any()]
    if len(padded) != 1 or paddings.min() < 0 or prod(x.shape[: padded[0]]) != 1:
        return "it pads more than whole rows: what it copies is no range of its output"
    source = source_of(x, output)
    if isinstance(source, str):
        return source
    value = _value(pad, source, given)
    if source.dtype not in _TYPES or value is None:
        return "its value is computed, or its type has no constants here"
    before, after = (int(amount) for amount in paddings.reshape(-1, 2)[padded[0]])
    return RowsOfPadding(pad, source, padded[0], before, after, value)


def _value(pad: Operator, source: Tensor, given: Tensor | None) -> float | None:
    """What is written around the image."""
    if pad.name == "PADV2":
        found = None if given is None or given.dtype is not source.dtype else values(given)
        return None if found is None or found.size != 1 else float(found.ravel()[0])
    quantization = source.quantization
    return float(quantization.zero_point[0]) if quantization is not None and is_quantized(quantization) else 0.0


def _rewrite(found: RowsOfPadding, edit: Editor) -> None:
    source, (output,) = found.source, found.pad.outputs
    parts = [_rows(found, edit, "above", found.before), source, _rows(found, edit, "below", found.after)]
    present = [part for part in parts if part is not None]
    edit.join(present, output, found.axis)


def _rows(found: RowsOfPadding, edit: Editor, where: str, count: int) -> Tensor | None:
    """So many rows of padding; None where there are none."""
    if not count:
        return None
    source = found.source
    shape = [count if axis == found.axis else size for axis, size in enumerate(source.shape)]
    rows = np.full(shape, found.value, _TYPES[source.dtype])
    return edit.constant(f"{found.pad.outputs[0].name}/{where}", rows, source.quantization)


JOINED_PADDING = Rule("joined_padding", Pattern("pad", ("PAD", "PADV2")), _check, _rewrite)
