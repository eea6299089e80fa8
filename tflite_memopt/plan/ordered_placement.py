"""Lowest-first placement of an order of items, kept up to date while two of them exchange their turns.

An item's offset depends on the earlier items that it is alive with, and on nothing else. So an exchange places
anew only what it touches, and what moves because of that, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from .conflicts import conflicts_of, neighbours_of
from .free_ranges import lowest_offset
from .problem import PlanProblem


class OrderedPlacement:
    """Offsets in bytes for an order. ``ranks[i]`` is item i's turn; -1 for a given offset, which never moves."""

    def __init__(self, problem: PlanProblem, order: Sequence[int]) -> None:
        self._conflicts = conflicts_of(problem)
        self.neighbours = neighbours_of(self._conflicts)
        self.order = list(order)
        self.ranks = [-1] * len(problem.items)
        self._sizes = [item.size for item in problem.items]
        self._alignments = [item.alignment for item in problem.items]
        self.offsets = [-1 if item.offset is None else item.offset for item in problem.items]
        for rank, index in enumerate(order):
            self.ranks[index] = rank
            self.offsets[index] = self._lowest(index)
        self.ends = [offset + size for offset, size in zip(self.offsets, self._sizes, strict=True)]
        self.top = max(self.ends, default=0)

    def exchange(self, first: int, second: int) -> bool:
        """Let two free items exchange their turns, unless that raises the arena; then nothing changes."""
        if first == second:
            return False
        self._swap(first, second)
        low, high = sorted((self.ranks[first], self.ranks[second]))
        touched = {self.ranks[other] for i in (first, second) for other in self.neighbours[i]}
        if not self._settle([low, high, *(rank for rank in touched if low < rank < high)]):
            self._swap(first, second)
            return False
        self.top = max(self.ends, default=0)
        return True

    def _swap(self, first: int, second: int) -> None:
        self.ranks[first], self.ranks[second] = self.ranks[second], self.ranks[first]
        self.order[self.ranks[first]], self.order[self.ranks[second]] = first, second

    def _settle(self, ranks: list[int]) -> bool:
        """Place these turns anew and all that depends on them; False, and no change, if that raises the arena."""
        heapify(ranks)
        queued, moved = set(ranks), list[tuple[int, int]]()
        while ranks:
            rank = heappop(ranks)
            index = self.order[rank]
            old, new = self.offsets[index], self._lowest(index)
            if new == old:
                continue
            moved.append((index, old))
            self.offsets[index], self.ends[index] = new, new + self._sizes[index]
            if self.ends[index] > self.top:
                for changed, offset in moved:
                    self.offsets[changed], self.ends[changed] = offset, offset + self._sizes[changed]
                return False
            for other in self.neighbours[index]:
                later = self.ranks[other]
                if later > rank and later not in queued:
                    queued.add(later)
                    heappush(ranks, later)
        return True

    def _lowest(self, index: int) -> int:
        rank, ranks, offsets = self.ranks[index], self.ranks, self.offsets
        forbidden = [
            (offsets[other] + low, offsets[other] + high)
            for other, low, high in self._conflicts[index]
            if ranks[other] < rank and offsets[other] >= 0
        ]
        return lowest_offset(forbidden, 0, self._alignments[index])
