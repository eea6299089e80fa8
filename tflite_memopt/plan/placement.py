"""What the strategies that place items one by one share: find an offset among those already placed.

What is placed at once is mostly a single item, or a *rigid group*: related items at the differences that their
relations permit. Placed one by one, an item may take the bytes that a later relative needs; a concatenation's inputs
then lie everywhere but in its output. A group is placed where all of its members are free. Each placed neighbor
forbids one open interval of offsets, or a few where a relation permits part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

from ..graph.alignment import aligned
from ..graph.interval import intersect
from .problem import Item, Permissions, PlanProblem, Relation, RigidGroup, may_differ_by

Forbidden = list[tuple[int, int]]
"""Open intervals ``(low, high)`` of offsets in bytes, in any order."""
_UNLIMITED = 1 << 62


class Placement:
    """Offsets found so far. Items with a given offset are placed first, by the constructor.

    Without ``aligns`` every offset is as good as another. One placement costs O(k log k) for the k items that are alive
    with it.
    """

    def __init__(self, problem: PlanProblem, aligns: bool = True) -> None:
        self.items = problem.items
        self.offsets: list[int | None] = [item.offset for item in problem.items]
        self._conflicts = problem.conflicts
        self._aligns = aligns

    def place(self, group: RigidGroup, offset: int) -> None:
        """Fix the offsets of a group's items, the group itself being at ``offset`` bytes."""
        for index, shift in group:
            self.offsets[index] = offset + shift

    def is_placed(self, index: int) -> bool:
        """Whether an item has its offset."""
        return self.offsets[index] is not None

    def lowest(self, group: RigidGroup, floor: int = 0) -> int:
        """Lowest offset of the group, all its items at ``floor`` bytes or above, at which it is free (first fit)."""
        return _lowest_offset(self._forbidden(group), *self._start(group, floor))

    def tightest(self, group: RigidGroup) -> int:
        """Offset in the range that leaves least room to move, else behind the last byte taken (best fit)."""
        return _tightest_offset(self._forbidden(group), *self._start(group, 0))

    def finish(self) -> tuple[int, ...]:
        """All offsets. Every item must have been placed."""
        assert all(offset is not None for offset in self.offsets)
        return tuple(offset for offset in self.offsets if offset is not None)

    def _start(self, group: RigidGroup, floor: int) -> tuple[int, int]:
        """The lowest offset that keeps every item of the group at the floor or above it, and the group's alignment."""
        alignment = lcm(*(self.items[index].alignment for index, _ in group)) if self._aligns else 1
        return floor - min(shift for _, shift in group), alignment

    def _forbidden(self, group: RigidGroup) -> Forbidden:
        """Intervals of offsets of the group that some placed item forbids."""
        offsets = self.offsets
        return [
            (place + low - shift, place + high - shift)
            for index, shift in group
            for other, low, high in self._conflicts[index]
            if (place := offsets[other]) is not None
        ]


def _lowest_offset(forbidden: Forbidden, floor: int, alignment: int) -> int:
    """Lowest multiple of ``alignment`` that is at least ``floor`` and in none of the intervals (first fit)."""
    lowest = aligned(floor, alignment)
    for low, high in sorted(forbidden):
        if low >= lowest:
            break
        if high > lowest:
            lowest = aligned(high, alignment)
    return lowest


def _tightest_offset(forbidden: Forbidden, floor: int, alignment: int) -> int:
    """Begin of the free range that leaves least room to move; above everything when no other holds it (best fit)."""
    lowest = aligned(floor, alignment)
    best, best_room = lowest, _UNLIMITED
    for low, high in sorted(forbidden):
        if lowest <= low and low - lowest < best_room:
            best, best_room = lowest, low - lowest
        if high > lowest:
            lowest = aligned(high, alignment)
    return best if best_room < _UNLIMITED else lowest


def singles(problem: PlanProblem) -> tuple[RigidGroup, ...]:
    """Every item without a given offset on its own."""
    return tuple(((index, 0),) for index, item in enumerate(problem.items) if item.offset is None)


def rigid_groups(problem: PlanProblem, most_bytes: int) -> tuple[RigidGroup, ...]:
    """Units that hold every item without a given offset once; none of several items spans more than ``most_bytes``.

    Relations that let most bytes be shared go first. Each joins two groups where all members stay compatible.
    """
    permissions = problem.permissions
    group_of: dict[int, dict[int, int]] = {unit[0][0]: {unit[0][0]: 0} for unit in singles(problem)}
    for relation in sorted(problem.relations, key=lambda r: -_shared_bytes(problem, r)):
        first, second = group_of.get(relation.first), group_of.get(relation.second)
        is_alive = relation.second in permissions.get(relation.first, {})
        if first is None or second is None or first is second or not is_alive:
            continue
        joined = _joined(problem.items, first, second, relation)
        if joined and _span(problem.items, joined) <= most_bytes and _agree(problem.items, permissions, first, joined):
            group_of.update(dict.fromkeys(joined, joined))
    # The leader is a group's first key and lies at 0: all alignments are met there, others may lie lower.
    return tuple(tuple(group.items()) for index, group in group_of.items() if next(iter(group)) == index)


def _difference(items: Sequence[Item], relation: Relation) -> int:
    """The difference at which most bytes are shared: an overlap's distance, rounded up to the alignment."""
    alignment = max(items[relation.first].alignment, items[relation.second].alignment)
    return relation.distance if relation.exact else aligned(relation.distance, alignment)


def _shared_bytes(problem: PlanProblem, relation: Relation) -> int:
    first, second = problem.items[relation.first], problem.items[relation.second]
    difference = _difference(problem.items, relation)
    return min(difference + first.size, second.size) - max(difference, 0)


def _joined(
    items: Sequence[Item], first: dict[int, int], second: dict[int, int], relation: Relation
) -> dict[int, int] | None:
    """Both groups in the frame of the first one's leader, or None where alignments rule that out."""
    shift = first[relation.first] - _difference(items, relation) - second[relation.second]
    moved = {index: offset + shift for index, offset in second.items()}
    if any(offset % items[index].alignment for index, offset in moved.items()):
        return None
    return first | moved


def _span(items: Sequence[Item], group: dict[int, int]) -> int:
    return max(offset + items[i].size for i, offset in group.items()) - min(group.values())


def _agree(items: Sequence[Item], permissions: Permissions, first: dict[int, int], joined: dict[int, int]) -> bool:
    """Whether no two members, one from the first group and one that joins it, are in each other's way."""
    for a in first:
        for b in joined.keys() - first.keys():
            if not intersect(items[a], items[b]):
                continue
            forbidden = permissions.get(a, {}).get(b, ((-items[a].size, items[b].size),))
            if not may_differ_by(joined[a] - joined[b], forbidden):
                return False
    return True
