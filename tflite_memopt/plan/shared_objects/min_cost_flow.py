"""Min-cost flow: chains of items that use one object after another, at the least sum of growths.

Item j costs its own size when it opens an object, and ``max(0, size[j] - size[i])`` when it follows item i. A flow
of one unit into each item, at most one out of each, is an assignment problem; shortest augmenting paths solve it
exactly. The growths of a chain add up to at least its largest item, so the objects are never larger than the cost.
scipy has a solver for it (``optimize.linear_sum_assignment``); nothing else in the package needs scipy, and 40 lines
are cheaper for every user than its wheel of 35 MB.
Source: Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (2019), section 3.3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .greedy import greedy
from .problem import Items

_NEVER = 2**60
MOST_ITEMS = 2000
"""The table of costs is quadratic: 64 MB at this size."""


def min_cost_flow(items: Items) -> tuple[int, ...]:
    """Objects of items. O(n^3) worst case, a row of n costs at a time vectorised; above 2,000 items as ``greedy``."""
    if len(items) > MOST_ITEMS:
        return greedy(items)
    previous = _cheapest_predecessors(_costs(items))
    object_of: dict[int, int] = {}
    for index in sorted(range(len(items)), key=lambda i: items[i].start):
        before = previous[index]
        object_of[index] = object_of[before] if before < len(items) else len(set(object_of.values()))
    return tuple(object_of[index] for index in range(len(items)))


def _costs(items: Items) -> npt.NDArray[np.int64]:
    """Cost of item (row) after item (column); column n + i opens an object for item i."""
    count = len(items)
    sizes = np.array([item.size for item in items], np.int64)
    starts = np.array([item.start for item in items], np.int64)
    ends = np.array([item.end for item in items], np.int64)
    follow = np.maximum(sizes[:, None] - sizes[None, :], 0)
    follow[starts[:, None] < ends[None, :]] = _NEVER
    fresh = np.full((count, count), _NEVER, np.int64)
    np.fill_diagonal(fresh, sizes)
    return np.hstack([follow, fresh])


def _cheapest_predecessors(costs: npt.NDArray[np.int64]) -> list[int]:
    """The column of each row in the cheapest assignment (Hungarian method with potentials, Jonker and Volgenant)."""
    rows, columns = costs.shape
    row_potential, column_potential = np.zeros(rows, np.int64), np.zeros(columns, np.int64)
    row_of = np.full(columns, -1, np.int64)
    for row in range(rows):
        _augment(row, costs, row_potential, column_potential, row_of)
    column_of = {int(row): column for column, row in enumerate(row_of) if row >= 0}
    return [column_of[row] for row in range(rows)]


def _augment(
    start: int,
    costs: npt.NDArray[np.int64],
    row_potential: npt.NDArray[np.int64],
    column_potential: npt.NDArray[np.int64],
    row_of: npt.NDArray[np.int64],
) -> None:
    """One more row, by the shortest path of reduced costs to a free column."""
    distance = np.full(len(row_of), 2 * _NEVER, np.int64)
    reached_from = np.full(len(row_of), -1, np.int64)
    done = np.zeros(len(row_of), bool)
    row, column, so_far = start, -1, 0
    path_rows, path_lengths = [start], [0]
    while True:
        reduced = so_far + costs[row] - row_potential[row] - column_potential
        closer = ~done & (reduced < distance)
        distance[closer], reached_from[closer] = reduced[closer], column
        column = int(np.where(done, 4 * _NEVER - 1, distance).argmin())
        so_far = int(distance[column])
        done[column] = True
        if row_of[column] < 0:
            break
        row = int(row_of[column])
        path_rows.append(row)
        path_lengths.append(so_far)
    row_potential[path_rows] += so_far - np.array(path_lengths, np.int64)
    column_potential[done] -= so_far - distance[done]
    while column >= 0:
        before = int(reached_from[column])
        row_of[column] = start if before < 0 else row_of[before]
        column = before
