"""What a set of tilings really costs: written into a copy of the model, ordered and planned.

A set gets a *draft* first: one order and a short plan. What comes off well is planned in full: in the order in which it
is written and in the scheduler's, with more work. The plan that is written comes of the same planner with a wider
limit: it is no worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import partial

from ..analysis.macs import model_macs
from ..graph.alignment import aligned
from ..graph.side_by_side import side_by_side
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..memory.arrange import place
from ..memory.cost import Cost, cost_in
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..memory.together import join
from ..memory.usage import operator_count
from ..memory.work import WorkLimit, instructions
from ..options import PLAN_WORK, Options
from ..plan.bounds import max_breadth
from ..plan.methods import solve
from ..schedule.memory_graph import memory_graph
from ..schedule.methods import solve as solve_schedule
from .tiling import Tilings, apply_tilings

Order = tuple[int, ...]
"""Positions of a model's operators."""
_FULL = 4.0
"""The planner's work for a full plan; a draft gets 1."""
_WORK_OF_ORDER = 0.1
"""The part of its limit in which the scheduler has to find another order. What is written gets all of it."""
ANY = 1 << 62
"""More than any need."""
_LEAST_WORK = 200
"""Operators of all models to plan at once: with fewer, processes take longer than they save."""


class Plans:
    """Costs of sets of tilings of one model, each computed once. The model stays as it is.

    Sets are chosen by an estimate of their run time with one library; here the limit is that of the options with each
    library, and what is beyond it has no cost.
    """

    def __init__(self, model: Model, profile: KernelProfile, options: Options) -> None:
        self._model, self._profile, self._options = model, profile, options
        self._work = WorkLimit(instructions(model, profile), options.extra_work, profile)
        self.work = 0
        """The operators of all models that have been planned."""
        self.drafts: dict[Tilings, Cost | None] = {}
        self._full: dict[Tilings, Cost | None] = {}
        self._orders: dict[Tilings, Order] = {}
        """In which a set is best planned."""

    def draft(self, every: Sequence[Tilings], below: int) -> None:
        """Draft those of which nothing is known."""
        self._add(self.drafts, every, below, is_full=False)

    def full(self, every: Sequence[Tilings], below: int) -> list[Cost | None]:
        """The costs in full of those whose objective may be less than ``below`` bytes."""
        self._add(self._full, every, below, is_full=True)
        return [self._full[chosen] for chosen in every]

    @property
    def planned(self) -> list[tuple[Cost, Tilings]]:
        """The sets that are planned in full, with their costs."""
        return [(cost, chosen) for chosen, cost in self._full.items() if cost is not None]

    def price(self, cost: Cost) -> tuple[int, ...]:
        """What is compared. Under a budget all that meet it need as much, and the one with fewest MACs is best."""
        need = cost.need if self._options.budget is None else max(cost.need, self._options.budget)
        return (need, cost.macs, cost.operators, cost.head) if need > cost.need else astuple(cost)

    def _add(self, known: dict[Tilings, Cost | None], every: Sequence[Tilings], below: int, is_full: bool) -> None:
        new = [chosen for chosen in dict.fromkeys(every) if chosen not in known]
        is_much = len(new) * len(self._model.main.operators) >= _LEAST_WORK
        plan = partial(self._planned, below=below, is_full=is_full)
        found = side_by_side(plan, new, self._options.jobs if is_much else 1)
        for chosen, (cost, order, operators) in zip(new, found, strict=True):
            known[chosen] = cost
            self.work += operators
            if order is not None:
                self._orders[chosen] = order

    def _planned(self, chosen: Tilings, below: int, is_full: bool) -> tuple[Cost | None, Order | None, int]:
        """What a set costs, and in which order if it is planned in full; the operators of its model."""
        model = apply_tilings(copy_model(self._model), chosen)
        cost, order = self._cost(model, below, is_full) if self._is_within(model) else (None, None)
        return cost, order, operator_count(model)

    def _cost(self, model: Model, below: int, is_full: bool) -> tuple[Cost | None, Order | None]:
        own = tuple(range(len(model.main.operators)))
        orders = self._orders_of(model, own) if is_full else [own]
        layouts = [memory_layout(model, self._profile, self._options.pins, order) for order in orders]
        problems = [join(layout.problem, layout.groups).problem for layout in layouts]
        use = arena_use(model, 0, self._profile.requests, self._profile.abi)
        counts_tail = self._options.objective == "total"

        def need(head: int) -> int:
            return max(use.required, aligned(head + use.tail)) if counts_tail else head

        open_ = [order for problem, order in zip(problems, orders, strict=True) if need(max_breadth(problem)) < below]
        if is_full or not open_:
            costs = [(cost, order) for order in open_ if (cost := self._placed(model, order)) is not None]
            return min(costs, key=lambda each: each[0], default=(None, None))
        head = solve(problems[0], self._options.planner, self._options.search_limit()).arena_bytes
        return Cost(need(head), head, model_macs(model, layouts[0].loops.loops), operator_count(model)), None

    def _is_within(self, made: Model) -> bool:
        """Whether it keeps the limits on what may be added to the model."""
        most, added = self._options.max_extra_operators, operator_count(made) - operator_count(self._model)
        return (most is None or added <= most) and self._work.is_kept_by(made)

    def _placed(self, model: Model, order: Order) -> Cost | None:
        """What TFLM makes of the plan in one order, which may be more than was planned; None where pins collide."""
        work = _FULL / PLAN_WORK[self._options.effort]
        placement = place(model, order, self._profile, self._options, work)
        return None if placement is None else cost_in(placement.memory, self._options)

    def _orders_of(self, model: Model, own: Order) -> list[Order]:
        """The order in which the tilings are written, and the scheduler's where that is another one."""
        problem = schedule_problem(model.main, memory_layout(model, self._profile))
        limit = replace(self._options.search_limit(_WORK_OF_ORDER), below=memory_graph(problem).peak(own))
        return list(dict.fromkeys((own, solve_schedule(problem, self._options.scheduler, limit).order)))

    def tiled(self, chosen: Tilings) -> Model:
        """A copy with these tilings, in the order that is best. Raises InfeasibleError where one does not fit."""
        model = apply_tilings(copy_model(self._model), chosen)
        if chosen in self._orders:
            model.main.reorder(self._orders[chosen])
        return model
