"""HMCOS: schedule a coarse graph of sequences and groups, take apart the groups at its peak, repeat.

Source: Wang et al., "Hierarchical Memory-Constrained Operator Scheduling of Neural Architecture Search Networks"
(DAC 2022), and the behaviour of its public implementation. Two additions lose nothing and save much time: parts
between cuts are scheduled on their own, and the peak of an order known before is the first limit.
"""

from __future__ import annotations

import math
import time

from ..graph.search_limit import SearchLimit
from .bounds import any_order
from .dynamic.divide import divide
from .dynamic.dp import MOST_STATES, Dp, Found, Limits, Outcome, Run, Sequence, State, Unit, sequence
from .dynamic.hierarchy import Hierarchy, build_hierarchy
from .kahn import kahn
from .peak import order_peak
from .problem import Answer, ScheduleProblem
from .rpo import rpo_order
from .wiring import Wiring, bits, wire


def hmcos(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """The best of Kahn's order, reverse post-order and all iterations. See :func:`hmcos_with`."""
    return hmcos_with(problem, limit, MOST_STATES)


def hmcos_with(problem: ScheduleProblem, limit: SearchLimit, states: int) -> Answer:
    """HMCOS with at most ``states`` partial schedules held by each of its two nested searches.

    Out of time or states, the best order so far. A bound only comes out where the last iteration scheduled single
    operators without any group, which is an exact search.
    """

    def solve(part: ScheduleProblem, share: SearchLimit) -> Answer:
        return _Iterations(part, Limits(states=states, deadline=time.monotonic() + share.time_limit)).run()

    return divide(problem, limit, solve)


class _Group:
    """Sequences that run back to back, in an order that depends on which of their inputs die with them (a Unit)."""

    def __init__(self, wiring: Wiring, sequences: tuple[Sequence, ...], limits: Limits) -> None:
        self._wiring = wiring
        self._sequences = sequences
        self._limits = limits
        self._rpo = sequence(wiring, tuple(v for unit in sequences for v in unit.order))
        self.members, self.needs = self._rpo.members, self._rpo.needs
        steps = [wiring.problem.steps[v] for v in self._rpo.order]
        written = {t for step in steps for t in step.outputs}
        self._consumed = sorted({t for step in steps for t in step.inputs} - written)
        self._best: dict[tuple[bool, ...], Sequence] = {}
        self._too_little: dict[tuple[bool, ...], float] = {}
        self.states = 0

    def run(self, before: State, limit: float) -> Run | None:
        """Reverse post-order if that does not raise the peak, else the best order (see dp.Unit)."""
        waiting = self._wiring.everything & ~(before.executed | self.members)
        context = tuple(self._wiring.dies(t, waiting) for t in self._consumed)
        if context not in self._best:
            cheap = self._rpo.run(before, min(limit, before.peak))
            if cheap is not None:
                return cheap
            room = limit - before.alive
            if room <= self._too_little.get(context, -math.inf) or not self._solve(context, before, limit):
                return None
        return self._best[context].run(before, limit)

    def _solve(self, context: tuple[bool, ...], before: State, limit: float) -> bool:
        """Find and remember the best order of a context. Out of time or states it is reverse post-order."""
        limits = Limits(limit, states=self._limits.states, deadline=self._limits.deadline)
        found = Dp(self._sequences, limits).search(State(before.executed, before.alive, 0))
        self.states += found.states
        if found.outcome is Outcome.NO_SOLUTION:
            self._too_little[context] = limit - before.alive
            return False
        self._best[context] = sequence(self._wiring, found.order) if found.order else self._rpo
        return True


class _Iterations:
    """The groups that are still whole, and the best order so far."""

    def __init__(self, problem: ScheduleProblem, limits: Limits) -> None:
        self._problem = problem
        self._wiring = wire(problem)
        self._limits = limits
        self._hierarchy: Hierarchy = build_hierarchy(self._wiring)
        self._groups = {group: self._group(group) for group in self._hierarchy.groups}
        known = (kahn(problem, SearchLimit()).order, rpo_order(self._wiring))
        self._best = min(known, key=lambda order: order_peak(self._wiring, order))
        self._states = 0

    def run(self) -> Answer:
        """Schedule and take groups apart until no group is at the peak, or the peak is as low as can be."""
        least, floor, bound = order_peak(self._wiring, self._best), any_order(self._problem), 0
        while True:
            order = self._schedule(least)
            if not order:
                break
            peak = order_peak(self._wiring, order)
            if peak <= least:
                self._best, least = order, peak
            if self._is_exact():
                bound = peak
            if peak == floor or not self._take_apart(order, peak):
                break
        return Answer(self._best, bound, self._states)

    def _group(self, group: int) -> _Group:
        return _Group(self._wiring, tuple(self._hierarchy.sequences[s] for s in bits(group)), self._limits)

    def _units(self) -> tuple[Unit, ...]:
        grouped = sum(self._groups)
        free = (unit for s, unit in enumerate(self._hierarchy.sequences) if not grouped >> s & 1)
        return (*free, *self._groups.values())

    def _is_exact(self) -> bool:
        return not self._groups and all(len(unit.order) == 1 for unit in self._hierarchy.sequences)

    def _schedule(self, peak: int) -> tuple[int, ...]:
        """The best order of the coarse graph, whose peak may be above the one given only where it has to.

        Empty when out of time or states.
        """
        found = self._search(peak)
        return self._search(math.inf).order if found.outcome is Outcome.NO_SOLUTION else found.order

    def _search(self, peak: float) -> Found:
        limits = Limits(peak, states=self._limits.states, deadline=self._limits.deadline)
        before = sum(group.states for group in self._groups.values())
        found = Dp(self._units(), limits).search(State(0, self._wiring.alive_at_start, 0))
        self._states += found.states + sum(group.states for group in self._groups.values()) - before
        return found

    def _take_apart(self, order: tuple[int, ...], peak: int) -> bool:
        """Dissolve the groups that write what is alive at the peak, and those right after; False if none does."""
        writing = _writers_at_peak(self._wiring, order, peak)
        near = 0
        for s, unit in enumerate(self._hierarchy.sequences):
            if unit.members & writing:
                near |= 1 << s | self._hierarchy.feeds[s]
        whole = {group: unit for group, unit in self._groups.items() if not group & near}
        changed = len(whole) < len(self._groups)
        self._groups = whole
        return changed


def _writers_at_peak(wiring: Wiring, order: tuple[int, ...], peak: int) -> int:
    """The operators whose results are alive at a step of an order that needs ``peak`` bytes."""
    steps = wiring.problem.steps
    executed, alive, writers = 0, wiring.alive_at_start, 0
    for v in order:
        need, alive = wiring.run(executed, alive, v)
        if need == peak:
            writers |= 1 << v
            waiting = wiring.everything & ~executed
            writers |= sum(1 << u for u in bits(executed) if not all(wiring.dies(t, waiting) for t in steps[u].outputs))
        executed |= 1 << v
    return writers
