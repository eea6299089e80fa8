"""Items over several memories, the fastest first: everything fits, and few bytes move through the slower ones.

Each memory gets the most valuable items, by the bytes that they move, that fit together as the planner
places them; the last one gets the rest. That is a temporal knapsack: insertion in two orders, each improved by
exchanges, chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import ErrorKind, InfeasibleError
from ..graph.interval import intersect
from ..graph.limits import SearchLimit
from .check import check_plan
from .methods import restricted, solve, solve_within
from .problem import PlanProblem, arena_bytes

_EFFORT = 200_000
"""Items in all questions to the planner, for each order of insertion."""
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

    ``slow_bytes``: bytes that move, each times the price of its memory.
    """

    memories: tuple[int, ...]
    offsets: tuple[int, ...]
    used: tuple[int, ...]
    slow_bytes: int


def spread(problem: MemoriesProblem, limit: SearchLimit) -> MemoriesPlan:
    """Plan all memories. Raises InfeasibleError when the items that are left do not fit into the last one."""
    try:
        return _spread_by(problem, problem.traffic, limit)
    except InfeasibleError:  # the rest may be too much for the last memory: put as much as possible before it
        sizes = tuple(item.size * (item.end - item.start) for item in problem.plan.items)
        return _spread_by(problem, sizes, limit)


def _spread_by(problem: MemoriesProblem, worth: Sequence[int], limit: SearchLimit) -> MemoriesPlan:
    left = list(range(len(problem.plan.items)))
    memories, offsets, used = [0] * len(left), [0] * len(left), []
    for number, capacity in enumerate(problem.capacities):
        is_last = number == len(problem.capacities) - 1
        chosen = left if is_last else _Selection(problem.plan, worth, capacity, left).best()
        part = part_of(problem.plan, chosen)
        fitting = None if is_last else solve_within(part, capacity, limit)
        places = solve(part, "best", limit).offsets if fitting is None else fitting
        need = arena_bytes(part, places)
        if need > capacity:
            raise InfeasibleError(
                f"memory {number} of {capacity:,} bytes: {need:,} are needed for what is left", ErrorKind.MEMORY
            )
        for item, offset in zip(chosen, places, strict=True):
            memories[item], offsets[item] = number, offset
        used.append(need)
        left = [item for item in left if item not in chosen]
    found = MemoriesPlan(tuple(memories), tuple(offsets), tuple(used), _price(problem, memories))
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
            raise InfeasibleError(
                f"memory {number}: more than its {capacity:,} bytes, or than the plan says", ErrorKind.MEMORY
            )
    slow = _price(problem, found.memories)
    if slow != found.slow_bytes:
        raise InfeasibleError(f"{slow} slow bytes where {found.slow_bytes} are said")


def part_of(plan: PlanProblem, items: Sequence[int]) -> PlanProblem:
    """Return the problem of some items alone, in their order, none at a given offset."""
    free = replace(plan, items=tuple(replace(item, offset=None) for item in plan.items))
    return restricted(free, items)


class _Selection:
    """Choose items with a large total ``worth`` that fit into one memory.

    ``_left`` counts effort: a question to the planner costs as many units as it has items.
    """

    def __init__(self, plan: PlanProblem, worth: Sequence[int], capacity: int, items: Sequence[int]) -> None:
        self._plan, self._worth, self._capacity, self._items = plan, worth, capacity, items
        self._left = _EFFORT

    def best(self) -> list[int]:
        """Return the better of two insertions, by density and by value, each improved by exchanges; ascending."""
        found = []
        for key in (self._density, self._worth.__getitem__):
            self._left = _EFFORT
            found.append(self._exchanged(self._inserted(sorted(self._items, key=key, reverse=True))))
        return sorted(max(found, key=lambda items: sum(self._worth[item] for item in items)))

    def _inserted(self, order: Sequence[int]) -> list[int]:
        """Insert one item after the other, as long as they fit; many at once where that goes."""
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
        """Compute the value per byte and time."""
        item = self._plan.items[number]
        return self._worth[number] / max(1, item.size * (item.end - item.start))

    def _exchanged(self, chosen: list[int]) -> list[int]:
        """Exchange items for more valuable ones from outside while that helps."""
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
        """Add this item, and remove those that have to go for it; None if they are as valuable."""
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
        chosen = sorted(items)
        self._left -= len(chosen)
        return solve_within(part_of(self._plan, chosen), self._capacity, _QUICK) is not None
