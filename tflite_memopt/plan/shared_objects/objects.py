"""What the greedy strategies share: objects, who uses them when, and which one suits an item."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..problem import Item


class Objects:
    """Objects so far. ``sizes[k]`` is object k's bytes; its users are kept by start and never meet."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._starts: list[list[int]] = []
        self._ends: list[list[int]] = []
        self.sizes: list[int] = []
        self.object_of: dict[int, int] = {}

    def suitable(self, index: int) -> list[int]:
        """Objects that nobody uses while the item is alive. O(objects * log items)."""
        return [number for number in range(len(self.sizes)) if self.idle_scopes(number, index) is not None]

    def idle_scopes(self, number: int, index: int) -> int | None:
        """Scopes between the item's life and the nearest use of the object; None when the two intersect."""
        item, starts, ends = self._items[index], self._starts[number], self._ends[number]
        later = bisect_left(starts, item.start)
        if (later < len(starts) and starts[later] < item.end) or (later and ends[later - 1] > item.start):
            return None
        gaps = [starts[later] - item.end] if later < len(starts) else []
        gaps += [item.start - ends[later - 1]] if later else []
        return min(gaps)

    def use(self, index: int, number: int | None) -> None:
        """Give the item an object, which grows if it must; None makes a new one."""
        item = self._items[index]
        if number is None:
            number = len(self.sizes)
            self.sizes.append(0)
            self._starts.append([])
            self._ends.append([])
        position = bisect_left(self._starts[number], item.start)
        self._starts[number].insert(position, item.start)
        self._ends[number].insert(position, item.end)
        self.sizes[number] = max(self.sizes[number], item.size)
        self.object_of[index] = number

    def best_fit(self, index: int) -> int | None:
        """The smallest suitable object that is large enough, else the largest suitable one, else None."""
        size, suitable = self._items[index].size, self.suitable(index)
        enough = [number for number in suitable if self.sizes[number] >= size]
        if enough:
            return min(enough, key=lambda number: self.sizes[number])
        return max(suitable, key=lambda number: self.sizes[number], default=None)

    def finish(self) -> tuple[int, ...]:
        """The object of each item. Every item must have one."""
        return tuple(self.object_of[index] for index in range(len(self._items)))
