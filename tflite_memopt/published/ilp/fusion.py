"""Fusion of sets of operators that some optimal order runs in one go (Algorithm 1).

Source: the paper of ``graph/dependency_graph.py``, which holds the theorems, section IV.B. It speaks of one input and
one output tensor; what its proof uses is less, and is asked for here (``closed_set.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...solvers.graph.dependency_graph import TransitiveClosure, bits, runs_in_one_go, transitive_closure, union
from ...solvers.schedule.problem import MemoryGraph, ScheduleProblem, Step, memory_graph
from .closed_set import InnerOrder, closed_set, inner_order

MAX_SIZE = 24
"""Operators in a set that is tried (the paper's M); sets grow further as fused operators join again."""


@dataclass(frozen=True)
class FusedProblem:
    """``problem`` has one step for each fused set; ``members[v]`` are the operators that step v runs, in order.

    A fused step's ``scratch`` may be negative: its set needs less at once than all that it leaves behind and
    everything alive before it, since it frees inputs on the way.
    """

    problem: ScheduleProblem
    members: tuple[tuple[int, ...], ...]

    def expand(self, order: Iterable[int]) -> tuple[int, ...]:
        """Return the order of the original operators; its peak is that of ``order``."""
        return tuple(operator for v in order for operator in self.members[v])


def unfused(problem: ScheduleProblem) -> FusedProblem:
    """Return the problem as it is: each operator alone."""
    return FusedProblem(problem, tuple((v,) for v in range(len(problem.steps))))


Finder = Callable[[ScheduleProblem, int], Sequence[InnerOrder]]
"""One round of Algorithm 1: disjoint sets of at most so many operators that can be fused, each in an order."""


def fuse(problem: ScheduleProblem) -> FusedProblem:
    """Fuse until nothing more can be (Algorithm 1); the smallest peak of any order stays the same."""
    return fused_by(_fusable, problem, MAX_SIZE)


def fused_by(find: Finder, problem: ScheduleProblem, max_size: int) -> FusedProblem:
    """Rounds of ``find``, each on what the one before made, until one finds nothing."""
    fused = unfused(problem)
    while found := find(fused.problem, max_size):
        fused = merged(fused, found)
    return fused


def _fusable(problem: ScheduleProblem, max_size: int) -> list[InnerOrder]:
    """Disjoint sets that can be fused. One fusion changes nothing that another one's conditions look at."""
    graph = memory_graph(problem)
    closure = transitive_closure(graph)
    taken = 0
    found: list[InnerOrder] = []
    for start in _starts(graph, closure):
        inner = None if start & taken else _first_fusable(graph, closure, start, max_size, taken)
        if inner:
            found.append(inner)
            taken |= inner.members
    return found


def _starts(graph: MemoryGraph, closure: TransitiveClosure) -> Iterator[int]:
    """Return where sets may begin, in schedule order: at one operator, or at all readers of one tensor."""
    for t in dict.fromkeys(graph.problem.inputs):
        yield graph.readers[t]
    for v in closure.order:
        yield 1 << v
        for t in graph.problem.steps[v].outputs:
            if graph.readers[t].bit_count() > 1:
                yield graph.readers[t]


def _first_fusable(
    graph: MemoryGraph, closure: TransitiveClosure, start: int, max_size: int, taken: int
) -> InnerOrder | None:
    """Grow a set in schedule order, as Algorithm 1 does, until it can be fused, or is too large."""
    members = start
    while members.bit_count() <= max_size and not members & taken:
        chosen = closed_set(graph, closure, members)
        inner = inner_order(graph, chosen) if chosen else None
        if inner and runs_in_one_go(inner.profile):
            return inner
        onward = union(graph.feeds[v] for v in bits(members)) & ~members
        if not onward:
            return None
        members |= 1 << min(bits(onward), key=closure.place.__getitem__)
    return None


def merged(fused: FusedProblem, found: Iterable[InnerOrder]) -> FusedProblem:
    """Return the problem with each of some disjoint sets as one step."""
    groups = {inner.order[0]: inner for inner in found}
    absorbed = {v for inner in groups.values() for v in inner.order[1:]}
    heads = [v for v in range(len(fused.members)) if v not in absorbed]
    orders = [groups[v].order if v in groups else (v,) for v in heads]
    place = {v: number for number, order in enumerate(orders) for v in order}
    steps = (
        _joined(fused.problem, groups[v], place) if v in groups else _renumbered(fused.problem.steps[v], place)
        for v in heads
    )
    problem = replace(fused.problem, steps=tuple(steps))
    return FusedProblem(problem, tuple(fused.expand(order) for order in orders))


def _joined(problem: ScheduleProblem, inner: InnerOrder, place: Mapping[int, int]) -> Step:
    """One step that stands for a set: it reads and writes what crosses the set's border."""
    steps = [problem.steps[v] for v in inner.order]
    inputs = dict.fromkeys(t for step in steps for t in step.inputs if t not in inner.written)
    own = place[inner.order[0]]
    after = dict.fromkeys(place[v] for step in steps for v in step.after if place[v] != own)
    scratch = inner.profile.peak - sum(problem.sizes[t] for t in inner.left)
    return Step(tuple(inputs), inner.left, scratch, tuple(after))


def _renumbered(step: Step, place: Mapping[int, int]) -> Step:
    return replace(step, after=tuple(dict.fromkeys(place[v] for v in step.after)))
