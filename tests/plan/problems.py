"""Small problems of every kind, and the smallest arena by trying every offset."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import strategies as st

from tflite_memopt.errors import InfeasibleError
from tflite_memopt.solvers.graph.interval import intersect
from tflite_memopt.solvers.plan.check import check_given
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation


@st.composite
def small_problems(draw: st.DrawFn, alignments: tuple[int, ...] = (1, 2, 4), scale: int = 1) -> PlanProblem:
    """Up to five items, many relations of both kinds and signs, sometimes items without bytes or with an offset."""
    return random_problem(random.Random(draw(st.integers(0, 2**32))), alignments, scale)


def random_problem(rng: random.Random, alignments: tuple[int, ...] = (1, 2, 4), scale: int = 1) -> PlanProblem:
    """As ``small_problems``. Given offsets never collide."""
    while True:
        count = rng.randint(1, 5)
        items = [_random_item(rng, alignments, scale) for _ in range(count)]
        pairs = [(rng.randrange(count), rng.randrange(count)) for _ in range(rng.randint(0, 2 * count))]
        relations = tuple(Relation(a, b, rng.randint(-8, 8) * scale, rng.random() < 0.6) for a, b in pairs if a != b)
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            index = rng.randrange(count)
            items[index] = replace(items[index], offset=rng.randint(0, 4) * items[index].alignment)
        problem = PlanProblem(tuple(items), relations)
        try:
            check_given(problem)
        except InfeasibleError:
            continue
        return problem


def _random_item(rng: random.Random, alignments: tuple[int, ...], scale: int) -> Item:
    start = rng.randint(0, 3)
    size = rng.randint(0 if rng.random() < 0.05 else 1, 9)
    return Item(size * scale, start, start + rng.randint(1, 3), rng.choice(alignments) * scale)


def smallest_arena(problem: PlanProblem) -> int:
    """Every aligned offset tried for every item, in a capacity that grows byte by byte."""
    ends = [item.size + (item.offset or 0) for item in problem.items]
    capacity = max(ends, default=0)
    order = sorted(range(len(problem.items)), key=lambda i: -problem.items[i].size)
    while not _fits(problem, order, {}, capacity):
        capacity += 1
    return capacity


def _fits(problem: PlanProblem, order: list[int], offsets: dict[int, int], capacity: int) -> bool:
    if len(offsets) == len(order):
        return True
    index = order[len(offsets)]
    item = problem.items[index]
    places = range(0, capacity - item.size + 1, item.alignment) if item.offset is None else (item.offset,)
    return any(
        _fits(problem, order, offsets | {index: offset}, capacity)
        for offset in places
        if all(_may_lie(problem, index, offset, other, place) for other, place in offsets.items())
    )


def _may_lie(problem: PlanProblem, a: int, a_offset: int, b: int, b_offset: int) -> bool:
    first, second = problem.items[a], problem.items[b]
    apart = a_offset + first.size <= b_offset or b_offset + second.size <= a_offset
    if apart or not intersect(first, second) or not first.size or not second.size:
        return True
    places = {a: a_offset, b: b_offset}
    return any(r.allows(places[r.first], places[r.second]) for r in problem.relations if {r.first, r.second} == {a, b})


def guillotine(seed: int, cuts: int, steps: int = 64, height: int = 4096) -> PlanProblem:
    """A rectangle of time and bytes cut into pieces: no byte is free at any time, so the optimum is ``height``."""
    rng = random.Random(seed)
    pieces = [(0, steps, 0, height)]
    while len(pieces) < cuts:
        start, end, low, high = pieces.pop(rng.randrange(len(pieces)))
        if end - start > 2 and (rng.random() < 0.5 or high - low < 64):
            middle = rng.randrange(start + 1, end)
            pieces += [(start, middle, low, high), (middle, end, low, high)]
        elif high - low >= 64:
            middle = rng.randrange(low + 16, high - 15, 16)
            pieces += [(start, end, low, middle), (start, end, middle, high)]
        else:
            pieces.append((start, end, low, high))
    rng.shuffle(pieces)
    return PlanProblem(tuple(Item(high - low, start, end, 16) for start, end, low, high in pieces))


def in_a_row(
    rng: random.Random, count: int, starts: int = 2, largest: int = 12, longest: int = 5, related: int = 3
) -> PlanProblem:
    """Items one after the other, some of which may lie over the next one.

    ``starts``: items for each time at which one may start; ``largest``: in 16 bytes; ``longest``: times that one is
    alive; ``related``: each such item may lie over the next one.
    """
    times = sorted(rng.randint(0, count // starts) for _ in range(count))
    items = tuple(Item(16 * rng.randint(1, largest), start, start + rng.randint(2, longest)) for start in times)
    relations = tuple(Relation(i, i + 1, 16 * rng.randint(0, 3)) for i in range(0, count - 1, related))
    return PlanProblem(items, relations)


def crowded(seed: int, count: int = 60) -> PlanProblem:
    """Items of many sizes in a row: too many to be placed at once."""
    return in_a_row(random.Random(seed), count, starts=3, largest=60, longest=9, related=4)
