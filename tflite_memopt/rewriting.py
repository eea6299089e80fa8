"""The rewriting stage: clean up, then take apart the concatenations that cost memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from .errors import UsageError
from .evaluating import cost_of, estimate_of
from .ir.copying import copy_model
from .ir.model import Model
from .kernels.profile import KernelProfile
from .options import IO, Options
from .report.model import Refusal, RewriteUse
from .rewrite.boundary import NAME as BOUNDARY
from .rewrite.boundary import take_integers
from .rewrite.dead_tensors import drop_dead_tensors
from .rewrite.driver import Driver
from .rewrite.rule import EXACTNESS, Exactness, Refused
from .rewrite.search import Found, SiteUse, search
from .rewrite.share_constants import share_constants
from .rewrite.table import CLEAN_UP, SPLITS


@dataclass(frozen=True)
class Rewritten:
    """The model to order and plan, what was done to it, and what was not for which reason."""

    model: Model
    uses: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]


def rewrite(model: Model, profile: KernelProfile, options: Options, progress: Callable[[str], None]) -> Rewritten:
    """Rewrite a model; it is changed itself by the clean-up and at its boundary, and copied for what comes after."""
    cleaned = _clean_up(model, options) if options.rewrite else Rewritten(model, (), ())
    dead = drop_dead_tensors(model)
    dropped = (RewriteUse("dead_tensors", tuple(tensor.name for tensor in dead), "exact", 0),) if dead else ()
    boundary = _boundary(model, options)
    uses = (*cleaned.uses, *dropped, *boundary.uses)
    refused = (*cleaned.refused, *boundary.refused)
    if not options.rewrite:
        return Rewritten(model, uses, refused)
    progress("looking for concatenations to take apart")
    found = _search(model, profile, options)
    return Rewritten(
        found.model,
        (*uses, *(_site_use(site) for site in found.sites)),
        (*refused, *(_refusal(each) for each in found.refused)),
    )


def _search(model: Model, profile: KernelProfile, options: Options) -> Found:
    """The sites that pay by the estimate, if they do by the planner too."""
    found = search(
        model,
        SPLITS,
        allowed(options),
        lambda each: estimate_of(each, profile, options),
        options.time_limit / 2,
        _pinned(options),
    )
    if not found.sites:
        return found
    seconds = options.time_limit / 10
    costs = [cost_of(copy_model(each), profile, options, seconds) for each in (model, found.model)]
    if costs[1] < costs[0]:
        return found
    reason = f"the planner needs {costs[1].need} bytes for it, and {costs[0].need} without"
    refused = (Refused("search", site.concatenation, reason) for site in found.sites)
    return Found(model, costs[0], (), (*found.refused, *refused))


def _boundary(model: Model, options: Options) -> Rewritten:
    if options.io not in IO:
        raise UsageError(f"unknown io '{options.io}'; choose one of {', '.join(IO)}")
    if options.io == "keep":
        return Rewritten(model, (), ())
    done = take_integers(model)
    drop_dead_tensors(model)
    uses = (RewriteUse(BOUNDARY, done.changed, "exact", 0),) if done.changed else ()
    return Rewritten(model, uses, tuple(_refusal(each) for each in done.refused))


def allowed(options: Options) -> tuple[Exactness, ...]:
    """How far the options let values change."""
    return EXACTNESS if options.allow_approximate else EXACTNESS[:2]


def loosest(uses: tuple[RewriteUse, ...]) -> Exactness:
    """The exactness of all rewrites together."""
    return _loosest(use.exactness for use in uses)


def _pinned(options: Options) -> tuple[str, ...]:
    return tuple(name for name, _ in options.pins)


def _clean_up(model: Model, options: Options) -> Rewritten:
    driver = Driver(model, pinned=_pinned(options))
    driver.apply_everywhere(CLEAN_UP)
    by_rule = groupby(sorted(driver.applied, key=lambda each: each.rule), key=lambda each: each.rule)
    uses = tuple(RewriteUse(rule, tuple(each.operator for each in group), "exact", 0) for rule, group in by_rule)
    shared = share_constants(model)
    if shared:
        uses = (*uses, RewriteUse("share_constants", tuple(tensor.name for tensor in shared), "exact", 0))
    return Rewritten(model, uses, tuple(_refusal(each) for each in driver.refused.values()))


def _site_use(site: SiteUse) -> RewriteUse:
    rules = " + ".join(dict.fromkeys(each.rule for each in site.applied))
    operators = (site.concatenation, *(each.operator for each in site.applied))
    return RewriteUse(rules, operators, _loosest(each.exactness for each in site.applied), site.saved_bytes)


def _loosest(found: Iterable[str]) -> Exactness:
    present = set(found)
    return next((each for each in reversed(EXACTNESS) if each in present), "exact")


def _refusal(refused: Refused) -> Refusal:
    return Refusal(refused.rule, refused.operator, refused.reason)
