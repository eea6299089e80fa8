"""Where a tensor's values come from: which range of which tensor of the model as it was read.

A rewrite that makes a tensor in pieces says so with :func:`piece_of`. It is kept beside the model and never written to
the file: the proof of equality compares each piece with its range of the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Graph, Tensor


@dataclass(frozen=True)
class Origin:
    """The values are those of tensor ``name`` of the original, from ``start`` on, one index for each axis."""

    name: str
    start: tuple[int, ...]


def origin_of(tensor: Tensor) -> Origin:
    """The recorded origin, or the whole of the tensor of the same name."""
    return tensor.origin or Origin(tensor.name, (0,) * len(tensor.shape))


def piece_of(whole: Tensor, axis: int, start: int) -> Origin:
    """The origin of a piece of ``whole`` that begins at index ``start`` of an axis; pieces of pieces add up."""
    found = origin_of(whole)
    axis %= max(1, len(found.start))
    starts = tuple(at + start * (number == axis) for number, at in enumerate(found.start))
    return Origin(found.name, starts)


def pieces_in(graph: Graph) -> dict[str, Origin]:
    """The recorded origins by tensor name."""
    return {tensor.name: tensor.origin for tensor in graph.tensors if tensor.origin is not None}
