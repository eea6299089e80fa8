"""A reshape that adds or drops dimensions of 1 in front of a mean, a sum, a maximum or a minimum is left out.

    x (1, L, 1, C) -- RESHAPE (1, L, C) -- MEAN over 1        =>        x (1, L, 1, C) -- MEAN over 1 and 2

Global pooling of a sequence that stands has such a pair. Exact: the same elements are taken together, in the same
order (reference/reduce.h, ``Reduce``, goes through the input from its first element to its last), and as many. Results
that keep their dimensions are left alone: for images TFLM has a sum of its own then (micro/kernels/reduce_common.cc).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...ir.constants import integers
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...kernels.relations import RESHAPES, axis_of, operands
from ..copies import is_shape_computed, source_for_one_reader
from ..pattern import Match, Pattern
from ..rule import Rule

_REDUCTIONS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM")
_MOST_DIMENSIONS = 4
"""Of an input that TFLM reduces."""


@dataclass(frozen=True)
class ReducedReshape:
    """The reduction, what its input is a reshape of, and the dimensions of that to take together."""

    reduction: Operator
    source: Tensor
    axes: tuple[int, ...]


def _check(match: Match) -> ReducedReshape | str | None:
    reduction, reshape = match.anchor, match["reshape"]
    shaped, chosen = operands(reduction, 2)
    if shaped is None or reduction.option("keepDims", False):
        return "it keeps the dimensions that it takes together"
    given = integers(chosen)
    if given is None or is_shape_computed(reshape):
        return "its dimensions or a shape are computed"
    source = source_for_one_reader(match, reshape)
    if isinstance(source, str):
        return source
    taken = {axis_of(int(axis), len(shaped.shape)) for axis in given.ravel()}
    axes = _axes_in(source.shape, shaped.shape, taken, reduction.outputs[0].shape)
    if axes is None:
        return "the reshape does more than add or drop dimensions of 1"
    return ReducedReshape(reduction, source, axes)


def _axes_in(
    source: tuple[int, ...], shaped: tuple[int, ...], taken: set[int | None], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Dimensions of ``source`` that are those ``taken`` of ``shaped``, and leave the shape ``wanted``."""
    long = [axis for axis, size in enumerate(source) if size != 1]
    others = [axis for axis, size in enumerate(shaped) if size != 1]
    if [source[axis] for axis in long] != [shaped[axis] for axis in others] or len(source) > _MOST_DIMENSIONS:
        return None
    sure = {mine for mine, theirs in zip(long, others, strict=True) if theirs in taken}
    for more in _subsets([axis for axis, size in enumerate(source) if size == 1]):
        axes = sorted({*sure, *more})
        if axes and tuple(size for axis, size in enumerate(source) if axis not in axes) == wanted:
            return tuple(axes)
    return None


def _subsets(axes: list[int]) -> Iterator[tuple[int, ...]]:
    """All subsets, small ones first; of as many the inner dimensions first, since the outer one is the batch."""
    for count in range(len(axes) + 1):
        yield from combinations(reversed(axes), count)


def _rewrite(found: ReducedReshape, edit: Editor) -> None:
    (output,) = found.reduction.outputs
    axes = edit.constant(f"{output.name}/axes", np.asarray(found.axes, np.int32))
    edit.twin(found.reduction, (found.source, axes), (output,))


REDUCED_RESHAPE = Rule(
    "reduced_reshape",
    Pattern("reduction", _REDUCTIONS, {0: Pattern("reshape", RESHAPES)}),
    _check,
    _rewrite,
)
