"""The hierarchy that HMCOS schedules: operators form sequences, sequences form groups.

Source: Wang et al., "Hierarchical Memory-Constrained Operator Scheduling of Neural Architecture Search Networks"
(DAC 2022), and the behavior of its public implementation. That one knows the cells of a network by their concat
operators. Here operators have no type: a cell ends where three or more tensors are joined, or two if no operator
joins three.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...solvers.graph.dependency_graph import DependencyGraph, bits, reverse_post_order, set_of, union
from ...solvers.schedule.problem import MemoryGraph
from ..serenity import dynamic_programming as dp

_MOST_SUBSETS = 2_000
"""Sets of sequences tried per cell for what to run right after it. The paper's search has no limit."""


@dataclass(frozen=True)
class Hierarchy:
    """Sequences in reverse post-order, and disjoint groups of two or more: sets of positions in ``sequences``.

    ``graph`` says which sequences run before which. With every group as one vertex it has no cycle.
    """

    sequences: tuple[dp.OperatorSequence, ...]
    graph: DependencyGraph
    groups: tuple[int, ...]


def build_hierarchy(graph: MemoryGraph) -> Hierarchy:
    """Sequences, then a group for each cell and one for what follows the cell and shrinks its output."""
    sequences = _sequences(graph)
    coarse = dp.unit_graph(sequences)
    return Hierarchy(sequences, coarse, _Cells(graph, sequences, coarse).groups())


def _sequences(graph: MemoryGraph) -> tuple[dp.OperatorSequence, ...]:
    """Join operators that only have each other, while neither the peak nor the bytes alive rise."""
    given = frozenset(graph.problem.inputs)
    sequences: list[dp.OperatorSequence] = []
    placed = 0
    for head in reverse_post_order(graph):
        if placed >> head & 1:
            continue
        order = [head]
        # Run as if all others waited: an input that others read too is never counted as freed.
        peak, alive = graph.run(0, 0, head)
        while (following := _only_successor(graph, given, order[-1])) is not None:
            need, left = graph.run(0, alive, following)
            if need > peak or left > alive:
                break
            order.append(following)
            alive = left
        sequences.append(dp.operator_sequence(graph, tuple(order)))
        placed |= sequences[-1].members
    return tuple(sequences)


def _only_successor(graph: MemoryGraph, given: frozenset[int], operator: int) -> int | None:
    """Return the operator that alone follows and needs nothing else, if there is one."""
    problem = graph.problem
    feeds = graph.feeds[operator]
    if feeds.bit_count() != 1 or any(graph.kept[t] for t in problem.steps[operator].outputs):
        return None
    following = feeds.bit_length() - 1
    alone = graph.needs[following] == 1 << operator and given.isdisjoint(problem.steps[following].inputs)
    return following if alone else None


class _Cells:
    """Finds the groups of a graph of sequences, one cell after the other."""

    def __init__(self, graph: MemoryGraph, sequences: tuple[dp.OperatorSequence, ...], coarse: DependencyGraph) -> None:
        self._needs, self._feeds = needs, feeds = coarse.needs, coarse.feeds
        problem = graph.problem
        given = frozenset(problem.inputs)
        steps = [problem.steps[unit.order[-1]] for unit in sequences]
        heads = [problem.steps[unit.order[0]] for unit in sequences]
        self._kept = [any(graph.kept[t] for t in step.outputs) for step in steps]
        self._written = [sum(problem.sizes[t] for t in step.outputs) for step in steps]
        first = [not need or not given.isdisjoint(step.inputs) for need, step in zip(needs, heads, strict=True)]
        last = [not feed or kept for feed, kept in zip(feeds, self._kept, strict=True)]
        forward = range(len(sequences))
        self._dominators = _dominators(forward, needs, first)
        self._post_dominators = _dominators(reversed(forward), feeds, last)
        self._joined = [graph.needs[unit.order[0]].bit_count() for unit in sequences]
        self._groups: list[int] = []
        self._grouped = 0

    def groups(self) -> tuple[int, ...]:
        """Groups of all cells, in the order of execution of their ends."""
        least = 3 if any(count >= 3 for count in self._joined) else 2
        for end, count in enumerate(self._joined):
            if count >= least and not self._grouped >> end & 1:
                self._group_cell(end)
        return tuple(self._groups)

    def _group_cell(self, end: int) -> None:
        """Group what only feeds the end of a cell, and what it pays to run right after that end."""
        cell = self._reached(end, self._needs, self._post_dominators)
        behind = self._reached(end, self._feeds, self._dominators)
        intruded = 0
        if not self._kept[end] and not self._feeds[end] & ~behind:
            intruded = self._least_output(end, behind)
        self._add(cell)
        if intruded.bit_count() > 2:
            self._add(intruded & ~(1 << end))

    def _reached(self, end: int, links: Sequence[int], dominators: list[int]) -> int:
        """Sequences without a group that ``end`` dominates, reached from it through such sequences."""
        reached, waiting = 0, 1 << end
        while waiting:
            s = waiting.bit_length() - 1
            waiting ^= 1 << s
            reached |= 1 << s
            fresh = links[s] & ~(reached | self._grouped)
            waiting |= set_of(n for n in bits(fresh) if dominators[n] >> end & 1)
        return reached

    def _least_output(self, end: int, region: int) -> int:
        """The set of sequences from ``end`` on whose results that others wait for are smallest; of equals the largest.

        Sets are tried in the order of their size.
        """
        seen = {1 << end}
        best, best_key = 1 << end, (self._output(1 << end), -1)
        waiting = deque(seen)
        while waiting and len(seen) < _MOST_SUBSETS:
            chosen = waiting.popleft()
            for s in bits(self._ready(chosen, region)):
                larger = chosen | 1 << s
                if larger in seen:
                    continue
                seen.add(larger)
                waiting.append(larger)
                key = (self._output(larger), -larger.bit_count())
                if key[0] > 0 and key < best_key:
                    best, best_key = larger, key
        return best

    def _ready(self, chosen: int, region: int) -> int:
        followers = self._fed_by(chosen) & region & ~chosen
        return set_of(s for s in bits(followers) if not self._needs[s] & ~chosen)

    def _output(self, chosen: int) -> int:
        return sum(self._written[s] for s in bits(chosen) if self._kept[s] or self._feeds[s] & ~chosen)

    def _add(self, group: int) -> None:
        if group.bit_count() > 1 and not self._returns(group):
            self._groups.append(group)
            self._grouped |= group

    def _returns(self, group: int) -> bool:
        """Return whether a path leaves the group and comes back, through other groups as a whole."""
        seen, waiting = group, self._fed_by(group) & ~group
        while waiting:
            s = waiting & -waiting
            vertex = next((other for other in self._groups if other & s), s)
            seen |= vertex
            following = self._fed_by(vertex)
            if following & group:
                return True
            waiting = (waiting | following) & ~seen
        return False

    def _fed_by(self, chosen: int) -> int:
        return union(self._feeds[s] for s in bits(chosen))


def _dominators(order: Iterable[int], before: Sequence[int], roots: list[bool]) -> list[int]:
    """For each sequence the set of those on every path to it from the roots, itself included."""
    dominators = [0] * len(before)
    for s in order:
        common = 0 if roots[s] else -1
        for p in bits(before[s]):
            common &= dominators[p]
        dominators[s] = common | 1 << s
    return dominators
