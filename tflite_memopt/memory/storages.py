"""Storages: runs of bytes that tensors are views of.

Where a tensor lies in its storage is a fixed distance. Views of one storage hold the same bytes wherever they overlap,
so they may do so whether or not an operator links them directly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..ir.model import Tensor
from ..kernels.relations.model import KernelReuse


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
