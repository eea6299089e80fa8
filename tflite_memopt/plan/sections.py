"""Which items are alive together: sections of time, by a sweep over births and deaths."""

from __future__ import annotations

from collections.abc import Sequence

from .problem import Item


def maximal_sections(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(first scope, bytes alive) of each maximal section: what is alive at any other time is a part of one."""
    changes: dict[int, tuple[int, int]] = {}
    for item in items:
        born, gone = changes.get(item.start, (0, 0))
        changes[item.start] = born + item.size, gone
        born, gone = changes.get(item.end, (0, 0))
        changes[item.end] = born, gone + item.size
    found: list[tuple[int, int]] = []
    breadth, latest_birth = 0, None
    for scope, (born, gone) in sorted(changes.items()):
        if gone and latest_birth is not None:
            found.append((latest_birth, breadth))
            latest_birth = None
        breadth += born - gone
        if born:
            latest_birth = scope
    return found
