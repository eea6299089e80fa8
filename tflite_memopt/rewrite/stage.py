"""The rewriting stage: clean up, then take apart the concatenations that cost memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from ..ir.change import BOUNDARY, EXACTNESS, Changed, Refusal, RewriteUse, loosest
from ..ir.dead_tensors import drop_dead_tensors
from ..ir.decision import Decision
from ..ir.model import Model
from ..ir.names import label
from ..ir.npu import NPU_HAS_ADDRESSES, has_npu
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost, cost_of, estimate_of
from ..memory.work import WorkLimit, instructions
from ..options import Options
from .boundary import take_integers
from .driver import Driver
from .rule import AnyRule
from .search import SiteLimit, SiteUse, Start, TakenApart, search, sites_in, take_apart
from .table import CLEAN_UP, SPLITS

_WORK = 40_000
"""Operators of the models whose costs the search for concatenations may ask for: some six seconds."""


def rewrite(model: Model, profile: KernelProfile, options: Options, progress: Callable[[str], None]) -> Changed:
    """Rewrite a model. The clean-up and the boundary change ``model`` itself; the search works on copies.

    No library gets slower than the limit on run time allows, but by what makes TFLM load the model at all.
    """
    if has_npu(model):
        return Changed(model, (), (Refusal("rewrites", "the graph", NPU_HAS_ADDRESSES),) if options.rewrite else ())
    before = instructions(model, profile)
    cleaned = clean_up(model, options) if options.rewrite else Changed(model, (), ())
    dead = drop_dead_tensors(model)
    dropped = (RewriteUse("dead_tensors", tuple(tensor.name for tensor in dead), "exact", 0),) if dead else ()
    boundary = _boundary(model, options)
    uses = (*cleaned.uses, *dropped, *boundary.uses)
    refused = (*cleaned.refused, *boundary.refused)
    if not options.rewrite:
        return Changed(model, uses, refused)
    if options.decision is not None:
        return _replayed(Changed(model, uses, refused), options.decision, options)
    progress("looking for concatenations to take apart")

    now = instructions(model, profile)
    work = WorkLimit({name: max(before[name], now[name]) for name in now}, options.max_extra_work, profile)

    found = _confirmed(model, _search(model, profile, options, work), profile, options)
    return with_sites(Changed(found.model, uses, (*refused, *found.refused)), found.sites)


def with_sites(changed: Changed, sites: Sequence[SiteUse]) -> Changed:
    """The same, with what is said of the sites that its model has in parts."""
    rounds = (" ".join(str(each.site) for each in sites),) if sites else ()
    decision = replace(changed.decision, sites=(*changed.decision.sites, *rounds))
    return replace(changed, uses=(*changed.uses, *map(site_use, sites)), decision=decision)


def _replayed(cleaned: Changed, decision: Decision, options: Options) -> Changed:
    """The cleaned-up model with the sites of a decision in parts, round by round."""
    for words in decision.sites:
        model, uses = take_apart(start_of(cleaned.model, SPLITS, options), sites_in(words))
        cleaned = with_sites(replace(cleaned, model=model), uses)
    return cleaned


def _search(model: Model, profile: KernelProfile, options: Options, work: WorkLimit) -> TakenApart:
    """The sites that lower the estimated cost, within the limit on run time."""
    as_it_is = estimate_of(model, profile, options)

    def cost(each: Model) -> Cost:
        return within(work, each, estimate_of(each, profile, options), as_it_is.need)

    limit = SiteLimit(_WORK, options.seconds_left, jobs=options.jobs)
    return search(start_of(model, SPLITS, options), cost, limit)


def start_of(model: Model, rules: Sequence[AnyRule], options: Options) -> Start:
    """Concatenations may be taken apart by these rules, as far as the options let values change."""
    names = {at: label(op) for at, op in enumerate(model.main.operators) if op.name == "CONCATENATION"}
    return Start(model, rules, EXACTNESS if options.allow_approximate else EXACTNESS[:2], pinned(options), names)


def within(work: WorkLimit, model: Model, cost: Cost, known: int) -> Cost:
    """The cost of a model; of what is beyond the limit on run time, one of more than is ``known``: nobody wants it."""
    if cost.need > known or work.is_kept_by(model):
        return cost
    return replace(cost, need=known + 1)


def _confirmed(model: Model, found: TakenApart, profile: KernelProfile, options: Options) -> TakenApart:
    """What was found, if it lowers the planner's cost too."""
    if not found.sites:
        return found
    costs = [cost_of(each, profile, options) for each in (model, found.model)]
    if costs[1] < costs[0]:
        return found
    reason = f"the planner needs {costs[1].need} bytes for it, and {costs[0].need} without"
    refused = (Refusal("search", site.operator, reason) for site in found.sites)
    return TakenApart(model, costs[0], (), (*found.refused, *refused))


def _boundary(model: Model, options: Options) -> Changed:
    if options.io == "keep":
        return Changed(model, (), ())
    done = take_integers(model)
    drop_dead_tensors(model)
    uses = (RewriteUse(BOUNDARY, done.changed, "exact", 0),) if done.changed else ()
    return Changed(model, uses, done.refused)


def pinned(options: Options) -> tuple[str, ...]:
    """The names of tensors that rules must leave as they are."""
    return tuple(name for name, _ in options.pins)


def clean_up(model: Model, options: Options) -> Changed:
    """The model itself after the rules that are always an improvement."""
    driver = Driver(model, pinned=pinned(options))
    driver.apply_everywhere(CLEAN_UP)
    by_rule = groupby(sorted(driver.applied, key=lambda each: each.rule), key=lambda each: each.rule)
    uses = tuple(RewriteUse(rule, tuple(each.operator for each in group), "exact", 0) for rule, group in by_rule)
    shared = share_constants(model)
    if shared:
        uses = (*uses, RewriteUse("share_constants", tuple(tensor.name for tensor in shared), "exact", 0))
    return Changed(model, uses, tuple(driver.refused.values()))


def site_use(site: SiteUse) -> RewriteUse:
    """What reports say of a site."""
    rules = " + ".join(dict.fromkeys(each.rule for each in site.applied))
    operators = (site.operator, *(each.operator for each in site.applied))
    return RewriteUse(rules, operators, loosest(each.exactness for each in site.applied), site.saved_bytes)
