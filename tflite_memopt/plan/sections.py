"""Which items are alive together: sections of time, by a sweep over births and deaths."""

from __future__ import annotations

from collections.abc import Sequence

from .problem import Item


def maximal_sections(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(first scope, bytes alive) of each maximal section: what is alive at any other time is a part of one."""
    change: dict[int, int] = {}
    for item in items:
        change[item.start] = change.get(item.start, 0) + item.size
        change[item.end] = change.get(item.end, 0) - item.size
    births, deaths = {item.start for item in items}, {item.end for item in items}
    found: list[tuple[int, int]] = []
    breadth, latest_birth = 0, None
    for scope in sorted(change):
        if scope in deaths and latest_birth is not None:
            found.append((latest_birth, breadth))
            latest_birth = None
        breadth += change[scope]
        if scope in births:
            latest_birth = scope
    return found
