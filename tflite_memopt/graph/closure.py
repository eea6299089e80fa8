"""Transitive closure: what comes before and after each vertex in every order, directly or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .bit_sets import bits, union
from .dependency_graph import DependencyGraph, reverse_post_order


@dataclass(frozen=True)
class TransitiveClosure:
    """``before[v]`` and ``after[v]`` are the sets of vertices that every order has before and after vertex v.

    All others are parallel to v. ``order`` is one of the orders.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    order: tuple[int, ...]

    @cached_property
    def place(self) -> tuple[int, ...]:
        """``place[v]`` is the position of vertex v in ``order``."""
        return tuple(sorted(range(len(self.order)), key=self.order.__getitem__))


def transitive_closure(graph: DependencyGraph) -> TransitiveClosure:
    """The closure in both directions. O(vertices + edges), but for the width of the sets."""
    order = reverse_post_order(graph)
    before, after = list(graph.needs), list(graph.feeds)
    for v in order:
        before[v] |= union(before[u] for u in bits(graph.needs[v]))
    for v in reversed(order):
        after[v] |= union(after[w] for w in bits(graph.feeds[v]))
    return TransitiveClosure(tuple(before), tuple(after), order)
