"""Exact: a search at one capacity after the other, from the bound and from the best plan; proves its answer or a gap.

Stretches of time that nothing crosses are solved one by one: by the search over disjunctions where items may share
bytes, else by the tree. What the first conclusions refute at once is no bound: they are asked at ever fewer bytes. Then
searches with a node limit take turns over the rules, at the lower bound and half way between the bound and the best
plan; after each round the limit doubles. A search that runs dry proves the next capacity. Limits count work, so that
the answer is the same on every machine.
Source: google/minimalloc, for limits that double and orderings that take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...graph.search_limit import SearchLimit, WorkAllowance
from ..bounds import max_breadth
from ..greedy_by_size import greedy_by_size
from ..problem import Candidate, FitResult, PlanProblem
from .group import group_of, time_groups
from .pair_search import PairSearch
from .run import CapacitySearch, SearchRun
from .settings import TreeSettings
from .tree_search import TreeSearch


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
    nodes = 0
    for indices in sorted(time_groups(problem.items), key=lambda group: -_top_of(problem, offsets, group)):
        top = _top_of(problem, offsets, indices)
        if top <= bound:
            continue
        best = _BestOfGroup((), top, bound)
        nodes += _minimise(_search_for(problem, indices, settings), best, allowance, settings)
        for index, offset in zip(indices, best.offsets, strict=False):
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
        best = _BestOfGroup((), capacity + 1, capacity)
        nodes += _minimise(_search_for(problem, indices, settings), best, allowance, settings)
        if not best.offsets:
            return FitResult(None, best.bound > capacity, nodes, allowance.stopped_by_clock)
        for index, offset in zip(indices, best.offsets, strict=True):
            offsets[index] = offset
    return FitResult(tuple(offsets), False, nodes, allowance.stopped_by_clock)


def _search_for(problem: PlanProblem, indices: Sequence[int], settings: TreeSettings) -> CapacitySearch:
    group = group_of(problem, indices)
    return PairSearch(group, settings.compiles) if group.has_relations else TreeSearch(group, settings)


def _minimise(search: CapacitySearch, best: _BestOfGroup, allowance: WorkAllowance, settings: TreeSettings) -> int:
    """Lower a group's top to its bound, or raise the bound to it, in rounds that get longer; nodes visited."""
    nodes, visited = 2 * len(search.group.items), _raise_bound(search, best, allowance)
    while best.top > best.bound and not allowance.is_spent():
        visited += _search_in_turns(search, best, True, nodes, allowance)
        if settings.halves:
            visited += _search_in_turns(search, best, False, nodes, allowance)
        nodes *= 2
    return visited


def _raise_bound(search: CapacitySearch, best: _BestOfGroup, allowance: WorkAllowance) -> int:
    """Raise the bound to the smallest capacity that a single node does not refute; nodes visited."""
    low, high, visited = best.bound, best.top if search.refutes_at_once else best.bound, 0
    grain = search.group.grain
    while low < high and not allowance.is_spent():
        capacity = max(low, (low + high - 1) // 2 // grain * grain)
        found = search.run(capacity, search.rules[0], 1, allowance)
        visited += found.nodes
        if not found.is_proof:
            high = capacity
        low = max(low, _learn(search, best, capacity, found))
    return visited


def _search_in_turns(
    search: CapacitySearch, best: _BestOfGroup, at_bound: bool, nodes: int, allowance: WorkAllowance
) -> int:
    """Every rule once, at the bound or half way to the best plan; from the start again whenever one succeeds.

    Returns the nodes visited.
    """
    turn = visited = 0
    while turn < len(search.rules) and best.top > best.bound and not allowance.is_spent():
        capacity = best.bound if at_bound else _half_way(best, search.group.grain)
        if capacity <= best.bound and not at_bound:
            break
        found = search.run(capacity, search.rules[turn], nodes, allowance)
        visited, turn = visited + found.nodes, turn + 1
        _learn(search, best, capacity, found)
        if found.offsets or found.is_proof:
            turn = 0
    return visited


def _learn(search: CapacitySearch, best: _BestOfGroup, capacity: int, found: SearchRun) -> int:
    """Take over a plan or a proof; the bound."""
    if found.offsets:
        best.offsets = found.offsets
        best.top = max(offset + item.size for offset, item in zip(found.offsets, search.group.items, strict=True))
    elif found.is_proof:
        # All arenas are multiples of the grain.
        best.bound = capacity - capacity % search.group.grain + search.group.grain
    return best.bound


def _half_way(best: _BestOfGroup, grain: int) -> int:
    return (best.bound + best.top - 1) // 2 // grain * grain


def _top_of(problem: PlanProblem, offsets: Sequence[int], indices: Sequence[int]) -> int:
    return max((offsets[i] + problem.items[i].size for i in indices), default=0)
