"""Orders of a model in which more regions are intervals, so that stripes can lower what binds.

A region that is one step, and needs no more than its inputs or its output, may let the scheduler find an order with a
smaller peak: the region's operators then follow one another, and stripes can make it true. In a chain there is one
order, and nothing to look for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..graph.search_limit import SearchLimit
from ..graph.side_by_side import side_by_side
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..schedule.memory_graph import memory_graph
from ..schedule.methods import solve
from ..schedule.problem import Reuse, ScheduleProblem, Step
from .receptive_field import row_by_row
from .region import regions_above

MOST_ORDERS = 3
"""Orders to look at beside the model's own."""
_MOST_REGIONS = 3
"""Regions that are one step in an order."""
_LONGEST = 24
_TRIES = 240
"""Regions that are tried out, for each that is added."""
_LEAST_WORK = 2000
"""Steps of all problems that are solved at once: with fewer, processes take longer than they save."""
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

    def in_model(self) -> tuple[int, ...]:
        """The order of the model's steps."""
        return tuple(step for v in self.order for step in self.groups[v])


def promising_orders(
    model: Model, profile: KernelProfile, limit: SearchLimit, pinned: Collection[str] = (), jobs: int = 1
) -> list[tuple[int, ...]]:
    """Orders with one or more regions in a row that may have a smaller peak than the model's own, best ones first.

    ``jobs``: processes that try regions out side by side.
    """
    problem = schedule_problem(model.main, memory_layout(model, profile))
    own, graph = tuple(range(len(problem.steps))), memory_graph(problem)
    if graph.has_one_order:
        return []
    start = _Contracted(problem, tuple((v,) for v in own), graph.peak(own), own, ())
    regions = _regions(model, pinned)
    found: dict[tuple[int, ...], int] = {}
    for first in _smaller(start, regions, limit, jobs)[:MOST_ORDERS]:
        best = first
        while len(best.regions) < _MOST_REGIONS:
            more = _smaller(best, regions, limit, jobs)
            if not more:
                break
            best = more[0]
        for each in (best, first):
            found.setdefault(each.in_model(), each.peak)
    found.pop(own, None)
    return sorted(found, key=lambda order: (found[order], order))[:MOST_ORDERS]


def _regions(model: Model, pinned: Collection[str]) -> list[tuple[int, ...]]:
    """The steps of all regions, small ones first."""
    ways = [row_by_row(operator) for operator in model.main.operators]
    found = []
    for exit_, operator in enumerate(model.main.operators):
        shape = operator.outputs[0].shape if operator.outputs else ()
        if len(shape) == 4 and shape[1] > 1:
            found += list(regions_above(model.main, exit_, ways, _LONGEST, pinned))
    return sorted((region for region in found if len(region) > 1), key=lambda region: (len(region), region))


def _smaller(
    start: _Contracted, regions: Sequence[tuple[int, ...]], limit: SearchLimit, jobs: int
) -> list[_Contracted]:
    """The problems with one region more whose best order has a smaller peak, best ones first."""
    needs = memory_graph(start.problem).needs_along(start.order)
    hot = {
        step
        for v, need in zip(start.order, needs, strict=True)
        if need >= _HOT * start.peak
        for step in start.groups[v]
    }
    taken = {step for region in start.regions for step in region}
    tried = [region for region in regions if hot & set(region) and not taken & set(region)][:_TRIES]

    def if_smaller(region: tuple[int, ...]) -> _Contracted | None:
        contracted = _contract(start, region, limit)
        return contracted if contracted.peak < start.peak else None

    is_much = len(tried) * len(start.problem.steps) >= _LEAST_WORK
    found: dict[int, _Contracted] = {}
    for contracted in side_by_side(if_smaller, tried, jobs if is_much else 1):
        if contracted is not None:
            found.setdefault(contracted.peak, contracted)
    return [found[peak] for peak in sorted(found)]


def _contract(start: _Contracted, region: tuple[int, ...], limit: SearchLimit) -> _Contracted:
    """With a region as one step, and the best order of that."""
    inside = set(region)
    places = [v for v, group in enumerate(start.groups) if not inside & set(group)]
    last = next(v for v, group in enumerate(start.groups) if group[-1] == region[-1])
    number = {v: at for at, v in enumerate(sorted([*places, last]))}
    number |= {v: number[last] for v, group in enumerate(start.groups) if inside & set(group)}
    steps, groups = [], []
    for v in sorted([*places, last]):
        step = start.problem.steps[v]
        after = tuple(dict.fromkeys(number[u] for u in step.after))
        steps.append(
            _as_one(start, inside, number, last)
            if v == last
            else Step(step.inputs, step.outputs, step.scratch, after, step.reuses)
        )
        groups.append(region if v == last else start.groups[v])
    problem = ScheduleProblem(start.problem.sizes, tuple(steps), start.problem.inputs, start.problem.outputs)
    schedule = solve(problem, limit=limit)
    return _Contracted(problem, tuple(groups), schedule.peak_bytes, schedule.order, (*start.regions, region))


def _as_one(start: _Contracted, inside: set[int], number: dict[int, int], last: int) -> Step:
    """The step that stands for the region: its output can take the place of any input that dies."""
    members = [v for v, group in enumerate(start.groups) if inside & set(group)]
    steps = [start.problem.steps[v] for v in members]
    made = {t for step in steps for t in step.outputs}
    inputs = tuple(dict.fromkeys(t for step in steps for t in step.inputs if t not in made))
    outputs = start.problem.steps[last].outputs
    nbytes = sum(start.problem.sizes[t] for t in outputs)
    after = {number[u] for step in steps for u in step.after} - {number[last]}
    reuses = tuple(Reuse(t, min(start.problem.sizes[t], nbytes)) for t in inputs)
    return Step(inputs, outputs, 0, tuple(sorted(after)), reuses)
