"""Rigid groups: related items that are placed together, at the differences that their relations permit.

Placed one by one, an item may take the bytes that a later relative needs; a concatenation's inputs then lie
everywhere but in its output. A group is placed as one, where all of its members are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.alignment import aligned
from ..graph.interval import intersect
from .permissions import Permissions, may_differ_by
from .problem import Item, PlanProblem, Relation, RigidGroup


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
