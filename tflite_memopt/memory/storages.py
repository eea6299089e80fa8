"""Tensors as bytes: *storages*, that tensors are views of, and *atoms*, the bytes of one that live and die together.

Where a tensor lies in its storage is a fixed distance. Views of one storage hold the same bytes wherever they overlap,
so they may do so whether or not an operator links them directly.

For the scheduler a storage is cut at all ends of its tensors. Each piece is alive from the operator that first writes
it to the last reader of any tensor that lies on it, so that it is an ordinary tensor to a scheduler, and bytes that
several tensors share are counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..graph.alignment import aligned
from ..ir.model import Operator, Tensor
from ..kernels.relations import KernelReuse


@dataclass(frozen=True)
class Place:
    """Where a tensor lies: at ``start`` bytes in the storage that is named by its first tensor."""

    storage: Tensor
    start: int


def storages(reuses: Iterable[KernelReuse]) -> dict[Tensor, Place]:
    """The place of each tensor that is a view or has one.

    A view is left out where the bytes would contradict another one's: the parts of two concatenations that share an
    input lie at the same place and differ.
    """
    places: dict[Tensor, Place] = {}
    members: dict[Tensor, list[Tensor]] = {}
    for reuse in sorted(reuses, key=_is_cut):
        if reuse.kind != "view":
            continue
        for tensor in (reuse.input, reuse.output):
            if tensor not in places:
                places[tensor] = Place(tensor, 0)
                members[tensor] = [tensor]
        kept, moved = places[reuse.output], places[reuse.input]
        if kept.storage is moved.storage:
            continue
        shift = kept.start + reuse.distance - moved.start
        theirs = {tensor: (places[tensor].start + shift, tensor.nbytes) for tensor in members[moved.storage]}
        ours = {tensor: (places[tensor].start, tensor.nbytes) for tensor in members[kept.storage]}
        linked = _common(theirs[reuse.input], ours[reuse.output])
        if any(not _within(_common(x, y), linked) for x in theirs.values() for y in ours.values()):
            continue
        for tensor in members.pop(moved.storage):
            places[tensor] = Place(kept.storage, places[tensor].start + shift)
            members[kept.storage].append(tensor)
    return places


def _common(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Half-open range that two (start, size) have in common; empty when its end is not above its start."""
    return max(first[0], second[0]), min(first[0] + first[1], second[0] + second[1])


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner[1] <= inner[0] or (outer[0] <= inner[0] and inner[1] <= outer[1])


def _is_cut(reuse: KernelReuse) -> bool:
    """Whether the output is a part of the input.

    Where not all views can hold, those that join parts come first: a part that is copied out of a larger tensor is
    alive with that alone, parts that are copied into one are all alive with it at once.
    """
    return reuse.input.nbytes > reuse.output.nbytes


@dataclass(frozen=True)
class Atoms:
    """``sizes[a]`` in bytes; ``of[t]``: the atoms that tensor t lies on; ``source[a]``: the tensor that fills it."""

    sizes: tuple[int, ...]
    of: Mapping[Tensor, tuple[int, ...]]
    source: tuple[Tensor, ...]


def cut_into_atoms(tensors: Sequence[Tensor], reuses: Mapping[Operator, tuple[KernelReuse, ...]]) -> Atoms:
    """The atoms of the head's tensors under the views among ``reuses``."""
    views = [reuse for each in reuses.values() for reuse in each if reuse.kind == "view"]
    places = storages(views)
    copied_from = {
        (reuse.output, reuse.input) for reuse in views if _is_kept(places[reuse.input], places[reuse.output], reuse)
    }
    sizes: list[int] = []
    source: list[Tensor] = []
    of: dict[Tensor, list[int]] = {tensor: [] for tensor in tensors}
    by_storage: dict[Tensor, list[tuple[int, Tensor]]] = {}
    for tensor in tensors:
        place = places.get(tensor, Place(tensor, 0))
        by_storage.setdefault(place.storage, []).append((place.start, tensor))
    for members in by_storage.values():
        ends = sorted({end for start, t in members for end in (start, start + aligned(t.nbytes))})
        for low, high in pairwise(ends):
            covering = [t for start, t in members if start <= low and high <= start + aligned(t.nbytes)]
            if not covering:
                continue
            for tensor in covering:
                of[tensor].append(len(sizes))
            sizes.append(high - low)
            source.append(_source(covering, copied_from))
    return Atoms(tuple(sizes), {tensor: tuple(found) for tensor, found in of.items()}, tuple(source))


def _is_kept(input_place: Place, output_place: Place, reuse: KernelReuse) -> bool:
    """Whether the storages were laid out as this view would have it."""
    return input_place.storage is output_place.storage and input_place.start - output_place.start == reuse.distance


def _source(covering: Sequence[Tensor], copied_from: set[tuple[Tensor, Tensor]]) -> Tensor:
    """The tensor of which all others are copies, directly or in steps."""
    return next(t for t in covering if not any((t, other) in copied_from for other in covering))
