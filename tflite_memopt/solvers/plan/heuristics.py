"""Cheap strategies, each a pass or two over the items, and their table.

They place items one by one, each at an offset among those already placed. Items placed at once are mostly a single
item, or a *rigid group*: related items at the differences that their relations permit. Placed one by one, an item may
take the bytes that a later relative needs; a concatenation's inputs then lie everywhere but in its output. A group is
placed where all of its members are free. Each placed neighbor forbids one open interval of offsets, or a few where a
relation permits part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import lcm

import numpy as np
import numpy.typing as npt

from ..graph.alignment import aligned
from ..graph.interval import intersect
from ..graph.limits import SearchLimit
from .bounds import max_breadth, maximal_sections
from .problem import (
    Item,
    OffsetStrategy,
    Permissions,
    PlanProblem,
    Relation,
    RigidGroup,
    Solution,
    arena_bytes,
    may_differ_by,
)

Forbidden = list[tuple[int, int]]
"""Open intervals ``(low, high)`` of offsets in bytes, in any order."""
_UNLIMITED = 1 << 62


class Placement:
    """Offsets so far. Items with a given offset are placed first, by the constructor.

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

    def lowest(self, group: RigidGroup, floor: int = 0) -> int:
        """Lowest offset of the group, all its items at ``floor`` bytes or above, at which it is free (first fit)."""
        return next(self._free(group, floor))[1]

    def tightest(self, group: RigidGroup) -> int:
        """Offset in the range that leaves least room to move, else behind the last byte taken (best fit)."""
        return min(self._free(group, 0))[1]

    def finish(self) -> tuple[int, ...]:
        """Return all offsets. Every item must have been placed."""
        assert all(offset is not None for offset in self.offsets)
        return tuple(offset for offset in self.offsets if offset is not None)

    def _free(self, group: RigidGroup, floor: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of offsets at which the group is free, from the lowest on: the room to move, and the begin.

        All items of the group are at the floor or above it, and aligned.
        """
        alignment = lcm(*(self.items[index].alignment for index, _ in group)) if self._aligns else 1
        lowest = aligned(floor - min(shift for _, shift in group), alignment)
        for low, high in sorted(self._forbidden(group)):
            if low >= lowest:
                yield low - lowest, lowest
            if high > lowest:
                lowest = aligned(high, alignment)
        yield _UNLIMITED, lowest

    def _forbidden(self, group: RigidGroup) -> Forbidden:
        """Return the intervals of offsets of the group that some placed item forbids."""
        offsets = self.offsets
        return [
            (place + low - shift, place + high - shift)
            for index, shift in group
            for other, low, high in self._conflicts[index]
            if (place := offsets[other]) is not None
        ]


def singles(problem: PlanProblem) -> tuple[RigidGroup, ...]:
    """Return every item without a given offset on its own."""
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
    """Return the difference at which most bytes are shared: an overlap's distance, rounded up to the alignment."""
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
    """Tell whether no two members, one from the first group and one that joins it, are in each other's way."""
    for a in first:
        for b in joined.keys() - first.keys():
            if not intersect(items[a], items[b]):
                continue
            forbidden = permissions.get(a, {}).get(b, ((-items[a].size, items[b].size),))
            if not may_differ_by(joined[a] - joined[b], forbidden):
                return False
    return True


Greedy = Callable[[PlanProblem, Sequence[RigidGroup]], tuple[int, ...]]
"""Places units one by one. It chooses their order, and must give every item an offset."""


def naive(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """Return the offsets behind one another, above all given offsets, as in a runtime without a planner. O(n)."""
    frontier = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    offsets = []
    for item in problem.items:
        if item.offset is not None:
            offsets.append(item.offset)
            continue
        begin = aligned(frontier, item.alignment)
        offsets.append(begin)
        frontier = begin + item.size
    return Solution(tuple(offsets))


def tflm_greedy(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """TFLM's own planner, step by step, so that the stock head is known without running TFLM.

    Given offsets first, then largest first, each into the first gap. O(n^2), vectorized.

    Of equal sizes the later item goes first: TFLM fills its array from the back and sorts it stably. It knows no
    relations, and no alignment either: the sizes that it is given are aligned.
    Source: TFLM memory_planner/greedy_memory_planner.cc, ``CalculateOffsetsIfNeeded``, and
    micro_allocator.cc, ``CreatePlan`` (given offsets are taken as they are).
    """
    items, placement = problem.items, Placement(problem.plain, aligns=False)
    for unit in sorted(singles(problem), key=lambda unit: (-items[unit[0][0]].size, -unit[0][0])):
        placement.place(unit, placement.lowest(unit))
    return Solution(placement.finish())


def greedy_by_size(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """Largest first, each into the smallest gap that holds it; of equal sizes the one born first goes first. O(n^2).

    Groups of related items count by their largest.
    Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (MLSys 2020 workshop),
    section 5.2, "Greedy by Size for Offset Calculation".
    """
    return _best_variant(problem, _place_by_size)


def _place_by_size(problem: PlanProblem, units: Sequence[RigidGroup]) -> tuple[int, ...]:
    items, placement = problem.items, Placement(problem)

    def rank(unit: RigidGroup) -> tuple[int, int, int]:
        return min((-items[index].size, items[index].start, index) for index, _ in unit)

    for unit in sorted(units, key=rank):
        placement.place(unit, placement.tightest(unit))
    return placement.finish()


def greedy_by_breadth(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """Scopes with the most bytes alive first, in each the largest item first. O(n^2), vectorized.

    A group is placed whole at its first item's turn.
    Source: as ``greedy_by_size``, section 5.3, "Greedy by Breadth for Offset Calculation".
    """
    return _best_variant(problem, _place_by_breadth)


def _place_by_breadth(problem: PlanProblem, units: Sequence[RigidGroup]) -> tuple[int, ...]:
    items, placement = problem.items, Placement(problem)
    unit_of = {index: unit for unit in units for index, _ in unit}
    by_size = np.array(sorted(range(len(items)), key=lambda i: (-items[i].size, i)), np.int64)
    starts = np.array([items[i].start for i in by_size], np.int64)
    ends = np.array([items[i].end for i in by_size], np.int64)
    for scope, _ in sorted(maximal_sections(items), key=lambda pair: (-pair[1], pair[0])):
        for index in by_size[(starts <= scope) & (scope < ends)].tolist():
            if placement.offsets[index] is None:
                placement.place(unit_of[index], placement.tightest(unit_of[index]))
    return placement.finish()


def strip_packing_best_fit(problem: PlanProblem, limit: SearchLimit) -> Solution:
    """Fill the lowest part of a skyline over time with the item that lives longest there. O(n^2), vectorized.

    Given offsets are obstacles, not part of the skyline. With relations a unit may go below the skyline.
    Source: Sekiyama, Imamichi, Imai and Raymond, "Profile-guided memory optimization for deep neural networks"
    (arXiv 1804.10001), the best-fit heuristic of strip packing with the time axis fixed.
    """
    return _best_variant(problem, _pack)


def _pack(problem: PlanProblem, units: Sequence[RigidGroup]) -> tuple[int, ...]:
    items, placement = problem.items, Placement(problem)
    times = sorted({time for item in items for time in (item.start, item.end)})
    column = {time: position for position, time in enumerate(times)}
    order = sorted(units, key=lambda unit: _longest_first(items, unit))
    starts = np.array([column[min(items[i].start for i, _ in unit)] for unit in order], np.int64)
    ends = np.array([column[max(items[i].end for i, _ in unit)] for unit in order], np.int64)
    skyline = np.zeros(len(times), np.int64)
    left = len(order)
    while left:
        low, high = _lowest_line(skyline)
        fits = (starts >= low) & (ends <= high)
        choice = int(fits.argmax())
        if not fits[choice]:
            _lift(skyline, low, high)
            continue
        unit, floor = order[choice], 0 if problem.relations else int(skyline[low])
        offset = placement.lowest(unit, floor)
        placement.place(unit, offset)
        top = max(offset + shift + items[i].size for i, shift in unit)
        line = skyline[starts[choice] : ends[choice]]
        np.maximum(line, top, out=line)
        starts[choice] = -1  # a column that no line reaches: placed
        left -= 1
    return placement.finish()


def _longest_first(items: Sequence[Item], unit: RigidGroup) -> tuple[int, int, int]:
    start, end = min(items[i].start for i, _ in unit), max(items[i].end for i, _ in unit)
    return start - end, -max(items[i].size for i, _ in unit), start


def _lowest_line(skyline: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Columns ``[low, high)`` of the leftmost lowest stretch."""
    low = int(skyline.argmin())
    differs = skyline[low:] != skyline[low]
    return low, low + int(differs.argmax()) if differs.any() else len(skyline)


def _lift(skyline: npt.NDArray[np.int64], low: int, high: int) -> None:
    """Raise a stretch into which nothing fits to its lower neighbor."""
    neighbors = [int(skyline[column]) for column in (low - 1, high) if 0 <= column < len(skyline)]
    skyline[low:high] = min(neighbors)


def _best_variant(problem: PlanProblem, greedy: Greedy) -> Solution:
    """Return the smallest of the arenas without relations, with them, and on rigid groups.

    Relations help a greedy strategy or mislead it: so a permission never makes it worse than it is without.
    """
    best = greedy(problem.plain, singles(problem))
    if problem.relations:
        for offsets in (greedy(problem, singles(problem)), greedy(problem, _groups_of(problem))):
            best = min(best, offsets, key=lambda found: arena_bytes(problem, found))
    return Solution(best)


def _groups_of(problem: PlanProblem) -> tuple[RigidGroup, ...]:
    # A group that spans more than the best arena could only harm; the eighth is for alignments.
    bound = max_breadth(problem)
    return rigid_groups(problem, bound + bound // 8)


HEURISTICS: Mapping[str, OffsetStrategy] = {
    each.__name__: each for each in (naive, tflm_greedy, greedy_by_size, greedy_by_breadth, strip_packing_best_fit)
}
