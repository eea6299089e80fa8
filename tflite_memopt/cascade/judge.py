"""What a set of striped regions really costs: written into a copy of the model, ordered and planned."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InfeasibleError
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost, cost_of
from ..options import Options
from .striped_region import StripedRegion, apply_stripes

Chosen = tuple[StripedRegion, ...]
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""


class StripeJudge:
    """Costs of sets of regions of one model, each worked out once. The model stays as it is."""

    def __init__(self, model: Model, profile: KernelProfile, options: Options) -> None:
        self._model, self._profile, self._options = model, profile, options
        self._costs: dict[Chosen, Cost] = {}

    @property
    def costs(self) -> Mapping[Chosen, Cost]:
        """What has been judged so far."""
        return self._costs

    def cost(self, chosen: Chosen) -> Cost:
        """The cost under the objective of the options. Raises InfeasibleError where a region cannot be in stripes."""
        if chosen not in self._costs:
            self._costs[chosen] = cost_of(self.striped(chosen), self._profile, self._options)
        return self._costs[chosen]

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
