"""Items that must be placed together, as both searches of ``exact`` are told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import gcd

from ..bounds import section_items
from ..certificates import SectionBound
from ..compiled import Tables
from ..problem import Item, PlanProblem

Entry = tuple[int, int, int]
"""(other, low, high): the difference of the offsets may not lie in the open interval; positions in the group."""


@dataclass(frozen=True)
class ItemGroup:
    """Items by their position in the problem (``indices``), and what is known of them by their position in the group.

    ``sections`` are bounds, with the positions of their items in ``section_items``; item i is alive in the sections
    ``[first[i], last[i])``. ``alignments`` are 1 where offsets are aligned anyway. All arenas are multiples of
    ``grain`` bytes. ``has_relations``: some of the items may share bytes.
    """

    indices: tuple[int, ...]
    items: tuple[Item, ...]
    alignments: tuple[int, ...]
    conflicts: list[list[Entry]]
    first: list[int]
    last: list[int]
    sections: list[SectionBound]
    section_items: list[list[int]]
    grain: int
    has_relations: bool

    @property
    def item_tables(self) -> Tables:
        """Size, alignment and given offset (or -1) of each item, and its conflicts."""
        return {
            "size": [item.size for item in self.items],
            "alignment": list(self.alignments),
            "fixed": [-1 if item.offset is None else item.offset for item in self.items],
            "conflict_from": starts_of(self.conflicts),
            "conflict_other": [other for own in self.conflicts for other, _, _ in own],
            "conflict_low": [low for own in self.conflicts for _, low, _ in own],
            "conflict_high": [high for own in self.conflicts for _, _, high in own],
            "row_from": starts_of(self.section_items),
            "row_item": [i for own in self.section_items for i in own],
        }


def time_groups(items: Sequence[Item]) -> list[list[int]]:
    """Positions of the items that have bytes, parted at the times that no item is alive across."""
    found: list[list[int]] = []
    end = 0
    for index in sorted((i for i, item in enumerate(items) if item.size), key=lambda i: items[i].start):
        if not found or items[index].start >= end:
            found.append([])
            end = items[index].end
        found[-1].append(index)
        end = max(end, items[index].end)
    return found


def group_of(problem: PlanProblem, indices: Sequence[int]) -> ItemGroup:
    """The group of these items. O(pairs alive together + items alive in each section)."""
    items = [problem.items[i] for i in indices]
    conflicts = _conflicts(problem, indices)
    step = gcd(*(high for own in conflicts for _, _, high in own), *(item.offset or 0 for item in items))
    alignments = [1 if step % item.alignment == 0 else item.alignment for item in items]
    first, last, alive = _sections(items)
    sections = [section_items(problem, [indices[k] for k in section]) for section in alive]
    position = {index: k for k, index in enumerate(indices)}
    return ItemGroup(
        tuple(indices),
        tuple(items),
        tuple(alignments),
        conflicts,
        first,
        last,
        sections,
        [[position[index] for index in section.items] for section in sections],
        gcd(step, *(a for a in alignments if a > 1), *(item.size for item in items)),
        any(index in problem.permissions for index in indices),
    )


def starts_of(lists: Sequence[Sequence[object]]) -> list[int]:
    """Where each list begins when all are one, and the end."""
    return [0, *accumulate(map(len, lists))]


def _conflicts(problem: PlanProblem, indices: Sequence[int]) -> list[list[Entry]]:
    """Conflicts inside the group, by position, rounded to what differences of aligned offsets can be."""
    position = {index: k for k, index in enumerate(indices)}
    alignments = [item.alignment for item in problem.items]
    found: list[list[Entry]] = []
    for index in indices:
        own: list[Entry] = []
        # A permission leaves several parts, or one that rounding may close.
        parts: dict[int, list[tuple[int, int]]] = {other: [] for other in problem.permissions.get(index, ())}
        for other, low, high in problem.conflicts[index]:
            unit = gcd(alignments[index], alignments[other])
            low, high = low // unit * unit, -(-high // unit) * unit
            if other in parts:
                parts[other].append((low, high))
            else:
                own.append((position[other], low, high))
        for other, forbidden in parts.items():
            unit = gcd(alignments[index], alignments[other])
            own += [(position[other], low, high) for low, high in _merged(forbidden) if high - low > unit]
        found.append(sorted(own))
    return found


def _merged(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending open intervals as few as possible: two that overlap become one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def _sections(items: Sequence[Item]) -> tuple[list[int], list[int], list[list[int]]]:
    """First section of each item, end of its sections, and the items of each section: time cut at births and deaths."""
    times = sorted({item.start for item in items} | {item.end for item in items})
    rank = {time: position for position, time in enumerate(times)}
    first, last = [rank[item.start] for item in items], [rank[item.end] for item in items]
    alive: list[list[int]] = [[] for _ in times[:-1]]
    for index in range(len(items)):
        for section in range(first[index], last[index]):
            alive[section].append(index)
    return first, last, alive
