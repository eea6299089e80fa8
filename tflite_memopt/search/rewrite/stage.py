"""The rewriting stage: clean up, then take apart the concatenations that cost memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from ...errors import ErrorKind, InfeasibleError
from ...kernels.profile import KernelProfile
from ...kernels.since import operators_of, runs_on
from ...memory.arrange import Cost, cost_of, estimate_of
from ...memory.work import WorkLimit, instructions, slowest
from ...model.ir.change import (
    BOUNDARY,
    CHANNELS_LAST,
    DEAD_CHANNELS,
    EXACTNESS,
    NOTHING_DECIDED,
    UNCALLED,
    Changed,
    Decision,
    Refusal,
    RewriteUse,
    loosest,
)
from ...model.ir.check import NPU_HAS_ADDRESSES, is_fixed_by_npu
from ...model.ir.copying import copy_model, drop_dead_tensors, drop_uncalled_signatures, share_constants
from ...model.ir.editor import label
from ...model.ir.model import Model
from ...options import SearchOptions
from .boundary import take_channels_last, take_integers
from .channels import NESTED_CONCATENATION, SPLIT_CHANNELWISE, SPLIT_DEPTHWISE, SPLIT_GROUPED_CONVOLUTION
from .dead_channels import drop_dead_channels
from .engine import Driver, Rule
from .folding import (
    ADJOINT_MATMUL,
    CONSTANT_FOLDING,
    FOLDED_BIAS,
    FOLDED_SHAPES,
    NEEDED_WIDENING,
    WIDENED_CONSTANT,
)
from .partial import PARTIAL_CONVOLUTION, PARTIAL_TRANSPOSED_CONVOLUTION
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
    CONSTANT_FOLDING,
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
    SPLIT_GROUPED_CONVOLUTION,
    PARTIAL_CONVOLUTION,
    PARTIAL_TRANSPOSED_CONVOLUTION,
    SPLIT_DEPTHWISE,
    *SPLIT_CHANNELWISE,
    NESTED_CONCATENATION,
)
"""Take a concatenation apart: applied where the cost falls."""

AFTER_STRIPES: tuple[tuple[Rule, ...], ...] = (
    (SKIPPING_CONVOLUTION,),
    (JOINED_PADDING,),
    (FLATTENED_INPUT, LEAN_RESHAPE, PLAIN_SLICE, REDUCED_RESHAPE),
    (DENSE_PIXELS,),
)
"""The rules in force, in the order in which they are tried.

For the model in stripes: rules that take operators out at the price of products; that make copies views; that leave
less in the tail. Each group is tried on what the one before has made, and kept where that needs less.
"""


_EFFORT = 40_000
"""Operators of the models whose costs the search for concatenations may ask for: some six seconds."""


def rewrite(model: Model, profile: KernelProfile, options: SearchOptions, progress: Callable[[str], None]) -> Changed:
    """Rewrite a model. The clean-up and the boundary change ``model`` itself; the search works on copies.

    No library gets slower than the limit on run time allows, but by what is always an improvement.
    """
    if is_fixed_by_npu(model):
        return Changed(model, (), (Refusal("rewrites", "the graph", NPU_HAS_ADDRESSES),) if options.rewrite else ())
    before = instructions(model, profile)
    cleaned = clean_up(model, profile, options.keep_quantized) if options.rewrite else _widened(model)
    uncalled = drop_uncalled_signatures(model)
    dead = drop_dead_tensors(model)
    dropped = (RewriteUse("dead_tensors", tuple(tensor.name for tensor in dead), "exact", 0),) if dead else ()
    dropped = (*((RewriteUse(UNCALLED, uncalled, "exact", 0),) if uncalled else ()), *dropped)
    boundary = _boundary(model, options)
    uses = (*cleaned.uses, *dropped, *boundary.uses)
    refused = (*cleaned.refused, *boundary.refused)
    if not options.rewrite:
        return Changed(model, uses, refused)
    now = instructions(model, profile)
    work = WorkLimit({name: max(before[name], now[name]) for name in now}, options.max_slowdown, profile)
    rolled = _rolled(model, profile, options, work)
    model = rolled.model
    changed = replace(rolled, uses=(*uses, *rolled.uses), refused=(*refused, *rolled.refused))
    if options.decision is not None:
        return _replayed(changed, options.decision, options)
    start = start_of(model, SPLITS, options)
    if not start.names:
        return changed
    progress("looking for concatenations to take apart")
    found = _confirmed(model, _search(start, profile, options, work), profile, options)
    return with_sites(replace(changed, model=found.model, refused=(*changed.refused, *found.refused)), found.sites)


def _rolled(model: Model, profile: KernelProfile, options: SearchOptions, work: WorkLimit) -> Changed:
    """The model with unrolled steps in loops, where that needs less within the limit on run time."""
    if not options.loops or (options.decision is not None and not options.decision.is_rolled):
        return Changed(model, (), ())
    looped = copy_model(model)
    uses, refused = roll_up(looped, is_exact=not options.allow_approximate)
    if options.decision is not None and not uses:
        raise InfeasibleError("steps in loops: the model has no unrolled steps that are equal", ErrorKind.DECISION)
    if not uses or not runs_on(operators_of(looped), options.build):
        return Changed(model, (), refused)
    decision = replace(NOTHING_DECIDED, is_rolled=True)
    if options.decision is not None:
        return Changed(looped, uses, refused, decision=decision)
    saved = estimate_of(model, profile, options).need - estimate_of(looped, profile, options).need
    reason = None if saved > 0 else "it does not lower the memory to reserve"
    if not work.is_kept_by(looped):
        added = slowest(work.before, instructions(looped, profile))
        reason = f"a loop would take {added:.0%} more instructions (--max-slowdown {100 * work.extra:.0f})"
    if reason is not None:
        return Changed(model, (), (*refused, *(Refusal(use.rule, use.operators[-1], reason) for use in uses)))
    return Changed(looped, tuple(replace(use, saved_bytes=saved) for use in uses), refused, decision=decision)


def with_sites(changed: Changed, sites: Sequence[SiteUse]) -> Changed:
    """The same, with what is said of the sites that its model has in parts."""
    rounds = (" ".join(str(each.site) for each in sites),) if sites else ()
    decision = replace(changed.decision, sites=(*changed.decision.sites, *rounds))
    return replace(changed, uses=(*changed.uses, *map(site_use, sites)), decision=decision)


def _replayed(cleaned: Changed, decision: Decision, options: SearchOptions) -> Changed:
    """The cleaned-up model with the sites of a decision in parts, round by round."""
    for words in decision.sites:
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
    """The cost of a model; of what is beyond the limit on run time, one of more than is ``known``: nobody wants it."""
    if cost.need > known or work.is_kept_by(model):
        return cost
    return replace(cost, need=known + 1)


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
    """The model itself with the interface that was asked for."""
    uses, refused = list[RewriteUse](), list[Refusal]()
    asked = {BOUNDARY: options.io != "keep", CHANNELS_LAST: bool(options.channels_last)}
    for rule in (name for name, is_asked in asked.items() if is_asked):
        done = take_integers(model) if rule == BOUNDARY else take_channels_last(model, options.channels_last)
        drop_dead_tensors(model)
        uses += [RewriteUse(rule, done.changed, "exact", 0)] if done.changed else []
        refused += done.refused
    return Changed(model, tuple(uses), tuple(refused))


def _widened(model: Model) -> Changed:
    """The model itself with what TFLM computes wrongly in float32, whatever else may be changed of it."""
    driver = Driver(model)
    driver.apply_everywhere((NEEDED_WIDENING,))
    return Changed(model, _uses_of(driver), ())


def _uses_of(driver: Driver) -> tuple[RewriteUse, ...]:
    by_rule = groupby(sorted(driver.applied, key=lambda each: each.rule), key=lambda each: each.rule)
    return tuple(RewriteUse(rule, tuple(each.operator for each in group), "exact", 0) for rule, group in by_rule)


def clean_up(model: Model, profile: KernelProfile, keep_quantized: bool = False) -> Changed:
    """The model itself after the rules that are always an improvement of RAM.

    ``keep_quantized``: constants that TFLM dequantizes rightly stay as they are, which takes less flash.
    """
    driver = Driver(model)
    driver.apply_everywhere(CLEAN_UP if keep_quantized else (WIDENED_CONSTANT, *CLEAN_UP))
    if _has_fewer_transposes(model):
        driver.apply_everywhere(WITHOUT_TRANSPOSES)
    uses = _uses_of(driver)
    dead = drop_dead_channels(model, profile.block)
    if dead is not None:
        said = f"{DEAD_CHANNELS}: {dead.removed:,} of {dead.channels:,} channels"
        uses = (*uses, RewriteUse(said, dead.names, "exact", 0))
    shared = share_constants(model)
    if shared:
        uses = (*uses, RewriteUse("share_constants", tuple(tensor.name for tensor in shared), "exact", 0))
    return Changed(model, uses, tuple(driver.refused.values()))


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
