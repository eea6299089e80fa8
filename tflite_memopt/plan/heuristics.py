"""Cheap strategies, each a pass or two over the items, and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from .bounds import max_breadth, maximal_sections
from .placement import Placement, rigid_groups, singles
from .problem import Candidate, Item, OffsetStrategy, PlanProblem, RigidGroup, arena_bytes

Greedy = Callable[[PlanProblem, Sequence[RigidGroup]], tuple[int, ...]]
"""Places units one by one. It chooses their order, and must give every item an offset."""


def naive(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets behind one another, above all given offsets: what a runtime without a planner takes. O(n)."""
    frontier = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    offsets = []
    for item in problem.items:
        if item.offset is not None:
            offsets.append(item.offset)
            continue
        begin = aligned(frontier, item.alignment)
        offsets.append(begin)
        frontier = begin + item.size
    return Candidate(tuple(offsets))


def tflm_greedy(problem: PlanProblem, limit: SearchLimit) -> Candidate:
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
    return Candidate(placement.finish())


def greedy_by_size(problem: PlanProblem, limit: SearchLimit) -> Candidate:
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


def greedy_by_breadth(problem: PlanProblem, limit: SearchLimit) -> Candidate:
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
            if not placement.is_placed(index):
                placement.place(unit_of[index], placement.tightest(unit_of[index]))
    return placement.finish()


def strip_packing_best_fit(problem: PlanProblem, limit: SearchLimit) -> Candidate:
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


def _best_variant(problem: PlanProblem, greedy: Greedy) -> Candidate:
    """The smallest of the arenas without relations, with them, and on rigid groups.

    Relations help a greedy strategy or mislead it: so a permission never makes it worse than it is without.
    """
    best = greedy(problem.plain, singles(problem))
    if problem.relations:
        for offsets in (greedy(problem, singles(problem)), greedy(problem, _groups_of(problem))):
            best = min(best, offsets, key=lambda found: arena_bytes(problem, found))
    return Candidate(best)


def _groups_of(problem: PlanProblem) -> tuple[RigidGroup, ...]:
    # A group that spans more than the best arena could only harm; the eighth is for alignments.
    bound = max_breadth(problem)
    return rigid_groups(problem, bound + bound // 8)


HEURISTICS: Mapping[str, OffsetStrategy] = {
    "naive": naive,
    "tflm_greedy": tflm_greedy,
    "greedy_by_size": greedy_by_size,
    "greedy_by_breadth": greedy_by_breadth,
    "strip_packing_best_fit": strip_packing_best_fit,
}
