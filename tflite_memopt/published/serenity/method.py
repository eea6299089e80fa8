"""Serenity: dynamic programming, divide and conquer, adaptive soft budgeting.

Source: Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices"
(MLSys 2020), sections 3.1 and 3.2. Its graph rewriting (3.3) is not about scheduling.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...solvers.graph.dependency_graph import kahn_order
from ...solvers.graph.limits import Allowance, SearchLimit
from ...solvers.schedule.problem import MemoryGraph, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from . import dynamic_programming as dp
from .divide import divide

_WORK = 10_000_000
"""Runs of an operator: some ten to twenty seconds."""
_RESOLUTION = 64
"""Soft budgets closer to each other than this part of the hard one get no search of their own."""


@dataclass(frozen=True)
class SerenityParts:
    """The parts of the method that are on, as in the paper's Table 2. The dynamic programming always is.

    ``width`` is the paper's limit T on a search step, but in states rather than seconds, so that a run can be
    repeated. ``states`` is the most that one search holds; with more it gives up.
    """

    divide: bool = True
    budgeting: bool = True
    width: int = 20_000
    states: int = dp.MOST_STATES


_WHOLE = SerenityParts()


def serenity(problem: ScheduleProblem, limit: SearchLimit, parts: SerenityParts = _WHOLE) -> ScheduleAnswer:
    """Return an optimal order with its peak as the bound.

    Out of work or states the parts not finished keep Kahn's order, or the model's own where that needs less. Peaks
    that were proved out of reach before that still count for the bound.
    """
    allowance = Allowance(_WORK, limit)

    def solve(part: ScheduleProblem, _: SearchLimit) -> ScheduleAnswer:
        search = _BudgetedSearch(part, allowance, parts)
        return search.with_budgets() if parts.budgeting else search.at_once()

    return divide(problem, limit, solve) if parts.divide else solve(problem, limit)


class _BudgetedSearch:
    """The problem of one part, the order to fall back on, and the states visited so far."""

    def __init__(self, problem: ScheduleProblem, allowance: Allowance, parts: SerenityParts) -> None:
        self._problem = problem
        self._graph = memory_graph(problem)
        self._allowance = allowance
        self._parts = parts
        self._kahn = kahn_order(self._graph)
        self._states = 0

    def at_once(self) -> ScheduleAnswer:
        """Algorithm 1 alone."""
        found = self._program(dp.ProgramLimits(states=self._parts.states, allowance=self._allowance))
        return self._proved(found) if found.outcome is dp.SearchOutcome.SOLUTION else self._given_up(0)

    def with_budgets(self) -> ScheduleAnswer:
        """Algorithm 2: look for a soft budget that has a solution and lets each step finish within its limit.

        As in the paper the hard budget, Kahn's peak, is tried first. Then, however, this is a plain bisection
        between the largest budget known to have no solution and the smallest known to take too long: with the
        paper's formulas "no solution" can be followed by a smaller budget. When the two meet, the limit of a
        step is raised, on which the paper is silent.
        """
        hard = self._graph.peak(self._kahn)
        below, above, width = schedule_lower_bound(self._problem) - 1, hard, self._parts.width
        soft = hard
        while below + 1 < hard:
            found = self._program(dp.ProgramLimits(soft, width, self._parts.states, allowance=self._allowance))
            if found.outcome is dp.SearchOutcome.SOLUTION:
                return self._proved(found)
            if found.outcome is dp.SearchOutcome.EXHAUSTED:
                return self._given_up(below + 1)
            if found.outcome is dp.SearchOutcome.NO_SOLUTION:
                below = soft
            else:
                above = soft
            if above - below > hard // _RESOLUTION + 1:
                soft = (below + above) // 2
            else:
                above, soft, width = hard, above, 4 * width
        return ScheduleAnswer(self._kahn, hard, self._states)

    def _program(self, limits: dp.ProgramLimits) -> dp.SearchResult:
        start = dp.PartialSchedule(0, self._graph.alive_at_start, 0)
        found = dp.DynamicProgram(operators_of(self._graph), limits).search(start)
        self._states += found.states
        return found

    def _proved(self, found: dp.SearchResult) -> ScheduleAnswer:
        return ScheduleAnswer(found.order, self._graph.peak(found.order), self._states)

    def _given_up(self, lower_bound: int) -> ScheduleAnswer:
        own = (tuple(range(len(self._kahn))),) if self._graph.runs_as_numbered else ()
        best = min((self._kahn, *own), key=self._graph.peak)
        return ScheduleAnswer(best, lower_bound, self._states, self._allowance.stopped_by_clock)


def operators_of(graph: MemoryGraph) -> tuple[dp.OperatorSequence, ...]:
    """Return every operator as a unit of its own."""
    return tuple(dp.operator_sequence(graph, (v,)) for v in range(len(graph.needs)))
