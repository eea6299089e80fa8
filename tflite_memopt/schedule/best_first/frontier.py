"""The states that a search has yet to visit, by the largest need on the way to them, with a floor that rises.

Needs below the floor are not told apart. They are kept in a heap of their own, so that a floor that rises moves those
states alone that it comes to: searches in two directions raise each other's floor thousands of times.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

State = tuple[int, int, int, int, int]
"""(less its number of operators, its place in the trail, its operators, bytes alive, ready operators)."""


class Frontier:
    """States in the order of (the larger of need and ``floor``, state): the one with most operators, then the oldest.

    ``floor``: bytes. No need that is pushed is below it.
    """

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self._at_floor: list[State] = []
        self._above: list[tuple[int, State]] = []

    def __bool__(self) -> bool:
        return bool(self._at_floor or self._above)

    def push(self, need: int, state: State) -> None:
        """Add a state with the largest need in bytes on the way to it. O(log n)."""
        if need <= self.floor:
            heapq.heappush(self._at_floor, state)
        else:
            heapq.heappush(self._above, (need, state))

    def pop(self) -> tuple[int, State]:
        """The first one, with its need or the floor in bytes. O(log n)."""
        return (self.floor, heapq.heappop(self._at_floor)) if self._at_floor else heapq.heappop(self._above)

    def first(self, count: int) -> Sequence[tuple[int, State]]:
        """So many of the first ones, which stay."""
        low = [(self.floor, state) for state in heapq.nsmallest(count, self._at_floor)]
        return low + heapq.nsmallest(count - len(low), self._above)

    def raise_floor(self, floor: int) -> None:
        """From now on needs up to ``floor`` bytes are not told apart. Each state is moved at most once."""
        self.floor = max(floor, self.floor)
        while self._above and self._above[0][0] <= self.floor:
            heapq.heappush(self._at_floor, heapq.heappop(self._above)[1])
