"""Let an image with channels first be transposed row by row, since stripes are cut along rows.

A TRANSPOSE from channels first to last, with which networks from PyTorch begin, reads all of its input for each row.
The planes of its channels have rows:

    x (1, C, H, W) -- TRANSPOSE -- y (1, H, W, C)

    x -- RESHAPE (1, C * H, 1, W) -- SPLIT -- C planes (1, H, 1, W) -- CONCATENATION (1, H, C, W) -- TRANSPOSE -- y

A PAD, or an operator on single elements such as QUANTIZE, that comes before it goes behind it, so that it is cut, too.
RESHAPE and SPLIT are views. A stripe takes some rows of each plane, which are views, too, and copies and transposes no
others. Whole, it needs more than before: it is a form of the model in which more can be cut, and is taken where stripes
of it need less.
"""

from __future__ import annotations

import numpy as np

from ...kernels.relations import operands
from ...kernels.support import MAX_PARTS
from ...model.ir.change import Changed, changed
from ...model.ir.copying import drop_dead_tensors
from ...model.ir.editor import Editor
from ...model.ir.model import DType, Model
from ...model.ir.tensors import has_several_scales, integers
from ...operators.table import OPERATORS
from .engine import Answer, Driver, Match, Pattern, Proposal, Rule, source_of

_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)
"""Types that TFLM transposes, splits, joins, and cuts into stripes."""
_TO_LAST = [0, 2, 3, 1]


def _planes(match: Match) -> Answer:
    transpose = match.anchor
    x, chosen = operands(transpose, 2)
    order = integers(chosen)
    if x is None or order is None or order.tolist() != _TO_LAST:
        return None
    batch, channels, height, width = x.shape
    if batch != 1 or min(channels, height, width) < 2:
        return "it transposes several images, or one without rows, columns, or channels"
    if channels > MAX_PARTS:
        return f"it has {channels} channels, and TFLM joins at most {MAX_PARTS} tensors"
    if x.dtype not in _TYPES or x.is_constant or has_several_scales(x.quantization):
        return f"'{x.name}' is {x.dtype.label}, a constant, or has several scales"
    y = transpose.outputs[0]
    source = source_of(x, y)
    if isinstance(source, str):
        return source

    def write(edit: Editor) -> None:
        rows = edit.activation(f"{y.name}/rows", (1, channels * height, 1, width), x)
        edit.reshape(x, rows)
        names = (f"{y.name}/plane{at + 1}of{channels}" for at in range(channels))
        planes = [edit.activation(name, (1, height, 1, width), x, is_piece=True) for name in names]
        axis = edit.constant(f"{y.name}/axis", np.asarray(1, np.int32))
        edit.operator("SPLIT", (axis, rows), planes, "SplitOptions", numSplits=channels)
        joined = edit.activation(f"{y.name}/joined", (1, height, channels, width), x)
        edit.join(planes, joined, 2)
        order = edit.constant(f"{y.name}/order", np.asarray((0, 1, 3, 2), np.int32))
        edit.twin(transpose, (joined, order), (y,))

    return Proposal(write)


TRANSPOSED_PLANES = Rule("transposed_planes", Pattern("transpose", ("TRANSPOSE",)), _planes)
"""Transpose an image with channels first row by row, from the planes of its channels.

    x (1, C, H, W) -- TRANSPOSE -- y (1, H, W, C)
                        =>        x -- RESHAPE, SPLIT -- C of (1, H, 1, W) -- CONCATENATION -- TRANSPOSE -- y

Exact: all of these move elements. The first TRANSPOSE of a network from PyTorch is such a one; then stripes reach up to
the image, of which they copy the rows that they read.
"""


def _transposed_first(match: Match) -> Answer:
    transpose, before = match.anchor, match["before"]
    order, between, source = integers(operands(transpose, 2)[1]), before.outputs[0], before.inputs[0]
    if order is None or order.tolist() != _TO_LAST or source is None or len(source.shape) != len(_TO_LAST):
        return None
    if len(between.uses) > 1 or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if source.is_constant or source.is_variable or source.dtype not in _TYPES:
        return f"'{source.name}' is {source.dtype.label}, a constant, or a variable"
    if has_several_scales(source.quantization) or has_several_scales(between.quantization):
        return f"'{source.name}' or '{between.name}' has several scales"
    y, amounts = transpose.outputs[0], None
    alike = source_of(between, y)
    if isinstance(alike, str):
        return alike
    if before.name in _PADS:
        amounts = integers(before.inputs[1])
        if amounts is None or amounts.size != 2 * len(_TO_LAST):
            return "its paddings are computed"
    elif len(before.inputs) != 1 or source.shape != between.shape:
        return "it has other operands"

    def write(edit: Editor) -> None:
        turned = edit.activation(f"{y.name}/first", [source.shape[axis] for axis in _TO_LAST], source)
        edit.twin(transpose, (source, transpose.inputs[1]), (turned,))
        behind = None if amounts is None else amounts.reshape(-1, 2)[_TO_LAST].astype(np.int32)
        others = () if behind is None else (edit.constant(f"{y.name}/paddings", behind), *before.inputs[2:])
        edit.twin(before, (turned, *others), (y,))

    return Proposal(write)


_PADS = ("PAD", "PADV2")
_ON_ELEMENTS = tuple(name for name, kind in OPERATORS.items() if kind.is_by_channel)
TRANSPOSED_FIRST = Rule(
    "transposed_first",
    Pattern("transpose", ("TRANSPOSE",), {0: Pattern("before", (*_PADS, *_ON_ELEMENTS))}),
    _transposed_first,
)
"""Let a TRANSPOSE from channels first to last come before a PAD, or before an operator on single elements.

    x (1, C, H, W) -- PAD or QUANTIZE -- TRANSPOSE -- y        =>        x -- TRANSPOSE -- PAD or QUANTIZE -- y

Exact: each element of y is made of the same element of x, or is padding. Then the image itself is transposed by rows.
"""


def planes_along_h(model: Model) -> Changed:
    """Let images with channels first be transposed by rows."""
    driver = Driver(model, is_trial=True)
    driver.apply_everywhere((TRANSPOSED_FIRST, TRANSPOSED_PLANES))
    drop_dead_tensors(model)
    names = (each.operator for each in driver.applied if each.rule == TRANSPOSED_PLANES.name)
    return changed(model, TRANSPOSED_PLANES.name, names)
