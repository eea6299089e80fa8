"""What a set of striped regions really costs: written into a copy of the model, ordered and planned.

Many sets are compared by drafts, and the best of them by better ones: see ``Draft``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

from ..analysis.macs import model_macs
from ..graph.side_by_side import side_by_side
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost
from ..memory.layout import MemoryLayout, memory_layout
from ..memory.schedule_problem import schedule_problem
from ..memory.together import join
from ..memory.usage import operator_count
from ..memory.work import WorkLimit, instructions
from ..options import Options
from ..plan.bounds import max_breadth
from ..plan.problem import PlanProblem
from ..schedule.memory_graph import memory_graph
from ..schedule.methods import solve as solve_schedule
from .draft import BOTH, LEVELS, Draft, DraftedOrder
from .stop import EmergencyStop
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""
_HEATS = ((1, 3), (2, 1))
"""(level, how many go on after it): drafts that are compared reach a higher level the better they come off."""
_NEXT, _LAST = 8, 2
"""Drafts that are planned in both orders in the end, and how many of them reach the highest level."""


_WORK_OF_ORDER = 0.1
"""The part of its limit in which the scheduler has to find a draft another order. What is written gets all of it."""
_ANY = 1 << 62
"""More than any need: nothing drops out."""
_LEAST_WORK = 200
"""Operators of all models to plan at once: with fewer, processes take longer than they save."""


@dataclass(frozen=True)
class _PlannedAhead:
    """What a process has found of a set of regions: its orders, ``other`` only where ``has_other``; as in ``Draft``."""

    own: DraftedOrder
    has_other: bool
    other: DraftedOrder | None
    beside: tuple[int, int]
    macs: int
    operators: int
    is_too_slow: bool


class StripeJudge:
    """Costs of sets of regions of one model, each worked out once. The model stays as it is.

    ``unstriped``: the cost without regions. Sets are chosen by an estimate of their run time with one library; here the
    limit is that of the options with each library, and what is beyond it drops out.
    """

    def __init__(
        self, model: Model, profile: KernelProfile, options: Options, stop: EmergencyStop, unstriped: Cost
    ) -> None:
        self._model, self._profile, self._options, self._stop, self._unstriped = (
            model,
            profile,
            options,
            stop,
            unstriped,
        )
        self._limit = options.search_limit()
        self._work = WorkLimit(instructions(model, profile), options.extra_work, profile)
        self._drafts: dict[Chosen, Draft] = {}
        # Different regions can come to the same problem, such as those without a halo in two modes.
        self._orders: dict[PlanProblem, DraftedOrder] = {}
        # What other processes have found: nothing is decided by it before it is asked for.
        self._ahead: dict[Chosen, _PlannedAhead] = {}

    @property
    def drafts(self) -> Collection[Chosen]:
        """What has been planned, the empty set aside."""
        return [chosen for chosen, draft in self._drafts.items() if draft.own.heads]

    def best_so_far(self) -> tuple[Cost, Chosen]:
        """What costs least of all that has been planned, by the levels that were reached."""
        every = {(): self._unstriped} | {chosen: self.cost_so_far(chosen) for chosen in self.drafts}
        return min((cost, chosen) for chosen, cost in every.items())

    def cost(self, chosen: Chosen) -> Cost:
        """The cost at the highest level. Raises InfeasibleError where a region cannot be in stripes."""
        return self.draft(chosen).cost_at(LEVELS) if chosen else self._unstriped

    def cost_so_far(self, chosen: Chosen) -> Cost:
        """The cost at the level that was reached, and at the first one at least."""
        return self.draft(chosen).cost_so_far()

    def price(self, cost: Cost) -> tuple[int, ...]:
        """What is compared. Under a budget all that meet it need as much, and the one with fewest MACs is best."""
        need = cost.need if self._options.budget is None else max(cost.need, self._options.budget)
        return (need, cost.macs, cost.operators, cost.head) if need > cost.need else astuple(cost)

    def best_of(self, others: Iterable[Chosen], best: Chosen, known: int) -> Chosen:
        """The one that costs least, and ``best`` where none costs less than it; those that come off badly drop out.

        ``known``: a need in bytes that is reached elsewhere; what cannot get below it drops out too.
        """
        known = min(known, self.cost(best).need)
        racing: Sequence[Chosen] = [other for other in dict.fromkeys(others) if other != best]
        for level, count in _HEATS:
            racing = self._at(level, racing, known)[:count]
        return min((best, *racing), key=lambda other: self.price(self.cost(other)))

    def best_of_the_next(self, best: Chosen, known: int) -> Chosen:
        """``best``, or what costs less: with a region left out, or of what comes next, in the scheduler's order too.

        The first level looks at one order alone, and drops what is hopeless in that one.
        """
        known = min(known, self.cost(best).need)
        every = sorted(self._drafts, key=lambda other: (self._drafts[other].least_at(1), other))
        fewer = [best[:at] + best[at + 1 :] for at in range(len(best)) if len(best) > 1]
        racing = self._at(BOTH, dict.fromkeys((*every[:_NEXT], *fewer)), known)[:_LAST]
        return min((best, *racing), key=lambda other: self.price(self.cost(other)))

    def _at(self, level: int, racing: Iterable[Chosen], known: int) -> Sequence[Chosen]:
        """Those that may still get below what is known, best first; when the emergency stop strikes, only one."""
        racing = list(racing)
        self._plan_ahead(level, racing, known)
        prices: dict[Chosen, tuple[int, ...]] = {}
        for other in racing:
            if self._stop.strikes():
                break
            draft = self.draft(other)
            if not draft.is_too_slow and draft.least_at(level) < known:
                prices[other] = self.price(draft.cost_at(level))
        found = sorted(prices, key=lambda other: (prices[other], other))
        return found[:1] if self._stop.has_struck else found

    def cost_of_each(self, every: Sequence[Chosen]) -> list[Cost]:
        """The costs at the highest level, found side by side. Raises as ``cost``."""
        self._plan_ahead(LEVELS, [chosen for chosen in every if chosen], _ANY)
        return [self.cost(chosen) for chosen in every]

    def draft(self, chosen: Chosen) -> Draft:
        """The draft of a set of regions, not yet planned. Raises InfeasibleError where one cannot be in stripes."""
        if chosen not in self._drafts:
            self._drafts[chosen] = self._drafted(chosen)
        return self._drafts[chosen]

    def _drafted(self, chosen: Chosen) -> Draft:
        ahead = self._ahead.get(chosen)
        if ahead is not None:
            other = partial(self._other_order, chosen, None)
            counted = ahead.beside, ahead.macs, ahead.operators
            return Draft(self._shared(ahead.own), other, *counted, self._limit, ahead.is_too_slow)
        model = self.striped(chosen)
        layout = self._layout(model, None)
        use = arena_use(model, 0, self._profile.requests, self._profile.abi)
        beside = (use.tail, use.required) if self._options.objective == "total" else (0, 0)
        macs, operators = model_macs(model, layout.loops.loops), operator_count(model)
        other = partial(self._other_order, chosen, model)
        return Draft(self._order(layout), other, beside, macs, operators, self._limit, not self._work.is_kept_by(model))

    def _other_order(self, chosen: Chosen, model: Model | None) -> DraftedOrder | None:
        """The scheduler's order; ``model``: with the regions in stripes, None where another process has it."""
        ahead = self._ahead.get(chosen)
        if ahead is not None and ahead.has_other:
            return None if ahead.other is None else self._shared(ahead.other)
        return self._scheduled(self.striped(chosen) if model is None else model)

    def _scheduled(self, model: Model) -> DraftedOrder | None:
        """In the scheduler's order, where that is not the one in which the stripes are written."""
        problem = schedule_problem(model.main, memory_layout(model, self._profile))
        own = tuple(range(len(problem.steps)))
        limit = replace(self._limit, work=_WORK_OF_ORDER, below=memory_graph(problem).peak(own))
        order = solve_schedule(problem, self._options.scheduler, limit).order
        return None if order == own else self._order(self._layout(model, order))

    def _plan_ahead(self, level: int, racing: Sequence[Chosen], known: int) -> None:
        """Let several processes find what will be asked for at this level."""
        drafts = self._drafts
        new = [each for each in racing if each not in drafts or not drafts[each].is_known_at(level, known)]
        is_little = len(new) * len(self._model.main.operators) < _LEAST_WORK
        if self._options.jobs == 1 or is_little or self._stop.strikes():
            return
        found = side_by_side(partial(self._found_ahead, level, known), new, self._options.jobs)
        for chosen, ahead in zip(new, found, strict=True):
            self._ahead[chosen] = ahead
            for order in (ahead.own, *([ahead.other] if ahead.other is not None else [])):
                self._shared(order)

    def _found_ahead(self, level: int, known: int, chosen: Chosen) -> _PlannedAhead:
        draft = self.draft(chosen)
        if not draft.is_too_slow and draft.least_at(level) < known:
            draft.cost_at(level)
        has_other, other = draft.other_order
        counted = draft.beside, draft.macs, draft.operators
        return _PlannedAhead(draft.own, has_other, other, *counted, draft.is_too_slow)

    def _shared(self, found: DraftedOrder) -> DraftedOrder:
        """The one order of a problem, with the plans that another process has found for it."""
        order = self._orders.setdefault(found.problem, found.unasked())
        if len(found.ahead) > len(order.ahead):
            order.ahead += found.ahead[len(order.ahead) :]
            order.before = found.before
        return order

    def _layout(self, model: Model, order: Sequence[int] | None) -> MemoryLayout:
        return memory_layout(model, self._profile, self._options.pins, order)

    def _order(self, layout: MemoryLayout) -> DraftedOrder:
        problem = join(layout.problem, layout.groups).problem
        if problem not in self._orders:
            self._orders[problem] = DraftedOrder(problem, self._options.planner, max_breadth(problem))
        return self._orders[problem]

    def striped(self, chosen: Chosen) -> Model:
        """A copy with these regions in stripes. Raises InfeasibleError where they cannot be."""
        return stripe(copy_model(self._model), chosen)


def stripe(model: Model, chosen: Chosen) -> Model:
    """``model`` itself, with these regions in stripes. Raises InfeasibleError where they cannot be."""
    apply_stripes(model, chosen)
    share_constants(model, _LARGEST_OPERAND)
    return model
