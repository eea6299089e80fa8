"""A quick look at stripes: the search of ``cascade/`` in one order and mode, without loops, at regions between necks.

What comes out is an upper bound: a model in these stripes is written, ordered and planned, so that the bytes are
enough for it. ``cascade.search`` looks at far more, and mostly finds less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..analysis.working_set import io_lower_bound
from ..cascade.measure import Measured
from ..cascade.space import Modes, Space
from ..cascade.tiling import Tilings, apply_tilings
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.libraries import needs_by_library
from ..options import Options
from .necks import Necks, necks_of
from .planned import PlannedNeed, need_for_every_library, planned_need

_MODES = Modes((("recompute", "trim"),), (), phases=False)
"""Rows that two stripes need are computed in both: no buffers to keep, and no padding operators."""
_JUDGED = 2
"""Sets of tilings that are planned, those of the smallest bound."""
_CHOICES = 8
"""How often sets are chosen at most, while their tilings are measured."""
_PLANNER = "record_to_record"
"""Of each of them, once: of the planners the one that does best by itself in so short a time."""


@dataclass(frozen=True)
class StripedNeed:
    """What a model needs with these ``tilings``, of the model in its own order; none: as it is."""

    need: PlannedNeed
    tilings: Tilings


def striped_need(model: Model, profile: KernelProfile, options: Options, unstriped: PlannedNeed) -> StripedNeed:
    """The least of a few sets of stripes and of ``unstriped``, which is what the model needs without any."""
    best, necks = StripedNeed(unstriped, ()), necks_of(model.main)
    for exits in dict.fromkeys((necks.best_exits, necks.exits)):
        # Where the few exits lead to anything, the others seldom lead further.
        if not best.tilings and unstriped.head > io_lower_bound(model):
            best = _least_of(model, profile, options, best, replace(necks, exits=exits))
    return best


def _least_of(model: Model, profile: KernelProfile, options: Options, best: StripedNeed, necks: Necks) -> StripedNeed:
    alone = replace(options, jobs=1)
    space = Space(model, profile, alone, Measured(), _MODES, necks.whole, necks.exits, necks.starts)
    space.fill(best.need.required)
    for chosen in _chosen(space, best.need.required):
        found = _planned(model, chosen, profile, options)
        if found is not None and found.required < best.need.required:
            best = StripedNeed(found, chosen)
    return best


def _chosen(space: Space, below: int) -> list[Tilings]:
    """The sets of the smallest bound, all of which is measured."""
    for _ in range(_CHOICES):
        found = [chosen for chosen, _ in space.choices(below, space.families[-1])[:_JUDGED]]
        if all(map(space.is_measured, found)):
            return found
        space.measure([tiling for chosen in found for tiling in chosen])
    return [chosen for chosen, _ in space.choices(below, space.families[-1]) if space.is_measured(chosen)][:_JUDGED]


def _planned(model: Model, chosen: Tilings, profile: KernelProfile, options: Options) -> PlannedNeed | None:
    """With these tilings, in the order in which they are written; None where some library is worse off."""
    striped = apply_tilings(copy_model(model), chosen)
    as_written = replace(options, scheduler="as_is", planner=_PLANNER)
    if not profile.libraries:
        return planned_need(striped, profile, as_written)
    return need_for_every_library(striped, needs_by_library(model, {}, profile), profile, as_written)
