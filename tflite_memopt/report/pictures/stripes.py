"""Rows of the chart of what runs in parts: the parts of each tensor of the original, where they lie in it, and when.

rows            [1, 24, 6, 24]  of  [1, 96, 6, 24]      stripes
positions       [1, 16, 1, 16]  of  [1, 1, 4000, 16]    stripes of a sequence, laid along H for them
channels        [1, 24, 6, 24]  of  [1, 24, 6, 192]     tiles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...memory.figures import ArenaMap, PlacedTensor
from ..words import short_name
from .rows import SHIFT, Row

_MOVES = frozenset({"SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "PAD", "PADV2", "CONCATENATION", "RESHAPE"})
"""Operators that compute nothing: they cut a part out, or put parts together."""
_IMAGE = 4
_ROWS = 1
_WIDTH = 2


@dataclass(frozen=True)
class _Cut:
    """A part holds ``count`` of the ``size`` rows, positions or channels (``what``) of a tensor, from ``first`` on.

    ``first``: an entry a turn in a loop, one elsewhere.
    """

    what: str
    first: Sequence[int]
    count: int
    size: int


def stripe_rows(before: ArenaMap, after: ArenaMap) -> list[Row]:
    """A row a stripe or tile, and turn of its loop: what of which tensor of the original it makes, and when."""
    parts = list(_parts(before, after))
    layers = list(dict.fromkeys(whole.name for _, whole, _ in parts))
    return [row for part, whole, cut in parts for row in _part(after, part, layers.index(whole.name), whole, cut)]


def _parts(before: ArenaMap, after: ArenaMap) -> Iterator[tuple[PlacedTensor, PlacedTensor, _Cut]]:
    """What is computed of a part of a tensor of the original: the part, that tensor, and how it is cut."""
    wholes: Mapping[str, PlacedTensor] = {tensor.name: tensor for tensor in before.tensors}
    for part in after.tensors:
        whole = wholes.get(part.origin or "")
        if whole is None or part.operator is None or after.steps[part.operator].operator in _MOVES:
            continue
        cut = _cut(part, whole)
        if cut is not None:
            yield part, whole, cut


def _cut(part: PlacedTensor, whole: PlacedTensor) -> _Cut | None:
    """None where the part is no part, or one of another kind than those of this file's picture."""
    at, rank = part.origin_start, len(whole.shape)
    if len(part.shape) == _IMAGE and _is_along_h(part, whole):
        return _in_turns("positions", part, part.shape[_ROWS], whole.shape[rank - 2])
    if len(part.shape) != rank or not rank:
        return None
    if rank == _IMAGE and part.shape[_ROWS] < whole.shape[_ROWS]:
        return _in_turns("rows", part, part.shape[_ROWS], whole.shape[_ROWS])
    if part.shape[-1] < whole.shape[-1]:
        return _Cut("channels", (at[-1],), part.shape[-1], whole.shape[-1])
    return None


def _is_along_h(part: PlacedTensor, whole: PlacedTensor) -> bool:
    """Whether the part has some positions of a sequence, one below the other, which lie in a row in the whole."""
    *outer, length, channels = whole.shape
    is_row = len(whole.shape) > _WIDTH and all(size == 1 for size in outer)
    return is_row and part.shape[_WIDTH:] == (1, channels) and part.shape[_ROWS] < length


def _in_turns(what: str, part: PlacedTensor, count: int, size: int) -> _Cut:
    start = part.origin_start[_ROWS]
    return _Cut(what, [start + turn for turn in part.origin_turns] or [start], count, size)


def _part(after: ArenaMap, part: PlacedTensor, layer: int, whole: PlacedTensor, cut: _Cut) -> Iterator[Row]:
    step, name, turns = after.steps[part.operator or 0], short_name(whole.name), len(cut.first)
    for turn, first in enumerate(cut.first):
        low, high = (min(max(0, place), cut.size) for place in (first, first + cut.count))
        if low == high:
            continue
        begin, width = step.start - SHIFT, (step.end - step.start) / turns
        when = f" in turn {turn + 1} of {turns}" if turns > 1 else ""
        yield {
            "layer": layer,
            "name": name,
            "operator": step.operator,
            "what": cut.what,
            "first": low,
            "last": high,
            "low": layer + 0.1 + 0.8 * low / cut.size,
            "high": layer + 0.1 + 0.8 * high / cut.size,
            "start": begin + turn * width,
            "end": begin + (turn + 1) * width,
            "bytes": part.bytes,
            "said": f"{cut.what} {low} to {high} of the {cut.size} of {name}, {part.bytes:,} bytes of {whole.bytes:,}, "
            f"by operator {part.operator}, {step.operator}{when}",
        }


def layer_rows(stripes: Sequence[Row]) -> list[Row]:
    """One row per tensor of the original that is made in parts, and the time from its first part to its last."""
    return list(_layers(stripes))


def _layers(stripes: Sequence[Row]) -> Iterator[Row]:
    for layer in dict.fromkeys(row["layer"] for row in stripes):
        own = [row for row in stripes if row["layer"] == layer]
        yield {
            "name": own[0]["name"],
            "low": layer + 0.1,
            "high": layer + 0.9,
            "start": min(row["start"] for row in own),
            "end": max(row["end"] for row in own),
            "said": f"{own[0]['name']}, which the original makes whole, in {len(own)} parts of its {own[0]['what']}",
        }
