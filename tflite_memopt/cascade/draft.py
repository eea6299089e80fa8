"""A draft: the best plan so far of a set of striped regions, made better turn by turn.

Each turn is the same whenever it is taken, and whatever else has been looked at: so is every decision that compares
drafts after so many turns. The planner takes the same turns, so that its plan is at least as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from ..memory.cost import Cost
from ..plan.bounds import max_breadth
from ..plan.hill_climb.strategy import Climber
from ..plan.methods import BEST, have_stalled, solve, turns_of
from ..plan.problem import PlanProblem, arena_bytes

TURNS_IN_BOTH = 4
"""Before so many turns there is only the order in which the stripes are written; after them only the better one."""


@dataclass
class DraftedOrder:
    """One order of the striped model: its plan problem, and the smallest head after each turn."""

    problem: PlanProblem
    planner: str
    bound: int = 0
    heads: list[int] = field(default_factory=list)
    _climber: Climber | None = None

    def __post_init__(self) -> None:
        self.bound = max_breadth(self.problem)
        self.most = turns_of(self.problem) if self.planner == BEST else 1

    def head_after(self, turns: int, limit: SearchLimit) -> int:
        """The smallest head in bytes after so many turns, of those that there are."""
        while len(self.heads) < min(turns, self.most) and not self._is_done():
            head = self._turn(SearchLimit(limit.time_limit, limit.seed + len(self.heads)))
            self.heads.append(min((head, *self.heads[-1:])))
        return self.heads[min(turns, len(self.heads)) - 1]

    def _is_done(self) -> bool:
        """Whether the bound is reached, or the last turns have brought nothing."""
        return bool(self.heads) and (have_stalled(self.heads) or self.heads[-1] <= self.bound)

    def _turn(self, limit: SearchLimit) -> int:
        if self.planner != BEST:
            return solve(self.problem, self.planner, limit).arena_bytes
        self._climber = self._climber or Climber(self.problem)
        return arena_bytes(self.problem, self._climber.travel(limit).offsets)


@dataclass
class Draft:
    """``orders``: those that are planned; one at first, another one where there is one from the second turn on.

    ``other``: makes the other one. ``beside``: bytes of the tail, and the least arena whatever the head is; (0, 0)
    where the head alone counts. ``least``: the need below which no plan in the first order gets.
    """

    own: DraftedOrder
    other: Callable[[], DraftedOrder | None]
    beside: tuple[int, int]
    macs: int
    operators: int
    limit: SearchLimit
    _orders: Sequence[DraftedOrder] = ()

    def cost_after(self, turns: int) -> Cost:
        """What it costs after so many turns, at least one."""
        orders = self._orders_after(turns)
        early = [each.head_after(min(turns, TURNS_IN_BOTH), self.limit) for each in orders]
        best = early.index(min(early))
        head = min(*early, orders[best].head_after(turns, self.limit))
        return Cost(self.need(head), head, self.macs, self.operators)

    def cost_so_far(self) -> Cost:
        """What it costs after the turns that were taken."""
        return self.cost_after(max(1, len(self.own.heads), *(len(each.heads) for each in self._orders)))

    def least_after(self, turns: int) -> int:
        """The need in bytes that more turns cannot get below."""
        return self.need(min(each.bound for each in self._orders_after(turns)))

    @property
    def most(self) -> int:
        """Turns that there are."""
        return self.own.most

    def need(self, head: int) -> int:
        """Bytes of the objective with a head of so many bytes."""
        tail, least = self.beside
        return max(least, aligned(head + tail)) if tail else head

    def _orders_after(self, turns: int) -> Sequence[DraftedOrder]:
        if turns < TURNS_IN_BOTH:
            return (self.own,)
        if not self._orders:
            other = self.other()
            self._orders = (self.own,) if other is None else (self.own, other)
        return self._orders
