"""Lower bounds on what stretches of a model's steps need as models of their own, in stripes or loops.

They follow from the bounds of all tilings, which are computed once for the whole: nothing is measured or planned. They
are of the order in which the model stands, and know neither its sequences along H nor channels in tiles.
"""

from __future__ import annotations

from dataclasses import replace

from ...kernels.profile import KernelProfile
from ...memory.figures import arena_terms
from ...model.ir.model import Model
from ...options import SearchOptions
from .in_order import ANY
from .measure import Measured
from .select import Figures, Problem, choices
from .space import Space, modes_of
from .tiling import NAME_OF


class StretchBounds:
    """The tilings of a model in its order, with their bounds. The model stays as it is.

    ``measured``: what searches of any model have computed.
    """

    def __init__(self, model: Model, profile: KernelProfile, options: SearchOptions, measured: Measured) -> None:
        self._profile = profile
        space = Space(model, profile, options, measured, modes_of(options), is_cut=True)
        space.bounds.fill(ANY)
        self._tilings = space.tilings

    def least(self, first: int, end: int, part: Model) -> int:
        """Return bytes of the objective that steps ``first`` to ``end``, half-open, do not go below.

        ``part``: these steps as a model.
        """
        needs, forms = self._tilings.needs, tuple(NAME_OF)
        steps = needs.of_steps[first:end]
        inside = [each for each in self._tilings.regions if first <= each.first and each.end <= end]
        options = [
            option._replace(first=option.first - first, end=option.end - first)
            for each in inside
            for _, option in each.undominated(0, forms)
        ]
        terms = arena_terms(part, self._profile)
        base = replace(
            needs.base, tail=terms.least_tail, temporaries=terms.least_temporaries, interface=terms.interface
        )
        as_it_is = base.least(Figures(max(steps), 0, 0, 0, 0, 0))
        found = choices(Problem(steps, options, needs.limits, base, as_it_is))
        return found[0].least if found else as_it_is
