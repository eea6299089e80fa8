"""What the exact planner searches over: one group of items as arrays, in the largest unit that keeps every offset.

Time is cut into sections between consecutive births and deaths; inside a section the same items are alive.
Source: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
(ASPLOS 2023), for sections and for solving stretches of time that nothing crosses one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ..problem import Item

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """Items that must be placed together. All sizes and offsets are multiples of ``unit`` bytes.

    ``padded`` rounds sizes up to the alignment that all items share: nothing can start inside the padding, but
    the padding of the topmost item costs nothing, so a section may exceed the capacity by ``spare``.
    Item i is alive in the sections ``[first[i], last[i])``; section s holds
    ``members[starts[s]:starts[s + 1]]`` and ``load[s]`` padded units.
    """

    unit: int
    size: Ints
    padded: Ints
    alignment: Ints
    fixed: Ints
    first: Ints
    last: Ints
    members: Ints
    starts: Ints
    load: Ints
    spare: Ints
    meets: tuple[Ints, ...]

    @property
    def lower_bound(self) -> int:
        """Units that no placement goes below: the heaviest section, the highest given place, the largest item."""
        given = self.fixed >= 0
        highest = int((self.fixed + self.size)[given].max(initial=0))
        return max(int((self.load - self.spare).max()), highest, int(self.size.max()))


def build(items: Sequence[Item]) -> Group:
    """Arrays for a group of items with positive sizes and lifetimes. O(n^2)."""
    unit, alignment = _unit_and_alignment(items)
    common = gcd(*(int(a) for a in alignment))
    size = np.array([item.size // unit for item in items], dtype=np.int64)
    padded = -(-size // common) * common
    times = sorted({item.start for item in items} | {item.end for item in items})
    rank = {time: position for position, time in enumerate(times)}
    first = np.array([rank[item.start] for item in items], dtype=np.int64)
    last = np.array([rank[item.end] for item in items], dtype=np.int64)
    alive = [np.flatnonzero((first <= s) & (last > s)) for s in range(len(times) - 1)]
    overlaps = [np.flatnonzero((first < last[i]) & (first[i] < last)) for i in range(len(items))]
    return Group(
        unit=unit,
        size=size,
        padded=padded,
        alignment=alignment,
        fixed=np.array([-1 if i.offset is None else i.offset // unit for i in items], dtype=np.int64),
        first=first,
        last=last,
        members=np.concatenate(alive),
        starts=np.cumsum([0, *(len(a) for a in alive[:-1])]),
        load=np.array([padded[a].sum() for a in alive], dtype=np.int64),
        spare=np.array([(padded - size)[a].max() for a in alive], dtype=np.int64),
        meets=tuple(others[others != i] for i, others in enumerate(overlaps)),
    )


def groups(items: Sequence[Item]) -> list[list[int]]:
    """Positions of the items, parted at the times that no item is alive across."""
    found: list[list[int]] = []
    end = 0
    for index in sorted(range(len(items)), key=lambda i: items[i].start):
        if not found or items[index].start >= end:
            found.append([])
            end = items[index].end
        found[-1].append(index)
        end = max(end, items[index].end)
    return found


def _unit_and_alignment(items: Sequence[Item]) -> tuple[int, Ints]:
    """The unit in bytes, and alignments in units; one that the unit fulfils by itself becomes 1."""
    step = gcd(*(item.size for item in items), *(item.offset or 0 for item in items))
    unit = gcd(step, *(item.alignment for item in items if step % item.alignment))
    alignments = [1 if step % item.alignment == 0 else item.alignment // unit for item in items]
    return unit, np.array(alignments, dtype=np.int64)
