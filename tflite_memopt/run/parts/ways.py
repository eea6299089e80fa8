"""Search the model in parts, and fed row by row, where one file does not meet the budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...errors import InfeasibleError, UnsupportedModelError
from ...memory.arrange import arrange
from ...memory.figures import least_need
from ...memory.file import read_planned
from ...memory.work import slowest
from ...model.ir.change import INFERRED_SHAPES
from ...model.ir.copying import copy_model
from ...model.ir.model import Model
from ...options import Options
from ...report.answer import answer_of
from ...report.exploration import flags_of
from ...report.model import Advice, Analysis, Report, Way
from ...report.words import NOT_COMPUTED, change_in_percent, counted, percent
from ...search.rewrite.boundary import take_channels_last, take_integers
from ...search.rewrite.stage import clean_up
from ..attempts import LIMITS
from ..candidate import Cache, Progress
from ..pipeline import Result, optimize
from .cutting import why_whole
from .fronts import AUTO, FeedCosts
from .run import ORDER_WORK, draft_of, need_along, optimize_in_parts, saying
from .stretch import StretchCosts

_MOST_DRAFTED = 150
"""Operators of a result up to which it is drafted in parts: 455 took three times as long as the run."""
PARTS, FED = "--parts auto --effort quick", "--feed auto --parts auto --effort quick"


def other_ways(source: bytes, options: Options, whole: Result, progress: Progress, cache: Cache) -> Iterator[Way]:
    """Search the model as one file with more changes, in parts, then fed, until one meets the budget.

    Nothing is verified, and nothing is searched whose lower bound exceeds the budget. ``whole``: the result as one
    model; ``cache``: of that run. A way that the options or the model exclude is left out.
    """
    as_one = _as_one(source, options, whole, progress, cache)
    if as_one is not None:
        yield as_one
        return
    if not _allows_parts(options):
        return
    is_as_given = whole.report.as_it_came.has_size and all(use.rule != INFERRED_SHAPES for use in whole.report.rewrites)
    quick = replace(options, verify=False, effort="quick")
    bounds = dict(least_in_ways(read_planned(source), quick)) if is_as_given else {}
    for flags, rows in ((PARTS, None), (FED, AUTO)):
        least = bounds.get(flags)
        if least is not None and options.budget is not None and least > options.budget:
            reason = f"it takes {least:,} bytes at least, {counted(least - options.budget, 'byte')} too many"
            yield Way(flags, None, None, False, reason)
            continue
        try:
            say = saying(progress, flags)
            found = optimize_in_parts(source, quick, None, say, rows, whole=whole, must_fit=True, cache=cache)
        except (UnsupportedModelError, InfeasibleError) as reason:
            yield Way(flags, None, None, False, str(reason))
            continue
        if found.why_whole is not None:
            yield Way(flags, None, None, False, found.why_whole)
            continue
        is_met = options.search.meets_budget(max(found.program.arena_bytes.values()))
        slowdown = round(max(found.program.slowdown.values(), default=0.0), 4)
        way = Way(flags, found.program.arena, slowdown, is_met, None)
        yield way
        if way.fits:
            return


def _allows_parts(options: Options) -> bool:
    excluded = options.ties or options.step or options.slide is not None or options.decision is not None
    return options.objective == "total" and not excluded and not options.channels_last


def with_advice(whole: Result, options: Options) -> Report:
    """Return the report of a result, with the advice to use parts where a draft of them needs less, or takes long."""
    report = whole.report
    if not _allows_parts(options) or not report.tflm.runs:
        return report
    text = f"{NOT_COMPUTED}: several models in turn (docs/parts.md)"
    if report.after.operators <= _MOST_DRAFTED:
        draft = draft_of(whole, options)
        if draft is None:
            return report
        need, slowdown = draft
        saved = change_in_percent(report.after.required_for_target, need)
        text = (
            f"about {need:,} bytes ({saved}) at {percent(slowdown)} run time, as several models in turn (docs/parts.md)"
        )
    summary = replace(report.summary, advice=(Advice("--parts auto", text), *report.summary.advice))
    return replace(report, summary=summary)


def _as_one(source: bytes, options: Options, whole: Result, progress: Progress, cache: Cache) -> Way | None:
    """Return the way that meets the budget in one file with any change and the least of the wider limits; or None.

    The widest limit comes first: where the least RAM within it exceeds the budget, no other limit is searched.
    """
    is_hopeless = options.budget is None or options.budget < whole.report.least_as_one
    if not options.cascade or options.decision is not None or is_hopeless:
        return None

    def made(tried: Options) -> Result:
        flags = flags_of(tried)
        return optimize(source, tried, saying(progress, flags), cache)

    every = [
        replace(options, every_byte=True, max_slowdown=limit, verify=False)
        for limit in LIMITS
        if limit >= options.max_slowdown
    ]
    least = made(replace(every[-1], budget=None)).report
    fit = answer_of(least.libraries["after"], objective=options.objective, budget=options.budget).fit
    if fit is None or not fit.fits:
        return None
    for tried in every:
        if tried == replace(options, verify=False):
            continue
        report = made(tried).report
        if report.within_budget:
            slowdown = round(slowest(report.before.instructions, report.after.instructions), 4)
            return Way(flags_of(tried), report.answer.reserve, slowdown, True, None)
    return None


def least_in_ways(given: Model, options: Options) -> Iterator[tuple[str, int]]:
    """Yield lower bounds in bytes of what the model needs in parts, and fed, before any search.

    The largest part takes its inputs or outputs, or a front all that it hands on, and TFLM's structures for filters.
    """
    if why_whole(given) is not None:
        return
    profile, model = options.profile, copy_model(given)
    if options.rewrite:
        clean_up(model, profile)
    if options.io == "int8":
        take_integers(model)
    if options.channels_last:
        take_channels_last(model, options.channels_last)
    model.main.reorder(arrange(model, profile, options.search, ORDER_WORK).schedule.order)
    every = {PARTS: StretchCosts(model, options, lambda _: None), FED: FeedCosts(model, options, lambda _: None)}
    for flags, costs in every.items():
        bound = need_along(costs, costs.least, lambda _: 0, 0)
        if bound is not None:
            yield flags, bound


def said_of_ways(given: Model, analysis: Analysis, options: Options) -> Iterator[str]:
    """Yield lower bounds of what a model over the budget needs as one file, in parts and fed, before any search.

    Nothing if it fits, or TFLM cannot load it as it is.
    """
    fit = analysis.answer.fit
    if fit is None or fit.fits or analysis.mends:
        return
    model = copy_model(given)
    clean_up(model, options.profile)
    least = least_need(model, options.profile, "total")
    yield f"as one file: {least:,} bytes at least, for inputs or outputs and TFLM's structures"
    for flags, bound in least_in_ways(given, options):
        yield f"{'fed row by row' if flags == FED else 'in parts'}: {bound:,} bytes at least"
    yield "next: tflite-memopt optimize with the same --target and --budget searches all of them"
