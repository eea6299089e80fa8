"""The moves of the hill climb: items in an order, each at the lowest free offset, and two of them exchange their turns.

The same source runs as plain Python on lists, and compiled on arrays (see ``compiled``): so it keeps to integers, loops
and indexing. An item's offset depends on the earlier items that it is alive with, and on nothing else. So an exchange
places anew only what it touches, and what moves because of that, in order.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

Ints = MutableSequence[int]
"""A list when run plain, an array of 64-bit integers when compiled."""

# Positions in ``ClimbState.registers``.
TOP, BEST, MOVES, STALL, RANDOM, CHANGES, WORK, SLACK = 0, 1, 2, 3, 4, 5, 6, 7
PERIOD = 1 << 32
"""Of the random numbers. As a number in the code it would be an object, whose arithmetic swallows a Ctrl-C."""


class ClimbData:
    """What stays as it is. Offsets and sizes are bytes.

    The conflicts of item i are the entries ``[conflict_from[i], conflict_from[i + 1])``: ``offset[i] - offset[other]``
    may not lie in the open interval ``(low, high)``. ``neighbor`` holds each of the others once. ``free`` are the
    items without a given offset.
    """

    size: Ints
    alignment: Ints
    conflict_from: Ints
    conflict_other: Ints
    conflict_low: Ints
    conflict_high: Ints
    neighbor_from: Ints
    neighbor: Ints
    free: Ints

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


class ClimbState:
    """What changes: ``rank[i]`` is item i's turn, -1 for a given offset, which never moves; ``order`` is its inverse.

    ``best`` are the offsets of the lowest arena so far. ``changed`` and ``before`` let a move be taken back.
    ``forbidden_low`` and ``forbidden_high`` are room for the intervals that one item may not start in.
    """

    offset: Ints
    rank: Ints
    order: Ints
    best: Ints
    is_queued: Ints
    changed: Ints
    before: Ints
    forbidden_low: Ints
    forbidden_high: Ints
    registers: Ints

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


def place_all(d: ClimbData, s: ClimbState) -> None:
    """Place the items of ``order`` one after the other; the result becomes the best one where it is lower."""
    for turn in range(len(d.free)):
        i = s.order[turn]
        s.rank[i] = turn
        s.offset[i] = _lowest(d, s, i)
    s.registers[TOP] = _top(d, s)
    _keep_if_better(d, s)


def climb(d: ClimbData, s: ClimbState, bound: int, moves: int, stall: int, work: int) -> None:
    """Go on until the arena meets the bound, so many moves are made in all, or so many in a row without gain.

    Or until so much work is done: turns of the inner loops.
    """
    while (
        s.registers[BEST] > bound
        and s.registers[MOVES] < moves
        and s.registers[STALL] < stall
        and s.registers[WORK] < work
    ):
        s.registers[MOVES] += 1
        s.registers[WORK] += 2 * len(d.size)
        s.registers[STALL] += 1
        first = _pick_first(d, s)
        exchange(d, s, first, _pick_second(d, s, first))
        _keep_if_better(d, s)


def exchange(d: ClimbData, s: ClimbState, first: int, second: int) -> int:
    """Let two free items exchange their turns, unless that raises the arena: then nothing changes, and it is 0.

    It may rise up to ``SLACK`` bytes above the best one.
    """
    if first == second:
        return 0
    _swap(s, first, second)
    low, high = min(s.rank[first], s.rank[second]), max(s.rank[first], s.rank[second])
    s.is_queued[low] = 1
    s.is_queued[high] = 1
    earlier, later = s.order[low], s.order[high]
    for k in range(d.neighbor_from[earlier], d.neighbor_from[earlier + 1]):
        turn = s.rank[d.neighbor[k]]
        if low < turn < high:
            s.is_queued[turn] = 1
    for k in range(d.conflict_from[later], d.conflict_from[later + 1]):
        turn = s.rank[d.conflict_other[k]]
        if low < turn < high and _may_fall(d, s, k, s.offset[later]) == 1:
            s.is_queued[turn] = 1
    if _settle_from(d, s, low) == 0:
        _swap(s, first, second)
        return 0
    s.registers[TOP] = _top(d, s)
    return 1


def _settle_from(d: ClimbData, s: ClimbState, low: int) -> int:
    """Place the queued turns anew and all that depends on them; 0, and no change, if that raises the arena too far."""
    s.registers[CHANGES] = 0
    is_good = 1
    allowed = s.registers[TOP]
    if s.registers[SLACK] > 0:
        allowed = max(allowed, s.registers[BEST] + s.registers[SLACK])
    for turn in range(low, len(d.free)):
        if s.is_queued[turn] == 0:
            continue
        s.is_queued[turn] = 0
        i = s.order[turn]
        new = _lowest(d, s, i) if is_good == 1 else s.offset[i]
        if new == s.offset[i]:
            continue
        s.changed[s.registers[CHANGES]] = i
        s.before[s.registers[CHANGES]] = s.offset[i]
        s.registers[CHANGES] += 1
        s.offset[i] = new
        if new + d.size[i] > allowed:
            is_good = 0
        else:
            _queue_later(d, s, i, turn)
    if is_good == 0:
        for k in range(s.registers[CHANGES] - 1, -1, -1):
            s.offset[s.changed[k]] = s.before[k]
    return is_good


def _queue_later(d: ClimbData, s: ClimbState, item: int, turn: int) -> None:
    """Queue what is placed after this turn, if that item's last change may change its place."""
    old, new = s.before[s.registers[CHANGES] - 1], s.offset[item]
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        o = d.conflict_other[k]
        if s.rank[o] > turn and (
            _may_fall(d, s, k, old) == 1 or new - d.conflict_high[k] < s.offset[o] < new - d.conflict_low[k]
        ):
            s.is_queued[s.rank[o]] = 1


def _may_fall(d: ClimbData, s: ClimbState, conflict: int, offset: int) -> int:
    """Whether the other item of a conflict may lie lower once it is not bound by this one at this offset any more."""
    o = d.conflict_other[conflict]
    return 1 if offset - d.conflict_high[conflict] < s.offset[o] and offset > d.conflict_low[conflict] else 0


def _swap(s: ClimbState, first: int, second: int) -> None:
    s.rank[first], s.rank[second] = s.rank[second], s.rank[first]
    s.order[s.rank[first]] = first
    s.order[s.rank[second]] = second


def _lowest(d: ClimbData, s: ClimbState, item: int) -> int:
    """Lowest offset that all items placed before allow: none of the open intervals that they forbid holds it."""
    own, step, count = s.rank[item], d.alignment[item], 0
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        # Without a branch, which would be guessed wrongly half of the time: what does not count is overwritten.
        o = d.conflict_other[k]
        s.forbidden_low[count] = s.offset[o] + d.conflict_low[k]
        s.forbidden_high[count] = s.offset[o] + d.conflict_high[k]
        count += 1 if s.rank[o] < own and s.forbidden_high[count] > 0 else 0
    s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
    found, has_moved = 0, 1
    while has_moved == 1:
        has_moved, left = 0, 0
        for k in range(count):
            if s.forbidden_high[k] <= found:
                continue
            if s.forbidden_low[k] < found:
                found = -(-s.forbidden_high[k] // step) * step
                has_moved = 1
            else:
                s.forbidden_low[left] = s.forbidden_low[k]
                s.forbidden_high[left] = s.forbidden_high[k]
                left += 1
        s.registers[WORK] += count
        count = left
    return found


def _top(d: ClimbData, s: ClimbState) -> int:
    found = 0
    for i in range(len(d.size)):
        found = max(found, s.offset[i] + d.size[i])
    return found


def _keep_if_better(d: ClimbData, s: ClimbState) -> None:
    if s.registers[TOP] < s.registers[BEST]:
        s.registers[BEST] = s.registers[TOP]
        s.registers[STALL] = 0
        for i in range(len(d.size)):
            s.best[i] = s.offset[i]


def _pick_first(d: ClimbData, s: ClimbState) -> int:
    """An item at the top; now and then any, against plateaus that the guided moves cannot leave."""
    count = 0
    for i in d.free:
        if s.offset[i] + d.size[i] == s.registers[TOP]:
            count += 1
    if count == 0 or _random(s, 10) == 0:
        return d.free[_random(s, len(d.free))]
    chosen = _random(s, count)
    for i in d.free:
        if s.offset[i] + d.size[i] == s.registers[TOP]:
            if chosen == 0:
                return i
            chosen -= 1
    return d.free[0]


def _pick_second(d: ClimbData, s: ClimbState, first: int) -> int:
    """One that the first, or a neighbor of its, is alive with; now and then any."""
    middle = _neighbor(d, s, first)
    if _random(s, 2) == 0 and s.rank[middle] >= 0:
        return middle
    second = _neighbor(d, s, middle)
    if s.rank[second] < 0 or _random(s, 10) == 0:
        return d.free[_random(s, len(d.free))]
    return second


def _neighbor(d: ClimbData, s: ClimbState, item: int) -> int:
    count = d.neighbor_from[item + 1] - d.neighbor_from[item]
    return d.neighbor[d.neighbor_from[item] + _random(s, count)] if count > 0 else item


def _random(s: ClimbState, count: int) -> int:
    """A number below ``count`` by a linear congruential generator (Numerical Recipes' constants); the same anywhere."""
    s.registers[RANDOM] = (s.registers[RANDOM] * 1664525 + 1013904223) % PERIOD
    return (s.registers[RANDOM] // 65536) % count
