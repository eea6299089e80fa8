"""Dynamic programming over zero-indegree sets: Algorithm 1 of Ahn et al., "Ordering Chaos: Memory-Aware Scheduling
of Irregularly Wired Neural Networks for Edge Devices" (MLSys 2020), section 3.1.

The paper's signature of a partial schedule is the set of operators that are ready next. That set and the set of
executed operators determine each other, so the executed set, which the step cost needs anyway, is the key here.

What is scheduled are units: single operators for the paper, sequences and groups of them for HMCOS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from ...solvers.graph.dependency_graph import DependencyGraph, bits, dependency_graph, set_of, union
from ...solvers.graph.limits import Allowance, SearchLimit, deadline_in
from ...solvers.schedule.problem import MemoryGraph

MOST_STATES = 500_000
"""Signatures that a search holds in the two levels at hand. Measured: 0.57 GB in all for 4,000 operators."""
MOST_VISITED = 10 * MOST_STATES
"""Signatures in all levels. Of finished levels only the orders that lead to a signature in use are kept."""


class Trail(NamedTuple):
    """The way to a state: the operators of its last unit, and the way before."""

    order: tuple[int, ...]
    before: Trail | None


class PartialSchedule(NamedTuple):
    """A partial schedule: operators run, bytes alive after them, bytes at its peak, units that are ready."""

    executed: int
    alive: int
    peak: int
    ready: int = 0
    trail: Trail | None = None


class UnitRun(NamedTuple):
    """The effect of running a unit: its operators in order, the peak in bytes, and the bytes alive after them."""

    order: tuple[int, ...]
    peak: int
    alive: int


class ScheduledUnit(Protocol):
    """Operators that run back to back. ``members`` and ``needs`` are sets of operators."""

    @property
    def members(self) -> int: ...

    @property
    def needs(self) -> int: ...

    def run(self, before: PartialSchedule, limit: float) -> UnitRun | None:
        """Return the best run of the unit after ``before``, or None if its peak would be above ``limit`` bytes."""


@dataclass(frozen=True)
class OperatorSequence:
    """Operators that always run in the one order given."""

    graph: MemoryGraph
    order: tuple[int, ...]
    members: int
    needs: int

    def run(self, before: PartialSchedule, limit: float) -> UnitRun | None:
        """See :class:`ScheduledUnit`."""
        executed, alive, peak = before.executed, before.alive, 0
        for operator in self.order:
            need, alive = self.graph.run(executed, alive, operator)
            if need > limit:
                return None
            peak = max(peak, need)
            executed |= 1 << operator
        return UnitRun(self.order, peak, alive)


def operator_sequence(graph: MemoryGraph, order: tuple[int, ...]) -> OperatorSequence:
    """Return the unit that runs the operators of ``order``."""
    members = set_of(order)
    return OperatorSequence(graph, order, members, union(graph.needs[v] for v in order) & ~members)


@dataclass(frozen=True)
class ProgramLimits:
    """``peak`` in bytes prunes (the soft budget). ``width`` is the most states in a level: a search step of the paper.

    ``step_seconds`` is the paper's own limit on a step, T. ``states`` is the most in two levels, ``visited`` in all.
    The ``allowance`` counts runs of a unit, in all searches that share it.
    """

    peak: float = math.inf
    width: float = math.inf
    states: int = MOST_STATES
    visited: int = MOST_VISITED
    allowance: Allowance = field(default_factory=lambda: Allowance(1 << 60, SearchLimit(math.inf)))
    step_seconds: float = math.inf


class SearchOutcome(Enum):
    """The paper's three flags, and EXHAUSTED: out of work or states."""

    SOLUTION = "solution"
    NO_SOLUTION = "no solution"
    TIMEOUT = "timeout"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True)
class SearchResult:
    """How a search ended, how many states it visited, and with SOLUTION an order of least peak."""

    outcome: SearchOutcome
    states: int
    order: tuple[int, ...] = ()


class DynamicProgram:
    """Algorithm 1 on units, from the state that they start in to the one where all of them ran."""

    def __init__(self, units: Sequence[ScheduledUnit], limits: ProgramLimits) -> None:
        self._units = units
        self._limits = limits
        self._feeds = [tuple(bits(feeds)) for feeds in unit_graph(units).feeds]
        self._level: dict[int, PartialSchedule] = {}
        self._visited = 0

    def search(self, start: PartialSchedule) -> SearchResult:
        """Return the order of least peak that stays within ``limits.peak``, if the other limits allow.

        Operators outside the units must have run, or not be needed. O(units * signatures) runs of a unit.
        """
        ready = sum(1 << u for u, unit in enumerate(self._units) if not unit.needs & ~start.executed)
        self._level = {start.executed: start._replace(ready=ready)}
        for _ in self._units:
            outcome = self._next_level()
            if outcome is not SearchOutcome.SOLUTION:
                return SearchResult(outcome, self._visited)
        (last,) = self._level.values()
        return SearchResult(SearchOutcome.SOLUTION, self._visited, _order(last.trail))

    def _next_level(self) -> SearchOutcome:
        """UnitRun one more unit from every state of the level."""
        level: dict[int, PartialSchedule] = {}
        outcome, deadline = SearchOutcome.SOLUTION, deadline_in(self._limits.step_seconds)
        for state in self._level.values():
            self._expand(state, level)
            outcome = SearchOutcome.TIMEOUT if deadline.has_passed() else self._outcome(len(level))
            if outcome is not SearchOutcome.SOLUTION:
                break
        self._visited += len(level)
        self._level = level
        return outcome if level else SearchOutcome.NO_SOLUTION

    def _outcome(self, width: int) -> SearchOutcome:
        limits = self._limits
        if width > limits.width:
            return SearchOutcome.TIMEOUT
        full = len(self._level) + width > limits.states or self._visited + width > limits.visited
        return SearchOutcome.EXHAUSTED if full or limits.allowance.is_spent() else SearchOutcome.SOLUTION

    def _expand(self, state: PartialSchedule, level: dict[int, PartialSchedule]) -> None:
        """Put every successor of a state into the level, unless the same signature is there with no higher peak."""
        self._limits.allowance.left -= state.ready.bit_count()
        for u in bits(state.ready):
            unit = self._units[u]
            executed = state.executed | unit.members
            known = level.get(executed)
            if known is not None and known.peak <= state.peak:
                continue
            run = unit.run(state, self._limits.peak)
            if run is None:
                continue
            peak = max(state.peak, run.peak)
            if known is not None and known.peak <= peak:
                continue
            ready = known.ready if known is not None else self._ready_after(state, u, executed)
            level[executed] = PartialSchedule(executed, run.alive, peak, ready, Trail(run.order, state.trail))

    def _ready_after(self, state: PartialSchedule, u: int, executed: int) -> int:
        ready = state.ready ^ 1 << u
        for w in self._feeds[u]:
            if not self._units[w].needs & ~executed:
                ready |= 1 << w
        return ready


def _order(trail: Trail | None) -> tuple[int, ...]:
    """Return the operators of a trail, from its start."""
    parts: list[tuple[int, ...]] = []
    while trail is not None:
        parts.append(trail.order)
        trail = trail.before
    return tuple(operator for part in reversed(parts) for operator in part)


def unit_graph(units: Sequence[ScheduledUnit]) -> DependencyGraph:
    """Return the units that each unit depends on. Needs from outside the units are left out."""
    owner = {operator: u for u, unit in enumerate(units) for operator in bits(unit.members)}
    return dependency_graph([set_of(owner[v] for v in bits(unit.needs) if v in owner) for unit in units])
