"""Items over several memories, the fastest first: everything fits, and few bytes move through the slower ones.

Which items go into a memory is a temporal knapsack: each is worth the bytes that move of it, and all that are alive at
a time must fit, as the planner places them. It is solved by insertion and exchange; a Lagrangian relaxation bounds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..errors import InfeasibleError
from ..graph.interval import intersect
from ..graph.search_limit import SearchLimit
from .check import check_plan
from .methods import solve, solve_within
from .problem import PlanProblem, Relation, arena_bytes

_WORK = 200_000
"""Items that the planner is asked about, for each order of insertion."""
_EXCHANGES = 400
"""Exchanges that are tried in a memory."""
_QUICK = SearchLimit(work=0.02)
"""What the planner may spend on the question whether items fit."""
_STEPS = 200
"""Of the subgradient method."""


@dataclass(frozen=True)
class MemoriesProblem:
    """``traffic[i]``: bytes that operators read and write of item i in one invocation.

    ``capacities``: bytes of each memory, the fastest first.
    """

    plan: PlanProblem
    traffic: tuple[int, ...]
    capacities: tuple[int, ...]


@dataclass(frozen=True)
class MemoriesPlan:
    """The memory and the offset in it of every item, and the bytes that each memory needs.

    ``slow_bytes``: bytes that move through all but the first memory; ``bound``: no plan moves fewer there.
    """

    memories: tuple[int, ...]
    offsets: tuple[int, ...]
    used: tuple[int, ...]
    slow_bytes: int
    bound: int


def spread(problem: MemoriesProblem, limit: SearchLimit) -> MemoriesPlan:
    """A plan for all memories. Raises InfeasibleError when the items that are left do not fit into the last one."""
    left = list(range(len(problem.plan.items)))
    memories, offsets = [0] * len(left), [0] * len(left)
    used = []
    for number, capacity in enumerate(problem.capacities):
        is_last = number == len(problem.capacities) - 1
        chosen = left if is_last else sorted(_Selection(problem, capacity, left).best())
        part = part_of(problem.plan, chosen)
        fitting = None if is_last else solve_within(part, capacity, limit).offsets
        places = solve(part, "best", limit).offsets if fitting is None else fitting
        need = arena_bytes(part, places)
        if need > capacity:
            raise InfeasibleError(f"memory {number} of {capacity:,} bytes: {need:,} are needed for what is left")
        for item, offset in zip(chosen, places, strict=True):
            memories[item], offsets[item] = number, offset
        used.append(need)
        left = [item for item in left if item not in chosen]
    slow = sum(moved for moved, memory in zip(problem.traffic, memories, strict=True) if memory)
    found = MemoriesPlan(tuple(memories), tuple(offsets), tuple(used), slow, least_slow_bytes(problem))
    check_memories(problem, found)
    return found


def check_memories(problem: MemoriesProblem, found: MemoriesPlan) -> None:
    """Raise InfeasibleError unless the items of each memory keep every rule of a plan, and fit."""
    for number, capacity in enumerate(problem.capacities):
        items = [item for item, memory in enumerate(found.memories) if memory == number]
        part = part_of(problem.plan, items)
        places = tuple(found.offsets[item] for item in items)
        check_plan(part, places)
        if arena_bytes(part, places) > min(capacity, found.used[number]):
            raise InfeasibleError(f"memory {number}: more than its {capacity:,} bytes, or than the plan says")
    slow = sum(moved for moved, memory in zip(problem.traffic, found.memories, strict=True) if memory)
    if not found.bound <= slow == found.slow_bytes:
        raise InfeasibleError(f"{slow} slow bytes where {found.slow_bytes} are said, and {found.bound} the bound")


def least_slow_bytes(problem: MemoriesProblem) -> int:
    """A lower bound on the bytes that move through all memories but the first.

    Lagrangian relaxation of the capacity at each time, by a subgradient method; any multipliers bound. Items that may
    share bytes count at least their part of the largest: the union of m sets has at least the mean of their sizes.
    """
    items, capacity = problem.plan.items, problem.capacities[0]
    weights = _weights(problem.plan)
    times = sorted({time for spans in weights for time in spans})
    price = dict.fromkeys(times, 0.0)
    total = sum(problem.traffic)
    possible = [moved if item.size <= capacity else 0 for moved, item in zip(problem.traffic, items, strict=True)]
    best = float(sum(possible))
    for step in range(_STEPS):
        worth = [
            moved - sum(price[time] * weight for time, weight in spans.items())
            for moved, spans in zip(possible, weights, strict=True)
        ]
        best = min(best, sum(price.values()) * capacity + sum(max(0.0, each) for each in worth))
        load = dict.fromkeys(times, -float(capacity))
        for each, spans in zip(worth, weights, strict=True):
            if each > 0:
                for time, weight in spans.items():
                    load[time] += weight
        norm = sum(over * over for over in load.values())
        if norm == 0 or not items:
            break
        length = best / (norm * (1 + step / 20))
        price = {time: max(0.0, price[time] + length * over) for time, over in load.items()}
    return max(0, ceil(total - best - 1e-6 * total))


def largest_first(problem: MemoriesProblem) -> int:
    """Bytes through slow memory when the largest items that fit go into the fast one: what to compare with."""
    items = problem.plan.items
    chosen = _Selection(problem, problem.capacities[0], range(len(items))).inserted(lambda each: items[each].size)
    return sum(problem.traffic) - sum(problem.traffic[number] for number in chosen)


def _weights(plan: PlanProblem) -> list[dict[int, int]]:
    """By item, the bytes that it takes at least of each time between births at which it is alive."""
    births = sorted({item.start for item in plan.items if item.size})
    related: dict[int, set[int]] = {number: {number} for number in range(len(plan.items))}
    for relation in plan.relations:
        union = related[relation.first] | related[relation.second]
        for number in union:
            related[number] = union
    found = []
    for number, item in enumerate(plan.items):
        spans = {}
        for time in births:
            if item.start <= time < item.end and item.size:
                mates = sum(plan.items[each].start <= time < plan.items[each].end for each in related[number])
                spans[time] = item.size // mates
        found.append(spans)
    return found


def part_of(plan: PlanProblem, items: Sequence[int]) -> PlanProblem:
    """The problem of some items alone, in their order."""
    place = {item: number for number, item in enumerate(items)}
    relations = tuple(
        Relation(place[each.first], place[each.second], each.distance, each.exact)
        for each in plan.relations
        if each.first in place and each.second in place
    )
    return PlanProblem(tuple(replace(plan.items[item], offset=None) for item in items), relations)


class _Selection:
    """The items of most traffic that fit into one memory together.

    ``_left`` counts work: a question to the planner costs as many units as items are asked about.
    """

    def __init__(self, problem: MemoriesProblem, capacity: int, items: Sequence[int]) -> None:
        self._plan, self._capacity, self._items, self._worth = problem.plan, capacity, items, problem.traffic
        self._weights = _weights(problem.plan)
        self._left = _WORK

    def best(self) -> list[int]:
        """By insertion in two orders, each improved by exchanges."""
        found = []
        for key in (self._density, self._worth.__getitem__):
            self._left = _WORK
            found.append(self._exchanged(self.inserted(key)))
        return max(found, key=lambda items: sum(self._worth[item] for item in items))

    def inserted(self, key: Callable[[int], float]) -> list[int]:
        """One after the other, the largest key first, as long as they fit; many at once where that goes."""
        chosen: list[int] = []
        waiting = sorted(self._items, key=key, reverse=True)
        at_once = len(waiting)
        while waiting:
            load = self._load(chosen)
            waiting = [item for item in waiting if self._may_fit(load, item)]
            batch = self._batch(load, waiting[:at_once])
            if not batch or self._left <= 0:
                break
            if self._fits([*chosen, *batch]):
                chosen += batch
                waiting = [item for item in waiting if item not in batch]
                at_once = 2 * len(batch)
            elif len(batch) == 1:
                waiting.remove(batch[0])
            else:
                at_once = len(batch) // 2
        return chosen

    def _density(self, number: int) -> float:
        """Traffic for each byte and time."""
        item = self._plan.items[number]
        return self._worth[number] / max(1, item.size * (item.end - item.start))

    def _batch(self, load: Counter[int], items: Sequence[int]) -> list[int]:
        """Those that the load leaves room for, together."""
        load, batch = Counter(load), []
        for item in items:
            if self._may_fit(load, item):
                load.update(self._weights[item])
                batch.append(item)
        return batch

    def _exchanged(self, chosen: list[int]) -> list[int]:
        """Items from outside in the place of some that are worth less together, as long as that helps."""
        tries, is_better = 0, True
        while is_better and tries < _EXCHANGES and self._left > 0:
            is_better = False
            outside = [item for item in self._items if item not in chosen]
            for item in sorted(outside, key=self._worth.__getitem__, reverse=True)[: _EXCHANGES - tries]:
                tries += 1
                other = self._with(chosen, item)
                if other is not None:
                    chosen, is_better = other, True
                    break
        return chosen

    def _with(self, chosen: list[int], item: int) -> list[int] | None:
        """With this item, and without what has to go for it and is worth less."""
        kept, gone = [*chosen, item], 0
        load = self._load(kept)
        for rival in sorted((each for each in chosen if self._meet(each, item)), key=self._density):
            if self._left <= 0:
                return None
            if max(load.values()) <= self._capacity and self._fits(kept):
                return kept
            gone += self._worth[rival]
            if gone >= self._worth[item]:
                return None
            kept.remove(rival)
            load.subtract(self._weights[rival])
        return kept if max(load.values()) <= self._capacity and self._fits(kept) else None

    def _meet(self, one: int, other: int) -> bool:
        return intersect(self._plan.items[one], self._plan.items[other])

    def _load(self, items: Iterable[int]) -> Counter[int]:
        """Bytes that the items take at least, by time."""
        load: Counter[int] = Counter()
        for item in items:
            load.update(self._weights[item])
        return load

    def _may_fit(self, load: Counter[int], item: int) -> bool:
        return all(load[time] + weight <= self._capacity for time, weight in self._weights[item].items())

    def _fits(self, items: Sequence[int]) -> bool:
        self._left -= len(items)
        return solve_within(part_of(self._plan, sorted(items)), self._capacity, _QUICK).offsets is not None
