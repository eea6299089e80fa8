"""Exact: branch and bound over canonical solutions, with restarts; proves its answer or gives the gap.

Stretches of time that nothing crosses are solved one by one. For each the search asks for a placement at the
lower bound, and now and then half way between the bound and the best so far. A search that runs dry proves the
next capacity; one that reaches its node limit starts again with another ranking and, by the Luby sequence,
sometimes a longer limit, so that every proof is reached in the end.
Sources: Moffitt, "MiniMalloc" (ASPLOS 2023), for the tree; Luby, Sinclair and Zuckerman, "Optimal Speedup of
Las Vegas Algorithms" (1993), for the limits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...graph.search_limit import SearchLimit
from ..bounds import max_breadth
from ..greedy_by_size import greedy_by_size
from ..problem import Candidate, Item, PlanProblem, arena_bytes
from .group import Group, Ints, build, groups
from .plain_tree import PlainTree, TreeEnd
from .ranks import ranking

if TYPE_CHECKING:
    from .compiled_tree import CompiledTree

_HALF_WAY_EVERY = 5
"""No multiple of the number of rankings, so that each of them gets its turn at the bound."""
_TURNS_A_LIMIT = 4
_DIVE_NODES = 20_000
_STATE_BYTES = 1 << 28
_COMPILE_AFTER = 1.0
"""Seconds: numba takes about as long to load (and some more, once, to compile), and most problems take less."""


@dataclass
class _BestPlacement:
    """Best placement of one group, in units, and the proved bound."""

    offsets: Ints
    top: int
    bound: int


def exact(problem: PlanProblem, limit: SearchLimit) -> Candidate:
    """Offsets in bytes, with a proved lower bound; optimal unless the limit's time limit ended the search.

    Relations are left unused (all items disjoint). What the search proves then says nothing about plans that
    do share bytes, and ``lower_bound`` falls back to ``bounds.max_breadth``, which does.
    Fixed items that share bytes are left to ``check_plan`` to refuse.
    """
    deadline = time.perf_counter() + limit.time_limit
    items = problem.items
    offsets = [item.offset or 0 for item in items]
    real = [i for i, item in enumerate(items) if item.size > 0]
    parts = [[real[k] for k in part] for part in groups([_alive(items[i]) for i in real])]
    models = [build([_alive(items[i]) for i in part]) for part in parts]
    bound = max((model.lower_bound * model.unit for model in models), default=0)
    heaviest_first = sorted(range(len(parts)), key=lambda k: -models[k].lower_bound * models[k].unit)
    waiting = len(real)
    for k in heaviest_first:
        now = time.perf_counter()
        best = _minimise(models[k], bound, now + (deadline - now) * len(parts[k]) / waiting, limit.seed)
        waiting -= len(parts[k])
        for index, offset in zip(parts[k], best.offsets, strict=True):
            offsets[index] = int(offset) * models[k].unit
        bound = max(bound, best.bound * models[k].unit)
    provable = not problem.relations and all(item.start < item.end for item in items)
    found = Candidate(tuple(offsets), max(bound, max_breadth(problem)) if provable else max_breadth(problem))
    if arena_bytes(problem, found.offsets) <= found.lower_bound:
        return found
    # Out of time on a large problem the search may not have got as far as the simplest strategy.
    simple = greedy_by_size(problem, limit).offsets
    return min(found, replace(found, offsets=simple), key=lambda answer: arena_bytes(problem, answer.offsets))


def _alive(item: Item) -> Item:
    """An item that nothing reads still lives for a step, which is safe but not always needed."""
    return item if item.start < item.end else Item(item.size, item.start, item.start + 1, item.alignment, item.offset)


def _minimise(model: Group, enough: int, deadline: float, seed: int) -> _BestPlacement:
    """Lowest placement of a group; nothing below ``enough`` bytes is of use to the whole plan."""
    rng = np.random.default_rng(seed)
    plain = PlainTree(model, deadline)
    search: PlainTree | CompiledTree = plain
    patience = time.perf_counter() + _COMPILE_AFTER
    best = _start(model, plain, enough // model.unit)
    turn = 0
    while best.top > best.bound and time.perf_counter() < deadline:
        if time.perf_counter() > patience:
            search, patience = _compiled(model, deadline) or search, deadline
        half_way = turn % _HALF_WAY_EVERY == _HALF_WAY_EVERY - 1
        capacity = (best.bound + best.top - 1) // 2 if half_way else best.bound
        rank = ranking(model, search.failures, turn, rng)
        outcome = search.run(capacity, rank, search.unit_nodes * _luby(turn // _TURNS_A_LIMIT + 1))
        if outcome.offsets is not None:
            best.offsets, best.top = outcome.offsets, _top(model, outcome.offsets)
        elif outcome.end is TreeEnd.NONE:
            best.bound = capacity + 1
        turn += 1
    return best


def _compiled(model: Group, deadline: float) -> CompiledTree | None:
    """The faster search, where numba is installed (extra ``fast``), has a place for its cache, and memory is enough."""
    try:
        from .compiled_tree import CompiledTree
    except (ImportError, RuntimeError):
        return None
    return CompiledTree(model, deadline) if CompiledTree.bytes_needed(model) <= _STATE_BYTES else None


def _start(model: Group, search: PlainTree, bound: int) -> _BestPlacement:
    """The search's first dive; if time is up at once, all free items piled above the fixed ones."""
    given = model.fixed >= 0
    base = int((model.fixed + model.padded)[given].max(initial=0))
    room = model.padded + model.alignment
    pile = -(-(base + np.cumsum(room) - room) // model.alignment) * model.alignment
    pile = np.where(given, model.fixed, pile)
    best = _BestPlacement(pile, _top(model, pile), max(bound, model.lower_bound))
    outcome = search.run(best.top, ranking(model, search.failures, 0, np.random.default_rng(0)), _DIVE_NODES)
    if outcome.offsets is not None:
        best.offsets, best.top = outcome.offsets, _top(model, outcome.offsets)
    elif outcome.end is TreeEnd.NONE:
        best.bound = best.top  # the fixed items share bytes among themselves: there is nothing to search
    return best


def _top(model: Group, offsets: Ints) -> int:
    return int((offsets + model.size).max())


def _luby(index: int) -> int:
    """1, 1, 2, 1, 1, 2, 4, ...: term ``index``, counted from 1."""
    while True:
        power = index.bit_length()
        if index == (1 << power) - 1:
            return 1 << (power - 1)
        index -= (1 << (power - 1)) - 1
