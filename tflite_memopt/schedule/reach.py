"""Ancestors and descendants: which operators must run before and after each one, directly or not."""

from __future__ import annotations

from dataclasses import dataclass

from .rpo import rpo_order
from .wiring import Wiring, bits


@dataclass(frozen=True)
class Reach:
    """``before[v]`` and ``after[v]`` are the sets of operators that any order runs before and after operator v.

    All others are parallel to v. ``order`` is one schedule, and ``position[v]`` the place of v in it.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    order: tuple[int, ...]
    position: tuple[int, ...]


def reach(wiring: Wiring) -> Reach:
    """The closure of the wiring. O(operators + edges), but for the width of the sets."""
    order = rpo_order(wiring)
    before, after = list(wiring.needs), list(wiring.feeds)
    for v in order:
        for u in bits(wiring.needs[v]):
            before[v] |= before[u]
    for v in reversed(order):
        for w in bits(wiring.feeds[v]):
            after[v] |= after[w]
    position = tuple(sorted(range(len(order)), key=order.__getitem__))
    return Reach(tuple(before), tuple(after), order, position)
