"""Dynamic programming over zero-indegree sets: Algorithm 1 of Ahn et al., "Ordering Chaos: Memory-Aware Scheduling
of Irregularly Wired Neural Networks for Edge Devices" (MLSys 2020), section 3.1.

The paper's signature of a partial schedule is the set of operators that are ready next. That set and the set of
executed operators determine each other, so the executed set, which the step cost needs anyway, is the key here.

What is scheduled are units: single operators for the paper, sequences and groups of them for HMCOS.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from .wiring import Wiring, bits

MOST_STATES = 500_000
"""Signatures that one search holds over all its levels, about 0.3 GB for 500 operators."""


class State(NamedTuple):
    """A partial schedule: operators run, bytes alive after them, bytes at its peak, units that are ready."""

    executed: int
    alive: int
    peak: int
    ready: int = 0


class Run(NamedTuple):
    """What running a unit does: its operators in order, the peak in bytes while they run, bytes alive after them."""

    order: tuple[int, ...]
    peak: int
    alive: int


class Unit(Protocol):
    """Operators that run back to back. ``members`` and ``needs`` are sets of operators."""

    @property
    def members(self) -> int: ...

    @property
    def needs(self) -> int: ...

    def run(self, before: State, limit: float) -> Run | None:
        """The best run of the unit after ``before``, or None if its peak would be above ``limit`` bytes."""


@dataclass(frozen=True)
class Sequence:
    """Operators that always run in the one order given."""

    wiring: Wiring
    order: tuple[int, ...]
    members: int
    needs: int

    def run(self, before: State, limit: float) -> Run | None:
        """See :class:`Unit`."""
        executed, alive, peak = before.executed, before.alive, 0
        for operator in self.order:
            need, alive = self.wiring.run(executed, alive, operator)
            if need > limit:
                return None
            peak = max(peak, need)
            executed |= 1 << operator
        return Run(self.order, peak, alive)


def sequence(wiring: Wiring, order: tuple[int, ...]) -> Sequence:
    """The unit that runs the operators of ``order``."""
    members = needs = 0
    for operator in order:
        members |= 1 << operator
        needs |= wiring.needs[operator]
    return Sequence(wiring, order, members, needs & ~members)


@dataclass(frozen=True)
class Limits:
    """``peak`` in bytes prunes (the soft budget); ``width`` is states in a level, ``states`` those held in all.

    ``deadline`` is a time of ``time.monotonic``.
    """

    peak: float = math.inf
    width: float = math.inf
    states: int = MOST_STATES
    deadline: float = math.inf


class Outcome(Enum):
    """The paper's three flags, and EXHAUSTED: out of time, or of states to hold."""

    SOLUTION = "solution"
    NO_SOLUTION = "no solution"
    TIMEOUT = "timeout"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True)
class Found:
    """How a search ended, how many states it held, and with SOLUTION an order of least peak."""

    outcome: Outcome
    states: int
    order: tuple[int, ...] = ()


class Dp:
    """Algorithm 1 on units, from the state that they start in to the one where all of them ran."""

    def __init__(self, units: tuple[Unit, ...], limits: Limits) -> None:
        self._units = units
        self._limits = limits
        self._feeds = _feeds(units)
        self._level: dict[int, State] = {}
        self._orders: list[dict[int, tuple[int, ...]]] = []
        self._held = 0

    def search(self, start: State) -> Found:
        """The order of least peak that stays within ``limits.peak``, if the other limits allow.

        Only what runs from ``start`` on and the peak that ``start`` brings along count. Units that ``start`` does
        not reach must not exist. O(units * signatures) runs of a unit.
        """
        ready = sum(1 << u for u, unit in enumerate(self._units) if not unit.needs & ~start.executed)
        self._level = {start.executed: start._replace(ready=ready)}
        for _ in self._units:
            outcome = self._next_level()
            if outcome is not Outcome.SOLUTION:
                return Found(outcome, self._held)
        return Found(Outcome.SOLUTION, self._held, self._order())

    def _next_level(self) -> Outcome:
        """Run one more unit from every state of the level."""
        level: dict[int, State] = {}
        orders: dict[int, tuple[int, ...]] = {}
        self._orders.append(orders)
        held = self._held
        for state in self._level.values():
            self._expand(state, level, orders)
            self._held = held + len(level)
            if len(level) > self._limits.width:
                return Outcome.TIMEOUT
            if self._held > self._limits.states or time.monotonic() > self._limits.deadline:
                return Outcome.EXHAUSTED
        self._level = level
        return Outcome.SOLUTION if level else Outcome.NO_SOLUTION

    def _expand(self, state: State, level: dict[int, State], orders: dict[int, tuple[int, ...]]) -> None:
        """Put every successor of a state into the level, unless the same signature is there with no higher peak."""
        for u in bits(state.ready):
            unit = self._units[u]
            run = unit.run(state, self._limits.peak)
            if run is None:
                continue
            peak = max(state.peak, run.peak)
            executed = state.executed | unit.members
            known = level.get(executed)
            if known is not None and known.peak <= peak:
                continue
            ready = known.ready if known is not None else self._ready_after(state, u, executed)
            level[executed] = State(executed, run.alive, peak, ready)
            orders[executed] = run.order

    def _ready_after(self, state: State, u: int, executed: int) -> int:
        ready = state.ready ^ 1 << u
        for w in self._feeds[u]:
            if not self._units[w].needs & ~executed:
                ready |= 1 << w
        return ready

    def _order(self) -> tuple[int, ...]:
        """The order that led to the last level's only state, put together from its end."""
        executed = next(iter(self._level))
        parts: list[tuple[int, ...]] = []
        for orders in reversed(self._orders):
            parts.append(orders[executed])
            executed ^= sum(1 << operator for operator in parts[-1])
        return tuple(operator for part in reversed(parts) for operator in part)


def _feeds(units: tuple[Unit, ...]) -> list[list[int]]:
    """For each unit those that need one of its operators. Needs from outside the units are left out."""
    owner = {operator: u for u, unit in enumerate(units) for operator in bits(unit.members)}
    feeds: list[list[int]] = [[] for _ in units]
    for w, unit in enumerate(units):
        for u in sorted({owner[operator] for operator in bits(unit.needs) if operator in owner}):
            feeds[u].append(w)
    return feeds
