"""Shared objects: buffers that tensors share whole, such as GPU textures; no offsets.

Each item gets a whole object of which it is the only user while it is alive. An object is as large as its largest
item; what is to be small is the sum of the objects' sizes in bytes. Items are those of the offset problem; their
alignment, given offset and relations play no part.
Sources: [1] Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", section 4;
[2] Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (2019), section 3.3.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ..errors import ErrorKind, InfeasibleError, UsageError
from ..solvers.graph.interval import intersect
from ..solvers.graph.limits import now
from ..solvers.plan.bounds import maximal_sections
from ..solvers.plan.problem import Item

Items = tuple[Item, ...]
ObjectStrategy = Callable[[Items], tuple[int, ...]]
"""A strategy gives the object (0, 1, ...) of each item. ``solve`` checks and wraps it."""


@dataclass(frozen=True)
class Assignment:
    """``objects[i]`` is item i's object and ``sizes[k]`` the bytes of object k, ``total_bytes`` in all.

    ``lower_bound`` is the sum of positional maxima; ``optimal`` says that the two are equal.
    """

    objects: tuple[int, ...]
    sizes: tuple[int, ...]
    total_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float


def object_sizes(items: Sequence[Item], objects: Sequence[int]) -> tuple[int, ...]:
    """Return the bytes of each object: its largest item."""
    sizes = [0] * (max(objects, default=-1) + 1)
    for item, number in zip(items, objects, strict=True):
        sizes[number] = max(sizes[number], item.size)
    return tuple(sizes)


def positional_maxima(items: Sequence[Item]) -> tuple[int, ...]:
    """Return the largest first, second, third, ... size among the items alive in one scope, in bytes.

    Their sum bounds the objects from below. O(n * items alive at once). Source: [1], sections 3 and 4.1.
    """
    births = [(item.start, 1, item.size) for item in items]
    deaths = [(item.end, 0, item.size) for item in items]
    ascending: list[int] = []
    maxima: list[int] = []
    for _, is_birth, size in sorted(births + deaths):
        if not is_birth:
            del ascending[bisect_left(ascending, size)]
            continue
        insort(ascending, size)
        descending = ascending[::-1]
        longer = descending[len(maxima) :]
        maxima = [max(pair) for pair in zip(maxima, descending, strict=False)] + maxima[len(descending) :] + longer
    return tuple(maxima)


def check_objects(items: Sequence[Item], objects: Sequence[int]) -> None:
    """Raise InfeasibleError unless each item has an object, numbered without gaps, that no other uses meanwhile."""
    if len(objects) != len(items):
        raise InfeasibleError(f"{len(objects)} objects are given for {len(items)} items", ErrorKind.COUNT)
    if set(objects) != set(range(len(set(objects)))):
        raise InfeasibleError(
            f"objects must be numbered from 0 on without gaps, not {sorted(set(objects))}", ErrorKind.PLACE
        )
    users: dict[int, list[int]] = {}
    for index, number in enumerate(objects):
        users.setdefault(number, []).append(index)
    for number, indices in users.items():
        for a, b in combinations(indices, 2):
            if intersect(items[a], items[b]):
                raise InfeasibleError(
                    f"items {a} and {b} are alive at the same time and share object {number}", ErrorKind.OVERLAP
                )


class Objects:
    """Objects so far. ``sizes[k]`` is object k's bytes; its users are kept by start and never meet."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._starts: list[list[int]] = []
        self._ends: list[list[int]] = []
        self.sizes: list[int] = []
        self.object_of: dict[int, int] = {}

    def suitable(self, index: int) -> list[int]:
        """Objects that nobody uses while the item is alive. O(objects * log items)."""
        return [number for number in range(len(self.sizes)) if self.idle_scopes(number, index) is not None]

    def idle_scopes(self, number: int, index: int) -> int | None:
        """Scopes between the item's life and the nearest use of the object; None when the two intersect."""
        item, starts, ends = self._items[index], self._starts[number], self._ends[number]
        later = bisect_left(starts, item.start)
        if (later < len(starts) and starts[later] < item.end) or (later and ends[later - 1] > item.start):
            return None
        gaps = [starts[later] - item.end] if later < len(starts) else []
        gaps += [item.start - ends[later - 1]] if later else []
        return min(gaps)

    def use(self, index: int, number: int | None) -> None:
        """Give the item an object, which grows if it must; None makes a new one."""
        item = self._items[index]
        if number is None:
            number = len(self.sizes)
            self.sizes.append(0)
            self._starts.append([])
            self._ends.append([])
        position = bisect_left(self._starts[number], item.start)
        self._starts[number].insert(position, item.start)
        self._ends[number].insert(position, item.end)
        self.sizes[number] = max(self.sizes[number], item.size)
        self.object_of[index] = number

    def best_fit(self, index: int) -> int | None:
        """Return the smallest suitable object that is large enough, else the largest suitable one, else None."""
        size, suitable = self._items[index].size, self.suitable(index)
        enough = [number for number in suitable if self.sizes[number] >= size]
        if enough:
            return min(enough, key=lambda number: self.sizes[number])
        return max(suitable, key=lambda number: self.sizes[number], default=None)

    def finish(self) -> tuple[int, ...]:
        """Return the object of each item. Every item must have one."""
        return tuple(self.object_of[index] for index in range(len(self._items)))


def greedy(items: Items) -> tuple[int, ...]:
    """In execution order: each item takes the free object whose size is closest to its own. O(n * objects).

    Source: [2].
    """
    objects = Objects(items)
    for index in sorted(range(len(items)), key=lambda i: (items[i].start, i)):
        size = items[index].size
        closest = min(objects.suitable(index), key=lambda number: abs(objects.sizes[number] - size), default=None)
        objects.use(index, closest)
    return objects.finish()


def greedy_by_size(items: Items) -> tuple[int, ...]:
    """Largest first, each into the smallest free object; objects never grow. O(n * objects). Source: [1], section 4.3.

    Of equal sizes the one born first goes first.
    """
    objects = Objects(items)
    for index in sorted(range(len(items)), key=lambda i: (-items[i].size, items[i].start, i)):
        objects.use(index, objects.best_fit(index))
    return objects.finish()


def greedy_by_breadth(items: Items) -> tuple[int, ...]:
    """Scopes with most bytes alive first, in each the largest item first. O(n * (scopes + objects)).

    Source: [1], section 4.2.
    """
    objects = Objects(items)
    by_size = sorted(range(len(items)), key=lambda i: (-items[i].size, i))
    for scope, _ in sorted(maximal_sections(items), key=lambda pair: (-pair[1], pair[0])):
        for index in by_size:
            if items[index].start <= scope < items[index].end and index not in objects.object_of:
                objects.use(index, objects.best_fit(index))
    return objects.finish()


def greedy_by_size_improved(items: Items) -> tuple[int, ...]:
    """Stages between the positional maxima; in a stage the pair with the least idle time.

    Items of a stage count as of one size. First those as large as the first positional maximum, then those between it
    and the second, then those as large as the second, and so on. O(n * objects * largest stage). Source: [1], section
    4.4.
    """
    objects, maxima = Objects(items), positional_maxima(items)
    stages: dict[tuple[int, bool], list[int]] = {}
    for index in sorted(range(len(items)), key=lambda i: (-items[i].size, items[i].start, i)):
        size = items[index].size
        stages.setdefault((sum(limit > size for limit in maxima), size not in maxima), []).append(index)
    # Larger than the k-th maximum but smaller than the one before: the same count, and before its equals.
    for key in sorted(stages, key=lambda stage: (stage[0], not stage[1])):
        _fill_stage(items, objects, stages[key])
    return objects.finish()


def _fill_stage(items: Items, objects: Objects, stage: Sequence[int]) -> None:
    left = list(stage)
    while left:
        pairs = [(gap, left.index(i), i, number) for i in left for gap, number in _choices(items, objects, i)]
        if pairs:
            _, _, index, number = min(pairs)
            objects.use(index, number)
        else:
            index = left[0]
            objects.use(index, objects.best_fit(index))
        left.remove(index)


def _choices(items: Items, objects: Objects, index: int) -> list[tuple[int, int]]:
    """(idle scopes, object) of each object that is free for the item and large enough."""
    large = (number for number, size in enumerate(objects.sizes) if size >= items[index].size)
    gaps = ((objects.idle_scopes(number, index), number) for number in large)
    return [(gap, number) for gap, number in gaps if gap is not None]


# scipy has a solver for it (optimize.linear_sum_assignment); nothing else in the package needs its wheel of 35 MB.
_NEVER = 2**60
MOST_ITEMS = 2000
"""The table of costs is quadratic: 64 MB at this size."""


def min_cost_flow(items: Items) -> tuple[int, ...]:
    """Chains of items that use one object after another, at the least sum of growths. Source: [2].

    Item j costs its own size when it opens an object, and ``max(0, size[j] - size[i])`` when it follows item i. A flow
    of one unit into each item, at most one out of each, is an assignment problem; shortest augmenting paths solve it
    exactly. The growths of a chain add up to at least its largest item, so the objects are never larger than the cost.
    O(n^3) worst case, a row of n costs at a time vectorized; above 2,000 items as ``greedy``.
    """
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


STRATEGIES: Mapping[str, ObjectStrategy] = {
    "greedy": greedy,
    "greedy_by_breadth": greedy_by_breadth,
    "greedy_by_size": greedy_by_size,
    "greedy_by_size_improved": greedy_by_size_improved,
    "min_cost_flow": min_cost_flow,
}
BEST = "best"
"""The two strategies that the paper's section 7 recommends; the better result is taken."""
BEST_OF = ("greedy_by_size_improved", "greedy_by_breadth")
NAMES = (BEST, *STRATEGIES)


def solve(items: Items, method: str = BEST) -> Assignment:
    """Assign objects by a named strategy; the result is checked. Raises UsageError for an unknown name.

    The result's ``method`` says so where min_cost_flow left the items to greedy.
    """
    if method == BEST:
        return min((solve(items, name) for name in BEST_OF), key=lambda found: found.total_bytes)
    if method not in STRATEGIES:
        raise UsageError(
            f"unknown shared-object planner '{method}'; choose one of {', '.join(NAMES)}", ErrorKind.UNKNOWN
        )
    started = now()
    objects = STRATEGIES[method](items)
    seconds = now() - started
    check_objects(items, objects)
    sizes, bound = object_sizes(items, objects), sum(positional_maxima(items))
    return Assignment(objects, sizes, sum(sizes), bound, sum(sizes) == bound, _as_run(method, items), seconds)


def _as_run(method: str, items: Items) -> str:
    """Return the name of a strategy, and what ran in its place."""
    if method == "min_cost_flow" and len(items) > MOST_ITEMS:
        return f"{method} (as greedy: more than {MOST_ITEMS:,} items)"
    return method
