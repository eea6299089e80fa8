"""The default: exact reductions, then best-first search on the bottleneck, segment by segment, with a proof.

The graph is contracted first (``contract``). What remains is cut where every block comes before or after one block:
the state there is the same in all orders, so that the segments between are searched by themselves, the one with
the largest certain need first: what has been reached in one is certain, and makes the others easier. A segment is
searched from both ends in turn, and the end that is done first decides.

Memory: a search keeps at most ``_MEMORY`` bytes of states (1 GiB), and returns its best when it has more.
"""

from __future__ import annotations

import time

from ..graph.search_limit import SearchLimit
from .as_is import as_is
from .bounds import any_order
from .exact.bottleneck import Found, Search
from .exact.contract import contract
from .exact.directions import Backward, Forward, Segment
from .exact.network import Network
from .exact.states import States, compile_states
from .kahn import kahn
from .peak import order_peak
from .problem import Answer, Method, ScheduleProblem
from .rpo import rpo
from .wiring import Wiring, wire

_MEMORY = 1 << 30
_BYTES_PER_STATE = 600
"""A cautious estimate of what Python needs for one state, and for each block half a byte more."""
_SEARCH_SHARE = 0.9
"""Part of the time limit after which a search stops and finishes what it has."""
_TURN = 16
"""States that one direction visits before the other goes on."""
_LEAD = 5
"""Turns of the direction that last raised the bound for each turn of the other one."""


def best_first(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """An order of smallest peak; without time or memory to prove it, the best found and the bound that was proved.

    The model's own order is the answer where none is better.
    """
    started = time.perf_counter()
    pause, deadline = started + _SEARCH_SHARE * limit.time_limit, started + limit.time_limit
    wiring, floor = wire(problem), any_order(problem)
    simple: list[tuple[int, ...]] = []
    for method in _simple_methods(wiring):
        simple.append(method(problem, limit).order)
        if order_peak(wiring, simple[-1]) == floor:
            return Answer(simple[-1], floor)
    network = Network(problem)
    contract(network)
    states = compile_states(network)
    segments = _segments(states)
    floor = max(floor, *states.least_need)
    visited = 0
    moves: dict[Segment, tuple[int, ...]] = {}
    for segment in sorted(segments, key=lambda segment: -_least_need(states, segment)):
        moves[segment], floor, count = _search(states, segment, floor, pause, deadline)
        visited += count
    found = tuple(v for segment in segments for b in moves[segment] for v in states.orders[b])
    return Answer(min((*simple, found), key=lambda order: order_peak(wiring, order)), floor, visited)


def _simple_methods(wiring: Wiring) -> tuple[Method, ...]:
    """The baselines, first of all the model's own order if it is one."""
    in_order = all(needs < 1 << v for v, needs in enumerate(wiring.needs))
    return (as_is, kahn, rpo) if in_order else (kahn, rpo)


def _segments(states: States) -> list[Segment]:
    """The segments in the order in which they run."""
    segments = []
    executed, alive = 0, states.alive_at_start
    for cut in states.cuts:
        goal, before = (2 << cut) - 1, alive
        start = executed
        for b in range(start.bit_length(), cut + 1):
            alive += states.cost(executed, b)[1]
            executed |= 1 << b
        segments.append(Segment(start, goal, before, alive))
    return segments


def _least_need(states: States, segment: Segment) -> int:
    return max(states.least_need[segment.executed.bit_length() : segment.goal.bit_length()])


def _search(
    states: States, segment: Segment, floor: int, pause: float, deadline: float
) -> tuple[tuple[int, ...], int, int]:
    """(blocks in order, bytes that no order can avoid, states visited) of one segment."""
    searches: list[Search] = []
    best: Found | None = None
    for way in (Forward, Backward):
        searches.append(Search(way(states, segment), floor, 0, pause, deadline))
        quick = searches[-1].greedy()
        best = quick if best is None or quick.peak < best.peak else best
        if best.peak <= floor:
            return best.moves, floor, 0
    assert best is not None
    for search in searches:
        search.limit = best.peak
    most = _MEMORY // (_BYTES_PER_STATE + len(states.needs) // 2)
    lead = 1
    while sum(len(search.visited) for search in searches) < most and time.perf_counter() < pause:
        for search, turn in zip(searches, (lead * _TURN, _TURN), strict=True):
            found = search.advance(turn)
            if found or not search.heap:
                best = found or best
                return best.moves, best.peak, sum(search.count for search in searches)
        if searches[0].reached != searches[1].reached:
            searches.sort(key=lambda search: -search.reached)
            searches[1].raise_floor(searches[0].reached)
            lead = _LEAD
    for search in searches:
        best = search.best_so_far(best)
    return best.moves, max(search.reached for search in searches), sum(search.count for search in searches)
