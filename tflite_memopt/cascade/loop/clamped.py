"""Clamped loops: everything is in the loop, and an iteration at an edge of the image is moved inwards.

Every iteration runs the operators as they are, with their own padding, over the same number of rows. Padding at the
upper or lower end of these rows is wrong unless that end is an edge of the image, so that a few rows there are invalid.
The valid rows are cut out, and where they are depends on the iteration:

    rows of the image            0                                            height
    iteration at the top         |=======xxx|            x: invalid; another iteration makes them right
    iteration in between                 |xxx=====xxx|
    iteration at the bottom                              |xxx=======|

An iteration's first row is a multiple of the stride, and so are the rows that are left out: then an operator pads its
rows like those of the whole image. Iterations that are moved inwards make some rows again that another one has made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...ir.model import Operator, Tensor
from ...operators.rows import Axis
from ..region import Region

Starts = tuple[int, ...]
"""The first row in each iteration."""


@dataclass(frozen=True)
class Part:
    """``count`` rows of a tensor that has ``of`` rows, from row ``starts[t]`` on in iteration t."""

    count: int
    of: int
    starts: Starts

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows."""
        return self.count == self.of


@dataclass(frozen=True)
class Clamped:
    """A region as a loop whose iterations write ``rows`` rows of the exit each, the first one being ``writes[t]``.

    ``reads[o, k]``: what operator o reads in its input slot k: of the image where that comes from outside, else of the
    rows that the iteration has. ``makes[o]``: the rows that o computes, and which of them count.
    ``holds[k]``: the first row of tensor k that counts.
    """

    rows: int
    writes: Starts
    reads: Mapping[tuple[Operator, int], Part]
    makes: Mapping[Operator, Part]
    holds: Mapping[Tensor, Starts]


@dataclass(frozen=True)
class _TurnRows:
    """``count`` rows of a tensor from row ``starts[t]`` on."""

    count: int
    starts: Starts


def clamped(region: Region, rows: int) -> Clamped | str:
    """The loop with ``rows`` rows per iteration, or the reason why there is none."""
    height = region.exit.shape[1]
    if rows >= height:
        return f"{rows} rows are all of {height}"
    writes = tuple(min(row, height - rows) for row in range(0, height, rows))
    asked: dict[Tensor, list[_TurnRows]] = {region.exit: [_TurnRows(rows, writes)]}
    held: dict[Tensor, _TurnRows] = {}
    inputs: dict[tuple[Operator, int], tuple[Tensor, _TurnRows]] = {}
    makes: dict[Operator, Part] = {}
    for operator, way in reversed(region.steps):
        output = operator.outputs[0]
        held[output] = wanted = _hull(asked[output], output.shape[1])
        made = _computed(way.rows, wanted)
        makes[operator] = _part_of(wanted, made)
        needed = _needed(way.rows, made)
        if needed.count < 1:
            return f"a turn of '{output.name}' would be padding only"
        for slot in way.sliced:
            tensor = operator.inputs[slot]
            if tensor is not None:
                inputs[operator, slot] = tensor, needed
                asked.setdefault(tensor, []).append(needed)
    reads = {
        key: _part_of(window, held.get(tensor, _TurnRows(tensor.shape[1], (0,) * len(writes))))
        for key, (tensor, window) in inputs.items()
    }
    return Clamped(rows, writes, reads, makes, {tensor: window.starts for tensor, window in held.items()})


def _computed(axis: Axis, wanted: _TurnRows) -> _TurnRows:
    """The rows to compute for those that are wanted: a few more where a window can meet padding."""
    past = (axis.outputs - 1) * axis.stride - axis.before + axis.reach - axis.size
    above, below = -(-axis.before // axis.stride), max(0, -(-past // axis.stride))  # whose window reaches beyond it
    if above == below == 0:
        return wanted
    count = min(axis.outputs, wanted.count + above + below)
    starts = tuple(max(0, min(start - above, axis.outputs - count)) for start in wanted.starts)
    return _TurnRows(count, starts)


def _needed(axis: Axis, made: _TurnRows) -> _TurnRows:
    """The input rows from which exactly these output rows are computed, with the padding of the whole."""
    count = axis.size - (axis.outputs - made.count) * axis.stride
    starts = made.starts if axis.stride == 1 else tuple(start * axis.stride for start in made.starts)
    return _TurnRows(count, starts)


def _hull(windows: Sequence[_TurnRows], height: int) -> _TurnRows:
    """The rows that all of them are in; a single window is within the height already."""
    if len(windows) == 1:
        return windows[0]
    lowest = [min(starts) for starts in zip(*(window.starts for window in windows), strict=True)]
    ends = [max(turn) for turn in zip(*([s + w.count for s in w.starts] for w in windows), strict=True)]
    count = max(end - start for start, end in zip(lowest, ends, strict=True))
    return _TurnRows(count, tuple(min(start, height - count) for start in lowest))


def _part_of(part: _TurnRows, whole: _TurnRows) -> Part:
    if part.starts is whole.starts:
        return Part(part.count, whole.count, (0,) * len(part.starts))
    starts = tuple(start - first for start, first in zip(part.starts, whole.starts, strict=True))
    return Part(part.count, whole.count, starts)
