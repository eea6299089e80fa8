"""Which tensor of one model holds the values of which tensor, or range of a tensor, of another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..ir.model import Graph, Model, Origin, Tensor
from .adapter import Array

Pieces = Mapping[str, Origin]
"""By name of a tensor of the optimized model: the range of an original tensor that it holds."""


@dataclass(frozen=True)
class Link:
    """Tensor ``after`` of the optimized model holds a range of tensor ``before`` of the original's entry graph.

    Both are positions, that of ``after`` among the tensors of all subgraphs. ``start``: the range's first index along
    each axis; None for the whole tensor, in whatever shape. ``turns``: in a loop, the rows (axis 1) by which it moves
    on in every turn; the values of all turns then follow one another along the first axis. ``height``: how many
    rows of the original they may be.
    """

    before: int
    after: int
    start: tuple[int, ...] | None = None
    turns: tuple[int, ...] = ()
    height: int = 0

    def range_of(self, original: Array, piece: Array) -> Array | None:
        """The values of the original that the piece must have; None when it does not lie within."""
        whole: Array = original.reshape(_as_cut(original.shape, piece.shape))
        if self.turns:
            return self._in_turns(whole, piece)
        if self.start is None:
            return whole.reshape(piece.shape) if whole.size == piece.size else None
        if len(self.start) != whole.ndim or piece.ndim != whole.ndim:
            return None
        ends = [at + size for at, size in zip(self.start, piece.shape, strict=True)]
        if any(end > size for end, size in zip(ends, whole.shape, strict=True)):
            return None
        return whole[tuple(slice(at, end) for at, end in zip(self.start, ends, strict=True))]

    def _in_turns(self, whole: Array, piece: Array) -> Array | None:
        """Rows that stand for none of the original are as they are."""
        count, start = len(self.turns), self.start
        if start is None or len(start) != whole.ndim or piece.ndim != whole.ndim or piece.shape[0] % count:
            return None
        wanted: Array = piece.copy().reshape(count, piece.shape[0] // count, *piece.shape[1:])
        sizes = wanted.shape[1:]
        if any(at + size > room for at, size, room in zip(start[2:], sizes[2:], whole.shape[2:], strict=True)):
            return None
        rest = tuple(slice(at, at + size) for at, size in zip(start[2:], sizes[2:], strict=True))
        for turn, moved in enumerate(self.turns):
            first = start[1] + moved
            low, high = max(start[1], first), min(start[1] + self.height, first + sizes[1])
            if low < high:
                place = (slice(None), slice(low, high), *rest)
                wanted[turn][:, low - first : high - first] = whole[place]
        wanted.shape = piece.shape
        return wanted


def links_in_loops(before: Graph, after: Model, pieces: Mapping[int, Pieces]) -> tuple[Link, ...]:
    """All pairs of a tensor of the original's entry graph and one in a loop's body with its values, by the record."""
    known = _by_name(before.tensors)
    base, links = 0, []
    for number, graph in enumerate(after.graphs):
        for index, tensor in enumerate(graph.tensors):
            origin = pieces.get(number, {}).get(tensor.name)
            found = None if origin is None else known.get(origin.name)
            if origin is not None and found is not None and found[1].dtype is tensor.dtype:
                start = origin.start if origin.turns else _start(origin, found[1], tensor)
                links.append(Link(found[0], base + index, start, origin.turns, origin.height))
        base += len(graph.tensors)
    return tuple(links)


def links_between(before: Graph, after: Graph, pieces: Pieces) -> tuple[Link, ...]:
    """All pairs of tensors of the entry graphs whose values must be the same, in the order of ``after``'s tensors.

    By the recorded pieces first, else by name; a name that a model has twice stands for nothing, and so does a tensor
    of another element type.
    """
    known, names = _by_name(before.tensors), _unique(after.tensors)
    links = []
    for index, tensor in enumerate(after.tensors):
        origin = pieces.get(tensor.name)
        if origin is None and tensor.name not in names:
            continue
        found = known.get(tensor.name if origin is None else origin.name)
        if found is None or found[1].dtype is not tensor.dtype:
            continue
        link = Link(found[0], index, _start(origin, found[1], tensor))
        if _fits(link, found[1], tensor):
            links.append(link)
    return tuple(links)


def untouched_links(links: Sequence[Link], graph: Graph, approximated: Sequence[str]) -> tuple[Link, ...]:
    """The links whose tensor of the original depends on none of the ``approximated`` ones: these stay the same bits.

    A name that the original does not have could stand for anything: then no link is left but those of graph inputs.
    """
    named = {tensor.name: tensor for tensor in graph.tensors}
    if any(name not in named for name in approximated):
        inputs = {id(tensor) for tensor in graph.inputs}
        return tuple(link for link in links if id(graph.tensors[link.before]) in inputs)
    reached = {id(named[name]) for name in approximated}
    for operator in graph.operators:
        if any(id(tensor) in reached for tensor in operator.present_inputs()):
            reached |= {id(tensor) for tensor in operator.outputs}
    return tuple(link for link in links if id(graph.tensors[link.before]) not in reached)


def _start(origin: Origin | None, whole: Tensor, piece: Tensor) -> tuple[int, ...] | None:
    return None if origin is None or (not any(origin.start) and whole.shape == piece.shape) else origin.start


def _fits(link: Link, whole: Tensor, piece: Tensor) -> bool:
    if link.start is None:
        return whole.elements == piece.elements
    shape = _as_cut(whole.shape, piece.shape)
    same_rank = len(link.start) == len(shape) == len(piece.shape)
    return same_rank and all(at + size <= room for at, size, room in zip(link.start, piece.shape, shape, strict=True))


def _as_cut(whole: tuple[int, ...], piece: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a whole when pieces of it are cut: a sequence whose pieces have one column was laid
    along H.

    Its bytes keep their order (``rewrite/sequences_along_h.py``).
    """
    ones, length = whole[:-2], whole[-2:-1]
    is_sequence = len(whole) in (2, 3, 4) and set(ones) <= {1} and length > (1,)
    return (1, *length, 1, *whole[-1:]) if is_sequence and len(piece) == 4 and piece[2] == 1 else whole


def _by_name(tensors: Iterable[Tensor]) -> dict[str, tuple[int, Tensor]]:
    every = list(tensors)
    names = _unique(every)
    return {tensor.name: (index, tensor) for index, tensor in enumerate(every) if tensor.name in names}


def _unique(tensors: Iterable[Tensor]) -> set[str]:
    counts = Counter(tensor.name for tensor in tensors)
    return {name for name, count in counts.items() if count == 1 and name}
