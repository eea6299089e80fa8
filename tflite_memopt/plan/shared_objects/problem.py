"""The shared-objects problem: give each item a whole object of which it is the only user while it is alive.

An object is as large as its largest item; what is to be small is the sum of the objects' sizes in bytes. Items
are those of the offset problem; their alignment, given offset and relations play no part.
Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..problem import Item

Items = tuple[Item, ...]
ObjectStrategy = Callable[[Items], tuple[int, ...]]
"""What a strategy file provides: the object (0, 1, ...) of each item. ``methods.solve`` checks and wraps it."""


@dataclass(frozen=True)
class Assignment:
    """``objects[i]`` is item i's object and ``sizes[k]`` the bytes of object k, ``total_bytes`` in all.

    ``lower_bound`` is the sum of positional maxima; ``optimal`` says that the two are equal.
    """

    objects: tuple[int, ...]
    sizes: tuple[int, ...]
    total_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float


def object_sizes(items: Sequence[Item], objects: Sequence[int]) -> tuple[int, ...]:
    """Bytes of each object: its largest item."""
    sizes = [0] * (max(objects, default=-1) + 1)
    for item, number in zip(items, objects, strict=True):
        sizes[number] = max(sizes[number], item.size)
    return tuple(sizes)
