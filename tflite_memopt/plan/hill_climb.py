"""Hill climb: search over the order in which items are placed, each at the lowest offset that is free.

For some order of placement lowest-first is optimal, so the search space holds an optimum (without relations). A
move takes an item at the top of the arena and exchanges its turn with an item that it, or a neighbour of its, is
alive with; moves that do not raise the arena are kept. Seeded, anytime, and stops at the bound.
Source: the hill-climb allocator of Arm's Ethos-U Vela compiler (hillclimb_allocation), for the choice of moves.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from ..graph.search_limit import SearchLimit
from .bounds import max_breadth
from .conflicts import meetings
from .greedy_by_size import greedy_by_size
from .ordered_placement import OrderedPlacement
from .problem import Candidate, PlanProblem, arena_bytes

_MAX_MOVES = 100_000
_MAX_STALL = 10_000
_STALL_PER_ITEM = 100
"""Small problems are exhausted sooner."""
_MAX_SECONDS = 10.0
_MAX_MEETINGS = 1_000_000
"""Pairs of items alive together, above which a move costs too much for a search to get anywhere."""
_STRAY = 0.1
"""Share of moves that exchange any two items, against plateaus that the guided moves cannot leave."""


def hill_climb(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes. At most 100,000 moves, 100 an item or 10,000 without gain, 10 s or the time limit."""
    deadline = time.perf_counter() + min(limit.time_limit, _MAX_SECONDS)
    best = greedy_by_size(problem, limit).offsets
    best_top, bound = arena_bytes(problem, best), max_breadth(problem)
    free = [i for i, item in enumerate(problem.items) if item.offset is None]
    if best_top <= bound or len(free) < 2 or meetings(problem) > _MAX_MEETINGS:
        return Candidate(best)
    placement = min((OrderedPlacement(problem, order) for order in _first_orders(problem, free)), key=lambda p: p.top)
    rng, stall, most = random.Random(limit.seed), 0, min(_MAX_STALL, _STALL_PER_ITEM * len(free))
    moves = 0
    while True:
        if placement.top < best_top:
            best, best_top, stall = tuple(placement.offsets), placement.top, 0
        if best_top <= bound or stall >= most or moves >= _MAX_MOVES or time.perf_counter() > deadline:
            return Candidate(best)
        placement.exchange(*_pick_pair(placement, free, rng))
        stall, moves = stall + 1, moves + 1


def _first_orders(problem: PlanProblem, free: list[int]) -> Iterator[list[int]]:
    """Largest first with ties both ways (an overlap wants the reader placed first), area, longest life."""
    items = problem.items
    yield sorted(free, key=lambda i: (-items[i].size, items[i].start, i))
    yield sorted(free, key=lambda i: (-items[i].size, -items[i].start, i))
    yield sorted(free, key=lambda i: (-items[i].size * (items[i].end - items[i].start), i))
    yield sorted(free, key=lambda i: (items[i].start - items[i].end, -items[i].size, i))
    yield sorted(free, key=lambda i: (-items[i].start, -items[i].size, i))


def _pick_pair(placement: OrderedPlacement, free: list[int], rng: random.Random) -> tuple[int, int]:
    """An item at the top of the arena, and one that is alive with it or with such an item; now and then any two."""
    if rng.random() < _STRAY:
        return rng.choice(free), rng.choice(free)
    first = rng.choice([i for i in free if placement.ends[i] == placement.top] or free)
    middle = rng.choice(placement.neighbours[first] or [first])
    if rng.random() < 0.5 and placement.ranks[middle] >= 0:
        return first, middle
    second = rng.choice(placement.neighbours[middle] or [first])
    return (first, second) if placement.ranks[second] >= 0 else (first, rng.choice(free))
