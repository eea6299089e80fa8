"""The slow, obvious checker of assignments. It shares no code with any strategy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ...errors import InfeasibleError
from ...graph.interval import intersect
from ..problem import Item


def check_objects(items: Sequence[Item], objects: Sequence[int]) -> None:
    """Raise InfeasibleError unless each item has an object, numbered without gaps, that no other uses meanwhile."""
    if len(objects) != len(items):
        raise InfeasibleError(f"{len(objects)} objects are given for {len(items)} items")
    if set(objects) != set(range(len(set(objects)))):
        raise InfeasibleError(f"objects must be numbered from 0 on without gaps, not {sorted(set(objects))}")
    users: dict[int, list[int]] = {}
    for index, number in enumerate(objects):
        users.setdefault(number, []).append(index)
    for number, indices in users.items():
        for a, b in combinations(indices, 2):
            if intersect(items[a], items[b]):
                raise InfeasibleError(f"items {a} and {b} are alive at the same time and share object {number}")
