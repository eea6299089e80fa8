"""Pairs: depth-first search over which of two items lies above the other. The only copy of it.

The same source runs as plain Python on lists, and compiled on arrays (see ``compiled``): so it keeps to integers, loops
and indexing.

A conflict forbids a difference of two offsets one open interval ``(low, high)``: so the first item lies at least
``high`` above the second, or at least ``-low`` below it. That is a disjunction of two inequalities. Every item has a
``least`` and a ``most`` offset. Where they leave one side of a disjunction only, that one is *decided*; what is decided
raises and lowers the offsets, until nothing changes any more. A section fails when its items need more bytes than lie
between the lowest ``least`` offset and the highest end. If then all items can lie at their ``least`` offsets, that is a
plan. Otherwise two of them collide there: the node has one child for each side of their disjunction. Pairs on which
earlier branches failed weigh more, and go first.

Nothing here depends on the order in which items are placed. So relations, which let an item lie around another one or
make it rest on one above it, need no case of their own.

Source: Roy and Sussmann, "Les problèmes d'ordonnancement avec contraintes disjonctives" (1964), for disjunctions as
the branches of a search; Carlier and Pinson, "An algorithm for solving the job-shop problem" (1989), for deciding them
by heads and tails; Boussemart et al., "Boosting systematic search by weighting constraints" (2004), for the weights.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

Ints = MutableSequence[int]
"""A list when run plain, an array of 64-bit integers when compiled."""

NEVER = 1 << 60
"""Above all offsets."""

_SCALE = 1 << 40
_PARTS = 32
"""Less room than such a part of the capacity makes little difference to a pair's score."""

# How a run ends.
FOUND, NONE, LIMIT, FULL = 0, 1, 2, 3
# Positions in ``PairState.registers``.
CAPACITY, DEPTH, TRAIL, QUEUED, DIRTY, NODES, WORK, STAMP = 0, 1, 2, 3, 4, 5, 6, 7
# What an entry of the trail restores.
_LEAST, _MOST, _DECIDED = 0, 1, 2


class PairData:
    """What stays as it is during a run. All sizes and offsets are bytes.

    Item i's conflicts are the entries ``[conflict_from[i], conflict_from[i + 1])``: ``offset[i] - offset[other]`` may
    not lie in the open interval ``(low, high)``. ``owner`` is i, and ``mate`` the same conflict seen from the other
    item. ``fixed`` is the given offset, or -1.

    A row is a section's bound: the items ``row_item`` from ``row_from`` on need ``row_need`` bytes together. Item i
    counts in the rows ``own_row`` from ``own_from[i]`` on. ``reserve`` entries of the trail are enough for a node.
    ``rule`` chooses the pair that a node decides: see ``_score``.
    """

    size: Ints
    alignment: Ints
    fixed: Ints
    conflict_from: Ints
    conflict_owner: Ints
    conflict_other: Ints
    conflict_low: Ints
    conflict_high: Ints
    conflict_mate: Ints
    row_from: Ints
    row_item: Ints
    row_need: Ints
    own_from: Ints
    own_row: Ints
    rule: int
    reserve: int

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


class PairState:
    """What changes, and is undone by the trail.

    ``decided`` is 1 for a conflict whose owner lies above the other item, -1 below, 0 as long as both may be.
    ``weight`` counts the failures of a conflict, is never undone, and is kept from one run to the next. Items in
    the ``queue`` and ``dirty`` rows have changed since they were looked at. The trail keeps what an item had before a
    node, once for each node: ``least_stamp`` and ``most_stamp`` are the last nodes that did. A frame has decided
    ``frame_conflict`` after ``frame_mark`` entries of the trail; its other side is ``frame_side``, or 0 when that was
    tried.
    """

    least: Ints
    most: Ints
    decided: Ints
    weight: Ints
    queue: Ints
    is_queued: Ints
    dirty: Ints
    is_dirty: Ints
    least_stamp: Ints
    most_stamp: Ints
    trail_kind: Ints
    trail_at: Ints
    trail_value: Ints
    frame_conflict: Ints
    frame_mark: Ints
    frame_side: Ints
    registers: Ints

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


def start_pairs(d: PairData, s: PairState, capacity: int) -> None:
    """Begin a search anew within ``capacity`` bytes."""
    for k in range(len(s.registers)):
        s.registers[k] = 0
    s.registers[CAPACITY] = capacity
    for i in range(len(d.size)):
        s.least[i] = max(d.fixed[i], 0)
        s.most[i] = (capacity - d.size[i]) // d.alignment[i] * d.alignment[i]
        if d.fixed[i] >= 0:
            s.most[i] = min(s.most[i], d.fixed[i])
        s.queue[i] = i
        s.is_queued[i] = 1
        s.least_stamp[i] = -1
        s.most_stamp[i] = -1
    s.registers[QUEUED] = len(d.size)
    for k in range(len(d.conflict_owner)):
        s.decided[k] = 0
    for r in range(len(d.row_need)):
        s.dirty[r] = r
        s.is_dirty[r] = 1
    s.registers[DIRTY] = len(d.row_need)


def run_pairs(d: PairData, s: PairState, nodes: int, work: int) -> int:
    """Go on until so many nodes have been visited, or so much work has been done, in all since the start.

    Work is counted in turns of the inner loops. FULL asks for a longer trail, and nothing is lost.
    """
    for i in range(len(d.size)):
        if s.least[i] > s.most[i]:
            return NONE
    is_open = _propagate(d, s)
    while True:
        if is_open == 1:
            if s.registers[NODES] >= nodes or s.registers[WORK] >= work:
                return LIMIT
            if s.registers[TRAIL] + d.reserve > len(s.trail_kind):
                return FULL
            conflict = _collision(d, s)
            if conflict < 0:
                return FOUND
            is_open = _branch(d, s, conflict)
        else:
            is_open = _turn_back(d, s)
            if is_open < 0:
                return NONE


def _branch(d: PairData, s: PairState, conflict: int) -> int:
    """A node's first child: the side that leaves more room. 0 when it fails."""
    depth = s.registers[DEPTH]
    i, o = d.conflict_owner[conflict], d.conflict_other[conflict]
    above = s.most[i] - s.least[o] - d.conflict_high[conflict]
    below = s.most[o] - s.least[i] + d.conflict_low[conflict]
    side = 1 if above >= below else -1
    s.frame_conflict[depth] = conflict
    s.frame_mark[depth] = s.registers[TRAIL]
    s.frame_side[depth] = -side
    s.registers[DEPTH] = depth + 1
    return _try_side(d, s, conflict, side)


def _turn_back(d: PairData, s: PairState) -> int:
    """Undo the deepest node whose other side is not tried, and try that: 0 when it fails, -1 when there is none."""
    for k in range(s.registers[QUEUED]):
        s.is_queued[s.queue[k]] = 0
    s.registers[QUEUED] = 0
    for k in range(s.registers[DIRTY]):
        s.is_dirty[s.dirty[k]] = 0
    s.registers[DIRTY] = 0
    while s.registers[DEPTH] > 0:
        depth = s.registers[DEPTH] - 1
        _undo(d, s, s.frame_mark[depth])
        side = s.frame_side[depth]
        if side != 0:
            s.frame_side[depth] = 0
            return _try_side(d, s, s.frame_conflict[depth], side)
        s.registers[DEPTH] = depth
    return -1


def _try_side(d: PairData, s: PairState, conflict: int, side: int) -> int:
    s.registers[NODES] += 1
    s.registers[STAMP] += 1
    _decide(d, s, conflict, side)
    if _apply(d, s, conflict) == 0:
        return 0
    return _propagate(d, s)


def _collision(d: PairData, s: PairState) -> int:
    """The pair to decide, of those that collide where all items lie at their least offsets; -1 when none does."""
    least, other, low, high = s.least, d.conflict_other, d.conflict_low, d.conflict_high
    found, best = -1, -NEVER
    s.registers[WORK] += len(other) // 2
    for i in range(len(d.size)):
        for k in range(d.conflict_from[i], d.conflict_from[i + 1]):
            o = other[k]
            if i < o and low[k] < least[i] - least[o] < high[k]:
                score = _score(d, s, k)
                if score > best:
                    found, best = k, score
    return found


def _score(d: PairData, s: PairState, conflict: int) -> int:
    """Rule 0: the pair with the least room on its better side. Rule 1: with the most weight for its room."""
    i, o = d.conflict_owner[conflict], d.conflict_other[conflict]
    above = s.least[o] + d.conflict_high[conflict]
    below = s.least[i] - d.conflict_low[conflict]
    room = max(s.most[i] - above, s.most[o] - below)
    if d.rule == 0:
        return -room
    return _SCALE * s.weight[conflict] // (s.registers[CAPACITY] // _PARTS + room + 1)


def _propagate(d: PairData, s: PairState) -> int:
    """Draw all conclusions; 0 when an item or a section has no room left."""
    while True:
        while s.registers[QUEUED] > 0:
            s.registers[QUEUED] -= 1
            item = s.queue[s.registers[QUEUED]]
            s.is_queued[item] = 0
            if _push_neighbours(d, s, item) == 0:
                return 0
        if s.registers[DIRTY] == 0:
            return 1
        s.registers[DIRTY] -= 1
        row = s.dirty[s.registers[DIRTY]]
        s.is_dirty[row] = 0
        if _has_room(d, s, row) == 0:
            return 0


def _push_neighbours(d: PairData, s: PairState, item: int) -> int:
    """Decide the item's pairs where one side is left, and move what has been decided; 0 when it no longer fits."""
    least, most, other, decided = s.least, s.most, d.conflict_other, s.decided
    s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        if decided[k] == 0:
            o = other[k]
            if least[item] - most[o] > d.conflict_low[k]:
                _decide(d, s, k, 1)
            elif most[item] - least[o] < d.conflict_high[k]:
                _decide(d, s, k, -1)
        if decided[k] != 0 and _apply(d, s, k) == 0:
            return 0
    return 1


def _decide(d: PairData, s: PairState, conflict: int, side: int) -> None:
    _record(s, _DECIDED, conflict, 0)
    s.decided[conflict] = side
    s.decided[d.conflict_mate[conflict]] = -side


def _apply(d: PairData, s: PairState, conflict: int) -> int:
    """Move both items of a decided pair to where it leaves them; 0 when one no longer fits."""
    i, o = d.conflict_owner[conflict], d.conflict_other[conflict]
    if s.decided[conflict] == 1:
        high = d.conflict_high[conflict]
        if _raise(d, s, i, s.least[o] + high) == 1 and _lower(d, s, o, s.most[i] - high) == 1:
            return 1
    else:
        low = d.conflict_low[conflict]
        if _raise(d, s, o, s.least[i] - low) == 1 and _lower(d, s, i, s.most[o] + low) == 1:
            return 1
    s.weight[conflict] += 1
    s.weight[d.conflict_mate[conflict]] += 1
    return 0


def _raise(d: PairData, s: PairState, item: int, offset: int) -> int:
    """An item lies at this offset or higher; 0 when it no longer fits."""
    if offset <= s.least[item]:
        return 1
    step = d.alignment[item]
    offset = -(-offset // step) * step
    if offset > s.most[item]:
        return 0
    if s.least_stamp[item] != s.registers[STAMP]:
        s.least_stamp[item] = s.registers[STAMP]
        _record(s, _LEAST, item, s.least[item])
    s.least[item] = offset
    _changed(d, s, item)
    return 1


def _lower(d: PairData, s: PairState, item: int, offset: int) -> int:
    """An item lies at this offset or lower; 0 when it no longer fits."""
    if offset >= s.most[item]:
        return 1
    step = d.alignment[item]
    offset = offset // step * step
    if offset < s.least[item]:
        return 0
    if s.most_stamp[item] != s.registers[STAMP]:
        s.most_stamp[item] = s.registers[STAMP]
        _record(s, _MOST, item, s.most[item])
    s.most[item] = offset
    _changed(d, s, item)
    return 1


def _changed(d: PairData, s: PairState, item: int) -> None:
    if s.is_queued[item] == 0:
        s.is_queued[item] = 1
        s.queue[s.registers[QUEUED]] = item
        s.registers[QUEUED] += 1
    for k in range(d.own_from[item], d.own_from[item + 1]):
        row = d.own_row[k]
        if s.is_dirty[row] == 0:
            s.is_dirty[row] = 1
            s.dirty[s.registers[DIRTY]] = row
            s.registers[DIRTY] += 1


def _has_room(d: PairData, s: PairState, row: int) -> int:
    """Whether a section's bytes fit between the lowest of its items and the highest of their ends."""
    lowest, highest = NEVER, 0
    s.registers[WORK] += d.row_from[row + 1] - d.row_from[row]
    for k in range(d.row_from[row], d.row_from[row + 1]):
        i = d.row_item[k]
        lowest = min(lowest, s.least[i])
        highest = max(highest, s.most[i] + d.size[i])
    return 1 if highest - lowest >= d.row_need[row] else 0


def _record(s: PairState, kind: int, at: int, value: int) -> None:
    top = s.registers[TRAIL]
    s.trail_kind[top] = kind
    s.trail_at[top] = at
    s.trail_value[top] = value
    s.registers[TRAIL] = top + 1


def _undo(d: PairData, s: PairState, mark: int) -> None:
    """Back to the state of so many entries of the trail."""
    for top in range(s.registers[TRAIL] - 1, mark - 1, -1):
        kind, at = s.trail_kind[top], s.trail_at[top]
        if kind == _LEAST:
            s.least[at] = s.trail_value[top]
        elif kind == _MOST:
            s.most[at] = s.trail_value[top]
        else:
            s.decided[at] = 0
            s.decided[d.conflict_mate[at]] = 0
    s.registers[TRAIL] = mark
