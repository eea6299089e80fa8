"""Cores: the items that are alive where bytes are short. What they need mostly decides what all need.

    bytes alive          ____
    level   - - - - - __/- - \\ - - - -      the core: all items that are alive at some time from a to b
                  ___/  |    | \\____
              ___/      a    b      \\__

Fewer items never need more: a bound of a core is one of the whole problem. And where the rest finds room around a plan
of the core, within the core's own arena, no plan of the whole is smaller than the core's smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .bounds import section_bound
from .certificates import BoundCertificate
from .placement import Placement
from .problem import Item, PlanProblem

_LEVELS = (4, 3, 2)
"""Quarters of the bound, above which bytes count as short. Only what relations let share is alive above all four."""
_LARGEST = 2
"""A core of more than such a part of all items is not worth a search of its own."""


@dataclass(frozen=True)
class Core:
    """``problem`` has the items ``indices`` of the whole problem, in their order, and the relations between them."""

    problem: PlanProblem
    indices: tuple[int, ...]


def cores_of(problem: PlanProblem) -> Iterator[Core]:
    """Ever larger ones, each with all items whose offset is given; none where few items are alive at quiet times."""
    known = 0
    for quarters in _LEVELS:
        indices = _alive_above(problem.items, section_bound(problem).nbytes * quarters // 4)
        if known < len(indices) <= len(problem.items) // _LARGEST:
            known = len(indices)
            core = Core(restricted(problem, indices), tuple(indices))
            core.problem.analysis.bound = _bound_inside(problem, core)
            yield core


def _bound_inside(problem: PlanProblem, core: Core) -> BoundCertificate | None:
    """The bound of the whole problem as one of the core; None where it is not about items of the core only.

    No section of the core has a higher one that is not in the whole problem as well.
    """
    certificate, place = section_bound(problem), {index: place for place, index in enumerate(core.indices)}
    if not all(index in place for index in certificate.items):
        return None
    items = tuple(place[index] for index in certificate.items)
    rooms = tuple(tuple(place[i] for i in room) for room in certificate.rooms)
    return replace(certificate, items=items, rooms=rooms)


def around(problem: PlanProblem, core: Core, offsets: Sequence[int], capacity: int) -> tuple[int, ...] | None:
    """The core's plan and, around it, all others within the capacity, largest first; None where one finds no room."""
    inside = set(core.indices)
    rest = sorted((i for i in range(len(problem.items)) if i not in inside), key=lambda i: -problem.items[i].size)
    for find in (Placement.tightest, Placement.lowest):
        placement = Placement(problem)
        placement.place(tuple(zip(core.indices, offsets, strict=True)), 0)
        for index in rest:
            unit = ((index, 0),)
            offset = find(placement, unit)
            if offset + problem.items[index].size > capacity:
                break
            placement.place(unit, offset)
        else:
            return placement.finish()
    return None


def restricted(problem: PlanProblem, indices: Sequence[int]) -> PlanProblem:
    """The problem with these items only, in this order, and the relations between them."""
    position = {index: place for place, index in enumerate(indices)}
    relations = tuple(
        replace(relation, first=position[relation.first], second=position[relation.second])
        for relation in problem.relations
        if relation.first in position and relation.second in position
    )
    return PlanProblem(tuple(problem.items[index] for index in indices), relations)


def _alive_above(items: Sequence[Item], level: int) -> list[int]:
    """Items that are alive at some time when more bytes than that are, what may be shared counted twice."""
    change: dict[int, int] = {}
    for item in items:
        change[item.start] = change.get(item.start, 0) + item.size
        change[item.end] = change.get(item.end, 0) - item.size
    times = sorted(change)
    rank = {time: place for place, time in enumerate(times)}
    # How many of the sections before each time are above the level.
    above, alive = [0], 0
    for time in times:
        alive += change[time]
        above.append(above[-1] + (alive > level))
    return [
        index
        for index, item in enumerate(items)
        if item.offset is not None or (item.size and above[rank[item.end]] > above[rank[item.start]])
    ]
