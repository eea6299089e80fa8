"""Items over several memories, the fastest first: everything fits, and few bytes move through the slower ones.

Which items go into a memory is a temporal knapsack: each is worth the bytes that move of it, and all that are alive at
a time must fit, as the planner places them. Without gaps it is solved exactly (``most_valuable``): a dynamic program
goes through the births, and its states are the sets of chosen items that are alive. Where the planner proves that the
items do not fit, some that cannot be together are found, and one of them has to go; where that takes too long,
insertion and exchange choose, and the relaxed problem gives a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from heapq import heappop, heappush
from operator import or_

from ..errors import InfeasibleError
from ..graph.interval import intersect
from ..graph.limits import SearchLimit
from .check import check_plan
from .methods import solve, solve_within
from .problem import FitResult, PlanProblem, Relation, arena_bytes

_STATES = 500
"""More at a time are made fewer."""
_Chain = tuple[int, "_Chain"] | None
"""Chosen items, the last one first."""
_States = dict[int, tuple[int, int, _Chain]]
"""By the chosen items that are alive, as bits: what all chosen ones are worth, the bytes of those alive, and which."""


@dataclass(frozen=True)
class MostValuable:
    """No items that fit into the memory are worth more than ``worth``; where these ``items`` fit, they are the best."""

    worth: int
    items: frozenset[int]


def most_valuable(plan: PlanProblem, worth: Sequence[int], capacity: int, among: Iterable[int]) -> MostValuable:
    """Items that may share bytes count as the two of them that need most. Bytes; ``worth`` by item, in any unit."""
    items, load = plan.items, _Load(plan)
    free = [each for each in among if not items[each].size]
    waiting = sorted((items[each].start, each) for each in among if 0 < items[each].size <= capacity and worth[each])
    states: _States = {0: (0, 0, None)}
    ends = sorted(((items[item].end, item) for _, item in waiting), reverse=True)
    for start, item in waiting:
        gone = 0
        while ends[-1][0] <= start:
            gone |= 1 << ends.pop()[1]
        states = _without(states, gone, load)
        for state, (value, nbytes, chosen) in list(states.items()):
            more = load.with_item(state, nbytes, item)
            if more <= capacity:
                states[state | 1 << item] = value + worth[item], more, (item, chosen)
        while len(states) > _STATES:
            alive = reduce(or_, states)
            least = min(_numbers(alive), key=lambda each: (items[each].size * (items[each].end - start), each))
            states = _without(states, 1 << least, load)
    value, _, chosen = max(states.values(), key=lambda found: found[0])
    found = set(free)
    while chosen is not None:
        item, chosen = chosen
        found.add(item)
    return MostValuable(value + sum(worth[each] for each in free), frozenset(found))


def _without(states: _States, gone: int, load: _Load) -> _States:
    """States that do not tell these items any more, each with the best of its values."""
    if not gone:
        return states
    found: _States = {}
    for state, (value, nbytes, chosen) in states.items():
        kept = state & ~gone
        if kept not in found or found[kept][0] < value:
            found[kept] = value, nbytes if kept == state else load.without(state, nbytes, gone), chosen
    return found


class _Load:
    """Bytes that items take at least together: of those with relations, a group counts as its two that need most."""

    def __init__(self, plan: PlanProblem) -> None:
        self._sizes = [item.size for item in plan.items]
        self._unions = _unions(plan)
        self._relatives = [0] * len(plan.items)
        for one, other in self._unions:
            self._relatives[one] |= 1 << other

    def with_item(self, state: int, nbytes: int, item: int) -> int:
        """Of a state of so many bytes, and one more item."""
        if not self._relatives[item] & state:
            return nbytes + self._sizes[item]
        group = self._group(state | 1 << item, item)
        return nbytes - self._of(group ^ 1 << item) + self._largest(group)

    def without(self, state: int, nbytes: int, gone: int) -> int:
        """Of a state of so many bytes, and fewer items."""
        for item in _numbers(state & gone):
            if self._relatives[item] & state:
                return self._of(state & ~gone)
            nbytes -= self._sizes[item]
        return nbytes

    def _of(self, state: int) -> int:
        total = 0
        while state:
            group = self._group(state, state.bit_length() - 1)
            total += self._largest(group)
            state ^= group
        return total

    def _group(self, state: int, item: int) -> int:
        """Those of the state that relations lead to from an item."""
        group = new = 1 << item
        while new:
            mates = reduce(or_, (self._relatives[each] for each in _numbers(new)))
            new = mates & state & ~group
            group |= new
        return group

    def _largest(self, group: int) -> int:
        most = 0
        for item in _numbers(group):
            most = max(most, self._sizes[item])
            for mate in _numbers(self._relatives[item] & group):
                most = max(most, self._unions[item, mate])
        return most


def _unions(plan: PlanProblem) -> dict[tuple[int, int], int]:
    """Bytes that two items with a relation take at least together, by both pairs of their numbers."""
    found: dict[tuple[int, int], int] = {}
    for relation in plan.relations:
        first, second = plan.items[relation.first].size, plan.items[relation.second].size
        distance = relation.distance if relation.exact else max(relation.distance, min(0, second - first))
        union = max(second, distance + first) - min(0, distance)
        for pair in ((relation.first, relation.second), (relation.second, relation.first)):
            found[pair] = min(union, found.get(pair, first + second))
    return found


def _numbers(state: int) -> Iterator[int]:
    while state:
        yield state.bit_length() - 1
        state ^= 1 << state.bit_length() - 1


_WORK = 200_000
"""Items that the planner is asked about, for each order of insertion."""
_RELAXED = 5_000
"""Items in all relaxed problems of a memory together, before exchanges choose."""
_EXCHANGES = 400
"""Exchanges that are tried in a memory."""
_QUICK = SearchLimit(effort=0.02)
"""The planner's limit for a question of a capacity."""


@dataclass(frozen=True)
class MemoriesProblem:
    """``traffic[i]``: bytes that operators read and write of item i in one invocation.

    ``capacities``: bytes of each memory, the fastest first. ``prices``: of a byte that moves there, 0 in the first and
    never falling.
    """

    plan: PlanProblem
    traffic: tuple[int, ...]
    capacities: tuple[int, ...]
    prices: tuple[int, ...]


@dataclass(frozen=True)
class MemoriesPlan:
    """The memory and the offset in it of every item, and the bytes that each memory needs.

    ``slow_bytes``: bytes that move, each times the price of its memory; ``bound``: no plan has fewer.
    """

    memories: tuple[int, ...]
    offsets: tuple[int, ...]
    used: tuple[int, ...]
    slow_bytes: int
    bound: int


def spread(problem: MemoriesProblem, limit: SearchLimit) -> MemoriesPlan:
    """A plan for all memories. Raises InfeasibleError when the items that are left do not fit into the last one."""
    try:
        return _spread_by(problem, problem.traffic, limit)
    except InfeasibleError:  # what moves little may be too much for the last memory: as much as possible goes before it
        sizes = tuple(item.size * (item.end - item.start) for item in problem.plan.items)
        return _spread_by(problem, sizes, limit)


def _spread_by(problem: MemoriesProblem, worth: Sequence[int], limit: SearchLimit) -> MemoriesPlan:
    """Each memory gets the items that are worth most and fit, the last one what is left."""
    left = list(range(len(problem.plan.items)))
    memories, offsets = [0] * len(left), [0] * len(left)
    used = []
    most_in_first = sum(problem.traffic)
    for number, capacity in enumerate(problem.capacities):
        is_last = number == len(problem.capacities) - 1
        best = None if is_last else _Selection(problem.plan, worth, capacity, left).best()
        chosen = left if best is None else sorted(best.items)
        if number == 0 and best is not None and worth is problem.traffic:
            most_in_first = best.worth
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
    slow = _price(problem, memories)
    found = MemoriesPlan(tuple(memories), tuple(offsets), tuple(used), slow, _bound(problem, most_in_first))
    check_memories(problem, found)
    return found


def _price(problem: MemoriesProblem, memories: Sequence[int]) -> int:
    return sum(moved * problem.prices[memory] for moved, memory in zip(problem.traffic, memories, strict=True))


def check_memories(problem: MemoriesProblem, found: MemoriesPlan) -> None:
    """Raise InfeasibleError unless the items of each memory keep every rule of a plan, and fit."""
    for number, capacity in enumerate(problem.capacities):
        items = [item for item, memory in enumerate(found.memories) if memory == number]
        part = part_of(problem.plan, items)
        places = tuple(found.offsets[item] for item in items)
        check_plan(part, places)
        if arena_bytes(part, places) > min(capacity, found.used[number]):
            raise InfeasibleError(f"memory {number}: more than its {capacity:,} bytes, or than the plan says")
    slow = _price(problem, found.memories)
    if not found.bound <= slow == found.slow_bytes:
        raise InfeasibleError(f"{slow} slow bytes where {found.slow_bytes} are said, and {found.bound} the bound")


def _bound(problem: MemoriesProblem, most_in_first: int) -> int:
    """No plan costs less; ``most_in_first``: what the first memory can be worth at most.

    What is not in the first n memories costs at least what the next one does, and together they hold no more at a time
    than one memory of all their bytes would.
    """
    total, items = sum(problem.traffic), range(len(problem.traffic))
    least, room, paid = 0, 0, 0
    for capacity, price in zip(problem.capacities, problem.prices[1:], strict=False):
        is_first, room = room == 0, room + capacity
        most = most_in_first if is_first else most_valuable(problem.plan, problem.traffic, room, items).worth
        least += (price - paid) * (total - most)
        paid = price
    return least


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
    """The items of most ``worth`` that fit into one memory together.

    ``_left`` counts work: a question to the planner costs as many units as items are asked about.
    """

    def __init__(self, plan: PlanProblem, worth: Sequence[int], capacity: int, items: Sequence[int]) -> None:
        self._plan, self._worth, self._capacity, self._items = plan, worth, capacity, items
        self._left = _WORK

    def best(self) -> MostValuable:
        """Items that fit, and what no items that fit are worth more than."""
        relaxed = self._relaxed(frozenset())
        bound, left = relaxed.worth, [(-relaxed.worth, 0, frozenset[int](), relaxed)]
        seen = {frozenset[int]()}
        while len(seen) * len(self._items) < _RELAXED:
            _, _, without, relaxed = heappop(left)
            bound, answer = relaxed.worth, self._asked(relaxed.items)
            if answer.offsets is not None:
                return relaxed
            if not answer.is_proved:
                break
            for item in self._never_together(sorted(relaxed.items)):
                fewer = without | {item}
                if fewer not in seen:
                    seen.add(fewer)
                    found = self._relaxed(fewer)
                    heappush(left, (-found.worth, len(seen), fewer, found))
        return MostValuable(bound, frozenset(self._by_exchanges(relaxed.items)))

    def _relaxed(self, without: frozenset[int]) -> MostValuable:
        left = [item for item in self._items if item not in without]
        return most_valuable(self._plan, self._worth, self._capacity, left)

    def _asked(self, items: Iterable[int]) -> FitResult:
        chosen = sorted(items)
        self._left -= len(chosen)
        return solve_within(part_of(self._plan, chosen), self._capacity, _QUICK)

    def _never_together(self, items: list[int]) -> list[int]:
        """Some of the items, which do not fit together; fewer of them may fit, or nobody knows."""
        step = max(1, len(items) // 2)
        while True:
            at = 0
            while at < len(items):
                fewer = items[:at] + items[at + step :]
                answer = self._asked(fewer)
                if answer.offsets is None and answer.is_proved:
                    items = fewer
                else:
                    at += step
            if step == 1:
                return items
            step //= 2

    def _by_exchanges(self, relaxed: frozenset[int]) -> list[int]:
        """By insertion in two orders, each improved by exchanges."""
        by_density = sorted(self._items, key=self._density, reverse=True)
        by_worth = sorted(self._items, key=self._worth.__getitem__, reverse=True)
        relaxed_first = sorted(by_worth, key=lambda item: item not in relaxed)
        found = []
        for order in (by_density, relaxed_first):
            self._left = _WORK
            found.append(self._exchanged(self.inserted(order)))
        return max(found, key=lambda items: sum(self._worth[item] for item in items))

    def inserted(self, order: Sequence[int]) -> list[int]:
        """One after the other, as long as they fit; many at once where that goes."""
        chosen: list[int] = []
        waiting = list(order)
        at_once = len(waiting)
        while waiting and self._left > 0:
            batch = waiting[:at_once]
            if self._fits([*chosen, *batch]):
                chosen += batch
                waiting = waiting[at_once:]
                at_once = 2 * len(batch)
            elif len(batch) == 1:
                waiting.pop(0)
            else:
                at_once = len(batch) // 2
        return chosen

    def _density(self, number: int) -> float:
        """Traffic for each byte and time."""
        item = self._plan.items[number]
        return self._worth[number] / max(1, item.size * (item.end - item.start))

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
        rivals = [each for each in chosen if intersect(self._plan.items[each], self._plan.items[item])]
        for rival in sorted(rivals, key=self._density):
            if self._left <= 0 or self._fits(kept):
                break
            gone += self._worth[rival]
            if gone >= self._worth[item]:
                return None
            kept.remove(rival)
        return kept if self._fits(kept) else None

    def _fits(self, items: Iterable[int]) -> bool:
        return self._asked(items).offsets is not None
