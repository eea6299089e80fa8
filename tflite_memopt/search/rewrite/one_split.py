"""Rules that take a tensor apart by one operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...model.ir.model import Operator, Tensor
from ...operators.boxes import RESHAPES, slice_box
from ...operators.editor import Editor
from ...operators.table import OPERATORS
from .engine import Answer, Match, Pattern, Proposal, Rule, is_shape_computed, source_of


@dataclass(frozen=True)
class _Run:
    """A tensor whose elements are those of another one from ``first`` on, in their order.

    ``path``: the slices and reshapes between, the last one first.
    """

    tensor: Tensor
    first: int
    path: tuple[Operator, ...]


def _split_of_slices(match: Match) -> Answer:
    if _first_of(match.anchor) is None:
        return None
    source = match.anchor.required(0)
    if next(use.operator for use in source.uses if use.operator.name == "SLICE") is not match.anchor:
        return None  # the first one speaks for all
    for whole in dict.fromkeys((_unshaped(source), source)):
        runs = sorted(_runs_of(whole, match), key=lambda run: run.first)
        operators = dict.fromkeys(operator for run in runs for operator in run.path)
        shapes = [run.tensor.shape for run in runs]
        shape, size = max(shapes, key=shapes.count), runs[0].tensor.elements
        is_whole = [run.first for run in runs] == [*range(0, whole.elements, size)]
        is_alike = {run.tensor.elements for run in runs} == {size}
        if len(runs) < _FEWEST or not (is_whole and is_alike):
            continue
        others = len(shapes) - shapes.count(shape)
        axis = _axis_of(whole.shape, shape)
        if len(operators) <= 1 + others + (axis is None) or not OPERATORS["SPLIT"].tflm.takes(whole.dtype):
            continue
        reason = next((found for run in runs if isinstance(found := source_of(whole, run.tensor), str)), None)
        return reason or Proposal(lambda edit: _write(edit, whole, runs, shape, axis, [*operators]))  # noqa: B023
    return None


_FEWEST = 3
"""Parts for which a SPLIT is written, which may be a new kernel for the firmware."""
_DEEPEST = 6
"""Slices and reshapes one behind the other that are taken together."""


def _first_of(operator: Operator) -> int | None:
    """Return the place of a copy's first element in what it copies, if that is one run of elements."""
    source = operator.inputs[0] if operator.inputs else None
    if source is None or min((*source.shape, *operator.outputs[0].shape), default=0) < 1:
        return None
    if operator.name in RESHAPES:
        return None if is_shape_computed(operator) else 0
    box = slice_box(operator) if operator.name == "SLICE" else None
    return None if box is None else box.run_start(source.shape)


def _unshaped(tensor: Tensor) -> Tensor:
    """Return what a tensor is reshaped from."""
    while tensor.producer is not None and tensor.producer.name in RESHAPES and _first_of(tensor.producer) is not None:
        tensor = tensor.producer.required(0)
    return tensor


def _runs_of(whole: Tensor, match: Match, first: int = 0, path: tuple[Operator, ...] = ()) -> Iterator[_Run]:
    """Yield the tensors that are runs of another one, and read by more than slices and reshapes."""
    places = [None if use.slot else _first_of(use.operator) for use in whole.uses]
    is_read = not places or None in places or match.is_returned(whole)
    if path and (is_read or len(path) == _DEEPEST):
        yield _Run(whole, first, path)
        return
    for use, place in zip(whole.uses, places, strict=True):
        if place is not None:
            yield from _runs_of(use.operator.outputs[0], match, first + place, (use.operator, *path))


def _axis_of(shape: tuple[int, ...], part: tuple[int, ...]) -> int | None:
    """Return the axis along which a tensor is such parts one behind the other; None where only its elements are."""
    axes = (at for at, pair in enumerate(zip(shape, part, strict=False)) if pair[0] != pair[1])
    axis = next(axes, None)
    if len(shape) != len(part) or axis is None or next(axes, None) is not None:
        return None
    return axis if prod(shape[:axis]) == 1 else None


def _write(
    edit: Editor, whole: Tensor, runs: Sequence[_Run], shape: tuple[int, ...], axis: int | None, old: Sequence[Operator]
) -> None:
    """Write the parts in one shape, and those of another shape by a reshape behind."""
    for operator in old:
        if operator.outputs[0].producer is operator:
            edit.remove(operator)
    if axis is None:
        first, *rest = shape or (1,)
        whole, axis = edit.reshaped(whole, (len(runs) * first, *rest), f"{whole.name}/stacked"), 0
    parts = [
        run.tensor if run.tensor.shape == shape else edit.activation(f"{run.tensor.name}/part", shape, run.tensor)
        for run in runs
    ]
    at = edit.constant(f"axis{axis}", np.asarray(axis, np.int32))
    edit.operator("SPLIT", (at, whole), parts, "SplitOptions", numSplits=len(parts))
    for part, run in zip(parts, runs, strict=True):
        if part is not run.tensor:
            edit.reshape(part, run.tensor)


SPLIT_OF_SLICES = Rule("split_of_slices", Pattern("slice", ("SLICE",)), _split_of_slices)
r"""Take a tensor apart by one SPLIT, in place of a SLICE for each part.

    x (1, 72) -- SLICE [0:24] -- a
             \-- SLICE [24:48] -- b        =>        x -- SPLIT -- a, b, c
             \-- SLICE [48:72] -- c

Slices of slices and reshapes between are taken together: the parts are runs of elements of the first tensor, of equal
length, one behind the other, which is reshaped to a stack of them where they do not lie along one of its axes. For each
operator that goes TFLM keeps 32 bytes in the tail on 32 bits, and for each tensor 12 in the tail and up to 64 while it
plans. An unrolled recurrent network has such slices in every step.

Refused where a part is quantized otherwise, or is a variable.

Exact: all of them copy the same elements.
"""
