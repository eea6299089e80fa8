"""Search the model in parts, and fed row by row, where one file does not meet the budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...errors import InfeasibleError, UnsupportedModelError
from ...model.ir.model import Model
from ...options import Options
from ...report.exploration import flags_of
from ...report.model import Analysis, Way
from ...search.memory.work import slowest
from ..attempts import LIMITS
from ..candidate import Cache, Progress
from ..pipeline import Result, optimize
from ..steps import fed_input, in_rows
from .cutting import why_whole
from .fronts import AUTO, FeedCosts, others_late
from .run import estimated_need, optimize_in_parts
from .stretch import StretchCosts

PARTS, FED = "--parts auto --effort quick", "--feed auto --parts auto --effort quick"


def other_ways(source: bytes, options: Options, whole: Result, progress: Progress) -> Iterator[Way]:
    """Search the model as one file with more changes, in parts, then fed, until one meets the budget.

    Nothing is verified. ``whole``: the result as one model. A way that the options or the model exclude is left out.
    """
    as_one = _as_one(source, options, progress)
    if as_one is not None:
        yield as_one
        return
    if options.objective != "total" or options.ties or options.step or options.decision is not None:
        return
    for flags, rows in ((PARTS, None), (FED, AUTO)):
        try:
            found = optimize_in_parts(
                source,
                replace(options, verify=False, effort="quick"),
                None,
                lambda said, flags=flags: progress(f"{flags}: {said}"),  # type: ignore[misc]
                rows,
                whole=whole,
            )
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


def _as_one(source: bytes, options: Options, progress: Progress) -> Way | None:
    """Return the way that meets the budget in one file with any change and the least of the wider limits; or None."""
    if not options.cascade or options.decision is not None:
        return None
    cache: Cache = {}
    for limit in (each for each in LIMITS if each >= options.max_slowdown):
        tried = replace(options, every_byte=True, max_slowdown=limit, verify=False)
        if tried == replace(options, verify=False):
            continue
        flags = flags_of(tried)
        report = optimize(source, tried, lambda said, flags=flags: progress(f"{flags}: {said}"), cache).report  # type: ignore[misc]
        if report.within_budget:
            slowdown = round(slowest(report.before.instructions, report.after.instructions), 4)
            return Way(flags, report.answer.reserve, slowdown, True, None)
    return None


def estimated_ways(model: Model, options: Options) -> Iterator[tuple[str, int]]:
    """Estimate the bytes that the model needs in parts, and fed, from interfaces and TFLM's structures alone.

    A result may need more, for tensors inside of a part, or less, if stripes shrink an interface.
    """
    if why_whole(model) is not None:
        return
    every: list[tuple[str, StretchCosts]] = [(PARTS, StretchCosts(model, options, lambda _: None))]
    image, model = fed_input(model), in_rows(model, options)
    others_late(model, image)
    fed = FeedCosts(model, options, lambda _: None, image=image)
    every += [] if fed.why_none() else [(FED, fed)]
    for flags, costs in every:
        need = estimated_need(costs, costs.most_work)
        if need is not None:
            yield flags, need


def said_of_ways(model: Model, analysis: Analysis, options: Options) -> Iterator[str]:
    """Yield what a model over the budget may need as one file, in parts and fed, before any search; nothing if it fits.

    As one file it takes its interface and TFLM's structures, as far as rewrites leave them as they are.
    """
    fit = analysis.answer.fit
    if fit is None or fit.fits:
        return
    least = analysis.bounds.io + analysis.memory.tail_for_target
    yield f"as one file: about {least:,} bytes, an estimate: inputs or outputs, and TFLM's structures as they are now"
    for flags, estimate in estimated_ways(model, options):
        way = "fed row by row" if flags == FED else "in parts"
        yield f"{way}: about {estimate:,} bytes, an estimate"
    yield "next: tflite-memopt optimize with the same --target and --budget searches all of them"
