"""A draft: the best plan so far of a set of striped regions, made better level by level.

Each level is the same whenever it is reached, and whatever else has been looked at: so is every decision that compares
drafts at one level. The plan that is written comes of the same planner with a wider limit: it is no worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from ..memory.cost import Cost
from ..plan.memory import PlanMemory
from ..plan.methods import BEST, solve
from ..plan.problem import PlanProblem

_WORK = (1.0, 2.0, 4.0)
"""Parts of the planner's limit at each level."""
LEVELS = len(_WORK)
BOTH = 2
"""The level from which on there is also the scheduler's order; at the last level only the better one is planned."""


PlannedHead = tuple[int, int]
"""Of one level: the head of the plan, and what no plan goes below."""


@dataclass
class DraftedOrder:
    """One order of the striped model: its plan problem, the smallest head at each level, and what no plan goes below.

    All in bytes. ``least``: what is alive at once. ``ahead``: plans of levels that are known, be they asked for or not:
    what ``heads`` do not have has not been asked for. ``before``: what they leave for the next level.
    """

    problem: PlanProblem
    planner: str
    least: int
    ahead: list[PlannedHead] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    before: PlanMemory = field(default_factory=PlanMemory)
    _bounds: list[int] = field(default_factory=list)

    def head_at(self, level: int, limit: SearchLimit) -> int:
        """The smallest head at a level, the first of which is 1."""
        while len(self.heads) < level and not self._is_done():
            if len(self.ahead) == len(self.heads):
                self.ahead.append(self._planned(limit))
            head, bound = self.ahead[len(self.heads)]
            self._bounds.append(max((bound, *self._bounds[-1:])))
            self.heads.append(min((head, *self.heads[-1:])))
        return self.heads[min(level, len(self.heads)) - 1]

    def _planned(self, limit: SearchLimit) -> PlannedHead:
        """At the next level."""
        work = _WORK[len(self.heads)] if self.planner == BEST else 1.0
        # Nobody goes on with what an interruption leaves half done.
        before, self.before = self.before, PlanMemory()
        plan = solve(self.problem, self.planner, replace(limit, work=work), before=before)
        if not plan.optimal and len(self.heads) + 1 < LEVELS:
            self.before = before
        return plan.arena_bytes, plan.lower_bound

    def bound_at(self, level: int) -> int:
        """What no plan goes below, as far as is known at a level: before the first it is what is alive at once."""
        known = self._bounds[:level]
        return known[-1] if known else self.least

    def unasked(self) -> DraftedOrder:
        """The same with nothing asked for."""
        return DraftedOrder(self.problem, self.planner, self.least)

    def is_known_at(self, level: int) -> bool:
        """Whether a level has been planned, asked for or not, or would be no better than the one before it."""
        return len(self.ahead) >= level or self._is_done()

    def _is_done(self) -> bool:
        """Whether the bound is reached, or there is no other method."""
        return bool(self.heads) and (self.planner != BEST or self.heads[-1] <= self._bounds[-1])


@dataclass
class Draft:
    """``orders``: those that are planned; one at first, another one where there is one from the level ``BOTH`` on.

    ``other``: makes the other one. ``beside``: bytes of the tail, and the least arena whatever the head is; (0, 0)
    where the head alone counts. ``is_too_slow``: beyond the limit on run time, so that it is no answer.
    """

    own: DraftedOrder
    other: Callable[[], DraftedOrder | None]
    beside: tuple[int, int]
    macs: int
    operators: int
    limit: SearchLimit
    is_too_slow: bool = False
    _orders: Sequence[DraftedOrder] = ()
    _level: int = 0

    def cost_at(self, level: int) -> Cost:
        """What it costs at a level, the first of which is 1."""
        self._level = max(level, self._level)
        orders = self._orders_at(level)
        early = [each.head_at(min(level, BOTH), self.limit) for each in orders]
        best = early.index(min(early))
        head = min(*early, orders[best].head_at(level, self.limit))
        return Cost(self.need(head), head, self.macs, self.operators)

    def cost_so_far(self) -> Cost:
        """What it costs at the level that was reached."""
        return self.cost_at(max(1, self._level))

    def least_at(self, level: int) -> int:
        """The need in bytes that no plan gets below, as far as is known before a level is planned."""
        return self.need(min(each.bound_at(level - 1) for each in self._orders_at(level)))

    def need(self, head: int) -> int:
        """Bytes of the objective with a head of so many bytes."""
        tail, least = self.beside
        return max(least, aligned(head + tail)) if tail else head

    def is_known_at(self, level: int, below: int) -> bool:
        """Whether a level takes no planning: it was reached, is planned, or cannot be below so many bytes.

        At the highest level, where only one of two orders is planned, it may be so without being seen here.
        """
        if self._level >= level:
            return True
        orders = self._orders if level >= BOTH else (self.own,)
        return bool(orders) and (self.least_at(level) >= below or all(each.is_known_at(level) for each in orders))

    @property
    def other_order(self) -> tuple[bool, DraftedOrder | None]:
        """Whether it has been looked for, and the other order where there is one."""
        return bool(self._orders), self._orders[1] if len(self._orders) > 1 else None

    def _orders_at(self, level: int) -> Sequence[DraftedOrder]:
        if level < BOTH:
            return (self.own,)
        if not self._orders:
            other = self.other()
            self._orders = (self.own,) if other is None else (self.own, other)
        return self._orders
