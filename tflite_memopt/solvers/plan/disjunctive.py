"""Pairs: depth-first search over which of two items lies above the other. The only copy of it.

The same source runs as plain Python on lists, and compiled on arrays (see ``exact.code``): so it keeps to integers,
loops and indexing.

A conflict forbids a difference of two offsets one open interval ``(low, high)``: so the first item lies at least
``high`` above the second, or at least ``-low`` below it. That is a disjunction of two inequalities. Every item has a
``least`` and a ``most`` offset. Where they leave one side of a disjunction only, that one is *decided*; what is decided
raises and lowers the offsets, until nothing changes any more. A section fails when its items need more bytes than lie
between the lowest ``least`` offset and the highest end. If then all items can lie at their ``least`` offsets, that is a
plan. Otherwise two of them collide there: the node has one child for each side of their disjunction.

Every conclusion carries its cause: the nodes whose decisions it follows from, as a set of bits. A failure therefore
names the nodes to blame. A node that is not among them would fail again on its other side, and is left out
(backjumping); the other side of one that is follows from the rest of them. Pairs that are to blame for failures weigh
more, and go first.

           node 0: a over b      the failure at node 2 rests on 0 and 2, both sides of 2 are tried,
           node 1: c over d      so 0 alone makes it fail: node 1 is not turned,
           node 2: e over f      node 0 is

Nothing here depends on the order in which items are placed. So relations, which let an item lie around another one or
make it rest on one above it, need no case of their own.

Source: Roy and Sussmann, "Les problèmes d'ordonnancement avec contraintes disjonctives" (1964), for disjunctions as
the branches of a search; Carlier and Pinson, "An algorithm for solving the job-shop problem" (1989), for deciding them
by heads and tails; Prosser, "Hybrid algorithms for the constraint satisfaction problem" (1993), for backjumping by
conflict sets; Boussemart et al., "Boosting systematic search by weighting constraints" (2004), for the weights, which
are given here to all pairs that a failure rests on, as in Moskewicz et al., "Chaff" (2001).
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

Ints = MutableSequence[int]
"""A list when run plain, an array of 64-bit integers when compiled."""

NEVER = 1 << 60
"""Above all offsets."""

_PARTS = 32
"""Less room than such a part of the capacity makes little difference between pairs."""

# How a run ends.
FOUND, NONE, LIMIT, FULL = 0, 1, 2, 3
# Positions in ``PairState.registers``.
CAPACITY, DEPTH, TRAIL, QUEUED, DIRTY, NODES, WORK, STAMP, CAUSE = 0, 1, 2, 3, 4, 5, 6, 7, 8
REGISTERS = 9
# What an entry of the trail restores.
_LEAST, _MOST, _DECIDED = 0, 1, 2
# The last bit of a cause stands for all nodes at this depth and below.
_DEEPEST = 62
_BIT = 1
"""Shifted to the bit of a node. It has a C type, where a plain 1 would be an int of C: no shift beyond 31 bits."""


class PairData:
    """The constant part of a run. All sizes and offsets are bytes.

    Item i's conflicts are the entries ``[conflict_from[i], conflict_from[i + 1])``: ``offset[i] - offset[other]`` may
    not lie in the open interval ``(low, high)``. ``owner`` is i, and ``mate`` the same conflict seen from the other
    item; those with items that come later begin at ``upper_from``. ``fixed`` is the given offset, or -1.

    A row is a section's bound: the items ``row_item`` from ``row_from`` on need ``row_need`` bytes together. Item i
    counts in the rows ``own_row`` from ``own_from[i]`` on. ``reserve`` entries of the trail are enough for a node.
    ``rule`` chooses the pair that a node decides: see ``_collision``.
    """

    size: Ints
    alignment: Ints
    fixed: Ints
    conflict_from: Ints
    upper_from: Ints
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
    """The changing part of a run, which the trail restores.

    ``decided`` is 1 for a conflict whose owner lies above the other item, -1 below, 0 as long as both may be.
    ``least_cause``, ``most_cause`` and ``decided_cause`` have a bit for each depth whose node has to do with it.
    ``weight`` counts the failures of a conflict, is never undone, and is kept from one run to the next. Items in
    the ``queue`` and ``dirty`` rows have changed since they were looked at. The trail keeps what an item had before a
    node, once for each node: ``least_stamp`` and ``most_stamp`` are the last nodes that did. A frame has decided
    ``frame_conflict`` after ``frame_mark`` entries of the trail; its other side is ``frame_side``, or 0 when that was
    tried. The register ``CAUSE`` is that of the last failure.
    """

    least: Ints
    most: Ints
    least_cause: Ints
    most_cause: Ints
    decided: Ints
    decided_cause: Ints
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
    trail_cause: Ints
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
        s.least_cause[i] = 0
        s.most_cause[i] = 0
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
    return _try_side(d, s, conflict, side, _BIT << min(depth, _DEEPEST))


def _turn_back(d: PairData, s: PairState) -> int:
    """Undo nodes up to one that the failure rests on and whose other side is not tried; try that.

    0 when it fails, -1 when there is none.
    """
    for k in range(s.registers[QUEUED]):
        s.is_queued[s.queue[k]] = 0
    s.registers[QUEUED] = 0
    for k in range(s.registers[DIRTY]):
        s.is_dirty[s.dirty[k]] = 0
    s.registers[DIRTY] = 0
    cause = s.registers[CAUSE]
    while s.registers[DEPTH] > 0:
        depth = s.registers[DEPTH] - 1
        bit = _BIT << min(depth, _DEEPEST)
        side = s.frame_side[depth]
        _undo(d, s, s.frame_mark[depth])
        if (cause & bit) != 0:
            _blame(d, s, s.frame_conflict[depth])
            if side != 0:
                s.frame_side[depth] = 0
                # Below, the bit may stand for nodes above this one, too.
                if depth <= _DEEPEST:
                    cause -= bit
                return _try_side(d, s, s.frame_conflict[depth], side, cause)
        s.registers[DEPTH] = depth
    return -1


def _try_side(d: PairData, s: PairState, conflict: int, side: int, cause: int) -> int:
    s.registers[NODES] += 1
    s.registers[STAMP] += 1
    _decide(d, s, conflict, side, cause)
    if _apply(d, s, conflict) == 0:
        return 0
    return _propagate(d, s)


def _collision(d: PairData, s: PairState) -> int:
    """The pair to decide, of those that collide where all items lie at their least offsets; -1 when none does.

    Rule 0: the pair with the least room on its better side. Rule 1: the one with the most weight for its room.
    """
    slack = 1 if d.rule == 0 else s.registers[CAPACITY] // _PARTS + 1
    found, most, best = -1, 0, 1
    # Most of these iterations end at once: they count for half.
    work = len(d.conflict_other) // 4
    for i in range(len(d.size)):
        least = s.least[i]
        for k in range(d.upper_from[i], d.conflict_from[i + 1]):
            if d.conflict_low[k] < least - s.least[d.conflict_other[k]] < d.conflict_high[k]:
                weight = 1 if d.rule == 0 else s.weight[k]
                work += 1
                room = slack + _room(d, s, k)
                # The larger one of weight / room and most / best.
                if weight * best > most * room:
                    found, most, best = k, weight, room
    s.registers[WORK] += work
    return found


def _room(d: PairData, s: PairState, conflict: int) -> int:
    """Bytes by which the two may still move if the better side is taken."""
    i, o = d.conflict_owner[conflict], d.conflict_other[conflict]
    above = s.least[o] + d.conflict_high[conflict]
    below = s.least[i] - d.conflict_low[conflict]
    return max(s.most[i] - above, s.most[o] - below)


def _propagate(d: PairData, s: PairState) -> int:
    """Draw all conclusions; 0 when an item or a section has no room left."""
    while True:
        while s.registers[QUEUED] > 0:
            s.registers[QUEUED] -= 1
            item = s.queue[s.registers[QUEUED]]
            s.is_queued[item] = 0
            if _push_neighbors(d, s, item) == 0:
                return 0
        if s.registers[DIRTY] == 0:
            return 1
        s.registers[DIRTY] -= 1
        row = s.dirty[s.registers[DIRTY]]
        s.is_dirty[row] = 0
        if _has_room(d, s, row) == 0:
            return 0


def _push_neighbors(d: PairData, s: PairState, item: int) -> int:
    """Decide the item's pairs where one side is left, and move what has been decided; 0 when it no longer fits."""
    s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        if s.decided[k] == 0:
            o = d.conflict_other[k]
            if s.least[item] - s.most[o] > d.conflict_low[k]:
                _decide(d, s, k, 1, s.least_cause[item] | s.most_cause[o])
            elif s.most[item] - s.least[o] < d.conflict_high[k]:
                _decide(d, s, k, -1, s.most_cause[item] | s.least_cause[o])
        if s.decided[k] != 0 and _apply(d, s, k) == 0:
            return 0
    return 1


def _decide(d: PairData, s: PairState, conflict: int, side: int, cause: int) -> None:
    mate = d.conflict_mate[conflict]
    _record(s, _DECIDED, conflict, 0, 0)
    s.decided[conflict] = side
    s.decided[mate] = -side
    s.decided_cause[conflict] = cause
    s.decided_cause[mate] = cause


def _apply(d: PairData, s: PairState, conflict: int) -> int:
    """Move both items of a decided pair to where it leaves them; 0 when one no longer fits."""
    upper, lower, apart = d.conflict_owner[conflict], d.conflict_other[conflict], d.conflict_high[conflict]
    if s.decided[conflict] == -1:
        upper, lower, apart = lower, upper, -d.conflict_low[conflict]
    is_open = 1
    if s.least[lower] + apart > s.least[upper]:
        is_open = _raise(d, s, upper, s.least[lower] + apart, s.decided_cause[conflict] | s.least_cause[lower])
    if is_open == 1 and s.most[upper] - apart < s.most[lower]:
        is_open = _lower(d, s, lower, s.most[upper] - apart, s.decided_cause[conflict] | s.most_cause[upper])
    if is_open == 0:
        _blame(d, s, conflict)
    return is_open


def _blame(d: PairData, s: PairState, conflict: int) -> None:
    s.weight[conflict] += 1
    s.weight[d.conflict_mate[conflict]] += 1


def _raise(d: PairData, s: PairState, item: int, offset: int, cause: int) -> int:
    """An item lies at this offset, higher than before, or above it; 0 when it no longer fits."""
    step = d.alignment[item]
    if step > 1:  # mostly it is not, and a division takes long
        offset = -(-offset // step) * step
    if offset > s.most[item]:
        s.registers[CAUSE] = cause | s.most_cause[item]
        return 0
    if s.least_stamp[item] != s.registers[STAMP]:
        s.least_stamp[item] = s.registers[STAMP]
        _record(s, _LEAST, item, s.least[item], s.least_cause[item])
    s.least[item] = offset
    s.least_cause[item] = cause
    _changed(d, s, item)
    return 1


def _lower(d: PairData, s: PairState, item: int, offset: int, cause: int) -> int:
    """An item lies at this offset, lower than before, or below it; 0 when it no longer fits."""
    step = d.alignment[item]
    if step > 1:
        offset = offset // step * step
    if offset < s.least[item]:
        s.registers[CAUSE] = cause | s.least_cause[item]
        return 0
    if s.most_stamp[item] != s.registers[STAMP]:
        s.most_stamp[item] = s.registers[STAMP]
        _record(s, _MOST, item, s.most[item], s.most_cause[item])
    s.most[item] = offset
    s.most_cause[item] = cause
    _changed(d, s, item)
    return 1


def _changed(d: PairData, s: PairState, item: int) -> None:
    if s.is_queued[item] == 0:
        s.is_queued[item] = 1
        s.queue[s.registers[QUEUED]] = item
        s.registers[QUEUED] += 1
    s.registers[WORK] += d.own_from[item + 1] - d.own_from[item]
    for k in range(d.own_from[item], d.own_from[item + 1]):
        row = d.own_row[k]
        if s.is_dirty[row] == 0:
            s.is_dirty[row] = 1
            s.dirty[s.registers[DIRTY]] = row
            s.registers[DIRTY] += 1


def _has_room(d: PairData, s: PairState, row: int) -> int:
    """Tell whether a section's bytes fit between the lowest of its items and the highest of their ends."""
    lowest, highest = NEVER, 0
    s.registers[WORK] += d.row_from[row + 1] - d.row_from[row]
    for k in range(d.row_from[row], d.row_from[row + 1]):
        i = d.row_item[k]
        lowest = min(lowest, s.least[i])
        highest = max(highest, s.most[i] + d.size[i])
    if highest - lowest >= d.row_need[row]:
        return 1
    s.registers[CAUSE] = 0
    for k in range(d.row_from[row], d.row_from[row + 1]):
        i = d.row_item[k]
        s.registers[CAUSE] |= s.least_cause[i] | s.most_cause[i]
    return 0


def _record(s: PairState, kind: int, at: int, value: int, cause: int) -> None:
    top = s.registers[TRAIL]
    s.trail_kind[top] = kind
    s.trail_at[top] = at
    s.trail_value[top] = value
    s.trail_cause[top] = cause
    s.registers[TRAIL] = top + 1


def _undo(d: PairData, s: PairState, mark: int) -> None:
    """Back to the state of so many entries of the trail."""
    s.registers[WORK] += s.registers[TRAIL] - mark
    for top in range(s.registers[TRAIL] - 1, mark - 1, -1):
        kind, at = s.trail_kind[top], s.trail_at[top]
        if kind == _LEAST:
            s.least[at] = s.trail_value[top]
            s.least_cause[at] = s.trail_cause[top]
        elif kind == _MOST:
            s.most[at] = s.trail_value[top]
            s.most_cause[at] = s.trail_cause[top]
        else:
            s.decided[at] = 0
            s.decided[d.conflict_mate[at]] = 0
    s.registers[TRAIL] = mark
