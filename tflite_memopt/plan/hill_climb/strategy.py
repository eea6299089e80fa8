"""Hill climb: search over the order in which items are placed, each at the lowest offset that is free.

For some order of placement lowest-first is optimal, so the search space holds an optimum (without relations). A
move takes an item at the top of the arena and exchanges its turn with an item that it, or a neighbor of its, is
alive with; moves that do not raise the arena are kept. Seeded, limited by moves, and stops at the bound.
Source: the hill-climb allocator of Arm's Ethos-U Vela compiler (hillclimb_allocation), for the choice of moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from ...graph.search_limit import SearchLimit, WorkAllowance
from ..bounds import max_breadth
from ..compiled import Tables, code_for
from ..heuristics import greedy_by_size
from ..problem import Candidate, PlanProblem, arena_bytes, meetings, neighbors_of
from . import moves
from .moves import BEST, MOVES, RANDOM, SLACK, TOP

_MAX_MOVES = 100_000
_MAX_STALL = 30_000
_STALL_PER_ITEM = 300
"""Small problems are exhausted sooner."""
_MAX_MEETINGS = 1_000_000
"""Pairs of items alive together, above which a move costs too much for a search to get anywhere."""
_MAX_WORK = 50_000_000
"""Turns of the inner loops: some tenths of a second compiled, some ten seconds in plain Python."""
_TRAVEL_MOVES = 4_000
_TRAVEL_SLACK = 0.05
_CHUNK = 500
"""Moves between two looks at the emergency stop."""


def hill_climb(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes. At most 100,000 moves, and 300 an item or 30,000 without gain."""
    return Climber(problem).climb(limit)


def record_to_record(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes; see ``Climber.travel``."""
    return Climber(problem).travel(limit)


class Climber:
    """A problem to be run with one seed after the other. The runs know nothing of each other."""

    def __init__(self, problem: PlanProblem) -> None:
        self.problem = problem
        self.bound = max_breadth(problem)
        self._best = greedy_by_size(problem, SearchLimit()).offsets
        self._known = arena_bytes(problem, self._best)
        self._free = [i for i, item in enumerate(problem.items) if item.offset is None]
        self._is_done = self._known <= self.bound or len(self._free) < 2 or meetings(problem) > _MAX_MEETINGS
        if not self._is_done:
            self._code, self._pack = code_for(moves)
            self._data = self._code.ClimbData(self._pack(_tables(problem, self._free)))
            self._order = self._first_order()

    def climb(self, limit: SearchLimit) -> Candidate:
        """By moves that never raise the arena."""
        return self._run(limit, _MAX_MOVES, 0)

    def travel(self, limit: SearchLimit) -> Candidate:
        """By 4,000 moves that may also raise the arena, up to 5 % above the best one: there are ways out of plateaus.

        In stripes it finds in a third of the moves what a climb does.
        Source: Dueck, "New Optimization Heuristics", Journal of Computational Physics 104 (1993): record-to-record
        travel.
        """
        return self._run(limit, _TRAVEL_MOVES, _TRAVEL_SLACK)

    def _first_order(self) -> list[int]:
        """The best of some orders to start from."""
        tops = {}
        for number, order in enumerate(_first_orders(self.problem, self._free)):
            tops[self._placed(order).registers[TOP], number] = order
        return tops[min(tops)]

    def _placed(self, order: list[int]) -> Any:
        state = self._code.ClimbState(self._pack(_state(self.problem, order)))
        state.registers[BEST] = self._known
        self._code.place_all(self._data, state)
        return state

    def _run(self, limit: SearchLimit, most: int, slack: float) -> Candidate:
        """At most so many moves; the arena may be larger than the best one by this part of it."""
        allowance, seed = WorkAllowance(_MAX_WORK, limit), limit.seed % (1 << 32)
        if self._is_done:
            return Candidate(self._best)
        state = self._placed(self._order)
        state.registers[RANDOM] = seed
        stall, made = min(_MAX_STALL, _STALL_PER_ITEM * len(self._free)), -1
        while made < state.registers[MOVES] and not allowance.is_too_late():
            made = state.registers[MOVES]
            state.registers[SLACK] = int(state.registers[BEST] * slack)
            self._code.climb(self._data, state, self.bound, min(most, made + _CHUNK), stall, allowance.left)
        offsets = tuple(state.best) if state.registers[BEST] < self._known else self._best
        return Candidate(offsets, steps=state.registers[MOVES], stopped_by_clock=allowance.stopped_by_clock)


def _tables(problem: PlanProblem, free: list[int]) -> Tables:
    conflicts, neighbors = problem.conflicts, neighbors_of(problem.conflicts)
    return {
        "size": [item.size for item in problem.items],
        "alignment": [item.alignment for item in problem.items],
        "conflict_from": [0, *accumulate(map(len, conflicts))],
        "conflict_other": [other for own in conflicts for other, _, _ in own],
        "conflict_low": [low for own in conflicts for _, low, _ in own],
        "conflict_high": [high for own in conflicts for _, _, high in own],
        "neighbor_from": [0, *accumulate(map(len, neighbors))],
        "neighbor": [other for own in neighbors for other in own],
        "free": free,
    }


def _state(problem: PlanProblem, order: list[int]) -> Tables:
    count, most = len(problem.items), max(map(len, problem.conflicts), default=0) + 1
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
        "forbidden_low": [0] * most,
        "forbidden_high": [0] * most,
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
