"""The tree: depth-first search for offsets within a capacity, over canonical placements. The only copy of it.

It is for items that share no bytes; ``disjunctive`` is for those that may.

The same source runs as plain Python on lists, and compiled on arrays (see ``compiled``): so it keeps to integers, loops
and indexing.

If a placement exists, there is a canonical one: every item lies at 0 or on another item, its support. A node of the
tree is a set of placed items. Every other item has a lower bound ``least`` and a candidate: the lowest offset that
something placed supports, where it has not been tried yet. The node takes the item with the lowest candidate, and has
two children: the item lies there (*place*), or it does not (*wait*), so that it rests on an item that is still to come.
No set of placed items is reached twice that way. A node is closed when an item no longer fits below the capacity, or
when a section cannot hold what is left of it above the lowest of its items (section inference). Where the last item is
placed that crosses a point in time, both sides are solved one after the other (decomposition), each with an order of
its own.

Source: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023),
for canonical solutions, section inference, temporal decomposition and the orderings. Decomposition inside the search
is this project's.

It is one file, longer than others here: compiled functions reach those of another module only by declarations that
the plain source cannot carry, so that a split would make every call of the inner loop one of Python.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

Ints = MutableSequence[int]
"""A list when run plain, an array of 64-bit integers when compiled."""

NEVER = 1 << 60
"""Above all offsets: a candidate that does not exist."""

# How a run ends.
FOUND, NONE, LIMIT, FULL = 0, 1, 2, 3
# What a node comes to.
_COMPLETE, _CLOSED, _OPEN = 0, 1, 2
# Positions in ``TreeState.registers``.
CAPACITY, DEPTH, TRAIL, PARTS, DIRTY, NODES, WORK = 0, 1, 2, 3, 4, 5, 6
# What an entry of the trail restores.
_LEAST, _CANDIDATE, _PLACED, _RANK = 0, 1, 2, 3


class TreeData:
    """What stays as it is during a run. All sizes and offsets are bytes.

    Item i is alive in the sections ``[first[i], last[i])``. Its conflicts are the entries
    ``[conflict_from[i], conflict_from[i + 1])``: ``offset[i] - offset[other]`` may not lie in the open interval
    ``(low, high)``, which holds 0. ``fixed`` is the given offset, or -1.

    A row is a section: the items ``row_item`` from ``row_from`` on. Item i counts in the rows ``count_row`` from
    ``count_from[i]`` on, for ``count_bytes``. ``row_load`` is a row's sum, which may exceed the capacity by
    ``row_spare``.

    ``order`` ranks items by size and life, highest first; ``by_load`` puts the fullest section that an item is alive in
    before that. ``reserve`` entries of the trail are enough for a node. The rest are switches.
    """

    size: Ints
    alignment: Ints
    fixed: Ints
    first: Ints
    last: Ints
    conflict_from: Ints
    conflict_other: Ints
    conflict_low: Ints
    conflict_high: Ints
    count_from: Ints
    count_row: Ints
    count_bytes: Ints
    row_from: Ints
    row_item: Ints
    row_load: Ints
    row_spare: Ints
    order: Ints
    by_load: int
    canonical: int
    decomposes: int
    ranks_anew: int
    infers: int
    reserve: int

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


class TreeState:
    """What changes, and is undone by the trail: a placed item's ``least`` is its offset.

    ``items`` is a permutation of which every frame owns the slice ``[low, high)``. A frame has placed ``item`` at
    ``offset``, after ``base`` and before ``mark`` entries of the trail; its parts lie in ``parts`` from ``begin`` on,
    and the part at ``turn`` is being solved. ``left`` is the load of each row that is not placed yet, ``crossing``
    the number of items not placed that are alive on both sides of the end of a section.
    """

    least: Ints
    candidate: Ints
    placed: Ints
    left: Ints
    crossing: Ints
    rank: Ints
    items: Ints
    keys: Ints
    spare: Ints
    trail_kind: Ints
    trail_at: Ints
    trail_value: Ints
    frame_low: Ints
    frame_high: Ints
    frame_base: Ints
    frame_mark: Ints
    frame_item: Ints
    frame_offset: Ints
    frame_begin: Ints
    frame_turn: Ints
    parts: Ints
    dirty: Ints
    is_dirty: Ints
    registers: Ints

    def __init__(self, tables: dict[str, Any]) -> None:
        for name, table in tables.items():
            setattr(self, name, table)


def start(d: TreeData, s: TreeState, capacity: int) -> None:
    """Begin a search anew within ``capacity`` bytes."""
    for i in range(len(d.size)):
        s.least[i] = max(d.fixed[i], 0)
        s.candidate[i] = s.least[i]
        s.placed[i] = 0
        s.items[i] = i
    for r in range(len(d.row_load)):
        s.left[r] = d.row_load[r]
        s.dirty[r] = r
        s.is_dirty[r] = 1
    for b in range(len(s.crossing)):
        s.crossing[b] = 0
    for i in range(len(d.size)):
        for b in range(d.first[i], d.last[i] - 1):
            s.crossing[b] += 1
    for k in range(len(s.registers)):
        s.registers[k] = 0
    s.registers[CAPACITY] = capacity
    s.registers[DEPTH] = -1
    s.registers[DIRTY] = len(d.row_load)
    _push(s, 0, len(d.size))
    _rank_slice(d, s, 0, len(d.size))


def run(d: TreeData, s: TreeState, nodes: int, work: int) -> int:
    """Go on until so many nodes have been visited, or so much work has been done, in all since ``start``.

    Work is counted in turns of the inner loops. FULL asks for a longer trail, and nothing is lost.
    """
    is_possible = 1
    for i in range(len(d.size)):
        if s.least[i] + d.size[i] > s.registers[CAPACITY]:
            is_possible = 0
    if is_possible == 0 and s.registers[DEPTH] <= 0:
        return NONE
    while s.registers[NODES] < nodes and s.registers[WORK] < work:
        if s.registers[TRAIL] + d.reserve > len(s.trail_kind):
            return FULL
        s.registers[NODES] += 1
        s.registers[WORK] += 10 + s.frame_high[s.registers[DEPTH]] - s.frame_low[s.registers[DEPTH]]
        state = _visit(d, s)
        if state == _COMPLETE and _finish(d, s) == 1:
            return FOUND
        if state == _CLOSED and _go_back(d, s) == 0:
            return NONE
    return LIMIT


def _push(s: TreeState, low: int, high: int) -> None:
    s.registers[DEPTH] += 1
    depth = s.registers[DEPTH]
    s.frame_low[depth] = low
    s.frame_high[depth] = high
    s.frame_base[depth] = s.registers[TRAIL]
    s.frame_begin[depth] = s.registers[PARTS]
    s.frame_turn[depth] = s.registers[PARTS]


def _visit(d: TreeData, s: TreeState) -> int:
    """One node: take the item with the lowest candidate, raise what waits, place the item."""
    depth = s.registers[DEPTH]
    low, high = s.frame_low[depth], s.frame_high[depth]
    if low == high:
        return _COMPLETE
    at = _lowest_candidate(s, low, high)
    if at < 0:
        return _CLOSED
    item = s.items[at]
    offset = s.candidate[item]
    if _raise_waiting(d, s, low, high, offset) == 0:
        _forget_dirty(s)
        return _CLOSED
    if _settle(d, s) == 0:
        return _CLOSED
    s.items[at], s.items[low] = s.items[low], item
    s.frame_mark[depth] = s.registers[TRAIL]
    s.frame_item[depth] = item
    s.frame_offset[depth] = offset
    if _place(d, s, item, offset) == 0:
        return _after_failure(d, s)
    _open_parts(d, s, item)
    return _OPEN


def _lowest_candidate(s: TreeState, low: int, high: int) -> int:
    """Position of the item to place next, -1 when nothing that is placed supports any."""
    items, candidate, rank = s.items, s.candidate, s.rank
    at, lowest, best = -1, NEVER, 0
    for k in range(low, high):
        i = items[k]
        c = candidate[i]
        if c < lowest or (c == lowest and c < NEVER and rank[i] < best):
            at, lowest, best = k, c, rank[i]
    return at


def _raise_waiting(d: TreeData, s: TreeState, low: int, high: int, floor: int) -> int:
    """Raise the items that wait to what they may rest on; 0 when one of them no longer fits.

    Nothing that is still to come lies below ``floor``.
    """
    for k in range(low, high):
        i = s.items[k]
        if s.least[i] <= floor and s.least[i] < s.candidate[i]:
            bound = min(s.candidate[i], _lowest_support(d, s, i, floor))
            if _raise(d, s, i, bound) == 0:
                return 0
    return 1


def _lowest_support(d: TreeData, s: TreeState, item: int, floor: int) -> int:
    """Lowest offset at which an item may rest on one that is not placed yet."""
    least, placed, other, high = s.least, s.placed, d.conflict_other, d.conflict_high
    s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
    found = NEVER
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        o = other[k]
        if placed[o] == 0:
            found = min(found, max(least[o], floor) + high[k])
    return _aligned(d, item, found)


def _aligned(d: TreeData, item: int, offset: int) -> int:
    step = d.alignment[item]
    return offset if step == 1 else -(-offset // step) * step


def _place(d: TreeData, s: TreeState, item: int, offset: int) -> int:
    """Fix an item; 0 when some other item or section no longer fits."""
    s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
    _record(s, _LEAST, item, s.least[item])
    _record(s, _PLACED, item, 0)
    s.least[item] = offset
    s.placed[item] = 1
    _count(d, s, item, -1)
    for k in range(d.count_from[item], d.count_from[item + 1]):
        _mark(s, d.count_row[k])
    other, low = d.conflict_other, d.conflict_low
    for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
        o = other[k]
        if s.placed[o] == 1:
            continue
        if _make_room(d, s, o, _aligned(d, o, offset - low[k])) == 0:
            _forget_dirty(s)
            return 0
    return _settle(d, s)


def _make_room(d: TreeData, s: TreeState, item: int, end: int) -> int:
    """An item must lie above one that has been placed below everything to come: that one may support it."""
    if d.canonical == 0:
        return _go_to(d, s, item, s.least[item])
    if s.least[item] > end:
        return 1
    _set_candidate(s, item, end)
    return _raise(d, s, item, end)


def _go_to(d: TreeData, s: TreeState, item: int, floor: int) -> int:
    """Not canonical: the item's candidate is the lowest offset from ``floor`` on; 0 when there is none."""
    least = _lowest_allowed(d, s, item, floor)
    _set_candidate(s, item, least)
    return _raise(d, s, item, least)


def _wait(d: TreeData, s: TreeState, item: int, offset: int) -> int:
    """The other child: the item does not lie at ``offset``. 0 when there is nowhere else for it."""
    if d.fixed[item] >= 0:
        return 0
    after = _aligned(d, item, offset + 1)
    if d.canonical == 0:
        is_open = _go_to(d, s, item, after)
    else:
        _set_candidate(s, item, NEVER)
        least = after if s.least[item] == offset else s.least[item]
        is_open = _raise(d, s, item, max(least, _lowest_support(d, s, item, offset)))
    if is_open == 0:
        _forget_dirty(s)
        return 0
    return _settle(d, s)


def _lowest_allowed(d: TreeData, s: TreeState, item: int, floor: int) -> int:
    """Lowest offset from ``floor`` on that all placed items allow."""
    least, placed, other, low, high = s.least, s.placed, d.conflict_other, d.conflict_low, d.conflict_high
    offset, before = _aligned(d, item, floor), -1
    while offset != before:
        before = offset
        s.registers[WORK] += d.conflict_from[item + 1] - d.conflict_from[item]
        for k in range(d.conflict_from[item], d.conflict_from[item + 1]):
            o = other[k]
            if placed[o] == 1 and low[k] < offset - least[o] < high[k]:
                offset = _aligned(d, item, least[o] + high[k])
    return offset


def _raise(d: TreeData, s: TreeState, item: int, bound: int) -> int:
    """Raise an item's least offset; 0 when it no longer fits. Its rows become dirty."""
    if bound <= s.least[item]:
        return 1
    if bound + d.size[item] > s.registers[CAPACITY] or (d.fixed[item] >= 0 and bound > d.fixed[item]):
        return 0
    _record(s, _LEAST, item, s.least[item])
    s.least[item] = bound
    for k in range(d.count_from[item], d.count_from[item + 1]):
        _mark(s, d.count_row[k])
    return 1


def _set_candidate(s: TreeState, item: int, offset: int) -> None:
    _record(s, _CANDIDATE, item, s.candidate[item])
    s.candidate[item] = offset


def _mark(s: TreeState, row: int) -> None:
    if s.is_dirty[row] == 0:
        s.is_dirty[row] = 1
        s.dirty[s.registers[DIRTY]] = row
        s.registers[DIRTY] += 1


def _forget_dirty(s: TreeState) -> None:
    for k in range(s.registers[DIRTY]):
        s.is_dirty[s.dirty[k]] = 0
    s.registers[DIRTY] = 0


def _settle(d: TreeData, s: TreeState) -> int:
    """Section inference: 0 when a dirty row cannot hold what is left of it above its lowest item."""
    least, placed, row_item = s.least, s.placed, d.row_item
    is_open = 1
    for k in range(s.registers[DIRTY] * d.infers):
        row = s.dirty[k]
        if s.left[row] == 0:
            continue
        s.registers[WORK] += d.row_from[row + 1] - d.row_from[row]
        room = s.registers[CAPACITY] + d.row_spare[row] - s.left[row]
        lowest = NEVER
        for m in range(d.row_from[row], d.row_from[row + 1]):
            i = row_item[m]
            if placed[i] == 0 and least[i] < lowest:
                lowest = least[i]
                if lowest <= room:
                    break
        if lowest > room:
            is_open = 0
            break
    _forget_dirty(s)
    return is_open


def _count(d: TreeData, s: TreeState, item: int, sign: int) -> None:
    """Take an item out of its rows and of the points in time that it crosses (-1), or put it back (1)."""
    for k in range(d.count_from[item], d.count_from[item + 1]):
        s.left[d.count_row[k]] += sign * d.count_bytes[k]
    for b in range(d.first[item], d.last[item] - 1):
        s.crossing[b] += sign


def _record(s: TreeState, kind: int, item: int, value: int) -> None:
    top = s.registers[TRAIL]
    s.trail_kind[top] = kind
    s.trail_at[top] = item
    s.trail_value[top] = value
    s.registers[TRAIL] = top + 1


def _undo(d: TreeData, s: TreeState, mark: int) -> None:
    """Back to the state of so many entries of the trail."""
    for top in range(s.registers[TRAIL] - 1, mark - 1, -1):
        kind, item, value = s.trail_kind[top], s.trail_at[top], s.trail_value[top]
        if kind == _LEAST:
            s.least[item] = value
        elif kind == _CANDIDATE:
            s.candidate[item] = value
        elif kind == _RANK:
            s.rank[item] = value
        else:
            s.placed[item] = 0
            _count(d, s, item, 1)
    s.registers[TRAIL] = mark


def _open_parts(d: TreeData, s: TreeState, item: int) -> None:
    """Go on with what is left: as a whole, or part by part where the item was the last to cross points in time."""
    depth = s.registers[DEPTH]
    low, high = s.frame_low[depth] + 1, s.frame_high[depth]
    begin = s.registers[PARTS]
    count, is_new = 0, 0
    for b in range(d.first[item], (d.last[item] - 1) * d.decomposes):
        if s.crossing[b] == 0:
            is_new = 1
            at = _split(d, s, low, high, b + 1)
            if low < at < high:
                s.parts[begin + count] = low
                count += 1
                low = at
    s.parts[begin + count] = low
    s.parts[begin + count + 1] = high
    s.frame_begin[depth] = begin
    s.frame_turn[depth] = begin
    s.registers[PARTS] = begin + count + 2
    _push(s, s.parts[begin], s.parts[begin + 1])
    if d.ranks_anew == 1 and is_new == 1:
        _rank_slice(d, s, s.parts[begin], s.parts[begin + 1])


def _split(d: TreeData, s: TreeState, low: int, high: int, section: int) -> int:
    """Move the items before a section to the front of a slice, in their order; where the others begin."""
    at, kept = low, 0
    for k in range(low, high):
        i = s.items[k]
        if d.first[i] < section:
            s.items[at] = i
            at += 1
        else:
            s.spare[kept] = i
            kept += 1
    for k in range(kept):
        s.items[at + k] = s.spare[k]
    return at


def _finish(d: TreeData, s: TreeState) -> int:
    """The slice on top is placed: go on with the next part of the frame below; 1 when there is none anywhere."""
    while s.registers[DEPTH] > 0:
        s.registers[DEPTH] -= 1
        depth = s.registers[DEPTH]
        s.frame_turn[depth] += 1
        turn = s.frame_turn[depth]
        if _parts_end(s, depth) > turn + 1:
            low, high = s.parts[turn], s.parts[turn + 1]
            _push(s, low, high)
            if d.ranks_anew == 1:
                _rank_slice(d, s, low, high)
            return 0
    return 1


def _parts_end(s: TreeState, depth: int) -> int:
    """Where the list of a frame's parts ends: with the end of the frame's slice."""
    end = s.frame_begin[depth]
    while s.parts[end] != s.frame_high[depth] or end == s.frame_begin[depth]:
        end += 1
    return end + 1


def _go_back(d: TreeData, s: TreeState) -> int:
    """The node on top is closed: the frame below turns to its other child, or is closed too. 0 at the root."""
    while True:
        depth = s.registers[DEPTH]
        _undo(d, s, s.frame_base[depth])
        s.registers[DEPTH] = depth - 1
        if depth == 0:
            return 0
        if _after_failure(d, s) == _OPEN:
            return 1


def _after_failure(d: TreeData, s: TreeState) -> int:
    """The placement of the frame on top failed: its item waits."""
    depth = s.registers[DEPTH]
    s.registers[PARTS] = s.frame_begin[depth]
    _undo(d, s, s.frame_mark[depth])
    return _OPEN if _wait(d, s, s.frame_item[depth], s.frame_offset[depth]) == 1 else _CLOSED


def _rank_slice(d: TreeData, s: TreeState, low: int, high: int) -> None:
    """Rank a slice's items among themselves, by what their sections still have to hold and by size and life."""
    for k in range(low, high):
        i = s.items[k]
        load = 0
        for m in range(d.count_from[i], d.count_from[i + 1]):
            load = max(load, s.left[d.count_row[m]])
        if d.by_load == 1:
            s.keys[i] = load * len(d.size) + d.order[i]
        else:
            s.keys[i] = d.order[i] * (s.registers[CAPACITY] + 1) + min(load, s.registers[CAPACITY])
    _sort_slice(s, low, high)
    for k in range(low, high):
        i = s.items[k]
        if s.rank[i] != k:
            _record(s, _RANK, i, s.rank[i])
            s.rank[i] = k


def _sort_slice(s: TreeState, low: int, high: int) -> None:
    """Highest key first, of equal ones the item with the lower number: Shell's sort."""
    items, keys = s.items, s.keys
    gap = 1
    while 3 * gap < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(low + gap, high):
            i = items[k]
            at = k - gap
            while at >= low and (keys[items[at]] < keys[i] or (keys[items[at]] == keys[i] and items[at] > i)):
                items[at + gap] = items[at]
                at -= gap
            items[at + gap] = i
        gap //= 3
