"""Relations as forbidden differences: the one place that knows what a permission takes away.

Two items alive at the same time may not share bytes, so the difference ``offset[i] - offset[j]`` may not lie in
the open interval ``(-size[i], size[j])``. A permission cuts that interval: an overlap takes one of its ends away, a
view or in-place takes a single point out of its middle. What is left is at most a few open intervals a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ..graph.interval import intersect

if TYPE_CHECKING:
    from .problem import Item, PlanProblem, Relation

Intervals = tuple[tuple[int, int], ...]
"""Open intervals ``(low, high)`` of differences in bytes that are forbidden, ascending."""
Permissions = Mapping[int, Mapping[int, Intervals]]
"""``permissions[i][j]``: what stays forbidden for ``offset[i] - offset[j]``; only pairs that have a relation."""


def forbidden_differences(problem: PlanProblem) -> Permissions:
    """The intervals of every related pair that is alive at the same time, seen from both of its items."""
    pairs: dict[tuple[int, int], list[Relation]] = {}
    for relation in problem.relations:
        low, high = sorted((relation.first, relation.second))
        first, second = problem.items[low], problem.items[high]
        if low != high and intersect(first, second) and first.size and second.size:
            pairs.setdefault((low, high), []).append(relation)
    found: dict[int, dict[int, Intervals]] = {}
    for (i, j), relations in pairs.items():
        intervals = _cut(problem.items[i], problem.items[j], [_seen_from(i, r) for r in relations])
        found.setdefault(i, {})[j] = intervals
        found.setdefault(j, {})[i] = tuple((-high, -low) for low, high in reversed(intervals))
    return found


def may_differ_by(difference: int, intervals: Intervals) -> bool:
    """Whether a difference of offsets lies in none of the forbidden intervals."""
    return not any(low < difference < high for low, high in intervals)


def _seen_from(index: int, relation: Relation) -> tuple[int, int, bool]:
    """(sign, difference, exact): ``offset[index]`` minus the other's, times the sign, is at least the difference."""
    if relation.first == index:
        return 1, relation.distance, relation.exact
    return -1, -relation.distance, relation.exact


def _cut(item: Item, other: Item, permitted: Sequence[tuple[int, int, bool]]) -> Intervals:
    low, high = -item.size, other.size
    for sign, difference, exact in permitted:
        if not exact and sign > 0:
            high = min(high, difference)
        elif not exact:
            low = max(low, difference)
    points = sorted({difference for _, difference, exact in permitted if exact and low < difference < high})
    # An open interval between neighbouring integers holds none of them.
    return tuple((a, b) for a, b in pairwise((low, *points, high)) if b - a > 1)
