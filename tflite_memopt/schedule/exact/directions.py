"""The two directions of a search through one segment: blocks are run from its start, or taken back from its end.

Both have one shape, so that one search serves both. In the backward direction a state is the set of blocks taken
back, and "running" a block means taking it back: the bytes alive after it are those before the block ran. Which
direction needs fewer states depends on where the graph is hardest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..wiring import bits, union
from .states import States


@dataclass(frozen=True)
class Segment:
    """Blocks that every order runs together: from the set ``executed`` to the set ``goal``, in bytes alive there."""

    executed: int
    goal: int
    alive_before: int
    alive_after: int

    @property
    def inside(self) -> int:
        """The segment's own blocks."""
        return self.goal & ~self.executed


class Direction(Protocol):
    """What the search asks. ``start`` is (state, bytes alive, ready blocks), ``goal`` the last state."""

    @property
    def states(self) -> States: ...

    @property
    def start(self) -> tuple[int, int, int]: ...

    @property
    def goal(self) -> int: ...

    @property
    def waits(self) -> Sequence[int]:
        """For each block the set that must be in the state before it is ready."""

    @property
    def wakes(self) -> Sequence[Sequence[int]]:
        """For each block those that may become ready with it."""

    @property
    def may_fall(self) -> int:
        """Blocks that in some state leave no more bytes alive than before."""

    def cost(self, state: int, b: int) -> tuple[int, int]:
        """(working set in bytes while block b runs, bytes alive after it), both less what is alive in the state."""

    def in_order(self, moves: Sequence[int]) -> tuple[int, ...]:
        """The moves of a search as blocks in the order in which they run."""


@dataclass(frozen=True)
class Forward:
    """From the segment's start: a state is the set of executed blocks, those before the segment included."""

    states: States
    segment: Segment

    @property
    def start(self) -> tuple[int, int, int]:
        """(state, bytes alive, ready blocks)."""
        executed = self.segment.executed
        ready = (1 << b for b in bits(self.segment.inside) if not self.waits[b] & ~executed)
        return executed, self.segment.alive_before, union(ready)

    @property
    def goal(self) -> int:
        """The last state."""
        return self.segment.goal

    @property
    def waits(self) -> Sequence[int]:
        """The blocks that each needs."""
        return self.states.needs

    @property
    def wakes(self) -> Sequence[Sequence[int]]:
        """The blocks that need each."""
        return self.states.feeds

    @cached_property
    def may_fall(self) -> int:
        """Blocks that write no more than what can die with them."""
        states = self.states
        most = (sum(size for _, size in deaths) for deaths in states.deaths)
        return union(1 << b for b, (grow, dies) in enumerate(zip(states.grow, most, strict=True)) if grow <= dies)

    def cost(self, state: int, b: int) -> tuple[int, int]:
        """See :meth:`States.cost`."""
        return self.states.cost(state, b)

    def in_order(self, moves: Sequence[int]) -> tuple[int, ...]:
        """The moves themselves: they are in the order of running."""
        return tuple(moves)


@dataclass(frozen=True)
class Backward:
    """From the segment's end: a state is the set of blocks taken back."""

    states: States
    segment: Segment

    @property
    def start(self) -> tuple[int, int, int]:
        """(state, bytes alive, blocks that nothing in the segment comes after)."""
        ready = (1 << b for b in bits(self.goal) if not self.waits[b])
        return 0, self.segment.alive_after, union(ready)

    @property
    def goal(self) -> int:
        """All blocks of the segment."""
        return self.segment.inside

    @cached_property
    def waits(self) -> Sequence[int]:
        """The segment's blocks that need each."""
        return [union(1 << w for w in feeds) & self.goal for feeds in self.states.feeds]

    @cached_property
    def wakes(self) -> Sequence[Sequence[int]]:
        """The segment's blocks that each needs."""
        return [tuple(bits(needs & self.goal)) for needs in self.states.needs]

    @cached_property
    def may_fall(self) -> int:
        """Blocks that in some state free no more than they write."""
        return union(1 << b for b, grow in enumerate(self.states.grow) if grow >= 0)

    def cost(self, state: int, b: int) -> tuple[int, int]:
        """The cost of b where it ran, turned round: taking it back adds what running it frees."""
        need, change = self.states.cost(self.segment.goal & ~state & ~(1 << b), b)
        return need - change, -change

    def in_order(self, moves: Sequence[int]) -> tuple[int, ...]:
        """The last one taken back runs first."""
        return tuple(reversed(moves))
