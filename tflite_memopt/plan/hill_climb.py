"""Hill climb: search over the order in which items are placed, each at the lowest offset that is free.

For some order of placement lowest-first is optimal, so the search space holds an optimum. A move takes an item
at the top of the arena and exchanges its turn with an item that it, or a neighbour of its, is alive with; moves
that do not raise the arena are kept. Seeded, anytime, and stops at the bound.
Source: the hill-climb allocator of Arm's Ethos-U Vela compiler (hillclimb_allocation), for the choice of moves.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from ..budget import Budget
from .bounds import max_breadth
from .problem import PlanProblem

_MAX_MOVES = 20_000
_MAX_STALL = 4_000
_MAX_SECONDS = 5.0
_STRAY = 0.1
"""Share of moves that exchange any two items, against plateaus that the guided moves cannot leave."""


def hill_climb(problem: PlanProblem, budget: Budget) -> tuple[int, ...]:
    """Offsets in bytes. At most 20,000 moves, 4,000 without gain, 5 s or the budget's time limit."""
    rng = random.Random(budget.seed)
    deadline = time.perf_counter() + min(budget.time_limit, _MAX_SECONDS)
    neighbours = _neighbours(problem)
    bound = max_breadth(problem)
    free = [i for i, item in enumerate(problem.items) if item.offset is None]
    order = sorted(free, key=lambda i: (-problem.items[i].size, problem.items[i].start, i))
    offsets = _place_lowest(problem, order, neighbours)
    top, stall = _top(problem, offsets), 0
    best, best_top = offsets, top
    for _ in range(_MAX_MOVES):
        if best_top <= bound or stall >= _MAX_STALL or len(order) < 2 or time.perf_counter() > deadline:
            break
        moved = _exchange(order, _pick_pair(problem, offsets, order, neighbours, rng))
        found = _place_lowest(problem, moved, neighbours)
        found_top = _top(problem, found)
        stall += 1
        if found_top <= top:
            order, offsets, top = moved, found, found_top
        if found_top < best_top:
            best, best_top, stall = found, found_top, 0
    return tuple(best)


def _neighbours(problem: PlanProblem) -> list[list[int]]:
    """For each item the others that are alive at some time when it is."""
    found: list[list[int]] = [[] for _ in problem.items]
    alive: list[int] = []
    for index in sorted(range(len(problem.items)), key=lambda i: problem.items[i].start):
        item = problem.items[index]
        alive = [other for other in alive if problem.items[other].end > item.start]
        for other in alive:
            if item.meets(problem.items[other]):
                found[index].append(other)
                found[other].append(index)
        alive.append(index)
    return found


def _place_lowest(problem: PlanProblem, order: Sequence[int], neighbours: list[list[int]]) -> list[int]:
    offsets = [-1 if item.offset is None else item.offset for item in problem.items]
    items = problem.items
    for index in order:
        item, frontier = items[index], 0
        taken = sorted(
            (offsets[other], offsets[other] + items[other].size) for other in neighbours[index] if offsets[other] >= 0
        )
        for start, end in taken:
            if start - frontier >= item.size:
                break
            frontier = max(frontier, -(-end // item.alignment) * item.alignment)
        offsets[index] = frontier
    return offsets


def _top(problem: PlanProblem, offsets: Sequence[int]) -> int:
    return max((o + item.size for o, item in zip(offsets, problem.items, strict=True)), default=0)


def _pick_pair(
    problem: PlanProblem, offsets: Sequence[int], order: Sequence[int], neighbours: list[list[int]], rng: random.Random
) -> tuple[int, int]:
    if rng.random() < _STRAY:
        return rng.choice(order), rng.choice(order)
    top = _top(problem, offsets)
    free = set(order)
    highest = [i for i in order if offsets[i] + problem.items[i].size == top] or list(order)
    first = rng.choice(highest)
    near = {other for other in neighbours[first] if other in free}
    near |= {other for middle in near for other in neighbours[middle] if other in free}
    near.discard(first)
    return first, rng.choice(sorted(near)) if near else rng.choice(order)


def _exchange(order: Sequence[int], pair: tuple[int, int]) -> list[int]:
    first, second = pair
    swap = {first: second, second: first}
    return [swap.get(index, index) for index in order]
