"""A fused graph in bit sets: what a search needs to run one operator in a given state, and no more.

Operators here are fused operators, numbered in a topological order: operator b is bit b of every set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..graph.dependency_graph import (
    TransitiveClosure,
    bits,
    dependency_graph,
    set_of,
    single_vertex_cuts,
    transitive_closure,
    union,
)
from .reductions import FusedGraph, PeakCandidate

_MOST_OPERATORS_BOUNDED = 3000
"""The bound of tensors alive across an operator is quadratic in the number of operators."""

Death = tuple[int, int]
"""(operators that also read a tensor, bytes): the bytes are free once all those operators have run."""


@dataclass(frozen=True)
class CompiledCandidate:
    """``extra`` bytes less what has died of ``released``, less the largest that has died of ``reuses``."""

    extra: int
    released: tuple[Death, ...]
    reuses: tuple[Death, ...]

    @property
    def is_sure(self) -> bool:
        """Tell whether it needs the same in every state."""
        return not (self.released or self.reuses)


@dataclass(frozen=True)
class CompiledGraph:
    """``orders[b]`` are the single operators of fused operator b; ``needs`` and ``feeds`` are its direct edges.

    ``need[b]`` is its need on top of the bytes alive in every state, ``candidates[b]`` may ask for more in some.
    ``grow[b]`` is what it adds to them before its unsure ``deaths``. ``least_need[b]`` is a lower bound in bytes
    of the working set while it runs, in any order. ``cuts`` are the operators that all others come before or after,
    and the last one.
    """

    orders: tuple[tuple[int, ...], ...]
    needs: tuple[int, ...]
    feeds: tuple[tuple[int, ...], ...]
    grow: tuple[int, ...]
    deaths: tuple[tuple[Death, ...], ...]
    need: tuple[int, ...]
    candidates: tuple[tuple[CompiledCandidate, ...], ...]
    least_need: tuple[int, ...]
    alive_at_start: int
    cuts: tuple[int, ...]

    @cached_property
    def unsure(self) -> tuple[int, ...]:
        """For each operator those whose having run changes its cost."""
        return tuple(union(others for others, _ in self._deaths_of(b)) for b in range(len(self.needs)))

    @cached_property
    def touches(self) -> tuple[int, ...]:
        """For each operator those whose cost changes when it has run."""
        # By tensor: many operators may share one, and each pair of them once would be quadratic.
        sharing: dict[int, int] = {}
        for b in range(len(self.needs)):
            for readers in {others | 1 << b for others, _ in self._deaths_of(b)}:
                sharing[readers] = sharing.get(readers, 0) | 1 << b
        touched = [0] * len(self.needs)
        for readers, changed in sharing.items():
            for b in bits(readers):
                touched[b] |= changed & ~(1 << b)
        return tuple(touched)

    @cached_property
    def may_fall(self) -> int:
        """Operators that write no more than what can die with them."""
        most = (sum(size for _, size in deaths) for deaths in self.deaths)
        return set_of(b for b, (grow, dies) in enumerate(zip(self.grow, most, strict=True)) if grow <= dies)

    def _deaths_of(self, b: int) -> tuple[Death, ...]:
        """Return all the deaths that the cost of an operator depends on."""
        of_candidates = (death for each in self.candidates[b] for death in (*each.released, *each.reuses))
        return (*self.deaths[b], *of_candidates)

    def cost(self, executed: int, b: int) -> tuple[int, int]:
        """(working set in bytes while operator b runs, bytes alive after it), both less the bytes alive before it."""
        waiting = ~executed
        return self._need(waiting, b), self.grow[b] - _died(self.deaths[b], waiting)

    def _need(self, waiting: int, b: int) -> int:
        need = self.need[b]
        for candidate in self.candidates[b]:
            extra = candidate.extra - _died(candidate.released, waiting)
            extra -= max((saved for others, saved in candidate.reuses if not others & waiting), default=0)
            need = max(need, extra)
        return need


def _died(deaths: Sequence[Death], waiting: int) -> int:
    """Return the bytes of the tensors for which nobody waits any more."""
    return sum(size for others, size in deaths if not others & waiting)


def compiled(graph: FusedGraph) -> CompiledGraph:
    """Number the fused operators, and return the graph with bit sets in place of names."""
    order = graph.topological()
    number = {v: b for b, v in enumerate(order)}
    home = {op: number[v] for v in order for op in graph.order[v]}
    edges = dependency_graph([set_of(number[u] for u in graph.needs[v]) for v in order])
    closure = transitive_closure(edges)
    readers = [set_of(home[op] for op in bits(mask)) for mask in graph.readers]
    costs = [_costs(graph, v, b, readers, closure) for b, v in enumerate(order)]
    least = [cost.least_need for cost in costs]
    if len(order) <= _MOST_OPERATORS_BOUNDED:
        least = _with_across(graph, least, order, closure, readers)
    return CompiledGraph(
        orders=tuple(tuple(graph.order[v]) for v in order),
        needs=edges.needs,
        feeds=tuple(tuple(bits(feeds)) for feeds in edges.feeds),
        grow=tuple(cost.grow for cost in costs),
        deaths=tuple(cost.deaths for cost in costs),
        need=tuple(max((c.extra for c in cost.candidates if c.is_sure), default=0) for cost in costs),
        candidates=tuple(tuple(c for c in cost.candidates if not c.is_sure) for cost in costs),
        least_need=tuple(least),
        alive_at_start=graph.alive_at_start,
        cuts=tuple(step - 1 for step in single_vertex_cuts(closure) if step),
    )


@dataclass(frozen=True)
class _OperatorCosts:
    """One operator's part of ``CompiledGraph``; ``least_need`` is without what is alive across it."""

    grow: int
    deaths: tuple[Death, ...]
    candidates: tuple[CompiledCandidate, ...]
    least_need: int


def _costs(graph: FusedGraph, v: int, b: int, readers: Sequence[int], closure: TransitiveClosure) -> _OperatorCosts:
    """Return the costs of fused operator v, which is number b of ``readers`` and ``closure``."""
    operator, sizes = graph.operators[v], graph.sizes
    may = frozenset(t for t in operator.inputs - graph.kept if not readers[t] & closure.after[b])
    sure = frozenset(t for t in may if not readers[t] & ~(1 << b | closure.before[b]))
    others = {t: readers[t] & ~(1 << b) for t in may - sure}
    return _OperatorCosts(
        operator.change(sizes, sure),
        tuple((others[t], sizes[t]) for t in sorted(others)),
        tuple(_in_bits(candidate.settled(sure, sizes), others, sizes) for candidate in operator.candidates),
        sum(sizes[t] for t in operator.inputs - graph.outputs[v]) + operator.need(sizes, may),
    )


def _in_bits(candidate: PeakCandidate, others: Mapping[int, int], sizes: Sequence[int]) -> CompiledCandidate:
    released = tuple((others[t], sizes[t]) for t in sorted(candidate.released) if t in others)
    reuses = tuple((others[r.tensor], r.saved) for r in candidate.reuses if r.tensor in others)
    return CompiledCandidate(candidate.extra, released, reuses)


def _with_across(
    graph: FusedGraph, least: Sequence[int], order: Sequence[int], closure: TransitiveClosure, readers: Sequence[int]
) -> list[int]:
    """``least`` with every tensor that is alive across an operator in all orders."""
    total = list(least)
    writer = {t: b for b, v in enumerate(order) for t in graph.outputs[v]}
    for t, mine in enumerate(readers):
        if t not in writer and t not in graph.inputs:
            continue
        across = closure.after[writer[t]] if t in writer else (1 << len(order)) - 1
        if t not in graph.kept:
            across &= union(closure.before[r] for r in bits(mine))
        for b in bits(across):
            if t not in graph.operators[order[b]].inputs:
                total[b] += graph.sizes[t]
    return total
