"""Where a tensor's values come from: which range of which tensor of the model as it was read.

A rewrite that makes a tensor in pieces says so with :func:`piece_of`. It is kept beside the model and never written to
the file: the verification compares each piece with its range of the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Graph, Model, Tensor


@dataclass(frozen=True)
class Origin:
    """The values are those of tensor ``name`` of the original, from ``start`` on, one index for each axis.

    In the body of a loop they may be others in every turn: in turn t they begin ``turns[t]`` rows (axis 1) further
    down. That is said of ``height`` rows alone, from ``start`` on: those above and below have any values.
    """

    name: str
    start: tuple[int, ...]
    turns: tuple[int, ...] = ()
    height: int = 0


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


def rows_in_turns(whole: Tensor, first: tuple[int, ...]) -> Origin | None:
    """The origin of a tensor of a loop's body that has rows of ``whole``, in turn t from row ``first[t]`` on.

    None where they are no rows of one image of the original.
    """
    found = origin_of(whole)
    return Origin(found.name, found.start, first, whole.shape[1]) if len(found.start) > 1 else None


def pieces_in_loops(model: Model) -> dict[int, dict[str, Origin]]:
    """The recorded origins by tensor name, for each subgraph but the entry graph, by its number."""
    return {number: pieces_in(graph) for number, graph in enumerate(model.graphs) if number}
