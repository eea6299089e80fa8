"""What wider limits on computation would bring: one short search, so that the report can name the limit that binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile

from ..analysis.macs import model_macs
from ..graph.clock import EmergencyStop
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_in
from ..memory.figures import WiderLimits
from ..memory.work import instructions, slowest
from ..options import Options
from .in_order import OrderSearch
from .measure import Measured

_WIDER = (1.0, 0.5)
"""Limits on added run time, as fractions. Where the widest one brings nothing, the others are not tried."""
_CLEARLY = 1.5
"""By this factor a limit is wider than the one in force, or it is not tried."""
_WORTH = 0.98
"""The part of the known need that an answer must not exceed: a smaller gain is not worth a wider limit."""


def wider_limits(
    model: Model,
    profile: KernelProfile,
    options: Options,
    known: Cost,
    original: Mapping[str, int],
    measured: Measured,
) -> WiderLimits | None:
    """The best of one short search, under the narrowest wider limits that need clearly less than is ``known``.

    ``model``: rewritten and not in stripes; it may be left in another order. ``original``: estimated instructions of
    the original model, by the kernel library.
    """
    placement = arrange(model, profile, options).placement
    model.main.reorder(placement.order)
    unstriped = cost_in(placement.memory, options)

    def within(work: float) -> WiderLimits | None:
        wider = replace(options, effort="quick", max_extra_work=work, max_extra_macs=max(work, options.max_extra_macs))
        search = OrderSearch(model, profile, wider, EmergencyStop(options.seconds_left), unstriped, measured)
        cost, chosen = search.run(known)
        if not chosen or cost.need > _WORTH * known.need:
            return None
        is_enough = cost.macs <= model_macs(model) * (1 + options.max_extra_macs)
        slower = slowest(original, instructions(search.plans.tiled(chosen), profile))
        return WiderLimits(work, None if is_enough else wider.max_extra_macs, cost.need, slower)

    found = map(within, (each for each in _WIDER if each > _CLEARLY * options.extra_work))
    return next(reversed(list(takewhile(lambda each: each is not None, found))), None)
