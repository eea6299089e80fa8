"""HMCOS: schedule a coarse graph of sequences and groups, take apart the groups at its peak, repeat.

Source: Wang et al., "Hierarchical Memory-Constrained Operator Scheduling of Neural Architecture Search Networks"
(DAC 2022), and the behavior of its public implementation. Two additions lose nothing and save much time: parts
between cuts are scheduled on their own, and the peak of an order known before is the first limit.
"""

from __future__ import annotations

import math

from ...solvers.graph.dependency_graph import bits, kahn_order, reverse_post_order, set_of
from ...solvers.graph.limits import Allowance, SearchLimit
from ...solvers.schedule.problem import MemoryGraph, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from ..serenity import dynamic_programming as dp
from ..serenity.divide import divide
from .hierarchy import Hierarchy, build_hierarchy

_WORK = 2_500_000
"""Runs of a sequence or group of operators: some ten to twenty seconds."""


def hmcos(problem: ScheduleProblem, limit: SearchLimit, states: int = dp.MOST_STATES) -> ScheduleAnswer:
    """Return the best of Kahn's order, reverse post-order and all iterations.

    Each of the two nested searches holds at most ``states`` partial schedules. Out of work or states, the best order so
    far. A bound only comes out where the last iteration scheduled single
    operators without any group, which is an exact search.
    """
    limits = dp.ProgramLimits(states=states, allowance=Allowance(_WORK, limit))

    def solve(part: ScheduleProblem, _: SearchLimit) -> ScheduleAnswer:
        return _Iterations(part, limits).run()

    return divide(problem, limit, solve)


class _SequenceGroup:
    """A unit of sequences that run back to back, in an order that depends on which of their inputs die with them."""

    def __init__(
        self, graph: MemoryGraph, sequences: tuple[dp.OperatorSequence, ...], limits: dp.ProgramLimits
    ) -> None:
        self._graph = graph
        self._sequences = sequences
        self._limits = limits
        self._rpo = dp.operator_sequence(graph, tuple(v for unit in sequences for v in unit.order))
        self.members, self.needs = self._rpo.members, self._rpo.needs
        steps = [graph.problem.steps[v] for v in self._rpo.order]
        written = {t for step in steps for t in step.outputs}
        self._consumed = sorted({t for step in steps for t in step.inputs} - written)
        self._best: dict[tuple[bool, ...], dp.OperatorSequence] = {}
        self._too_little: dict[tuple[bool, ...], float] = {}
        self.states = 0

    def run(self, before: dp.PartialSchedule, limit: float) -> dp.UnitRun | None:
        """Reverse post-order if that does not raise the peak, else the best order (see dp.ScheduledUnit)."""
        waiting = self._graph.everything & ~(before.executed | self.members)
        context = tuple(self._graph.dies(t, waiting) for t in self._consumed)
        if context not in self._best:
            cheap = self._rpo.run(before, min(limit, before.peak))
            if cheap is not None:
                return cheap
            room = limit - before.alive
            if room <= self._too_little.get(context, -math.inf) or not self._solve(context, before, limit):
                return None
        return self._best[context].run(before, limit)

    def _solve(self, context: tuple[bool, ...], before: dp.PartialSchedule, limit: float) -> bool:
        """Find and remember the best order of a context. Out of work or states it is reverse post-order."""
        limits = dp.ProgramLimits(limit, states=self._limits.states, allowance=self._limits.allowance)
        found = dp.DynamicProgram(self._sequences, limits).search(dp.PartialSchedule(before.executed, before.alive, 0))
        self.states += found.states
        if found.outcome is dp.SearchOutcome.NO_SOLUTION:
            self._too_little[context] = limit - before.alive
            return False
        self._best[context] = dp.operator_sequence(self._graph, found.order) if found.order else self._rpo
        return True


class _Iterations:
    """The groups that are still whole, and the best order so far."""

    def __init__(self, problem: ScheduleProblem, limits: dp.ProgramLimits) -> None:
        self._problem = problem
        self._graph = memory_graph(problem)
        self._limits = limits
        self._hierarchy: Hierarchy = build_hierarchy(self._graph)
        self._groups = {group: self._group(group) for group in self._hierarchy.groups}
        known = (kahn_order(self._graph), reverse_post_order(self._graph))
        self._best = min(known, key=self._graph.peak)
        self._states = 0

    def run(self) -> ScheduleAnswer:
        """Schedule and take groups apart until no group is at the peak, or the peak is as low as can be."""
        least, floor, bound = self._graph.peak(self._best), schedule_lower_bound(self._problem), 0
        while True:
            order = self._schedule(least)
            if not order:
                break
            peak = self._graph.peak(order)
            if peak <= least:
                self._best, least = order, peak
            if self._is_exact():
                bound = peak
            if peak == floor or not self._take_apart(order, peak):
                break
        return ScheduleAnswer(self._best, bound, self._states, self._limits.allowance.stopped_by_clock)

    def _group(self, group: int) -> _SequenceGroup:
        return _SequenceGroup(self._graph, tuple(self._hierarchy.sequences[s] for s in bits(group)), self._limits)

    def _units(self) -> tuple[dp.ScheduledUnit, ...]:
        grouped = sum(self._groups)
        free = (unit for s, unit in enumerate(self._hierarchy.sequences) if not grouped >> s & 1)
        return (*free, *self._groups.values())

    def _is_exact(self) -> bool:
        return not self._groups and all(len(unit.order) == 1 for unit in self._hierarchy.sequences)

    def _schedule(self, peak: int) -> tuple[int, ...]:
        """Return the best order of the coarse graph, whose peak may be above the one given only where it has to.

        Empty when out of work or states.
        """
        found = self._search(peak)
        return self._search(math.inf).order if found.outcome is dp.SearchOutcome.NO_SOLUTION else found.order

    def _search(self, peak: float) -> dp.SearchResult:
        limits = dp.ProgramLimits(peak, states=self._limits.states, allowance=self._limits.allowance)
        before = sum(group.states for group in self._groups.values())
        found = dp.DynamicProgram(self._units(), limits).search(dp.PartialSchedule(0, self._graph.alive_at_start, 0))
        self._states += found.states + sum(group.states for group in self._groups.values()) - before
        return found

    def _take_apart(self, order: tuple[int, ...], peak: int) -> bool:
        """Dissolve the groups that write what is alive at the peak, and those right after; False if none does."""
        writing = _writers_at_peak(self._graph, order, peak)
        near = 0
        for s, unit in enumerate(self._hierarchy.sequences):
            if unit.members & writing:
                near |= 1 << s | self._hierarchy.graph.feeds[s]
        whole = {group: unit for group, unit in self._groups.items() if not group & near}
        changed = len(whole) < len(self._groups)
        self._groups = whole
        return changed


def _writers_at_peak(graph: MemoryGraph, order: tuple[int, ...], peak: int) -> int:
    """Return the operators whose results are alive at a step of an order that needs ``peak`` bytes."""
    steps = graph.problem.steps
    writers = 0
    for ran in graph.follow(order):
        if ran.need == peak:
            waiting = graph.everything & ~ran.executed
            alive = (u for u in bits(ran.executed) if not all(graph.dies(t, waiting) for t in steps[u].outputs))
            writers |= set_of((ran.operator, *alive))
    return writers
