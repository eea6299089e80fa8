"""Let an image or a sequence with channels first be transposed row by row, since stripes are cut along rows.

A TRANSPOSE from channels first to last, with which networks from PyTorch begin, reads all of its input for each row,
and the one back, with which those end that return an image, writes all of its output. The same bytes as a stack of
images of one column, whose channels are the columns, have rows, too:

    x (1, C, H, W) -- TRANSPOSE -- y (1, H, W, C)

    x -- RESHAPE (C, H, 1, W) -- TRANSPOSE -- y                         row r of y is row r of each image of the stack

A sequence (1, C, L) is the stack (C, L, 1, 1), and lies along H behind the TRANSPOSE: (1, L, 1, C).

An iteration of a loop cuts its rows out of all images at once, and stripes those of each, which are views. Whole, it
needs as much as before: it is a form of the model in which more can be cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.ir.change import Changed, changed
from ...model.ir.copying import drop_dead_tensors
from ...model.ir.model import Model, Tensor
from ...model.ir.tensors import has_several_scales, integers
from ...operators.boxes import operands
from ...operators.editor import Editor
from ...operators.rows import FROM_STACK, TO_STACK
from ...operators.table import OPERATORS
from .engine import Answer, Driver, Match, Pattern, Proposal, Rule, source_of
from .shapes import CONSECUTIVE_RESHAPES, IDENTITY

_Shapes = tuple[tuple[int, ...], tuple[int, ...]]
"""Of what a TRANSPOSE reads and writes."""


def _planes(match: Match) -> Answer:
    transpose = match.anchor
    x, chosen = operands(transpose, 2)
    order = integers(chosen)
    if x is None or order is None or len(x.shape) not in (3, 4):
        return None
    y, rank, axes = transpose.outputs[0], len(x.shape), order.tolist()
    ways = (([0, *range(2, rank), 1], True), ([0, rank - 1, *range(1, rank - 1)], False))
    found: _Shapes | str | None = None
    for is_from_stack in (each for wanted, each in ways if axes == wanted):  # of a sequence, both
        found = found or _by_rows(x, y, is_from_stack)
    if found is None or isinstance(found, str):
        return found
    if not OPERATORS["TRANSPOSE"].tflm.takes(x.dtype) or x.is_constant or has_several_scales(x.quantization):
        return f"'{x.name}' is {x.dtype.label}, a constant, or has several scales"
    source, shapes = source_of(x, y), found
    if isinstance(source, str):
        return source

    def write(edit: Editor) -> None:
        given, made = (
            each if each.shape == shape else edit.activation(f"{each.name}/{name}", shape, x)
            for each, shape, name in zip((x, y), shapes, ("rows", "turned"), strict=True)
        )
        if given is not x:
            edit.reshape(x, given)
        axes = FROM_STACK if made.shape[0] == 1 else TO_STACK
        edit.twin(transpose, (given, edit.constant(f"{y.name}/order", np.asarray(axes, np.int32))), (made,))
        if made is not y:
            edit.reshape(made, y)

    return Proposal(write)


def _by_rows(x: Tensor, y: Tensor, is_from_stack: bool) -> _Shapes | str | None:
    """Return the shapes between which rows are transposed, one of a stack; or why there are none.

    ``is_from_stack``: it is ``x`` that has its channels first.
    """
    first, last = (x, y) if is_from_stack else (y, x)
    batch, channels, *places = first.shape
    height, width = (1, *places)[-2:]
    rows, columns = (width, 1) if height == 1 else (height, width)
    stack, image = (channels, rows, 1, columns), (1, rows, columns, channels)
    if batch != 1 or min(channels, rows) < 2 or columns < 1:
        return "it transposes several images, or one without rows or channels"
    if columns == 1 and not _lies_along_h(last, image, is_from_stack):
        return None  # nothing is computed along it
    return (stack, image) if is_from_stack else (image, stack)


def _lies_along_h(sequence: Tensor, image: Sequence[int], is_behind: bool) -> bool:
    """Tell whether a sequence behind, or before, a TRANSPOSE has been laid along H."""
    made = sequence.producer
    others = [use.operator.outputs[0] for use in sequence.uses if is_behind and use.operator.name == "RESHAPE"]
    if not is_behind and made is not None and made.name == "RESHAPE":
        others = [made.required(0)]
    return any(each.shape == image for each in (sequence, *others))


TRANSPOSED_PLANES = Rule("transposed_planes", Pattern("transpose", ("TRANSPOSE",)), _planes)
"""Transpose an image with channels first row by row, as a stack of the planes of its channels; or back.

    x (1, C, H, W) -- TRANSPOSE -- y        =>        x -- RESHAPE (C, H, 1, W) -- TRANSPOSE -- y (1, H, W, C)
    x (1, H, W, C) -- TRANSPOSE -- y        =>        x -- TRANSPOSE (C, H, 1, W) -- RESHAPE -- y (1, C, H, W)

Exact: all of these move elements. The first TRANSPOSE of a network from PyTorch is such a one; then stripes reach up to
the image, of which they copy the rows that they read.
"""


def planes_along_h(model: Model) -> Changed:
    """Let images and sequences with channels first be transposed by rows."""
    driver = Driver(model, is_trial=True)
    driver.apply_everywhere((TRANSPOSED_PLANES, CONSECUTIVE_RESHAPES, IDENTITY))
    drop_dead_tensors(model)
    names = (each.operator for each in driver.applied if each.rule == TRANSPOSED_PLANES.name)
    return changed(model, TRANSPOSED_PLANES.name, names)
