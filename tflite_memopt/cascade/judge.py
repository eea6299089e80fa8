"""What a set of striped regions really costs: written into a copy of the model, and planned in its own order.

A *draft* is a quick plan, made better turn by turn: a few turns for all sets, more for those that come off best. The
planner's full plan, which is at least as good, has the last word.
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
from ..memory.arrange import place_in_better_order
from ..memory.cost import Cost, needed_bytes
from ..memory.layout import memory_layout
from ..options import Options
from ..plan.methods import BEST, restarts, solve
from ..plan.problem import PlanProblem
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""
_FIRST = ("nested_storages", "strip_packing_best_fit")
"""Strategies that a draft starts with, beside the hill climb of every turn."""


@dataclass
class Draft:
    """The best quick plan so far of a set of regions: ``cost`` as it would be with this plan.

    ``beside``: bytes of the tail, and the least arena whatever the head is. ``turns``: taken, of ``most``.
    """

    chosen: Chosen
    problem: PlanProblem
    cost: Cost
    beside: tuple[int, int]
    turns: int
    most: int

    @property
    def is_done(self) -> bool:
        """Whether no further turn can change it."""
        return self.turns >= self.most


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
            model = self.striped(chosen)
            order = range(len(model.main.operators))
            memory = place_in_better_order(model, order, self._profile, self._options).memory
            need = needed_bytes(memory, self._options)
            self._costs[chosen] = Cost(need, memory.arena_bytes, memory.macs, memory.operators)
        return self._costs[chosen]

    def draft(self, chosen: Chosen) -> Draft:
        """A draft after one turn at least. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._drafts:
            model = self.striped(chosen)
            problem = memory_layout(model, self._profile, self._options.pins).problem
            use = arena_use(model, 0, self._profile.requests, self._profile.abi)
            beside = (use.tail, use.required) if self._options.objective == "total" else (0, 0)
            cost = Cost(1 << 62, 1 << 62, model_macs(model), len(model.main.operators))
            draft = Draft(chosen, problem, cost, beside, 0, restarts(problem) if self._options.planner == BEST else 1)
            for strategy in _FIRST:
                self._plan(draft, strategy)
            self.improve(draft)
            self._drafts[chosen] = draft
        return self._drafts[chosen]

    def improve(self, draft: Draft) -> None:
        """One turn more."""
        self._plan(draft, "hill_climb" if self._options.planner == BEST else self._options.planner)
        draft.turns += 1

    def _plan(self, draft: Draft, strategy: str) -> None:
        limit = SearchLimit(self._options.time_limit, self._options.seed + draft.turns)
        head, (tail, least) = solve(draft.problem, strategy, limit).arena_bytes, draft.beside
        cost = Cost(max(least, aligned(head + tail) if tail else head), head, draft.cost.macs, draft.cost.operators)
        draft.cost = min(draft.cost, cost)

    def striped(self, chosen: Chosen) -> Model:
        """A copy with these regions in stripes. Raises InfeasibleError where they cannot be."""
        copied = copy_model(self._model)
        apply_stripes(copied, chosen)
        share_constants(copied, _LARGEST_OPERAND)
        return copied
