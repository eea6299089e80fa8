"""Strip packing best-fit: fill the lowest part of a skyline over time with the item that lives longest there.

Source: Sekiyama, Imamichi, Imai and Raymond, "Profile-guided memory optimization for deep neural networks"
(arXiv 1804.10001), the best-fit heuristic of strip packing with the time axis fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..graph.search_limit import SearchLimit
from .placement import Placement
from .problem import Candidate, Item, PlanProblem, RigidGroup
from .variants import best_variant


def strip_packing_best_fit(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes. O(n^2), vectorised.

    Given offsets are obstacles, not part of the skyline. With relations a unit may go below the skyline.
    """
    return best_variant(problem, _pack)


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
    """Raise a stretch into which nothing fits to its lower neighbour."""
    neighbours = [int(skyline[column]) for column in (low - 1, high) if 0 <= column < len(skyline)]
    skyline[low:high] = min(neighbours)
