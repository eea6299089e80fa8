"""The exact search compiled by numba (extra ``fast``): a tree without repeats, on arrays that change in place.

As in ``plain_tree`` a node is a set of placed items, and the one with the lowest least offset comes next. Its
two branches: it is placed there, or it rests on an item that is still to come. In the second it waits, and its
least offset is the lowest end of those it may rest on, until one of them is placed. An item that waits is never
placed, so that no set of placed items is reached twice, and each placement rests on something.
Least offsets per section are kept from node to node; only sections that an item was the lowest of are read again.

Source: Moffitt, "MiniMalloc" (ASPLOS 2023), canonical solutions, section inference and monotonic floor.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .group import Group, Ints
from .plain_tree import TreeEnd, TreeOutcome

_PLACED = 1 << 60
"""Least offset of an item that has its place: above everything, so that minima skip it."""
_STALE = -1
_NODES_A_CALL = 20_000
"""Between two looks at the clock."""
_FOUND, _NONE, _LIMIT = 0, 1, 2


class _Tables(NamedTuple):
    """What stays as it is during a search: ``Group`` with its lists of arrays laid end to end."""

    size: Ints
    padded: Ints
    alignment: Ints
    fixed: Ints
    first: Ints
    last: Ints
    members: Ints
    starts: Ints
    others: Ints
    others_from: Ints
    room: Ints
    rank: Ints
    capacity: int


class _States(NamedTuple):
    """A row for each depth: least offset of each item, whether it waits, lowest least offset and load by section."""

    least: Ints
    waits: Ints
    lowest: Ints
    left: Ints


class CompiledTree:
    """As ``plain_tree.PlainTree``, some ten times as fast once numba has compiled it."""

    unit_nodes = 2_000

    def __init__(self, model: Group, deadline: float) -> None:
        self.failures = np.zeros(len(model.load))
        self._model = model
        self._deadline = deadline
        depth, items, sections = len(model.size) + 1, len(model.size), len(model.load)
        self._states = _States(*(np.zeros((depth, n), dtype=np.int64) for n in (items, items, sections, sections)))
        self._others_from = np.cumsum([0, *(len(others) for others in model.meets)])
        self._others = np.concatenate(model.meets).astype(np.int64)

    @staticmethod
    def bytes_needed(model: Group) -> int:
        """Memory of the states: a row for each depth."""
        return 16 * (len(model.size) + 1) * (len(model.size) + len(model.load))

    def run(self, capacity: int, rank: Ints, limit: int) -> TreeOutcome:
        """Look for a placement of at most ``capacity`` units; items that tie go by ``rank``, lowest first."""
        tables, states = self._tables(capacity, rank), self._states
        chosen = np.zeros(len(rank), dtype=np.int64)
        states.least[0], states.waits[0] = np.maximum(self._model.fixed, 0), 0
        states.lowest[0], states.left[0] = _STALE, self._model.load
        depth, nodes, end = 0, 0, _LIMIT
        while end == _LIMIT and nodes < limit and time.perf_counter() <= self._deadline:
            share = min(_NODES_A_CALL, limit - nodes)
            end, depth = _search(tables, states, chosen, self.failures, depth, share)
            nodes += share
        if end == _FOUND:
            offsets = np.zeros(len(rank), dtype=np.int64)
            offsets[chosen] = states.least[np.arange(len(rank)), chosen]
            return TreeOutcome(TreeEnd.FOUND, offsets, nodes)
        return TreeOutcome(TreeEnd.NONE if end == _NONE else TreeEnd.LIMIT, None, nodes)

    def _tables(self, capacity: int, rank: Ints) -> _Tables:
        model = self._model
        return _Tables(
            size=model.size,
            padded=model.padded,
            alignment=model.alignment,
            fixed=model.fixed,
            first=model.first,
            last=model.last,
            members=model.members,
            starts=np.append(model.starts, len(model.members)),
            others=self._others,
            others_from=self._others_from,
            room=capacity + model.spare,
            rank=rank,
            capacity=capacity,
        )


@compiled
def _search(
    tables: _Tables, states: _States, chosen: Ints, failures: NDArray[np.float64], depth: int, limit: int
) -> tuple[int, int]:
    """Go on from ``depth`` for ``limit`` nodes; the end's code and the depth reached."""
    for _ in range(limit):
        item = _next(tables, states, failures, depth)
        is_open = False
        if item >= 0:
            chosen[depth] = item
            if _place(tables, states, failures, depth, item):
                depth += 1
                if depth == len(chosen):
                    return _FOUND, depth
                continue
            is_open = _wait(tables, states, failures, depth, item)
        while not is_open:
            depth -= 1
            if depth < 0:
                return _NONE, 0
            is_open = _wait(tables, states, failures, depth, chosen[depth])
    return _LIMIT, depth


@compiled
def _next(tables: _Tables, states: _States, failures: NDArray[np.float64], depth: int) -> int:
    """The item to place next; -1 when the node is closed.

    No item can start below it any more, so those that wait are raised to what they may rest on from there.
    """
    least, waits, rank = states.least[depth], states.waits[depth], tables.rank
    item, floor = -1, _PLACED
    for i in range(len(least)):
        if waits[i] == 0 and (least[i] < floor or (least[i] == floor < _PLACED and rank[i] < rank[item])):
            item, floor = i, least[i]
    for i in range(len(least)):
        rises = waits[i] == 1 and least[i] <= floor
        if rises and not _raise(tables, states, depth, i, _support(tables, least, i, floor)):
            return -1
    return item if _settle(tables, states, failures, depth) else -1


@compiled
def _place(tables: _Tables, states: _States, failures: NDArray[np.float64], depth: int, item: int) -> bool:
    """Make the row below ``depth``: the item at its least offset, everything that meets it above."""
    states.least[depth + 1] = states.least[depth]
    states.waits[depth + 1] = states.waits[depth]
    states.lowest[depth + 1] = states.lowest[depth]
    states.left[depth + 1] = states.left[depth]
    least, waits = states.least[depth + 1], states.waits[depth + 1]
    end = least[item] + tables.padded[item]
    least[item] = _PLACED
    for s in range(tables.first[item], tables.last[item]):
        states.left[depth + 1, s] -= tables.padded[item]
        states.lowest[depth + 1, s] = _STALE
    for k in range(tables.others_from[item], tables.others_from[item + 1]):
        other = tables.others[k]
        if least[other] < _PLACED:
            waits[other] = 0
            if not _raise(tables, states, depth + 1, other, end):
                return False
    return _settle(tables, states, failures, depth + 1)


@compiled
def _wait(tables: _Tables, states: _States, failures: NDArray[np.float64], depth: int, item: int) -> bool:
    """The other branch: the item rests on one that is still to come. False when there is none."""
    least = states.least[depth]
    states.waits[depth, item] = 1
    if not _raise(tables, states, depth, item, _support(tables, least, item, least[item])):
        return False
    return _settle(tables, states, failures, depth)


@compiled
def _support(tables: _Tables, least: Ints, item: int, floor: int) -> int:
    """Lowest end of an item that ``item`` may rest on, when nothing more starts below ``floor``."""
    found = _PLACED
    for k in range(tables.others_from[item], tables.others_from[item + 1]):
        other = tables.others[k]
        if least[other] < _PLACED:
            found = min(found, max(least[other], floor) + tables.padded[other])
    return found


@compiled
def _raise(tables: _Tables, states: _States, depth: int, item: int, floor: int) -> bool:
    """Raise an item's least offset; False when it no longer fits. Sections it was the lowest of become stale."""
    before = states.least[depth, item]
    step = tables.alignment[item]
    after = max(before, -(-floor // step) * step) if step > 1 else max(before, floor)
    if after + tables.size[item] > tables.capacity or (tables.fixed[item] >= 0 and after != before):
        return False
    states.least[depth, item] = after
    lowest = states.lowest[depth]
    if after > before:
        for s in range(tables.first[item], tables.last[item]):
            if lowest[s] == before:
                lowest[s] = _STALE
    return True


@compiled
def _settle(tables: _Tables, states: _States, failures: NDArray[np.float64], depth: int) -> bool:
    """Read the stale sections again; False, and the section counted, when one cannot hold what is left."""
    least, lowest, left = states.least[depth], states.lowest[depth], states.left[depth]
    for s in range(len(lowest)):
        if lowest[s] != _STALE:
            continue
        found = _PLACED
        for k in range(tables.starts[s], tables.starts[s + 1]):
            found = min(found, least[tables.members[k]])
        lowest[s] = found
        if left[s] > 0 and found + left[s] > tables.room[s]:
            failures[s] += 1
            return False
    return True
