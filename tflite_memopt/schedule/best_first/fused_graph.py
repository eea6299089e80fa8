"""A graph of fused operators that can be contracted edge by edge until a search takes over."""

from __future__ import annotations

from ...graph.dependency_graph import TransitiveClosure, bits, first_ready_first, transitive_closure, union
from ..memory_graph import MemoryGraph
from .fused_operator import joined, single_operator


class FusedGraph:
    """Fused operators by number, the edges that matter, and who reads which tensor.

    A contraction keeps the first one's number. ``needs`` and ``feeds`` leave out edges that follow from others.
    ``before[v]`` and ``after[v]`` are sets of single operators (bit = operator) that always run before and after fused
    operator v; contractions may add order that they do not show yet, so they are sound but not complete.
    ``members[v]`` is the set of its own operators.
    """

    def __init__(self, graph: MemoryGraph) -> None:
        problem, numbers = graph.problem, range(len(graph.needs))
        self.sizes = problem.sizes
        self.kept = frozenset(problem.outputs)
        self.inputs = frozenset(problem.inputs)
        self.alive_at_start = graph.alive_at_start
        self.readers = graph.readers
        unread = frozenset(t for t, readers in enumerate(self.readers) if not readers and t not in self.kept)
        self.operators = {v: single_operator(problem, v, unread) for v in numbers}
        self.order = {v: [v] for v in numbers}
        self.outputs = {v: set(step.outputs) for v, step in enumerate(problem.steps)}
        self.members = {v: 1 << v for v in numbers}
        closure = transitive_closure(graph)
        self.before, self.after = dict(enumerate(closure.before)), dict(enumerate(closure.after))
        self.needs = {v: _direct_needs(graph, closure, v) for v in numbers}
        self.feeds: dict[int, set[int]] = {v: set() for v in numbers}
        for v, needs in self.needs.items():
            for u in needs:
                self.feeds[u].add(v)
        self._always: dict[int, frozenset[int]] = {}
        self._may: dict[int, frozenset[int]] = {}

    def always_dying(self, v: int) -> frozenset[int]:
        """Inputs that die with fused operator v in every order: all their other readers come before it."""
        if v not in self._always:
            here = self.members[v] | self.before[v]
            self._always[v] = frozenset(t for t in self.operators[v].inputs - self.kept if not self.readers[t] & ~here)
        return self._always[v]

    def may_die(self, v: int) -> frozenset[int]:
        """Inputs that die with fused operator v in some order: none of their readers comes after it."""
        if v not in self._may:
            after = self.after[v]
            self._may[v] = frozenset(t for t in self.operators[v].inputs - self.kept if not self.readers[t] & after)
        return self._may[v]

    def _inner(self, first: int, second: int) -> frozenset[int]:
        """Tensors that the first writes and of which the second holds the last readers, whatever the order."""
        both = self.members[first] | self.members[second]
        read = self.outputs[first] & self.operators[second].inputs
        return frozenset(t for t in read - self.kept if not self.readers[t] & ~both)

    def contract(self, first: int, second: int) -> set[int]:
        """Replace two fused operators by the one that runs them back to back; this one, and all that had edges to them.

        No path may lead from one to the other through a third.
        """
        inner = self._inner(first, second)
        for known in (self._always, self._may):
            known.pop(first, None)
            known.pop(second, None)
        self.operators[first] = joined(self.operators[first], self.operators.pop(second), self.sizes, inner)
        self.order[first].extend(self.order.pop(second))
        self.outputs[first] = self.outputs[first] - inner | self.outputs.pop(second)
        self.members[first] |= self.members.pop(second)
        self.before[first] = (self.before[first] | self.before.pop(second)) & ~self.members[first]
        self.after[first] = (self.after[first] | self.after.pop(second)) & ~self.members[first]
        needs = (self.needs[first] | self.needs.pop(second)) - {first, second}
        feeds = (self.feeds[first] | self.feeds.pop(second)) - {first, second}
        for v in needs:
            self.feeds[v] -= {first, second}
        for v in feeds:
            self.needs[v] -= {first, second}
        earlier, later = union(self.before[u] for u in needs), union(self.after[w] for w in feeds)
        self.needs[first] = {u for u in needs if not self.members[u] & earlier}
        self.feeds[first] = {w for w in feeds if not self.members[w] & later}
        for v in self.needs[first]:
            self.feeds[v].add(first)
        for v in self.feeds[first]:
            self.needs[v].add(first)
        return {first, *needs, *feeds}

    def topological(self) -> tuple[int, ...]:
        """The fused operators in Kahn's order."""
        counts = {v: len(needs) for v, needs in self.needs.items()}
        return first_ready_first(counts, lambda v: sorted(self.feeds[v]))


def _direct_needs(graph: MemoryGraph, closure: TransitiveClosure, v: int) -> set[int]:
    """What operator v needs, but for what another one of these needs already."""
    earlier = union(closure.before[u] for u in bits(graph.needs[v]))
    return set(bits(graph.needs[v] & ~earlier))
