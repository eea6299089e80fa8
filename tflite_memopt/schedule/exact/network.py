"""A graph of blocks that can be contracted edge by edge until a search takes over."""

from __future__ import annotations

from collections.abc import Sequence

from ..problem import ScheduleProblem
from ..wiring import union
from .block import Block, block_of_step, join


class Network:
    """Blocks by number, the edges that matter, and who reads which tensor. A contraction keeps the first's number.

    ``needs`` and ``feeds`` leave out edges that follow from others. ``before[v]`` and ``after[v]`` are sets of
    operators (bit = operator) that always run before and after block v; contractions may add order that they do not
    show yet, so they are sound but not complete. ``members[v]`` is the set of the block's own operators.
    """

    def __init__(self, problem: ScheduleProblem) -> None:
        self.sizes = problem.sizes
        self.kept = frozenset(problem.outputs)
        self.inputs = frozenset(problem.inputs)
        self.readers = [0] * len(problem.sizes)
        for v, step in enumerate(problem.steps):
            for t in step.inputs:
                self.readers[t] |= 1 << v
        unread = frozenset(t for t, readers in enumerate(self.readers) if not readers and t not in self.kept)
        self.blocks = {v: block_of_step(problem, v, unread) for v in range(len(problem.steps))}
        self.order = {v: [v] for v in self.blocks}
        self.outputs = {v: set(step.outputs) for v, step in enumerate(problem.steps)}
        self.members = {v: 1 << v for v in self.blocks}
        self.needs, self.feeds, self.before, self.after = _edges(problem)
        self._always: dict[int, frozenset[int]] = {}
        self._may: dict[int, frozenset[int]] = {}

    def always_dying(self, v: int) -> frozenset[int]:
        """Inputs of a block that die with it in every order: all their other readers come before it."""
        if v not in self._always:
            here = self.members[v] | self.before[v]
            self._always[v] = frozenset(t for t in self.blocks[v].inputs - self.kept if not self.readers[t] & ~here)
        return self._always[v]

    def may_die(self, v: int) -> frozenset[int]:
        """Inputs of a block that die with it in some order: none of their readers comes after it."""
        if v not in self._may:
            after = self.after[v]
            self._may[v] = frozenset(t for t in self.blocks[v].inputs - self.kept if not self.readers[t] & after)
        return self._may[v]

    def joined(self, first: int, second: int) -> Block:
        """The block that would run ``first`` and then ``second``."""
        return join(self.blocks[first], self.blocks[second], self.sizes, self._inner(first, second))

    def _inner(self, first: int, second: int) -> frozenset[int]:
        """Tensors that the first writes and of which the second holds the last readers, whatever the order."""
        both = self.members[first] | self.members[second]
        read = self.outputs[first] & self.blocks[second].inputs
        return frozenset(t for t in read - self.kept if not self.readers[t] & ~both)

    def contract(self, first: int, second: int) -> None:
        """Replace two blocks by the one that runs them back to back; no path may lead from one to the other
        through a third."""
        inner = self._inner(first, second)
        for known in (self._always, self._may):
            known.pop(first, None)
            known.pop(second, None)
        self.blocks[first] = join(self.blocks[first], self.blocks.pop(second), self.sizes, inner)
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

    def topological(self) -> list[int]:
        """The blocks in Kahn's order."""
        missing = {v: len(needs) for v, needs in self.needs.items()}
        order = sorted(v for v, count in missing.items() if not count)
        for v in order:
            for w in sorted(self.feeds[v]):
                missing[w] -= 1
                if not missing[w]:
                    order.append(w)
        return order


Edges = dict[int, set[int]]
Closure = dict[int, int]


def _edges(problem: ScheduleProblem) -> tuple[Edges, Edges, Closure, Closure]:
    """(needs, feeds, before, after): the transitive reduction of the edges, and their closure in both directions."""
    writer = {t: v for v, step in enumerate(problem.steps) for t in step.outputs}
    full = [{*(writer[t] for t in step.inputs if t in writer), *step.after} for step in problem.steps]
    order = _sorted(full)
    before: Closure = dict.fromkeys(order, 0)
    needs: Edges = {}
    feeds: Edges = {v: set() for v in order}
    for v in order:
        earlier = union(before[u] for u in full[v])
        needs[v] = {u for u in full[v] if not earlier >> u & 1}
        before[v] = earlier | union(1 << u for u in needs[v])
        for u in needs[v]:
            feeds[u].add(v)
    after: Closure = dict.fromkeys(order, 0)
    for v in reversed(order):
        after[v] = union(1 << w | after[w] for w in feeds[v])
    return needs, feeds, before, after


def _sorted(needs: Sequence[set[int]]) -> list[int]:
    """Kahn's order of all operators."""
    feeds: list[list[int]] = [[] for _ in needs]
    missing = [len(some) for some in needs]
    for v, some in enumerate(needs):
        for u in some:
            feeds[u].append(v)
    order = [v for v, count in enumerate(missing) if not count]
    for v in order:
        for w in feeds[v]:
            missing[w] -= 1
            if not missing[w]:
                order.append(w)
    return order
