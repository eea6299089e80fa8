"""What the greedy strategies share: place items one by one into gaps between those already placed."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from .problem import Item, PlanProblem


class Placement:
    """Offsets found so far. Items with a given offset are placed first, by the constructor."""

    def __init__(self, problem: PlanProblem) -> None:
        self.items = problem.items
        self.offsets: list[int | None] = [None] * len(problem.items)
        self._placed: list[tuple[int, int, int]] = []  # (offset, end of bytes, index), by offset
        for index, item in enumerate(problem.items):
            if item.offset is not None:
                self.place(index, item.offset)

    def place(self, index: int, offset: int) -> None:
        """Fix the offset of an item."""
        self.offsets[index] = offset
        insort(self._placed, (offset, offset + self.items[index].size, index))

    def is_placed(self, index: int) -> bool:
        """Whether an item has its offset."""
        return self.offsets[index] is not None

    def smallest_gap(self, index: int) -> int:
        """Offset in the tightest gap that holds the item, else behind the last byte taken (best fit)."""
        item = self.items[index]
        best: tuple[int, int] | None = None
        frontier = 0
        for start, end in self._taken(item):
            begin = -(-frontier // item.alignment) * item.alignment
            if start - begin >= item.size and (best is None or start - frontier < best[0]):
                best = (start - frontier, begin)
            frontier = max(frontier, end)
        return best[1] if best else -(-frontier // item.alignment) * item.alignment

    def finish(self) -> tuple[int, ...]:
        """All offsets. Every item must have been placed."""
        assert all(offset is not None for offset in self.offsets)
        return tuple(offset for offset in self.offsets if offset is not None)

    def _taken(self, item: Item) -> Iterable[tuple[int, int]]:
        return ((start, end) for start, end, other in self._placed if item.meets(self.items[other]))
