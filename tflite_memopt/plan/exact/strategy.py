"""Exact: a search at one capacity after the other, from the bound and from the best plan; proves its answer or a gap.

Stretches of time that nothing crosses are solved one by one: by the search over disjunctions where items may share
bytes, else by the tree. What the first conclusions refute at once is no bound: they are asked at ever fewer bytes. Then
searches with a node limit take turns over the rules, at the lower bound, half way between the bound and the best plan,
and nearer to the plan; after each round the limit doubles. A search that runs dry proves the next capacity. Limits
count work, so that the answer is the same on every machine.
Source: google/minimalloc, for limits that double and orderings that take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...graph.search_limit import SearchLimit, WorkAllowance
from ..bounds import max_breadth
from ..heuristics import greedy_by_size
from ..problem import Candidate, FitResult, PlanProblem
from .group import ItemGroup, group_of, time_groups
from .pair_search import PairSearch
from .questions import BestOfGroup, CapacityQuestions
from .run import CapacitySearch
from .settings import TreeSettings
from .tree_search import TreeSearch


def exact(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes, with a proved lower bound; optimal unless the node limit ended the search."""
    return improve(problem, None, limit)


def allowance_for(problem: PlanProblem, limit: SearchLimit, settings: TreeSettings = TreeSettings()) -> WorkAllowance:
    """What searches on this problem and on parts of it may spend together."""
    turns = settings.work_for(len(problem.items), bool(problem.relations), limit.work)
    return WorkAllowance(turns, replace(limit, work=1.0))


def improve(
    problem: PlanProblem,
    known: Sequence[int] | None,
    limit: SearchLimit,
    settings: TreeSettings = TreeSettings(),
    allowance: WorkAllowance | None = None,
) -> Candidate:
    """The best plan that a search finds below ``known`` (offsets in bytes), or that one, and a proved bound.

    What it spends is taken from the ``allowance``, where it shares one with other searches.
    """
    allowance = allowance or allowance_for(problem, limit, settings)
    offsets = list(known if known is not None else greedy_by_size(problem, limit).offsets)
    bound = max_breadth(problem)
    nodes = 0
    earlier: list[tuple[int, ...]] = []
    for indices in sorted(time_groups(problem.items), key=lambda group: -_top_of(problem, offsets, group)):
        top = _top_of(problem, offsets, indices)
        if top <= bound:
            continue
        best = BestOfGroup(top, bound)
        nodes += _minimize(_search_for(group_of(problem, indices), settings), best, allowance, settings)
        for found in best.found:
            for index, offset in zip(indices, found, strict=True):
                offsets[index] = offset
            earlier.append(tuple(offsets))
        bound = max(bound, best.bound)
    return Candidate(tuple(offsets), bound, nodes, allowance.stopped_by_clock, tuple(earlier[:-1]))


def fit(problem: PlanProblem, capacity: int, limit: SearchLimit, settings: TreeSettings = TreeSettings()) -> FitResult:
    """Whether a plan of at most ``capacity`` bytes exists, as a deployment or a search with a cut-off asks."""
    allowance = allowance_for(problem, limit, settings)
    offsets = [item.offset or 0 for item in problem.items]
    if max_breadth(problem) > capacity:
        return FitResult(None, True, 0, False)
    nodes = 0
    for indices in time_groups(problem.items):
        best = BestOfGroup(capacity + 1, capacity)
        nodes += _minimize(_search_for(group_of(problem, indices), settings), best, allowance, settings)
        if not best.found:
            return FitResult(None, best.bound > capacity, nodes, allowance.stopped_by_clock)
        for index, offset in zip(indices, best.found[-1], strict=True):
            offsets[index] = offset
    return FitResult(tuple(offsets), False, nodes, allowance.stopped_by_clock)


def _search_for(group: ItemGroup, settings: TreeSettings) -> CapacitySearch:
    return PairSearch(group, settings.compiles) if group.has_relations else TreeSearch(group, settings)


def _minimize(search: CapacitySearch, best: BestOfGroup, allowance: WorkAllowance, settings: TreeSettings) -> int:
    """Lower a group's top to its bound, or raise the bound to it, in rounds that get longer; nodes visited."""
    run = CapacityQuestions(search, best, allowance)
    if search.refutes_at_once:
        run.find_bound()
    nodes = search.first_nodes
    while run.is_open():
        run.raise_bound(search.rules, nodes)
        if settings.halves:
            run.lower_top(search.rules, nodes, search.steps)
        nodes *= search.growth
    return run.visited


def _top_of(problem: PlanProblem, offsets: Sequence[int], indices: Sequence[int]) -> int:
    return max((offsets[i] + problem.items[i].size for i in indices), default=0)
