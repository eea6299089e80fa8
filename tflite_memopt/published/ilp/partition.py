"""Acyclic partition of a problem where few bytes are alive, into parts that can be ordered one after another.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.C. The paper
calls dagP; here a cut is a set of operators that may run first, found in two steps: the best places to cut one
schedule, then moves of single operators across each cut (C. M. Fiduccia, R. M. Mattheyses, DAC 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...solvers.graph.dependency_graph import bits, sets_at
from ...solvers.schedule.problem import MemoryGraph

IMBALANCE = 1.4
"""A part may have so many times the mean number of operators."""


def light_cuts(graph: MemoryGraph, order: Sequence[int], done: int, parts: int) -> list[int]:
    """Cut the operators of ``order``, which run after the set ``done``, into so many parts: few bytes alive at cuts.

    Parts are never empty, so there are fewer where there are fewer operators. Returns the cuts from ``done`` on.
    """
    parts = max(1, min(parts, len(order)))
    largest = -(-int(IMBALANCE * len(order)) // parts)
    alive = [graph.alive_bytes(done), *(ran.alive for ran in graph.follow(order, done))]
    cuts = sets_at(order, _best_places(alive, parts, largest), done)
    for here in range(1, parts):
        cuts[here] = _refined(graph, cuts[here - 1], cuts[here], cuts[here + 1], largest)
    return cuts


def _best_places(alive: Sequence[int], parts: int, largest: int) -> list[int]:
    """Return the positions from 0 to the end, no part larger than allowed, with the least sum of bytes alive at them.

    Dynamic programming over positions, part by part. O(parts * positions * largest).
    """
    end = len(alive) - 1
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, (0,))}
    for left in range(parts - 1, -1, -1):
        onward: dict[int, tuple[int, tuple[int, ...]]] = {}
        for place, (cost, places) in best.items():
            for cut in range(max(place + 1, end - left * largest), min(place + largest, end - left) + 1):
                if cut not in onward or cost + alive[cut] < onward[cut][0]:
                    onward[cut] = (cost + alive[cut], (*places, cut))
        best = onward
    return list(best[end][1])


def _refined(graph: MemoryGraph, low: int, cut: int, high: int, largest: int) -> int:
    """Return the lightest cut between its neighbors that moves of single operators lead to."""
    alive = graph.alive_bytes(cut)
    while True:
        better, reached = _pass(graph, (low, high), cut, alive, largest)
        if reached >= alive:
            return cut
        cut, alive = better, reached


def _pass(graph: MemoryGraph, ends: tuple[int, int], cut: int, alive: int, largest: int) -> tuple[int, int]:
    """Move each operator once at most, the lightest result first, uphill too; the lightest cut met on the way."""
    best, movable = (cut, alive), ends[1] & ~ends[0]
    while True:
        moves = [(after, v) for v, after in _moves(graph, movable, cut, alive) if _fits(ends, cut ^ 1 << v, largest)]
        if not moves:
            return best
        alive, moved = min(moves)
        cut ^= 1 << moved
        movable ^= 1 << moved
        if alive < best[1]:
            best = (cut, alive)


def _moves(graph: MemoryGraph, movable: int, cut: int, alive: int) -> Iterator[tuple[int, int]]:
    """Yield the operators that can change sides, with the bytes alive at the cut afterwards."""
    for v in bits(movable & ~cut):
        if not graph.needs[v] & ~cut:
            yield v, graph.run(cut, alive, v)[1]
    for v in bits(movable & cut):
        if not graph.feeds[v] & cut:
            yield v, alive - graph.run(cut ^ 1 << v, 0, v)[1]


def _fits(ends: tuple[int, int], cut: int, largest: int) -> bool:
    """Return whether both parts beside the cut have an operator, and none has too many."""
    low, high = ends
    return all(1 <= part.bit_count() <= largest for part in (cut & ~low, high & ~cut))
