"""What a set of striped regions really costs: written into a copy of the model, and planned in its own order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..analysis.macs import model_macs
from ..graph.alignment import ARENA_ALIGNMENT
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
from ..plan.exact.settings import TreeSettings
from ..plan.methods import solve_within
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_TREE = TreeSettings(work_per_pair=500)
"""A tenth of the planner's own work: what is not proved by then is planned in full."""
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""


class StripeJudge:
    """Costs of sets of regions of one model, each worked out once. The model stays as it is."""

    def __init__(self, model: Model, profile: KernelProfile, options: Options) -> None:
        self._model, self._profile = model, profile
        self._options = options
        self._costs: dict[Chosen, Cost] = {}
        self._refused: dict[Chosen, None] = {}

    @property
    def costs(self) -> Mapping[Chosen, Cost]:
        """What has been judged so far."""
        return self._costs

    @property
    def judged(self) -> int:
        """How many sets there have been, the empty one aside."""
        return len(self._costs) + len(self._refused) - (() in self._costs)

    @property
    def refused(self) -> Collection[Chosen]:
        """Those of which no plan is better than the best one known then."""
        return self._refused

    def cost(self, chosen: Chosen) -> Cost:
        """The cost under the objective of the options. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._costs:
            self._costs[chosen] = self._planned(self.striped(chosen))
        return self._costs[chosen]

    def better(self, best: Chosen, other: Chosen) -> Chosen:
        """The other one if it costs less, else ``best``.

        It is planned in full only if there is a plan that makes it cheaper, which is the quicker question.
        """
        if other not in self._costs and other not in self._refused:
            striped = self.striped(other)
            if self._may_beat(self.cost(best), striped):
                self._costs[other] = self._planned(striped)
            else:
                self._refused[other] = None
        return other if other in self._costs and self._costs[other] < self.cost(best) else best

    def _may_beat(self, cost: Cost, model: Model) -> bool:
        """Whether there may be a plan with which the model costs less: none only where that is proved."""
        macs, operators = model_macs(model), len(model.main.operators)
        need = cost.need if (macs, operators) < (cost.macs, cost.operators) else cost.need - 1
        head = need // ARENA_ALIGNMENT * ARENA_ALIGNMENT
        if self._options.objective == "total":
            use = arena_use(model, 0, self._profile.requests, self._profile.abi)
            if use.required > need:
                return False
            head = (need - use.tail) // ARENA_ALIGNMENT * ARENA_ALIGNMENT
        problem = memory_layout(model, self._profile, self._options.pins).problem
        found = solve_within(problem, head, SearchLimit(self._options.time_limit), _TREE)
        return found.offsets is not None or not found.is_proved

    def _planned(self, model: Model) -> Cost:
        memory = place_in_better_order(model, range(len(model.main.operators)), self._profile, self._options).memory
        return Cost(needed_bytes(memory, self._options), memory.arena_bytes, memory.macs, memory.operators)

    def striped(self, chosen: Chosen) -> Model:
        """A copy with these regions in stripes. Raises InfeasibleError where they cannot be."""
        copied = copy_model(self._model)
        apply_stripes(copied, chosen)
        share_constants(copied, _LARGEST_OPERAND)
        return copied
