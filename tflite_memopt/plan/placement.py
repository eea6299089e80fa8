"""What the strategies that place items one by one share: find an offset among those already placed.

What is placed at once is mostly a single item, or a rigid group of items (see ``groups``). Each placed neighbour
forbids one open interval of offsets, or a few where a relation permits part of it.
"""

from __future__ import annotations

from math import lcm

from .free_ranges import Forbidden, lowest_offset, tightest_offset
from .problem import PlanProblem, RigidGroup


class Placement:
    """Offsets found so far. Items with a given offset are placed first, by the constructor.

    Without ``aligns`` every offset is as good as another. One placement costs O(k log k) for the k items that are alive
    with it.
    """

    def __init__(self, problem: PlanProblem, aligns: bool = True) -> None:
        self.items = problem.items
        self.offsets: list[int | None] = [item.offset for item in problem.items]
        self._conflicts = problem.conflicts
        self._aligns = aligns

    def place(self, group: RigidGroup, offset: int) -> None:
        """Fix the offsets of a group's items, the group itself being at ``offset`` bytes."""
        for index, shift in group:
            self.offsets[index] = offset + shift

    def is_placed(self, index: int) -> bool:
        """Whether an item has its offset."""
        return self.offsets[index] is not None

    def lowest(self, group: RigidGroup, floor: int = 0) -> int:
        """Lowest offset of the group, all its items at ``floor`` bytes or above, at which it is free (first fit)."""
        return lowest_offset(self._forbidden(group), *self._start(group, floor))

    def tightest(self, group: RigidGroup) -> int:
        """Offset in the range that leaves least room to move, else behind the last byte taken (best fit)."""
        return tightest_offset(self._forbidden(group), *self._start(group, 0))

    def finish(self) -> tuple[int, ...]:
        """All offsets. Every item must have been placed."""
        assert all(offset is not None for offset in self.offsets)
        return tuple(offset for offset in self.offsets if offset is not None)

    def _start(self, group: RigidGroup, floor: int) -> tuple[int, int]:
        """The lowest offset that keeps every item of the group at the floor or above it, and the group's alignment."""
        alignment = lcm(*(self.items[index].alignment for index, _ in group)) if self._aligns else 1
        return floor - min(shift for _, shift in group), alignment

    def _forbidden(self, group: RigidGroup) -> Forbidden:
        """Intervals of offsets of the group that some placed item forbids."""
        offsets = self.offsets
        return [
            (place + low - shift, place + high - shift)
            for index, shift in group
            for other, low, high in self._conflicts[index]
            if (place := offsets[other]) is not None
        ]
