"""What a set of striped regions really costs: written into a copy of the model, ordered and planned.

A *draft* is a quick plan, made better turn by turn: a few turns for all sets, more for those that come off best. The
full plan, which is at least as good, has the last word.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..analysis.macs import model_macs
from ..graph.alignment import aligned
from ..graph.search_limit import SearchLimit
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.arena import arena_use
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, needed_bytes
from ..memory.layout import memory_layout
from ..memory.schedule_problem import schedule_problem
from ..memory.together import join
from ..memory.usage import operator_count
from ..options import Options
from ..plan.methods import BEST, restarts, solve
from ..plan.problem import PlanProblem
from ..schedule.methods import solve as solve_schedule
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""
_BOTH = 2
"""Turns that a draft takes in both orders, before it goes on in the better one."""
_FIRST = ("nested_storages", "strip_packing_best_fit")
"""Strategies that a draft starts with, beside the hill climb of every turn."""


@dataclass
class Draft:
    """The best quick plan so far of a set of regions: ``cost`` as it would be with this plan.

    ``problems``: in the order in which the stripes are written, and in the scheduler's; the better one is first once
    both have had their ``_BOTH`` turns. ``beside``: bytes of the tail, and the least arena whatever the head is.
    ``least``: the need below which no plan in these orders gets. ``turns``: taken, of ``most``.
    """

    chosen: Chosen
    problems: list[PlanProblem]
    heads: list[int]
    cost: Cost
    beside: tuple[int, int]
    most: int
    turns: int = 0
    least: int = 0

    @property
    def is_done(self) -> bool:
        """Whether no further turn can make it better."""
        return self.turns >= self.most or self.cost.need <= self.least

    def need(self, head: int) -> int:
        """Bytes of the objective with a head of so many bytes."""
        tail, least = self.beside
        return max(least, aligned(head + tail)) if tail else head


class StripeJudge:
    """Costs of sets of regions of one model, each worked out once. The model stays as it is.

    ``unstriped``: the cost without regions, where it is known.
    """

    def __init__(self, model: Model, profile: KernelProfile, options: Options, unstriped: Cost | None = None) -> None:
        self._model, self._profile, self._options = model, profile, options
        self._costs: dict[Chosen, Cost] = {} if unstriped is None else {(): unstriped}
        self._drafts: dict[Chosen, Draft] = {}

    @property
    def costs(self) -> Mapping[Chosen, Cost]:
        """What has been planned in full."""
        return self._costs

    @property
    def drafts(self) -> Collection[Chosen]:
        """What has been planned at all, the empty set aside."""
        return self._drafts

    def cost(self, chosen: Chosen) -> Cost:
        """The cost under the objective of the options. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._costs:
            memory = arrange(self.striped(chosen), self._profile, self._options).placement.memory
            need = needed_bytes(memory, self._options)
            self._costs[chosen] = Cost(need, memory.arena_bytes, memory.macs, memory.operators)
        return self._costs[chosen]

    def draft(self, chosen: Chosen) -> Draft:
        """A draft after one turn at least. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._drafts:
            model = self.striped(chosen)
            problems = self._problems(model)
            use = arena_use(model, 0, self._profile.requests, self._profile.abi)
            beside = (use.tail, use.required) if self._options.objective == "total" else (0, 0)
            cost = Cost(1 << 62, 1 << 62, model_macs(model), operator_count(model))
            most = restarts(problems[0]) if self._options.planner == BEST else 1
            draft = Draft(chosen, problems, [1 << 62] * len(problems), cost, beside, most)
            for strategy in _FIRST:
                self._plan(draft, strategy)
            self.improve(draft)
            self._drafts[chosen] = draft
        return self._drafts[chosen]

    def improve(self, draft: Draft) -> None:
        """One turn more."""
        self._plan(draft, "hill_climb" if self._options.planner == BEST else self._options.planner)
        draft.turns += 1
        if draft.turns == _BOTH and len(draft.problems) > 1:
            better = draft.heads.index(min(draft.heads))
            draft.problems, draft.heads = [draft.problems[better]], [draft.heads[better]]

    def _problems(self, model: Model) -> list[PlanProblem]:
        """In the order of the model, and in the scheduler's where that is another one."""
        layout = memory_layout(model, self._profile, self._options.pins)
        found = [join(layout.problem, layout.groups).problem]
        own = tuple(range(len(model.main.operators)))
        limit = SearchLimit(self._options.time_limit, self._options.seed)
        order = solve_schedule(schedule_problem(model.main, layout), self._options.scheduler, limit).order
        if order != own:
            layout = memory_layout(model, self._profile, self._options.pins, order)
            found.append(join(layout.problem, layout.groups).problem)
        return found

    def _plan(self, draft: Draft, strategy: str) -> None:
        limit = SearchLimit(self._options.time_limit, self._options.seed + draft.turns)
        plans = [solve(problem, strategy, limit) for problem in draft.problems]
        draft.heads = [min(head, plan.arena_bytes) for head, plan in zip(draft.heads, plans, strict=True)]
        draft.least = draft.need(min(plan.lower_bound for plan in plans))
        head = min(draft.heads)
        draft.cost = min(draft.cost, Cost(draft.need(head), head, draft.cost.macs, draft.cost.operators))

    def striped(self, chosen: Chosen) -> Model:
        """A copy with these regions in stripes. Raises InfeasibleError where they cannot be."""
        copied = copy_model(self._model)
        apply_stripes(copied, chosen)
        share_constants(copied, _LARGEST_OPERAND)
        return copied
