"""Orders in which more regions are intervals, so that stripes can lower what binds: regions as single steps.

A region that is one step, and needs no more than its inputs or its output, may let the scheduler find an order with a
smaller peak: the region's operators then follow one another, and stripes can make it true. Blocks that repeat peak
alike, so that all of them are one step each where no region alone changes anything. In a chain there is one order, and
nothing to look for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from ..graph.limits import SearchLimit
from ..graph.side_by_side import side_by_side
from .methods import solve
from .problem import Reuse, ScheduleProblem, Step, memory_graph

MOST_ORDERS = 3
"""Orders to look at beside the model's own."""
_MOST_REGIONS = 3
"""Regions that are one step in an order."""
_TRIES = 240
"""Regions that are tried out, for each that is added: fewer in graphs of many steps."""
_MOST_STEPS = 50_000
"""Steps of all problems that are tried out, for each region that is added."""
_LEAST_AT_ONCE = 2000
"""Steps of all problems that are solved at once: with fewer, processes take longer than they save."""
_AT_ONCE = 16
"""Regions that are tried before gains are compared: the same with any number of processes."""
_HOT = 0.93
"""A region that is tried has a step with so much of the peak."""


@dataclass(frozen=True)
class _Contracted:
    """A problem in which some regions are one step each: ``groups[v]`` are the model's steps of step v, in order."""

    problem: ScheduleProblem
    groups: tuple[tuple[int, ...], ...]
    peak: int
    order: tuple[int, ...]
    regions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Repeatable:
    """The steps of a region, and what they are: the same for blocks that repeat."""

    steps: tuple[int, ...]
    kind: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class _Question:
    """The number of best ones to look for, the number of processes, and the limit of each search."""

    limit: SearchLimit
    jobs: int
    count: int


def contracted_orders(
    problem: ScheduleProblem, regions: Sequence[Repeatable], limit: SearchLimit, jobs: int = 1
) -> list[tuple[int, ...]]:
    """Orders with one or more regions in a row that may have a smaller peak than the given one, best ones first.

    ``regions``: small ones first. ``jobs``: processes that try regions out side by side.
    """
    own, graph = tuple(range(len(problem.steps))), memory_graph(problem)
    if graph.has_one_order:
        return []
    start = _Contracted(problem, tuple((v,) for v in own), graph.peak(own), own, ())
    found: dict[tuple[int, ...], int] = {}
    ask = _Question(limit, jobs, MOST_ORDERS)
    firsts = _smaller(start, regions, ask) or _smaller_together(start, regions, ask)
    for first in firsts:
        best = first
        while len(best.regions) < _MOST_REGIONS:
            more = _smaller(best, regions, replace(ask, count=1))
            if not more:
                break
            best = more[0]
        for each in (best, first):
            found.setdefault(tuple(step for v in each.order for step in each.groups[v]), each.peak)
    found.pop(own, None)
    return sorted(found, key=lambda order: (found[order], order))[:MOST_ORDERS]


def _smaller(start: _Contracted, regions: Sequence[Repeatable], ask: _Question) -> list[_Contracted]:
    """Return the problems with one region more whose best order has a smaller peak, best ones first."""
    hot = _steps_at(start, _hot_places(start))
    taken = {step for region in start.regions for step in region}
    tried = ([each.steps] for each in regions if hot & set(each.steps) and not taken & set(each.steps))
    return _best_first(start, list(islice(tried, _tries(start))), ask)


def _smaller_together(start: _Contracted, regions: Sequence[Repeatable], ask: _Question) -> list[_Contracted]:
    """Return the problems with a region and all those like it whose best order has a smaller peak, best ones first."""
    tried = [[each.steps, *_like(each, regions)] for each in islice(_tried(start, regions), _tries(start))]
    return _best_first(start, tried, ask)


def _best_first(start: _Contracted, tried: Sequence[Sequence[tuple[int, ...]]], ask: _Question) -> list[_Contracted]:
    """With each of these sets of regions, where the peak is smaller than before: one for each peak, best ones first.

    So many as are asked for. What does not come below the last of them is not looked at any closer.
    """
    is_much = len(tried) * len(start.problem.steps) >= _LEAST_AT_ONCE
    found: dict[int, _Contracted] = {}
    for at in range(0, len(tried), _AT_ONCE):
        below = start.peak if len(found) < ask.count else sorted(found)[ask.count - 1]
        contract = partial(_contract, start, below, ask.limit)
        for contracted in side_by_side(contract, tried[at : at + _AT_ONCE], ask.jobs if is_much else 1):
            if contracted is not None:
                found.setdefault(contracted.peak, contracted)
    return [found[peak] for peak in sorted(found)[: ask.count]]


def _tries(start: _Contracted) -> int:
    return min(_TRIES, _MOST_STEPS // len(start.problem.steps))


def _hot_places(start: _Contracted) -> list[int]:
    """Places in the order at which nearly as much as the peak is alive."""
    needs = memory_graph(start.problem).needs_along(start.order)
    return [at for at, need in enumerate(needs) if need >= _HOT * start.peak]


def _steps_at(start: _Contracted, places: Sequence[int]) -> set[int]:
    return {step for at in places for step in start.groups[start.order[at]]}


def _tried(start: _Contracted, regions: Sequence[Repeatable]) -> Iterator[Repeatable]:
    """Regions with a bottleneck step; then those around one, whose tensors may be alive there."""
    hot = _hot_places(start)
    steps = _steps_at(start, hot)
    yield from (region for region in regions if steps & set(region.steps))
    place = {step: at for at, v in enumerate(start.order) for step in start.groups[v]}
    for region in regions:
        places = [place[step] for step in region.steps]
        if not steps & set(region.steps) and any(min(places) < at < max(places) for at in hot):
            yield region


def _like(region: Repeatable, regions: Sequence[Repeatable]) -> list[tuple[int, ...]]:
    """Other regions of the same operators and shapes, none of which has a step of another one: blocks that repeat."""
    found: list[tuple[int, ...]] = []
    taken = set(region.steps)
    for each in regions:
        if each.kind == region.kind and not taken & set(each.steps):
            found.append(each.steps)
            taken |= set(each.steps)
    return found


def _contract(
    start: _Contracted, below: int, limit: SearchLimit, regions: Sequence[tuple[int, ...]]
) -> _Contracted | None:
    """With each of these regions as one step, and the best order of that, if its peak is below so many bytes."""
    problem, groups = start.problem, start.groups
    for region in regions:
        problem, groups = _as_step(problem, groups, region)
    schedule = solve(problem, limit=replace(limit, below=below))
    if schedule.peak_bytes >= below:
        return None
    return _Contracted(problem, groups, schedule.peak_bytes, schedule.order, (*start.regions, *regions))


def _as_step(
    problem: ScheduleProblem, groups: tuple[tuple[int, ...], ...], region: tuple[int, ...]
) -> tuple[ScheduleProblem, tuple[tuple[int, ...], ...]]:
    """Return the problem with a region as one step, and what its steps stand for."""
    inside = set(region)
    members = [v for v, group in enumerate(groups) if inside & set(group)]
    last = next(v for v, group in enumerate(groups) if group[-1] == region[-1])
    places = sorted([*(v for v in range(len(groups)) if v not in members), last])
    number = {v: at for at, v in enumerate(places)} | dict.fromkeys(members, places.index(last))
    steps = []
    for v in places:
        step = problem.steps[v]
        after = tuple(dict.fromkeys(number[u] for u in step.after))
        whole = _as_one(problem, members, number, last) if v == last else None
        steps.append(whole or Step(step.inputs, step.outputs, step.scratch, after, step.reuses))
    made = ScheduleProblem(problem.sizes, tuple(steps), problem.inputs, problem.outputs)
    return made, tuple(region if v == last else groups[v] for v in places)


def _as_one(problem: ScheduleProblem, members: Sequence[int], number: Mapping[int, int], last: int) -> Step:
    """Return the step that stands for the region: its output can take the place of any input that dies."""
    steps = [problem.steps[v] for v in members]
    made = {t for step in steps for t in step.outputs}
    inputs = tuple(dict.fromkeys(t for step in steps for t in step.inputs if t not in made))
    outputs = problem.steps[last].outputs
    nbytes = sum(problem.sizes[t] for t in outputs)
    after = {number[u] for step in steps for u in step.after} - {number[last]}
    reuses = tuple(Reuse(t, min(problem.sizes[t], nbytes)) for t in inputs)
    return Step(inputs, outputs, 0, tuple(sorted(after)), reuses)
