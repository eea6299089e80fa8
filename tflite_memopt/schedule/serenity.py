"""Serenity: dynamic programming, divide and conquer, adaptive soft budgeting.

Source: Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural Networks for Edge Devices"
(MLSys 2020), sections 3.1 and 3.2. Its graph rewriting (3.3) is not about scheduling.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ..graph.search_limit import SearchLimit
from .bounds import any_order
from .dynamic.divide import divide
from .dynamic.dp import MOST_STATES, Dp, Found, Limits, Outcome, Sequence, State, sequence
from .kahn import kahn
from .peak import order_peak
from .problem import Answer, ScheduleProblem
from .wiring import Wiring, wire

_RESOLUTION = 64
"""Soft budgets closer to each other than this part of the hard one are not worth a search of their own."""


@dataclass(frozen=True)
class SerenityParts:
    """Which parts of the method are on, as in the paper's Table 2. The dynamic programming always is.

    ``width`` is the paper's limit T on a search step, but in states rather than seconds, so that a run can be
    repeated. At ``states``, the most that one search holds, Kahn's order is the answer.
    """

    divide: bool = True
    budgeting: bool = True
    width: int = 20_000
    states: int = MOST_STATES


def serenity(problem: ScheduleProblem, limit: SearchLimit) -> Answer:
    """The whole method. See :func:`serenity_with`."""
    return serenity_with(problem, limit, SerenityParts())


def serenity_with(problem: ScheduleProblem, limit: SearchLimit, parts: SerenityParts) -> Answer:
    """An optimal order with its peak as the bound; out of time or states, Kahn's order for the parts not finished.

    Peaks that were proved out of reach before that still count for the bound.
    """

    def solve(part: ScheduleProblem, share: SearchLimit) -> Answer:
        search = _Search(part, time.monotonic() + share.time_limit, parts)
        return search.with_budgets() if parts.budgeting else search.at_once()

    return divide(problem, limit, solve) if parts.divide else solve(problem, limit)


class _Search:
    """One part's problem, the order to fall back on, and the states spent."""

    def __init__(self, problem: ScheduleProblem, deadline: float, parts: SerenityParts) -> None:
        self._problem = problem
        self._wiring = wire(problem)
        self._deadline = deadline
        self._parts = parts
        self._kahn = kahn(problem, SearchLimit()).order
        self._states = 0

    def at_once(self) -> Answer:
        """Algorithm 1 alone."""
        found = self._dp(Limits(states=self._parts.states, deadline=self._deadline))
        return self._proved(found) if found.outcome is Outcome.SOLUTION else self._given_up(0)

    def with_budgets(self) -> Answer:
        """Algorithm 2: look for a soft budget that has a solution and lets each step finish within its limit.

        As in the paper the hard budget, Kahn's peak, is tried first. Then, however, this is a plain bisection
        between the largest budget known to have no solution and the smallest known to take too long: with the
        paper's formulas "no solution" can be followed by a smaller budget. When the two meet, the limit of a
        step is raised, on which the paper is silent.
        """
        hard = order_peak(self._wiring, self._kahn)
        below, above, width = any_order(self._problem) - 1, hard, self._parts.width
        soft = hard
        while below + 1 < hard:
            found = self._dp(Limits(soft, width, self._parts.states, deadline=self._deadline))
            if found.outcome is Outcome.SOLUTION:
                return self._proved(found)
            if found.outcome is Outcome.EXHAUSTED:
                return self._given_up(below + 1)
            if found.outcome is Outcome.NO_SOLUTION:
                below = soft
            else:
                above = soft
            if above - below > hard // _RESOLUTION + 1:
                soft = (below + above) // 2
            else:
                above, soft, width = hard, above, 4 * width
        return Answer(self._kahn, hard, self._states)

    def _dp(self, limits: Limits) -> Found:
        found = Dp(_operators(self._wiring), limits).search(State(0, self._wiring.alive_at_start, 0))
        self._states += found.states
        return found

    def _proved(self, found: Found) -> Answer:
        return Answer(found.order, order_peak(self._wiring, found.order), self._states)

    def _given_up(self, lower_bound: int) -> Answer:
        return Answer(self._kahn, lower_bound, self._states)


def _operators(wiring: Wiring) -> tuple[Sequence, ...]:
    """Every operator as a unit of its own."""
    return tuple(sequence(wiring, (v,)) for v in range(len(wiring.needs)))
