"""The rewriting stage: clean up, then take apart the concatenations that cost memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ...errors import ErrorKind, InfeasibleError
from ...kernels.faults import Form
from ...kernels.mend import kept_forms, mend
from ...kernels.profile import KernelProfile
from ...kernels.since import runs_on
from ...memory.arrange import Cost, cost_of, estimate_of
from ...memory.work import WorkLimit, instructions, slowest
from ...model.ir.change import EXACTNESS, MENDED, NOTHING_DECIDED, Changed, Decision, Refusal, RewriteUse, loosest
from ...model.ir.check import NPU_HAS_ADDRESSES, is_fixed_by_npu
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_uncalled_signatures, share_constants
from ...model.ir.editor import label
from ...model.ir.model import Model
from ...options import SearchOptions
from .boundary import take_channels_last, take_integers
from .channels import NESTED_CONCATENATION, SPLIT_CHANNELWISE, SPLIT_DEPTHWISE
from .dead_channels import drop_dead_channels
from .engine import Driver, Rule
from .folding import ADJOINT_MATMUL, FOLDED_BIAS, FOLDED_SHAPES, NEEDED_WIDENING, WIDENED_CONSTANT
from .islands import INTEGER_CLAMP, LATER_DEQUANTIZE
from .one_shape import ONE_SHAPE
from .one_split import SPLIT_OF_SLICES
from .partial import PARTIAL_CONVOLUTION
from .pixels import (
    BROADCAST,
    DENSE_PIXELS,
    JOINED_PADDING,
    PLAIN_SLICE,
    REPEATED_PIXELS,
    RESTORED_DILATION,
    SAME_PADDING,
    SKIPPING_CONVOLUTION,
    SLICE_OF_PADDING,
    SUBSAMPLED_SLICE,
    UNREAD_PADDING,
)
from .search import SiteLimit, SiteUse, Start, TakenApart, search, sites_in, take_apart
from .shapes import (
    CONSECUTIVE_RESHAPES,
    DEAD_OPERATORS,
    FLATTENED_INPUT,
    IDENTITY,
    LEAN_RESHAPE,
    REDUCED_RESHAPE,
    UNDONE_RESHAPES,
)
from .slices import SLICE_OF_CONCATENATION
from .steps_in_a_loop import roll_up
from .transposes import CONSECUTIVE_TRANSPOSES, LOWERED_TRANSPOSE, transposes_in

CLEAN_UP: tuple[Rule, ...] = (
    DEAD_OPERATORS,
    FOLDED_SHAPES,
    NEEDED_WIDENING,
    IDENTITY,
    SUBSAMPLED_SLICE,
    SLICE_OF_PADDING,
    SLICE_OF_CONCATENATION,
    CONSECUTIVE_RESHAPES,
    CONSECUTIVE_TRANSPOSES,
    LATER_DEQUANTIZE,
    INTEGER_CLAMP,
    *RESTORED_DILATION,
    *FOLDED_BIAS,
    SAME_PADDING,
    UNDONE_RESHAPES,
    *ADJOINT_MATMUL,
    *BROADCAST,
    *REPEATED_PIXELS,
)
"""Always an improvement: applied everywhere, before the search."""

WITHOUT_TRANSPOSES: tuple[Rule, ...] = (LOWERED_TRANSPOSE, *CLEAN_UP)
"""Applied everywhere after the clean-up, where fewer transposes are left of it."""

SPLITS: tuple[Rule, ...] = (
    PARTIAL_CONVOLUTION,
    SPLIT_DEPTHWISE,
    *SPLIT_CHANNELWISE,
    SLICE_OF_CONCATENATION,
    NESTED_CONCATENATION,
)
"""Take a concatenation apart: applied where the cost falls."""

AFTER_STRIPES: tuple[tuple[Rule, ...], ...] = (
    *((each,) for each in UNREAD_PADDING),
    (SKIPPING_CONVOLUTION,),
    (JOINED_PADDING,),
    (ONE_SHAPE,),
    (SPLIT_OF_SLICES,),
    (FLATTENED_INPUT, LEAN_RESHAPE, PLAIN_SLICE, REDUCED_RESHAPE),
    (DENSE_PIXELS,),
)
"""The rules in force, in the order in which they are tried.

For the model in stripes: rules that take operators out at the price of products; that make copies views; that leave
less in the tail. Each group is tried on what the one before has made, and kept where that needs less.
"""


_EFFORT = 40_000
"""Operators of the models whose costs the search for concatenations may ask for: some six seconds."""

_BEYOND = 1 << 60
"""Bytes that no model needs."""


def rewrite(model: Model, profile: KernelProfile, options: SearchOptions, progress: Callable[[str], None]) -> Changed:
    """Rewrite a model. What the search for sites and for loops changes is a copy.

    No library gets slower than the limit on run time allows, but by what is always an improvement.
    """
    if is_fixed_by_npu(model):
        return Changed(model, refused=(Refusal("rewrites", "the graph", NPU_HAS_ADDRESSES),) if options.rewrite else ())
    before = instructions(model, profile)
    kept = frozenset[Form]() if options.decision is None else kept_forms(model, profile)

    def need(each: Model) -> int:
        return estimate_of(each, profile, options).need

    cleaned = clean_up(model, profile, options.keep_quantized, need) if options.rewrite else _widened(model)
    done = cleaned.then(drop_uncalled_signatures(model), drop_dead_tensors(model), _boundary(model, options))
    if not options.rewrite:
        return replace(done, decision=replace(NOTHING_DECIDED, is_rewritten=False))
    now = instructions(model, profile)
    work = WorkLimit({name: max(before[name], now[name]) for name in now}, options.max_slowdown, profile)
    changed = done.then(_rolled(model, profile, options, work))
    if options.decision is not None:
        return _replayed(changed, options.decision, options, partial(mend, profile=profile, kept=kept))
    start = start_of(changed.model, SPLITS, options)
    if not start.names:
        return changed
    progress("looking for concatenations to take apart")
    found = _confirmed(changed.model, _search(start, profile, options, work), profile, options)
    return with_sites(replace(changed, model=found.model, refused=(*changed.refused, *found.refused)), found.sites)


def _rolled(model: Model, profile: KernelProfile, options: SearchOptions, work: WorkLimit) -> Changed:
    """The model with unrolled steps in loops, where that needs less within the limit on run time."""
    if not options.loops or (options.decision is not None and not options.decision.is_rolled):
        return Changed(model)
    looped = roll_up(copy_model(model), is_exact=not options.allow_approximate)
    if options.decision is not None and not looped.uses:
        raise InfeasibleError("steps in loops: the model has no unrolled steps that are equal", ErrorKind.DECISION)
    if not looped.uses or not runs_on(looped.model, options.build):
        return Changed(model, refused=looped.refused)
    looped = replace(looped, decision=replace(NOTHING_DECIDED, is_rolled=True))
    if options.decision is not None:
        return looped
    saved = estimate_of(model, profile, options).need - estimate_of(looped.model, profile, options).need
    reason = None if saved > 0 else "it does not lower the memory to reserve"
    if not work.is_kept_by(looped.model):
        added = slowest(work.before, instructions(looped.model, profile))
        reason = f"a loop would take {added:.0%} more instructions (--max-slowdown {100 * work.extra:.0f})"
    if reason is not None:
        against = (Refusal(use.rule, use.operators[-1], reason) for use in looped.uses)
        return Changed(model, refused=(*looped.refused, *against))
    return replace(looped, uses=tuple(replace(use, saved_bytes=saved) for use in looped.uses))


def with_sites(changed: Changed, sites: Sequence[SiteUse]) -> Changed:
    """The same, with what is said of the sites that its model has in parts."""
    rounds = (" ".join(str(each.site) for each in sites),) if sites else ()
    decision = replace(changed.decision, sites=(*changed.decision.sites, *rounds))
    return replace(changed, uses=(*changed.uses, *map(site_use, sites)), decision=decision)


def mended(found: Changed, mending: Callable[[Model], Changed]) -> Changed:
    """The same, with faults of kernel libraries mended, which later rounds of sites count from, where there are any."""
    done = mending(found.model)
    sites = (*found.decision.sites, *(MENDED,) * (bool(done.uses) and found.decision.is_rewritten))
    return replace(found, uses=(*found.uses, *done.uses), decision=replace(found.decision, sites=sites))


def _replayed(
    cleaned: Changed, decision: Decision, options: SearchOptions, mending: Callable[[Model], Changed]
) -> Changed:
    """The cleaned-up model with the sites of a decision in parts, round by round."""
    for words in decision.sites:
        if words == MENDED:
            cleaned = mended(cleaned, mending)
            continue
        model, uses = take_apart(start_of(cleaned.model, SPLITS, options), sites_in(words))
        cleaned = with_sites(replace(cleaned, model=model), uses)
    return cleaned


def _search(start: Start, profile: KernelProfile, options: SearchOptions, work: WorkLimit) -> TakenApart:
    """The sites that lower the estimated cost, within the limit on run time."""
    as_it_is = estimate_of(start.model, profile, options)

    def cost(each: Model) -> Cost:
        return within(work, each, estimate_of(each, profile, options), as_it_is.need)

    limit = SiteLimit(_EFFORT, jobs=options.jobs)
    return search(start, cost, limit)


def start_of(model: Model, rules: Sequence[Rule], options: SearchOptions) -> Start:
    """Concatenations may be taken apart by these rules, as far as the options let values change."""
    names = {at: label(op) for at, op in enumerate(model.main.operators) if op.name == "CONCATENATION"}
    return Start(model, rules, EXACTNESS if options.allow_approximate else EXACTNESS[:2], names)


def within(work: WorkLimit, model: Model, cost: Cost, known: int) -> Cost:
    """The cost of a model; of one beyond the limit on run time, where it needs no more than is ``known``, no cost."""
    if cost.need > known or work.is_kept_by(model):
        return cost
    return replace(cost, need=_BEYOND)


def _confirmed(model: Model, found: TakenApart, profile: KernelProfile, options: SearchOptions) -> TakenApart:
    """Return the result of the search if it lowers the planner's cost, too."""
    if not found.sites:
        return found
    costs = [cost_of(each, profile, options) for each in (model, found.model)]
    if costs[1] < costs[0]:
        return found
    reason = f"the planner needs {costs[1].need} bytes for it, and {costs[0].need} without"
    refused = (Refusal("search", site.operator, reason) for site in found.sites)
    return TakenApart(model, costs[0], (), (*found.refused, *refused))


def _boundary(model: Model, options: SearchOptions) -> Changed:
    """Give the model the interface that is asked for."""
    done = Changed(model)
    if options.io != "keep":
        done = done.then(take_integers(model))
        drop_dead_tensors(model)
    if options.channels_last:
        done = done.then(take_channels_last(model, options.channels_last))
        drop_dead_tensors(model)
    return done


def _widened(model: Model) -> Changed:
    """Write otherwise what TFLM computes wrongly in float32, whatever else may be changed of it."""
    driver = Driver(model)
    driver.apply_everywhere((NEEDED_WIDENING,))
    return Changed(model, driver.uses())


def clean_up(
    model: Model, profile: KernelProfile, keep_quantized: bool = False, need: Callable[[Model], int] | None = None
) -> Changed:
    """Apply the rules that are always an improvement of RAM.

    ``keep_quantized``: constants that TFLM dequantizes rightly stay as they are, which takes less flash. ``need``:
    the bytes of a model, by which those that dead channels take are counted; None: they are not.
    """
    driver = Driver(model)
    driver.apply_everywhere(CLEAN_UP if keep_quantized else (WIDENED_CONSTANT, *CLEAN_UP))
    if _has_fewer_transposes(model):
        driver.apply_everywhere(WITHOUT_TRANSPOSES)
    by_name = sorted(driver.uses(), key=lambda use: use.rule)
    done = Changed(model, tuple(by_name), tuple(driver.refused.values()))
    before = None if need is None else copy_model(model)
    dropped = drop_dead_channels(model, profile.block)
    if dropped.uses and before is not None and need is not None:
        saved = need(before) - need(model)
        dropped = replace(dropped, uses=tuple(replace(use, saved_bytes=max(0, saved)) for use in dropped.uses))
    return done.then(dropped, share_constants(model))


def _has_fewer_transposes(model: Model) -> bool:
    """Tell whether fewer are left when operators read what is behind them."""
    count = transposes_in(model)
    if not count:
        return False
    trial = Driver(copy_model(model), is_trial=True)
    trial.apply_everywhere(WITHOUT_TRANSPOSES)
    return transposes_in(trial.model) < count


def site_use(site: SiteUse) -> RewriteUse:
    """Describe a site for reports."""
    rules = " + ".join(dict.fromkeys(each.rule for each in site.applied))
    operators = (site.operator, *(each.operator for each in site.applied))
    return RewriteUse(rules, operators, loosest(each.exactness for each in site.applied), site.saved_bytes)
