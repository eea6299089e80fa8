"""Precedence: orders, all that comes before and after a vertex, and steps that every order passes.

Sets of small numbers are one ``int`` with a bit for each: bit ``v`` is number ``v``.

Theorems IV.1 and IV.2 give candidates for operators that some optimal order runs in one go.

Source: Zhong et al., "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization",
section IV.B.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from operator import or_
from typing import NamedTuple


def bits(chosen: int) -> Iterator[int]:
    """Yield the numbers of a set, smallest first."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def set_of(numbers: Iterable[int]) -> int:
    """Return the set of some numbers."""
    return union(1 << v for v in numbers)


def union(sets: Iterable[int]) -> int:
    """Return the numbers of any of the sets."""
    return reduce(or_, sets, 0)


@dataclass(frozen=True)
class DependencyGraph:
    """``needs[v]`` must come before vertex v, which must come before ``feeds[v]``. There is no cycle."""

    needs: tuple[int, ...]
    feeds: tuple[int, ...]

    @property
    def everything(self) -> int:
        """The set of all vertices."""
        return (1 << len(self.needs)) - 1


def dependency_graph(needs: Sequence[int]) -> DependencyGraph:
    """The graph in which vertex v waits for the set ``needs[v]``. O(vertices + edges), but for the width of sets."""
    feeds = [0] * len(needs)
    for v, some in enumerate(needs):
        for u in bits(some):
            feeds[u] |= 1 << v
    return DependencyGraph(tuple(needs), tuple(feeds))


def kahn_order(graph: DependencyGraph) -> tuple[int, ...]:
    """Vertices in the order in which they become ready, smaller numbers first (A. B. Kahn, CACM 1962)."""
    counts = {v: needs.bit_count() for v, needs in enumerate(graph.needs)}
    return first_ready_first(counts, lambda v: bits(graph.feeds[v]))


def first_ready_first(counts: Mapping[int, int], followers: Callable[[int], Iterable[int]]) -> tuple[int, ...]:
    """Kahn's order of any graph, given how many vertices each one waits for. O(vertices + edges).

    Vertices on a cycle, and those that wait for one, are left out.
    """
    missing = dict(counts)
    ready = deque(v for v, count in missing.items() if not count)
    order = []
    while ready:
        order.append(ready.popleft())
        for later in followers(order[-1]):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return tuple(order)


def reverse_post_order(graph: DependencyGraph) -> tuple[int, ...]:
    """Vertices as a depth-first walk finishes them, backwards. O(vertices + edges), but for the width of sets.

    The walk takes the largest number first, so that the reversed order keeps smaller ones first where it can.
    """
    unseen = graph.everything
    finished: list[int] = []
    for root in reversed(range(len(graph.needs))):
        if graph.needs[root]:
            continue
        unseen ^= 1 << root
        path = [root]
        while path:
            onward = graph.feeds[path[-1]] & unseen
            if onward:
                path.append(onward.bit_length() - 1)
                unseen ^= 1 << path[-1]
            else:
                finished.append(path.pop())
    return tuple(reversed(finished))


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
    """Return the closure in both directions. O(vertices + edges), but for the width of the sets."""
    order = reverse_post_order(graph)
    before, after = list(graph.needs), list(graph.feeds)
    for v in order:
        before[v] |= union(before[u] for u in bits(graph.needs[v]))
    for v in reversed(order):
        after[v] |= union(after[w] for w in bits(graph.feeds[v]))
    return TransitiveClosure(tuple(before), tuple(after), order)


def forced_cuts(closure: TransitiveClosure) -> list[int]:
    """Return all steps, from 0 to the end, before which every order runs the same vertices. O(vertices).

    These are the first so many of ``closure.order``.
    """
    count, cuts, reached = len(closure.order), [0], 0
    for step, v in enumerate(closure.order, start=1):
        # The latest step at whose end v has run; once all of the first ones must have run, nothing else can have.
        reached = max(reached, count - closure.after[v].bit_count())
        if reached == step:
            cuts.append(step)
    return cuts


def single_vertex_cuts(closure: TransitiveClosure) -> list[int]:
    """Return those forced cuts that follow on a vertex that every path crosses, and the two ends.

    Source: Ahn et al., "Ordering Chaos" (MLSys 2020), section 3.2, after Wilken et al. (PLDI 2000).
    """
    cuts = forced_cuts(closure)
    chosen = (cut for earlier, cut in pairwise(cuts) if cut - earlier == 1)
    return sorted({0, len(closure.order), *chosen})


def sets_at(order: Sequence[int], steps: Sequence[int], done: int = 0) -> list[int]:
    """Collect the operators before each of some ascending steps of an order, from step 0, that goes on from a set.

    O(vertices), but for the width of the sets.
    """
    between = (set_of(order[start:end]) for start, end in pairwise(steps))
    return list(accumulate(between, or_, initial=done))


class MemoryProfile(NamedTuple):
    """The effect of a set of operators on memory, in bytes on top of those alive before its first operator.

    ``end``: alive when the set is complete. ``lightest``: alive in the lightest half-done state of *any* inner order.
    ``first_need`` and ``last_need``: least working set of any operator that can come first or last. ``peak``: the
    smallest peak of any inner order.
    """

    end: int
    lightest: int
    first_need: int
    last_need: int
    peak: int

    @property
    def is_rising(self) -> bool:
        """Theorem IV.1: no half-done state is lighter than "not begun", and the last operator needs most."""
        return self.lightest >= 0 and self.peak <= self.last_need

    @property
    def is_falling(self) -> bool:
        """Theorem IV.1 in reverse: no half-done state is lighter than "complete", and the first needs most."""
        return self.lightest >= self.end and self.peak <= self.first_need

    @property
    def is_hill(self) -> bool:
        """Theorem IV.2: no half-done state is lighter than "not begun" or than "complete"."""
        return self.lightest >= max(0, self.end)


def runs_in_one_go(profile: MemoryProfile) -> bool:
    """Tell whether some optimal order of the whole runs the set in one go, in its best inner order.

    Take any order of the whole, and gather the set at one moment between its first and its last operator. Every other
    operator that ran between those two then meets the set not begun or complete, instead of half done.

    - A hill never weighs less half done. Gather it where the others weigh least.
    - A rising set never weighs less half done than not begun, and its last operator needs most, whichever that is.
      Gather it at its last operator. A falling set is the mirror image.

    The paper looks at half-done states of one inner order only. Another inner order may pass through a lighter
    state, worth waiting in while others run; so every half-done state counts here.
    """
    return profile.is_hill or profile.is_rising or profile.is_falling
