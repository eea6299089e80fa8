"""Tensors as the scheduler sees them: *atoms*, the bytes that live and die together.

Where tensors are views of one storage, the storage is cut at all their ends. Each piece is alive from the operator
that first writes it to the last reader of any tensor that lies on it, so that it is an ordinary tensor to a
scheduler, and bytes that several tensors share are counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..graph.alignment import aligned
from ..ir.model import Operator, Tensor
from ..kernels.relations.model import KernelReuse
from .storages import Place, storages


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
