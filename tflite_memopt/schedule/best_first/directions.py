"""The two directions of a search through one segment: operators are run from its start, or taken back from its end.

Both have one shape, so that one search serves both. In the backward direction a state is the set of operators taken
back, and "running" one means taking it back: the bytes alive after that are those before it ran. Which direction needs
fewer states depends on where the graph is hardest. Operators here are fused operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...graph.dependency_graph import bits, set_of
from .compiled import CompiledGraph


@dataclass(frozen=True)
class Segment:
    """Operators that every order runs together: from the set ``executed`` to the set ``goal``, in bytes alive there."""

    executed: int
    goal: int
    alive_before: int
    alive_after: int

    @property
    def inside(self) -> int:
        """The segment's own operators."""
        return self.goal & ~self.executed


@dataclass(frozen=True)
class Direction:
    """What a search asks. It begins in the state ``start`` with ``alive`` bytes, and ends in the state ``goal``.

    ``waits[b]`` is the set that must be in the state before operator b is ready; ``wakes[b]`` are those that may become
    ready with it. ``may_fall`` are the operators that in some state leave no more bytes alive than before. ``cost`` of
    (state, b) is (working set in bytes while b runs, bytes alive after it), both less what is alive in the state.
    ``backward``: the last operator taken back is the first to run.
    """

    graph: CompiledGraph
    start: int
    alive: int
    goal: int
    waits: Sequence[int]
    wakes: Sequence[Sequence[int]]
    may_fall: int
    cost: Callable[[int, int], tuple[int, int]]
    backward: bool

    def ready(self) -> int:
        """The operators that are ready at the start."""
        return set_of(b for b in bits(self.goal & ~self.start) if not self.waits[b] & ~self.start)

    def in_order(self, moves: Sequence[int]) -> tuple[int, ...]:
        """The moves of a search as operators in the order in which they run."""
        return tuple(reversed(moves)) if self.backward else tuple(moves)


def forward(graph: CompiledGraph, segment: Segment) -> Direction:
    """From the segment's start: a state is the set of executed operators, those before the segment included."""
    return Direction(
        graph,
        segment.executed,
        segment.alive_before,
        segment.goal,
        graph.needs,
        graph.feeds,
        graph.may_fall,
        graph.cost,
        backward=False,
    )


def backward(graph: CompiledGraph, segment: Segment) -> Direction:
    """From the segment's end: a state is the set of the segment's operators taken back."""
    inside = segment.inside

    def cost(state: int, b: int) -> tuple[int, int]:
        """The cost of b where it ran, turned round: taking it back adds what running it frees."""
        need, change = graph.cost(segment.goal & ~state & ~(1 << b), b)
        return need - change, -change

    return Direction(
        graph,
        0,
        segment.alive_after,
        inside,
        [set_of(feeds) & inside for feeds in graph.feeds],
        [tuple(bits(needs & inside)) for needs in graph.needs],
        # In the state where none of its inputs dies with it, taking it back frees what it wrote.
        set_of(b for b, grow in enumerate(graph.grow) if grow >= 0),
        cost,
        backward=True,
    )
