"""Depth-first search for a placement below a given capacity: canonical solutions, explicit stack, node limit.

If a placement exists, one exists in which no item can move down. Placed by offset, then by rank, each item of
that one lands on its least offset: the end of the highest item below it, aligned. So a node is a set of
placed items, and a child places one more at its least offset. A child is given up when

- a section cannot hold its remaining load above the lowest of its least offsets (section inference; passing an
  item over raises its least offset, the monotonic floor), or an item no longer fits;
- it would leave a gap below itself in which another item fits whole (dominance).

Source: Moffitt, "MiniMalloc" (ASPLOS 2023), canonical solutions and inference.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .group import Group, Ints

_PLACED = 1 << 60
"""Least offset of an item that has its place: above everything, so that minima skip it."""
_CLOCK_EVERY = 64


class TreeEnd(Enum):
    """Why a search stopped."""

    FOUND = "found"
    NONE = "none"
    LIMIT = "limit"


@dataclass(frozen=True)
class TreeOutcome:
    """``offsets`` in units when FOUND; NONE is a proof that the capacity is too small."""

    end: TreeEnd
    offsets: Ints | None
    nodes: int


@dataclass
class _Frame:
    """A node: least offsets, load left per section, and its children ``order``, of which ``turn`` is next."""

    least: Ints
    left: Ints
    order: Ints
    turn: int = -1
    placed: tuple[int, int] = (-1, 0)


class PlainTree:
    """Searches of one model, one for each ranking; ``failures`` counts per section what ended branches."""

    unit_nodes = 250
    """Nodes of the shortest restart: some hundredths of a second."""

    def __init__(self, model: Group, deadline: float) -> None:
        self.failures = np.zeros(len(model.load))
        self._model = model
        self._deadline = deadline
        self._aligns = bool((model.alignment > 1).any())
        self._fixes = bool((model.fixed >= 0).any())

    def run(self, capacity: int, rank: Ints, limit: int) -> TreeOutcome:
        """Look for a placement of at most ``capacity`` units; items that tie go by ``rank``, lowest first."""
        model = self._model
        least = np.maximum(model.fixed, 0)
        if not self._is_open(least, model.load, capacity):
            return TreeOutcome(TreeEnd.NONE, None, 0)
        stack = [_Frame(least, model.load, self._children(least, model.load, rank, capacity))]
        nodes = 0
        while stack:
            frame = stack[-1]
            if not self._advance(frame, capacity):
                stack.pop()
                continue
            if nodes >= limit or (nodes % _CLOCK_EVERY == 0 and time.perf_counter() > self._deadline):
                return TreeOutcome(TreeEnd.LIMIT, None, nodes)
            nodes += 1
            child = self._place(frame, rank, capacity)
            if child is None:
                continue
            stack.append(child)
            if len(stack) > len(model.size):
                return TreeOutcome(TreeEnd.FOUND, _offsets(stack), nodes)
        return TreeOutcome(TreeEnd.NONE, None, nodes)

    def _children(self, least: Ints, left: Ints, rank: Ints, capacity: int) -> Ints:
        """Items that may come next, lowest first.

        One above the end of another would leave a gap for it, and nothing later goes below the next item.
        """
        model = self._model
        floor = int((capacity + model.spare - left)[left > 0].min(initial=_PLACED))
        possible = np.flatnonzero(least < min(int((least + model.size).min()), floor + 1))
        return possible[np.lexsort((rank[possible], least[possible]))]

    def _advance(self, frame: _Frame, capacity: int) -> bool:
        """Turn to the next child; False when there is none.

        The item passed over must then rest on another that is still to come, so its least offset rises.
        """
        frame.turn += 1
        if frame.turn == 0:
            return True
        model = self._model
        item = frame.order[frame.turn - 1 : frame.turn]
        others = model.meets[item[0]]
        support = (frame.least[others] + model.padded[others]).min(initial=_PLACED)
        if support >= _PLACED or frame.turn == len(frame.order):
            return False
        self._raise(frame.least, item, support)
        return self._is_open(frame.least, frame.left, capacity)

    def _place(self, frame: _Frame, rank: Ints, capacity: int) -> _Frame | None:
        model = self._model
        item, passed = int(frame.order[frame.turn]), frame.order[: frame.turn]
        offset = int(frame.least[item])
        least, left = frame.least.copy(), frame.left.copy()
        if len(passed):
            self._raise(least, passed, offset + (rank[passed] < rank[item]))
        least[item] = _PLACED
        self._raise(least, model.meets[item], offset + model.padded[item])
        left[model.first[item] : model.last[item]] -= model.padded[item]
        if not self._is_open(least, left, capacity):
            return None
        return _Frame(least, left, self._children(least, left, rank, capacity), placed=(item, offset))

    def _raise(self, least: Ints, items: Ints, floor: Ints) -> None:
        if self._aligns:
            step = self._model.alignment[items]
            floor = -(-floor // step) * step
        least[items] = np.maximum(least[items], floor)

    def _is_open(self, least: Ints, left: Ints, capacity: int) -> bool:
        """Whether the items left may still fit; if not, the section to blame is counted."""
        model = self._model
        lowest = np.minimum.reduceat(least[model.members], model.starts)
        over = (left > 0) & (lowest + left > capacity + model.spare)
        worst = int(over.argmax())
        if over[worst]:
            self.failures[worst] += 1
            return False
        free = least < _PLACED
        if ((least + model.size > capacity) & free).any():
            return False
        return not (self._fixes and (free & (model.fixed >= 0) & (least != model.fixed)).any())


def _offsets(stack: list[_Frame]) -> Ints:
    offsets = np.zeros(len(stack) - 1, dtype=np.int64)
    for frame in stack[1:]:
        item, offset = frame.placed
        offsets[item] = offset
    return offsets
