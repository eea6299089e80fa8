"""A quick look at stripes: predict, select, and plan the best few; no loops, one mode, regions that end at necks.

What comes out is an upper bound: a model in these stripes is written, ordered and planned, so that the bytes are
enough for it. ``cascade.search`` looks at far more, and mostly finds less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from ..analysis.bounds import io_lower_bound
from ..cascade.arena_terms import arena_terms
from ..cascade.candidates import Candidates
from ..cascade.judge import Chosen, stripe
from ..cascade.predict import Aim, OptionFinder
from ..cascade.rounds import limits_at
from ..cascade.selection import BaseNeed, SelectionLimits
from ..cascade.striped_region import Mode
from ..ir.copying import copy_model
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.libraries import needs_by_library
from ..memory.work import model_work
from ..options import Options
from .necks import Necks, necks_of
from .planned import PlannedNeed, need_for_every_library, planned_need

_MODES: tuple[Mode, ...] = (("recompute", "trim"),)
"""Rows that two stripes need are computed in both: no buffers to keep, and no padding operators."""
_JUDGED = 2
"""Selections that are planned, those of the smallest predicted need."""
_PLANNER = "record_to_record"
"""Of each of them, once: of the planners the one that does best by itself in so short a time."""
_ANY_NUMBER = 1 << 30


@dataclass(frozen=True)
class StripedNeed:
    """What a model needs with these ``regions`` in stripes, of the model in its own order; none: as it stands."""

    need: PlannedNeed
    regions: Chosen


def striped_need(model: Model, profile: KernelProfile, options: Options, unstriped: PlannedNeed) -> StripedNeed:
    """The least of a few selections of stripes and of ``unstriped``, which is what the model needs without any."""
    best, necks = StripedNeed(unstriped, ()), necks_of(model.main)
    for exits in dict.fromkeys((necks.best_exits, necks.exits)):
        # Where the few exits lead to anything, the others seldom lead further.
        if not best.regions and unstriped.head > io_lower_bound(model):
            best = _least_of(model, profile, options, best, replace(necks, exits=exits))
    return best


def _least_of(model: Model, profile: KernelProfile, options: Options, best: StripedNeed, necks: Necks) -> StripedNeed:
    unstriped = best.need
    candidates, limits = _candidates(model, profile, options, unstriped, necks)
    for selection in islice(candidates.within(limits, unstriped.required), _JUDGED):
        if candidates.least(selection) >= best.need.required:
            break
        chosen = candidates.chosen(selection)
        found = _planned(model, chosen, profile, options)
        if found is not None and found.required < best.need.required:
            best = StripedNeed(found, chosen)
    return best


def _planned(model: Model, chosen: Chosen, profile: KernelProfile, options: Options) -> PlannedNeed | None:
    """With these regions in stripes, in the order in which they are written; None where some library is worse off."""
    striped, as_written = stripe(copy_model(model), chosen), replace(options, scheduler="as_is", planner=_PLANNER)
    if not profile.libraries:
        return planned_need(striped, profile, as_written)
    return need_for_every_library(striped, needs_by_library(model, {}, profile), profile, as_written)


def _candidates(
    model: Model, profile: KernelProfile, options: Options, unstriped: PlannedNeed, necks: Necks
) -> tuple[Candidates, SelectionLimits]:
    """What there is to select from, and within which limits."""
    terms, limits = arena_terms(model, profile), _limits(model, profile, options, unstriped.macs)
    base = BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface)
    aim = Aim(io_lower_bound(model), unstriped.required, limits, base)
    finder = OptionFinder(model, profile, aim, necks.whole, necks.exits, necks.starts)
    return Candidates(finder.options(_MODES), base, unstriped.required, counts_run_time=False), limits


def _limits(model: Model, profile: KernelProfile, options: Options, macs: int) -> SelectionLimits:
    operators = _ANY_NUMBER if options.max_extra_operators is None else options.max_extra_operators
    work = model_work(model, profile.prices)
    return limits_at(options.max_extra_macs, macs, work, operators, options.extra_work)
