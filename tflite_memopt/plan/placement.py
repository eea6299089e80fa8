"""What the strategies that place items one by one share: find an offset among those already placed.

A unit is what is placed at once: mostly a single item, or a rigid group of items (see ``groups``). Each placed
neighbour forbids one open interval of offsets, or a few where a relation permits part of it. A sweep over these
intervals by their lower ends gives every free range of offsets, in-place points included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .permissions import forbidden_differences
from .problem import Item, PlanProblem, Unit

_INFINITY = 2**62
Integers = npt.NDArray[np.int64]


class Placement:
    """Offsets found so far. Items with a given offset are placed first, by the constructor.

    One placement costs a few vector operations over what is placed, however many lifetimes intersect.
    """

    def __init__(self, problem: PlanProblem) -> None:
        self.items = problem.items
        self.offsets: list[int | None] = [None] * len(problem.items)
        self._permissions = forbidden_differences(problem)
        self._count = 0
        # Rows: first byte, end of bytes, start, end of life, index; columns by first byte.
        self._placed = np.zeros((5, len(problem.items)), dtype=np.int64)
        for index, item in enumerate(problem.items):
            if item.offset is not None:
                self.place(((index, 0),), item.offset)

    def place(self, unit: Unit, offset: int) -> None:
        """Fix the offsets of a unit's items, the unit itself being at ``offset`` bytes."""
        for index, shift in unit:
            item, begin = self.items[index], offset + shift
            self.offsets[index] = begin
            position, count = int(np.searchsorted(self._placed[0, : self._count], begin)), self._count
            self._placed[:, position + 1 : count + 1] = self._placed[:, position:count]
            self._placed[:, position] = begin, begin + item.size, item.start, item.end, index
            self._count += 1

    def is_placed(self, index: int) -> bool:
        """Whether an item has its offset."""
        return self.offsets[index] is not None

    def lowest(self, unit: Unit, floor: int = 0) -> int:
        """Lowest offset of the unit, all its items at ``floor`` bytes or above, at which it is free (first fit)."""
        begins, room = self._free_ranges(unit, floor)
        return int(begins[(room >= 0).argmax()])

    def tightest(self, unit: Unit) -> int:
        """Offset in the range that leaves least room to move, else behind the last byte taken (best fit)."""
        begins, room = self._free_ranges(unit, 0)
        return int(begins[np.where(room >= 0, room, _INFINITY).argmin()])

    def finish(self) -> tuple[int, ...]:
        """All offsets. Every item must have been placed."""
        assert all(offset is not None for offset in self.offsets)
        return tuple(offset for offset in self.offsets if offset is not None)

    def _free_ranges(self, unit: Unit, floor: int) -> tuple[Integers, Integers]:
        """Where a range begins, and by how many bytes the unit can move up in it; negative: there is none."""
        lows, highs = self._forbidden(unit)
        alignment = int(np.lcm.reduce([self.items[index].alignment for index, _ in unit]))
        lowest = floor - min(shift for _, shift in unit)
        frontier = np.maximum.accumulate(np.concatenate(([lowest], highs)))
        begins = -(-frontier // alignment) * alignment
        return begins, np.append(lows, _INFINITY) - begins

    def _forbidden(self, unit: Unit) -> tuple[Integers, Integers]:
        """Open intervals of offsets of the unit that some placed item forbids, by their lower ends."""
        if len(unit) == 1 and unit[0][0] not in self._permissions:
            return self._forbidden_plain(self.items[unit[0][0]], ())
        parts = []
        for index, shift in unit:
            related = self._permissions.get(index, {})
            lows, highs = self._forbidden_plain(self.items[index], tuple(related))
            parts.append((lows - shift, highs - shift))
            cut = [
                (other_offset + low - shift, other_offset + high - shift)
                for other, intervals in related.items()
                if (other_offset := self.offsets[other]) is not None
                for low, high in intervals
            ]
            parts.append((np.array([c[0] for c in cut], np.int64), np.array([c[1] for c in cut], np.int64)))
        lows, highs = np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        order = lows.argsort(kind="stable")
        return lows[order], highs[order]

    def _forbidden_plain(self, item: Item, related: tuple[int, ...]) -> tuple[Integers, Integers]:
        begin, end, start, finish, index = self._placed[:, : self._count]
        meets: npt.NDArray[Any] = (start < item.end) & (finish > item.start)
        if related:
            meets &= ~np.isin(index, related)
        return begin[meets] - item.size, end[meets]
