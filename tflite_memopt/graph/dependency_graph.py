"""Which vertices must come before which, as bit sets, and two ways to put them in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .bit_sets import bits


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
