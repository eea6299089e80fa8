"""Acyclic partition of a problem where few bytes are alive: parts that can be ordered one after another.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.C. The paper
calls dagP; here a cut is a set of operators that may run first, found in two steps: the best places to cut one
schedule, then moves of single operators across each cut (C. M. Fiduccia, R. M. Mattheyses, DAC 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..problem import ScheduleProblem, Step
from ..reach import Reach
from ..wiring import Wiring, bits

IMBALANCE = 1.4
"""A part may have so many times the mean number of operators."""


@dataclass(frozen=True)
class Part:
    """``members[v]`` is the operator of the whole that step v of ``problem`` is. Tensors keep their numbers.

    The part's inputs are what is alive before it, whoever reads it; its outputs what is alive after it.
    """

    problem: ScheduleProblem
    members: tuple[int, ...]


def parts_of(wiring: Wiring, cuts: Sequence[int]) -> list[Part]:
    """The part between each cut and the next; ``cuts`` are sets of executed operators, from none to all."""
    return [_part(wiring, done, upto) for done, upto in pairwise(cuts)]


def forced_cuts(known: Reach) -> list[int]:
    """The executed sets that every order passes through, from none to all. O(n)."""
    count = len(known.order)
    latest = [count - after.bit_count() for after in known.after]
    by_start = sorted(range(count), key=lambda v: known.before[v].bit_count())
    cuts, done, reached = [0], 0, 0
    for place, v in enumerate(by_start):
        if place and reached == place == known.before[v].bit_count():
            cuts.append(done)
        done |= 1 << v
        reached = max(reached, latest[v])
    return [*cuts, done]


def light_cuts(wiring: Wiring, order: Sequence[int], done: int, parts: int) -> list[int]:
    """Cut the operators of ``order``, which run after the set ``done``, into so many parts: few bytes alive at cuts.

    Parts are never empty, so there are fewer where there are fewer operators. Returns the cuts from ``done`` on.
    """
    parts = max(1, min(parts, len(order)))
    largest = -(-int(IMBALANCE * len(order)) // parts)
    places = _best_places(_alive_along(wiring, order, done), parts, largest)
    cuts = [done]
    for start, end in pairwise(places):
        cuts.append(cuts[-1] | sum(1 << v for v in order[start:end]))
    for here in range(1, parts):
        cuts[here] = _refined(wiring, cuts[here - 1], cuts[here], cuts[here + 1], largest)
    return cuts


def alive_after(wiring: Wiring, executed: int) -> int:
    """Bytes alive once a set of operators ran. O(operators + tensors)."""
    return sum(wiring.problem.sizes[t] for t in _alive(wiring, executed))


def _alive(wiring: Wiring, executed: int) -> tuple[int, ...]:
    steps = wiring.problem.steps
    made = dict.fromkeys(wiring.problem.inputs) | dict.fromkeys(t for v in bits(executed) for t in steps[v].outputs)
    return tuple(t for t in made if not wiring.dies(t, wiring.everything & ~executed))


def _part(wiring: Wiring, done: int, upto: int) -> Part:
    members = tuple(bits(upto & ~done))
    place = {v: number for number, v in enumerate(members)}
    steps = tuple(_inside(wiring.problem.steps[v], place) for v in members)
    return Part(ScheduleProblem(wiring.problem.sizes, steps, _alive(wiring, done), _alive(wiring, upto)), members)


def _inside(step: Step, place: dict[int, int]) -> Step:
    after = tuple(place[v] for v in step.after if v in place)
    return Step(step.inputs, step.outputs, step.scratch, after, step.reuses)


def _alive_along(wiring: Wiring, order: Sequence[int], done: int) -> list[int]:
    """Bytes alive before each operator of an order, and at its end."""
    alive = [alive_after(wiring, done)]
    for v in order:
        alive.append(wiring.run(done, alive[-1], v)[1])
        done |= 1 << v
    return alive


def _best_places(alive: Sequence[int], parts: int, largest: int) -> list[int]:
    """Positions from 0 to the end, no part larger than allowed, with the least sum of bytes alive at them.

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


def _refined(wiring: Wiring, low: int, cut: int, high: int, largest: int) -> int:
    """The lightest cut between its neighbours that moves of single operators lead to."""
    alive = alive_after(wiring, cut)
    while True:
        better, reached = _pass(wiring, (low, high), cut, alive, largest)
        if reached >= alive:
            return cut
        cut, alive = better, reached


def _pass(wiring: Wiring, ends: tuple[int, int], cut: int, alive: int, largest: int) -> tuple[int, int]:
    """Move each operator once at most, the lightest result first, uphill too; the lightest cut met on the way."""
    best, movable = (cut, alive), ends[1] & ~ends[0]
    while True:
        moves = [(after, v) for v, after in _moves(wiring, movable, cut, alive) if _fits(ends, cut ^ 1 << v, largest)]
        if not moves:
            return best
        alive, moved = min(moves)
        cut ^= 1 << moved
        movable ^= 1 << moved
        if alive < best[1]:
            best = (cut, alive)


def _moves(wiring: Wiring, movable: int, cut: int, alive: int) -> Iterator[tuple[int, int]]:
    """Operators that can change sides, with the bytes alive at the cut afterwards."""
    for v in bits(movable & ~cut):
        if not wiring.needs[v] & ~cut:
            yield v, wiring.run(cut, alive, v)[1]
    for v in bits(movable & cut):
        if not wiring.feeds[v] & cut:
            yield v, alive - wiring.run(cut ^ 1 << v, 0, v)[1]


def _fits(ends: tuple[int, int], cut: int, largest: int) -> bool:
    """Whether both parts beside the cut have an operator, and none has too many."""
    low, high = ends
    return all(1 <= part.bit_count() <= largest for part in (cut & ~low, high & ~cut))
