"""Conflicts: for each item the items that it is alive with, and the differences of offsets that they forbid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .problem import PlanProblem

Conflict = tuple[int, int, int]
"""(other, low, high): ``offset - offset[other]`` must not lie in the open interval (low, high), in bytes."""


def conflicts_of(problem: PlanProblem) -> list[list[Conflict]]:
    """One list for each item; a pair whose relation splits the forbidden range is there once for each part.

    An item of no bytes has none. O(pairs alive together), and as much memory.
    """
    items, permissions = problem.items, problem.permissions
    found: list[list[Conflict]] = [[] for _ in items]
    alive: list[int] = []
    for index in sorted(range(len(items)), key=lambda i: items[i].start):
        item = items[index]
        if item.size == 0:
            continue
        alive = [other for other in alive if items[other].end > item.start]
        related = permissions.get(index, {})
        for other in alive:
            for low, high in related[other] if other in related else ((-item.size, items[other].size),):
                found[index].append((other, low, high))
                found[other].append((index, -high, -low))
        alive.append(index)
    return found


def meetings(problem: PlanProblem) -> int:
    """Pairs of items that are alive together. O(n log n)."""
    births = sorted(item.start for item in problem.items)
    deaths = sorted(item.end for item in problem.items)
    count, gone = 0, 0
    for rank, birth in enumerate(births):
        while deaths[gone] <= birth:
            gone += 1
        count += rank - gone
    return count


def neighbours_of(conflicts: Sequence[Sequence[Conflict]]) -> list[list[int]]:
    """For each item the items that it conflicts with, each of them once."""
    return [list(dict.fromkeys(other for other, _, _ in own)) for own in conflicts]
