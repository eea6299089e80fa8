"""Nested storages: an output grows into the bytes that its input gives back, with what lies between them in the gap.

The shape of a graph that runs in stripes: the stripes' inputs are ranges of one storage, freed one after the other,
their outputs are ranges of another, filled one after the other, and a window of inner tensors lives for a stripe.

    offset ^   | input freed stripe by stripe   |
           |   |   . window .                    |
           |   |      output grows               |
           +-----------------------------------------> time

The storage that is born last goes to the bottom; then, from the last to the first, what lives with it; then the
storage before it, as low as all of that allows. A storage is a rigid group: no part of it moves by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.interval import intersect
from ..graph.search_limit import SearchLimit
from .bounds import max_breadth
from .groups import rigid_groups
from .placement import Placement
from .problem import Candidate, Item, PlanProblem, RigidGroup, arena_bytes


def nested_storages(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes; the better of two: what lives between storages goes in by birth, or by size. O(n^2)."""
    bound = max_breadth(problem)
    # A group that spans more than the best arena could only harm; the eighth is for alignments.
    groups = rigid_groups(problem, bound + bound // 8)
    orders = (_nested(problem.items, groups, by_size) for by_size in (False, True))
    return min((_place(problem, order) for order in orders), key=lambda found: arena_bytes(problem, found.offsets))


def _place(problem: PlanProblem, order: Iterator[RigidGroup]) -> Candidate:
    placement = Placement(problem)
    for group in order:
        placement.place(group, placement.lowest(group))
    return Candidate(placement.finish())


def _nested(items: Sequence[Item], groups: Sequence[RigidGroup], by_size: bool) -> Iterator[RigidGroup]:
    """Storages from the last-born to the first, each followed by the items that are alive with one of its parts."""

    def birth(group: RigidGroup) -> int:
        return min(items[index].start for index, _ in group)

    def turn(group: RigidGroup) -> tuple[int, int]:
        index = group[0][0]
        return (-items[index].size, -items[index].start) if by_size else (-items[index].start, -items[index].size)

    left = sorted((group for group in groups if len(group) == 1), key=turn)
    for storage in sorted((group for group in groups if len(group) > 1), key=birth, reverse=True):
        yield storage
        near = [group for group in left if any(intersect(items[group[0][0]], items[index]) for index, _ in storage)]
        yield from near
        left = [group for group in left if group not in near]
    yield from left
