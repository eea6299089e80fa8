"""Hill climb: search over the order in which items are placed, each at the lowest offset that is free.

For some order of placement lowest-first is optimal, so the search space holds an optimum (without relations). A
move takes an item at the top of the arena and exchanges its turn with an item that it, or a neighbour of its, is
alive with; moves that do not raise the arena are kept. Seeded, limited by moves, and stops at the bound.
Source: the hill-climb allocator of Arm's Ethos-U Vela compiler (hillclimb_allocation), for the choice of moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from ...graph.search_limit import SearchLimit, WorkAllowance
from ..bounds import max_breadth
from ..compiled import Tables, code_for
from ..conflicts import meetings, neighbours_of
from ..greedy_by_size import greedy_by_size
from ..problem import Candidate, PlanProblem, arena_bytes
from . import moves
from .moves import BEST, MOVES, RANDOM, TOP

_MAX_MOVES = 100_000
_MAX_STALL = 30_000
_STALL_PER_ITEM = 300
"""Small problems are exhausted sooner."""
_MAX_MEETINGS = 1_000_000
"""Pairs of items alive together, above which a move costs too much for a search to get anywhere."""
_MAX_WORK = 50_000_000
"""Turns of the inner loops: some tenths of a second compiled, some ten seconds in plain Python."""
_CHUNK = 500
"""Moves between two looks at the emergency stop."""


def hill_climb(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes. At most 100,000 moves, and 300 an item or 30,000 without gain."""
    allowance = WorkAllowance(_MAX_WORK, limit)
    best, bound = greedy_by_size(problem, limit).offsets, max_breadth(problem)
    free = [i for i, item in enumerate(problem.items) if item.offset is None]
    if arena_bytes(problem, best) <= bound or len(free) < 2 or meetings(problem) > _MAX_MEETINGS:
        return Candidate(best)
    code, pack = code_for(moves)
    data = code.ClimbData(pack(_tables(problem, free)))
    states = [code.ClimbState(pack(_state(problem, order))) for order in _first_orders(problem, free)]
    for each in states:
        each.registers[BEST] = arena_bytes(problem, best)
        code.place_all(data, each)
    state = min(states, key=lambda each: each.registers[TOP])
    state.registers[RANDOM] = limit.seed % (1 << 32)
    stall, made = min(_MAX_STALL, _STALL_PER_ITEM * len(free)), -1
    while made < state.registers[MOVES] and not allowance.is_too_late():
        made = state.registers[MOVES]
        code.climb(data, state, bound, min(_MAX_MOVES, made + _CHUNK), stall, allowance.left)
    is_better = state.registers[BEST] < arena_bytes(problem, best)
    return Candidate(
        tuple(state.best) if is_better else best,
        steps=state.registers[MOVES],
        stopped_by_clock=allowance.stopped_by_clock,
    )


def _tables(problem: PlanProblem, free: list[int]) -> Tables:
    conflicts, neighbours = problem.conflicts, neighbours_of(problem.conflicts)
    return {
        "size": [item.size for item in problem.items],
        "alignment": [item.alignment for item in problem.items],
        "conflict_from": [0, *accumulate(map(len, conflicts))],
        "conflict_other": [other for own in conflicts for other, _, _ in own],
        "conflict_low": [low for own in conflicts for _, low, _ in own],
        "conflict_high": [high for own in conflicts for _, _, high in own],
        "neighbour_from": [0, *accumulate(map(len, neighbours))],
        "neighbour": [other for own in neighbours for other in own],
        "free": free,
    }


def _state(problem: PlanProblem, order: list[int]) -> Tables:
    count = len(problem.items)
    ranks = [-1] * count
    for turn, index in enumerate(order):
        ranks[index] = turn
    return {
        "offset": [item.offset or 0 for item in problem.items],
        "rank": ranks,
        "order": list(order),
        "best": [0] * count,
        "is_queued": [0] * count,
        "changed": [0] * count,
        "before": [0] * count,
        "registers": [0] * 8,
    }


def _first_orders(problem: PlanProblem, free: list[int]) -> Iterator[list[int]]:
    """Largest first with ties both ways (an overlap wants the reader placed first), area, longest life."""
    items = problem.items
    yield sorted(free, key=lambda i: (-items[i].size, items[i].start, i))
    yield sorted(free, key=lambda i: (-items[i].size, -items[i].start, i))
    yield sorted(free, key=lambda i: (-items[i].size * (items[i].end - items[i].start), i))
    yield sorted(free, key=lambda i: (items[i].start - items[i].end, -items[i].size, i))
    yield sorted(free, key=lambda i: (-items[i].start, -items[i].size, i))
