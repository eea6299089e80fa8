"""From items and relations to the tables of the tree, for items that must be placed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from math import gcd, lcm

from ...graph.alignment import aligned
from ..bounds import section_items
from ..compiled import Tables
from ..problem import Item, PlanProblem
from .settings import TreeSettings

Entry = tuple[int, int, int]
"""(other, low, high): the difference of the offsets may not lie in the open interval."""


@dataclass(frozen=True)
class TreeGroup:
    """Items by their position in the problem, their tables, and the bytes by which arenas can differ (``grain``)."""

    indices: tuple[int, ...]
    tables: Tables
    switches: dict[str, int]
    sizes: tuple[int, ...]
    grain: int
    orders: dict[str, list[int]]


@dataclass(frozen=True)
class _Count:
    """How an item counts in a row: its padded bytes, and what it may share with others that count there."""

    row: int
    nbytes: int
    shares: list[tuple[int, int]]


@dataclass(frozen=True)
class _SectionRows:
    counts: list[list[_Count]]
    items: list[list[int]]
    load: list[int]
    spare: list[int]


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


def build(problem: PlanProblem, indices: Sequence[int], settings: TreeSettings) -> TreeGroup:
    """Tables for a group of items. O(pairs alive together + items alive in each section)."""
    items = [problem.items[i] for i in indices]
    entries = _entries(problem, indices)
    step = gcd(*(high for own in entries for _, _, high in own), *(item.offset or 0 for item in items))
    alignments = [1 if step % item.alignment == 0 else item.alignment for item in items]
    first, last, alive = _sections(items)
    rows = _rows(problem, indices, alive)
    ends = [high for own in entries for _, _, high in own]
    # An item that is aligned further up may hold one that it rests on: then supports go round in circles.
    is_canonical = settings.canonical and (max(alignments) == 1 or min(ends, default=1) > 0)
    grid = gcd(step, *(a for a in alignments if a > 1))
    if not is_canonical and grid:
        alignments = [lcm(alignment, grid) for alignment in alignments]
    tables: Tables = {
        "size": [item.size for item in items],
        "alignment": alignments,
        "fixed": [-1 if item.offset is None else item.offset for item in items],
        "first": first,
        "last": last,
        "is_simple": [int(_is_simple(own)) for own in entries],
        "conflict_from": _starts(entries),
        "conflict_other": [other for own in entries for other, _, _ in own],
        "conflict_low": [low for own in entries for _, low, _ in own],
        "conflict_high": ends,
        "count_from": _starts(rows.counts),
        "count_row": [count.row for own in rows.counts for count in own],
        "count_bytes": [count.nbytes for own in rows.counts for count in own],
        "share_from": _starts([count.shares for own in rows.counts for count in own]),
        "share_other": [other for own in rows.counts for count in own for other, _ in count.shares],
        "share_bytes": [nbytes for own in rows.counts for count in own for _, nbytes in count.shares],
        "row_from": _starts(rows.items),
        "row_item": [i for own in rows.items for i in own],
        "row_load": rows.load,
        "row_spare": rows.spare,
    }
    switches = {
        "goes_below": int(min(ends, default=0) < 0),
        "canonical": int(is_canonical),
        "decomposes": int(settings.decomposes),
        "ranks_anew": int(settings.ranks_anew),
        "infers": int(settings.infers),
        "propagates": int(settings.propagates),
        "changes": 16 * len(items),
        "reserve": 2 * 16 * len(items) + 4 * len(items) + 4 * max(map(len, entries)) + 16,
    }
    grain = gcd(grid, *(item.size for item in items))
    return TreeGroup(
        tuple(indices), tables, switches, tuple(item.size for item in items), grain, _orders(items, settings)
    )


def _starts(lists: Sequence[Sequence[object]]) -> list[int]:
    return [0, *accumulate(map(len, lists))]


def _entries(problem: PlanProblem, indices: Sequence[int]) -> list[list[Entry]]:
    """Conflicts inside the group, rounded to what differences of aligned offsets can be."""
    position = {index: k for k, index in enumerate(indices)}
    found: list[list[Entry]] = []
    for index in indices:
        own: list[Entry] = []
        for other, parts in groupby(problem.conflicts[index], key=lambda conflict: conflict[0]):
            unit = gcd(problem.items[index].alignment, problem.items[other].alignment)
            rounded = [(low // unit * unit, aligned(high, unit)) for _, low, high in parts]
            own += [(position[other], low, high) for low, high in _merged(rounded) if high - low > unit]
        found.append(own)
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


def _is_simple(entries: Sequence[Entry]) -> bool:
    """Whether every neighbour forbids one interval around its own offset."""
    return all(low < 0 < high for _, low, high in entries) and all(a != b for (a, _, _), (b, _, _) in pairwise(entries))


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


def _rows(problem: PlanProblem, indices: Sequence[int], alive: Sequence[Sequence[int]]) -> _SectionRows:
    """One row for each section."""
    position = {index: k for k, index in enumerate(indices)}
    rows = _SectionRows([[] for _ in indices], [], [], [])
    for number, section in enumerate(alive):
        bound = section_items(problem, [indices[k] for k in section])
        counts = {i: _Count(number, nbytes, []) for i, nbytes in zip(bound.items, bound.padded, strict=True)}
        for a, b, nbytes in bound.shared:
            counts[a].shares.append((position[b], nbytes))
            counts[b].shares.append((position[a], nbytes))
        for index, count in counts.items():
            rows.counts[position[index]].append(count)
        rows.items.append([position[index] for index in bound.items])
        rows.load.append(bound.nbytes + bound.spare)
        rows.spare.append(bound.spare)
    return rows


def _orders(items: Sequence[Item], settings: TreeSettings) -> dict[str, list[int]]:
    """For each ordering the items' ranks by life and area alone, highest first; equal ones share a rank."""
    life = [item.end - item.start for item in items]
    area = [(item.end - item.start) * item.size for item in items]
    found = {}
    for ordering in settings.orderings:
        letters = [letter for letter in ordering if letter != "T"]
        keys = [tuple({"W": life[i], "A": area[i]}[letter] for letter in letters) for i in range(len(items))]
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        found[ordering] = [ranks[key] for key in keys]
    return found
