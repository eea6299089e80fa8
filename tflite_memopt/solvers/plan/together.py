"""Items that must lie at one offset: one item to a strategy, many to the checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ...errors import InfeasibleError
from ..graph.interval import intersect
from ..graph.limits import SearchLimit
from .bounds import section_bound
from .check import check_plan
from .methods import solve
from .problem import Item, Plan, PlanProblem, Relation

Groups = Sequence[Sequence[int]]
"""Items by number that lie at one offset; every item is in one group at most."""


@dataclass(frozen=True)
class Joined:
    """``problem`` has one item for each group of ``whole``; ``item_of[i]`` is the item there of item i of ``whole``."""

    whole: PlanProblem
    problem: PlanProblem
    item_of: tuple[int, ...]


def join(problem: PlanProblem, groups: Groups) -> Joined:
    """Return the problem with each group as one item, alive from its first member's birth to its last one's death.

    Two joined items may share bytes where all their members that are alive at the same time may.
    """
    if not groups:
        return Joined(problem, problem, tuple(range(len(problem.items))))
    leader = {member: group[0] for group in groups for member in group}
    kept = [i for i in range(len(problem.items)) if leader.get(i, i) == i]
    number = {old: new for new, old in enumerate(kept)}
    item_of = tuple(number[leader.get(i, i)] for i in range(len(problem.items)))
    members: list[list[int]] = [[] for _ in kept]
    for i, new in enumerate(item_of):
        members[new].append(i)
    items = tuple(_joined_item([problem.items[i] for i in each]) for each in members)
    return Joined(problem, PlanProblem(items, _joined_relations(problem, item_of, members)), item_of)


def solve_together(joined: Joined, method: str, limit: SearchLimit) -> Plan:
    """Plan by a named method; the offsets are those of the whole problem, and are checked against it.

    The bound is that of the joined items: see ``claimed``. Raises as ``solve``.
    """
    plan = _solved(joined.problem.items, joined.problem.relations, method, limit)
    if joined.problem is joined.whole:
        return plan
    offsets = tuple(plan.offsets[item] for item in joined.item_of)
    check_plan(joined.whole, offsets)
    return replace(plan, offsets=offsets)


@lru_cache(maxsize=64)  # candidates of a run, and parts of a program, have many problems in common
def _solved(items: tuple[Item, ...], relations: tuple[Relation, ...], method: str, limit: SearchLimit) -> Plan:
    return solve(PlanProblem(items, relations), method, limit)


def claimed(joined: Joined, plan: Plan) -> Plan:
    """Return the plan with a bound that holds for all plans of the whole problem.

    The search did not cover plans that separate the members of a group.
    """
    if joined.problem is joined.whole:
        return plan
    bound = section_bound(joined.whole)
    is_optimal = plan.arena_bytes <= bound.nbytes
    return replace(plan, lower_bound=bound.nbytes, optimal=is_optimal, certificate=bound)


def _joined_item(items: Sequence[Item]) -> Item:
    places = {item.offset for item in items if item.offset is not None}
    if len(places) > 1:
        raise InfeasibleError(f"items that lie at one offset are given {sorted(places)}")
    size, alignment = max(item.size for item in items), max(item.alignment for item in items)
    start, end = min(item.start for item in items), max(item.end for item in items)
    return Item(size, start, end, alignment, next(iter(places), None))


def _joined_relations(
    problem: PlanProblem, item_of: Sequence[int], members: Sequence[Sequence[int]]
) -> tuple[Relation, ...]:
    by_pair: dict[tuple[int, int], dict[tuple[int, int], list[Relation]]] = {}
    for relation in problem.relations:
        pair = item_of[relation.first], item_of[relation.second]
        if pair[0] == pair[1]:
            continue
        if pair[0] > pair[1]:
            pair = pair[1], pair[0]
        ends = min(relation.first, relation.second), max(relation.first, relation.second)
        by_pair.setdefault(pair, {}).setdefault(ends, []).append(relation)
    found: list[Relation] = []
    for (a, b), relations in by_pair.items():
        if len(members[a]) == len(members[b]) == 1:
            found += [_renamed(each, item_of) for many in relations.values() for each in many]
            continue
        pairs = ((min(i, j), max(i, j)) for i in members[a] for j in members[b])
        meeting = [(i, j) for i, j in pairs if intersect(problem.items[i], problem.items[j])]
        found += _allowed_by_all([[_renamed(r, item_of) for r in relations.get(ends, ())] for ends in meeting])
    return tuple(dict.fromkeys(found))


def _allowed_by_all(alternatives: Sequence[Sequence[Relation]]) -> list[Relation]:
    """Return those of the relations, and the strictest of the inexact ones, that every pair of members permits."""
    candidates = dict.fromkeys(relation for each in alternatives for relation in each)
    return [one for one in candidates if all(any(_implies(one, r) for r in each) for each in alternatives)]


def _implies(one: Relation, other: Relation) -> bool:
    """Tell whether the other relation permits everything that the one permits."""
    if (one.first, one.second) != (other.first, other.second):
        return one.exact and other.allows(0, one.distance)
    if other.exact:
        return one.exact and one.distance == other.distance
    return one.distance >= other.distance


def _renamed(relation: Relation, item_of: Sequence[int]) -> Relation:
    return replace(relation, first=item_of[relation.first], second=item_of[relation.second])
