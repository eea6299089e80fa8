"""The default: exact reductions, then best-first search on the bottleneck, segment by segment, with a proof.

The graph is contracted first (``reductions.py``). What remains is cut where every fused operator comes before or after
one of them: the state there is the same in all orders, so that the segments between are searched by themselves, the
one with the largest certain need first. What is proved of one is a bound for all, and so makes the others easier. A
segment is searched from both ends in turn, and the end that is done first decides.

Limits count work, so that every machine finds the same order: at most ``_EFFORT`` iterations of the loops, and
``_MEMORY`` bytes of states (1 GiB) for each segment. Then the best order so far is returned, and the bound that was
proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.dependency_graph import kahn_order, reverse_post_order
from ..graph.limits import Allowance, SearchLimit
from .bottleneck import BottleneckSearch, OrderFound, Segment, backward, forward
from .compiled_graph import CompiledGraph, compiled
from .problem import MemoryGraph, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from .reductions import FusedGraph, contract

_MEMORY = 1 << 30
_BYTES_PER_STATE = 600
"""A cautious estimate of what Python needs for one state, and for each fused operator half a byte more."""
_EFFORT = 5_000_000
"""Iterations of the loops: some five to ten seconds."""
_QUESTION = 500_000
"""Iterations of the loops for the question whether any order comes below a limit; no more than for the search
itself.
"""
_RESERVE = 0.1
"""Part of the work that is kept for finishing the orders that a search has begun."""
_ITERATION = 16
"""States that one direction visits before the other goes on."""
_LEAD = 5
"""Iterations of the direction that last raised the bound for each iteration of the other one."""


def best_first(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """An order of smallest peak; without work or memory to prove it, the best order and the proved bound.

    The model's own order is the answer where none is better. Where ``limit.below`` is out of reach, as far as a
    question with work of its own can tell, the best of the simple orders is.
    """
    allowance = Allowance(_EFFORT, limit)
    graph, floor = memory_graph(problem), schedule_lower_bound(problem)
    simple: dict[tuple[int, ...], int] = {}
    for order in _simple_orders(graph):
        if order not in simple:
            simple[order] = graph.peak(order)
        if simple[order] == floor:
            return ScheduleAnswer(order, floor)
    own = min(simple, key=simple.__getitem__)
    if limit.below is not None and floor >= limit.below:
        return ScheduleAnswer(own, floor)
    fused = FusedGraph(graph)
    contract(fused)
    small = compiled(fused)
    segments = _segments(small)
    floor = max(floor, *small.least_need)
    visited = 0
    if limit.below is not None:
        visited, is_reachable = _question(small, segments, limit.below, allowance)
        if is_reachable is False:
            return ScheduleAnswer(own, max(floor, limit.below), visited)
        if is_reachable is None and allowance.left < _QUESTION:  # the same search once more would find no more
            return ScheduleAnswer(own, floor, visited)
    moves: dict[Segment, tuple[int, ...]] = {}
    reserve = int(_RESERVE * allowance.left)
    for segment in sorted(segments, key=lambda segment: -_least_need(small, segment)):
        moves[segment], floor, count = _search(small, segment, floor, None, allowance, reserve)
        visited += count
    found = tuple(v for segment in segments for b in moves[segment] for v in small.orders[b])
    best = found if graph.peak(found) < simple[own] else own
    return ScheduleAnswer(best, floor, visited, allowance.stopped_by_clock)


def _question(
    graph: CompiledGraph, segments: Sequence[Segment], peak: int, allowance: Allowance
) -> tuple[int, bool | None]:
    """(states visited, whether some order needs less than ``peak`` bytes; None where that is not known).

    Quicker than to look for the smallest peak: smaller needs are not distinguished. It ends at the first segment that
    needs as much, or that is not known to need less. Its work is its own.
    """
    visited, own = 0, allowance.another(_QUESTION)
    for segment in sorted(segments, key=lambda segment: -_least_need(graph, segment)):
        if _least_need(graph, segment) >= peak:
            return visited, False
        _, reached, count = _search(graph, segment, peak - 1, peak, own, 0)
        visited += count
        if reached >= peak or own.is_spent():
            return visited, False if reached >= peak else None
    return visited, True


def _simple_orders(graph: MemoryGraph) -> Iterator[tuple[int, ...]]:
    """Yield the baselines' orders, first of all the model's own if it is one."""
    if graph.runs_as_numbered:
        yield tuple(range(len(graph.needs)))
    yield kahn_order(graph)
    yield reverse_post_order(graph)


def _segments(graph: CompiledGraph) -> list[Segment]:
    """Return the segments in the order in which they run."""
    segments = []
    executed, alive = 0, graph.alive_at_start
    for cut in graph.cuts:
        goal, before = (2 << cut) - 1, alive
        start = executed
        for b in range(start.bit_length(), cut + 1):
            alive += graph.cost(executed, b)[1]
            executed |= 1 << b
        segments.append(Segment(start, goal, before, alive))
    return segments


def _least_need(graph: CompiledGraph, segment: Segment) -> int:
    return max(graph.least_need[segment.executed.bit_length() : segment.goal.bit_length()])


def _search(
    graph: CompiledGraph, segment: Segment, floor: int, below: int | None, allowance: Allowance, reserve: int
) -> tuple[tuple[int, ...], int, int]:
    """(fused operators in order, bytes that no order can avoid, states visited) of one segment.

    ``floor``: needs up to so many bytes are not distinguished. ``below``: nor are those of so many and more.
    """
    searches: list[BottleneckSearch] = []
    best: OrderFound | None = None
    for direction in (forward, backward):
        searches.append(BottleneckSearch(direction(graph, segment), floor, 0, allowance, reserve))
        quick = searches[-1].greedy()
        best = quick if best is None or quick.peak < best.peak else best
        if best.peak <= floor:
            return best.moves, floor, 0
    assert best is not None
    for search in searches:
        search.limit = best.peak if below is None else min(below, best.peak)
    most = _MEMORY // (_BYTES_PER_STATE + len(graph.needs) // 2)
    lead = 1
    while sum(len(search.visited) for search in searches) < most and searches[0].may_search():
        for search, iteration in zip(searches, (lead * _ITERATION, _ITERATION), strict=True):
            found = search.advance(iteration)
            if found or not search.frontier:
                best = found or best
                return best.moves, best.peak, sum(search.count for search in searches)
        if searches[0].reached != searches[1].reached:
            searches.sort(key=lambda search: -search.reached)
            searches[1].raise_floor(searches[0].reached)
            lead = _LEAD
    for search in searches:
        best = search.best_so_far(best)
    return best.moves, max(search.reached for search in searches), sum(search.count for search in searches)
