"""Exact: the tree at one capacity after the other, from the bound and from the best plan; proves its answer or a gap.

Stretches of time that nothing crosses are solved one by one. For each, searches with a node limit take turns over the
orderings, at the lower bound and half way between the bound and the best plan; after each round the limit doubles.
A search that runs dry proves the next capacity. Limits count nodes, so that the answer is the same on every machine.
Source: google/minimalloc, for limits that double and orderings that take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...graph.search_limit import SearchLimit, WorkAllowance
from ..bounds import max_breadth
from ..greedy_by_size import greedy_by_size
from ..problem import Candidate, FitResult, PlanProblem
from .group import TreeGroup, build, time_groups
from .run import run_tree
from .settings import TreeSettings
from .tree import FOUND, NONE


@dataclass
class _BestOfGroup:
    """Best offsets of one group (none yet), the bytes that they take, and the proved bound."""

    offsets: tuple[int, ...]
    top: int
    bound: int


def exact(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes, with a proved lower bound; optimal unless the node limit ended the search."""
    return improve(problem, None, limit)


def improve(
    problem: PlanProblem, known: Sequence[int] | None, limit: SearchLimit, settings: TreeSettings = TreeSettings()
) -> Candidate:
    """The best plan that a search finds below ``known`` (offsets in bytes), or that one, and a proved bound."""
    allowance = WorkAllowance(settings.work_for(len(problem.items)), limit)
    offsets = list(known if known is not None else greedy_by_size(problem, limit).offsets)
    bound = max_breadth(problem)
    groups = [build(problem, indices, settings) for indices in time_groups(problem.items)]
    nodes = 0
    for group in sorted(groups, key=lambda group: -_top_of(problem, offsets, group.indices)):
        top = _top_of(problem, offsets, group.indices)
        if top <= bound:
            continue
        best = _BestOfGroup((), top, bound)
        nodes += _minimise(group, best, allowance, settings)
        for index, offset in zip(group.indices, best.offsets, strict=False):
            offsets[index] = offset
        bound = max(bound, best.bound)
    return Candidate(tuple(offsets), bound, nodes, allowance.stopped_by_clock)


def fit(problem: PlanProblem, capacity: int, limit: SearchLimit, settings: TreeSettings = TreeSettings()) -> FitResult:
    """Whether a plan of at most ``capacity`` bytes exists, as a deployment or a search with a cut-off asks."""
    allowance = WorkAllowance(settings.work_for(len(problem.items)), limit)
    offsets = [item.offset or 0 for item in problem.items]
    if max_breadth(problem) > capacity:
        return FitResult(None, True, 0, False)
    nodes = 0
    for indices in time_groups(problem.items):
        group = build(problem, indices, settings)
        best = _BestOfGroup((), capacity + 1, capacity)
        nodes += _minimise(group, best, allowance, settings)
        if not best.offsets:
            return FitResult(None, best.bound > capacity, nodes, allowance.stopped_by_clock)
        for index, offset in zip(indices, best.offsets, strict=True):
            offsets[index] = offset
    return FitResult(tuple(offsets), False, nodes, allowance.stopped_by_clock)


def _minimise(group: TreeGroup, best: _BestOfGroup, allowance: WorkAllowance, settings: TreeSettings) -> int:
    """Lower a group's top to its bound, or raise the bound to it, in rounds that get longer; nodes visited."""
    nodes, visited = 2 * len(group.indices), 0
    while best.top > best.bound and not allowance.is_spent():
        visited += _search_in_turns(group, best, True, nodes, allowance, settings)
        if settings.halves:
            visited += _search_in_turns(group, best, False, nodes, allowance, settings)
        nodes *= 2
    return visited


def _search_in_turns(
    group: TreeGroup,
    best: _BestOfGroup,
    at_bound: bool,
    nodes: int,
    allowance: WorkAllowance,
    settings: TreeSettings,
) -> int:
    """Every ordering once, at the bound or half way to the best plan; from the start again whenever one succeeds.

    Returns the nodes visited.
    """
    turn = visited = 0
    while turn < len(settings.orderings) and best.top > best.bound and not allowance.is_spent():
        capacity = best.bound if at_bound else _half_way(best, group.grain)
        if capacity <= best.bound and not at_bound:
            break
        found = run_tree(group, capacity, settings.orderings[turn], nodes, allowance, settings.compiles)
        visited, turn = visited + found.nodes, turn + 1
        if found.end == FOUND:
            best.offsets, turn = found.offsets, 0
            best.top = max(offset + size for offset, size in zip(found.offsets, group.sizes, strict=True))
        elif found.end == NONE:
            # All arenas are multiples of the grain.
            best.bound, turn = capacity - capacity % group.grain + group.grain, 0
    return visited


def _half_way(best: _BestOfGroup, grain: int) -> int:
    return (best.bound + best.top - 1) // 2 // grain * grain


def _top_of(problem: PlanProblem, offsets: Sequence[int], indices: Sequence[int]) -> int:
    return max((offsets[i] + problem.items[i].size for i in indices), default=0)
