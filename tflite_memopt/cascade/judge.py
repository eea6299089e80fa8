"""What a set of striped regions really costs: written into a copy of the model, and planned in its own order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..errors import InfeasibleError
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.arrange import place_in_better_order
from ..memory.cost import Cost, needed_bytes
from ..options import Options
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_SECONDS = 1.0
"""For the plan of one selection, where the planner's own limit on work does not end it."""
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""


class StripeJudge:
    """Costs of sets of regions of one model, each worked out once. The model stays as it is."""

    def __init__(self, model: Model, profile: KernelProfile, options: Options) -> None:
        self._model, self._profile = model, profile
        self._options = replace(options, time_limit=min(options.time_limit, _SECONDS))
        self._costs: dict[Chosen, Cost] = {}

    @property
    def costs(self) -> Mapping[Chosen, Cost]:
        """What has been judged so far."""
        return self._costs

    def cost(self, chosen: Chosen) -> Cost:
        """The cost under the objective of the options. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._costs:
            self._costs[chosen] = self._planned(self.striped(chosen))
        return self._costs[chosen]

    def _planned(self, model: Model) -> Cost:
        memory = place_in_better_order(model, range(len(model.main.operators)), self._profile, self._options).memory
        return Cost(needed_bytes(memory, self._options), memory.arena_bytes, memory.macs, memory.operators)

    def striped(self, chosen: Chosen) -> Model:
        """A copy with these regions in stripes. Raises InfeasibleError where they cannot be."""
        copied = copy_model(self._model)
        apply_stripes(copied, chosen)
        share_constants(copied, _LARGEST_OPERAND)
        return copied

    def is_possible(self, chosen: Chosen) -> bool:
        """Whether they can be applied."""
        try:
            self.striped(chosen)
        except InfeasibleError:
            return False
        return True
