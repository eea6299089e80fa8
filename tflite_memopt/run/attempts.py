"""The attempts of a run, as a list, and the choice among the candidates that they make.

what may change     order and plan  ->  rewrites  ->  stripes on an older TFLM  ->  stripes

and for each        narrower limits, those that were asked for, a wider limit, the least RAM where a budget is
                    missed; the same for any kernel library

A budget below the lower bound of one file is no limit of a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import ErrorKind, InfeasibleError
from ..kernels.profiles import PORTABLE
from ..kernels.since import needed_since, without_newer
from ..kernels.support import support_of
from ..kernels.targets import profile_for
from ..memory.arrange import Declined, cost_in
from ..memory.figures import operator_kinds
from ..memory.reserve import needs_by_library
from ..memory.work import instructions
from ..model.io import offline_plan
from ..model.ir.change import Refusal
from ..options import DEFAULT_LIMIT, EFFORTS, SearchOptions
from .candidate import Candidate, RunContext, known_or_made, least_as_one, made_without_loops, placed_again

Rung = Literal["stripes", "rewrites", "order and plan"]
LAST_RUNG: Rung = "order and plan"
NOTHING_BETTER = Refusal(
    "cascade", "the search", "narrower or wider limits, or a plan for any kernels, led to the answer"
)
LIMITS = (0.0, 0.02, 0.05, DEFAULT_LIMIT, 0.2, 0.3, 0.5, 1.0)
"""Limits on added run time, as fractions, that ``explore`` searches."""
_USUAL = SearchOptions()


@dataclass(frozen=True)
class Attempt:
    """One search; ``said``: its name. ``anywhere``: for any kernel library, its tensors then placed for the run's."""

    said: str
    limits: SearchOptions
    anywhere: bool = False


def rungs(asked: SearchOptions) -> list[tuple[Rung, SearchOptions]]:
    """Return what is asked for, then without stripes, then without graph changes: each with what it is called."""
    ladder: list[tuple[Rung, SearchOptions]] = []
    if asked.cascade:
        ladder.append(("stripes", asked))
    if asked.rewrite:
        ladder.append(("rewrites", replace(asked, cascade=False)))
    return [*ladder, (LAST_RUNG, replace(asked, cascade=False, rewrite=False))]


def attempts_of(run: RunContext, asked: SearchOptions) -> tuple[Attempt, ...]:
    """Return all that is tried under these limits, in turn; under a budget until one meets it."""
    if asked.decision is not None:
        return (Attempt("the decision", asked),)
    every = [*_narrower(asked), Attempt("the limits", asked), *_wider(asked)]
    # A plan for any library is smaller now and then; what is tied may need what this library's kernels permit.
    if asked.effort == EFFORTS[-1] and not run.profile.libraries and not asked.ties:
        every += [replace(each, said="for any kernel library", anywhere=True) for each in every]
    return tuple(every)


def _narrower(asked: SearchOptions) -> Iterator[Attempt]:
    """The default limits, where wider ones are asked for.

    A search with wider limits looks at more candidates, and may choose one that gains less by tiles, rules and the
    final plan. So the default limits are tried as well, to the end.
    """
    effort = min(asked.effort, _USUAL.effort, key=EFFORTS.index)
    usual = replace(asked, effort=effort, max_slowdown=min(asked.max_slowdown, _USUAL.max_slowdown))
    if asked.cascade and usual != asked:
        yield Attempt("narrower limits", usual)


def _wider(asked: SearchOptions) -> Iterator[Attempt]:
    """The next wider limit on run time, where another one than the default is asked for.

    What a wider search finds may keep to the limit, and need less than what the search within it finds: under a budget,
    too, where the first that meets it may not.
    """
    over = (each for each in LIMITS if each > asked.max_slowdown and each >= _USUAL.max_slowdown)
    limit = next(over, None)
    is_usual = asked.max_slowdown == _USUAL.max_slowdown
    if limit is not None and not is_usual and (asked.cascade or asked.rewrite):
        yield Attempt("a wider limit", replace(asked, max_slowdown=limit, budget=None))


def _made(run: RunContext, attempt: Attempt) -> Candidate:
    if not attempt.anywhere:
        return known_or_made(run, attempt.limits)
    anywhere = profile_for(None, PORTABLE.name, build=attempt.limits.build)
    planned = offline_plan.decode(run.original) or {}
    theirs = None if run.before is None else needs_by_library(run.original, planned, anywhere)
    found = known_or_made(replace(run, profile=anywhere, before=theirs), attempt.limits)
    return placed_again(run, attempt.limits, found)


def cheapest(run: RunContext, asked: SearchOptions) -> Candidate:
    """Return the cheapest candidate of all attempts under these limits; the first one that meets a budget.

    Raises InfeasibleError for a decision that exceeds the limit on run time.
    """
    every, found = attempts_of(run, asked), list[Candidate]()
    own = next(at for at, each in enumerate(every) if each.limits == asked)
    for number, attempt in enumerate(every, 1):
        here = run if len(every) == 1 else run.saying(f"search {number} of {len(every)}, {attempt.said}")
        made = _made(here, attempt)
        if asked.decision is not None and not run.work_limit(asked).is_kept_by(made.model):
            text = "the decision exceeds the limit on run time: raise --max-slowdown"
            raise InfeasibleError(text, ErrorKind.DECISION)
        if attempt.limits.max_slowdown > asked.max_slowdown:
            is_kept = made.is_no_worse and run.work_limit(asked).is_kept_by(made.model)
            made = replace(made, is_no_worse=is_kept)
        found.append(made)
        if made.meets_budget(asked):
            break
    best = min(found, key=lambda candidate: candidate.price(asked))
    if best is found[min(own, len(found) - 1)]:
        return best
    # The bound of the limits that were asked for, on the library that was.
    least = found[own].cascaded.least if own < len(found) else None
    refused = (*best.cascaded.refused, NOTHING_BETTER)
    return replace(best, cascaded=replace(best.cascaded, refused=refused, least=least))


def worthy_candidate(run: RunContext, asked: SearchOptions) -> tuple[Candidate, Declined | None]:
    """Return the cheapest candidate of which everything new pays, and the cheapest of all where that is another.

    A search for a budget ends at a plan within it. Where another library needs more than the budget with that plan, the
    least RAM is looked for.
    """
    found = _worthy(run, asked)
    is_within = asked.meets_budget(cost_in(found[0].placement.memory, asked).need)
    return _worthy(run, replace(asked, budget=None)) if is_within and not found[0].meets_budget(asked) else found


def _worthy(run: RunContext, asked: SearchOptions) -> tuple[Candidate, Declined | None]:
    """Return the answer of one search.

    In the order of the ladder, a candidate replaces the one before when it has no operator kind and no newer TFLM that
    the other does without, when it saves ``run.worth`` of the objective, or when it alone meets the budget.
    """
    if asked.budget is not None and asked.budget < least_as_one(run, asked):
        asked = replace(asked, budget=None)  # nothing meets it, and the least RAM says by how much
    takes_all = not run.worth or asked.decision is not None
    if takes_all or not support_of(run.original, asked.build).runs:
        return cheapest(run, asked), None
    plain, kept = None, None
    for limits in _steps(run, asked):
        if kept is not None and kept.meets_budget(asked):
            return kept, None
        best = cheapest(run, limits)
        if kept is None or _pays(run, kept, best, asked):
            plain, kept = kept, best
    assert kept is not None
    since = needed_since(_news(run, kept))
    if plain is not None and since is not None:
        older = replace(asked, tflm=without_newer(asked.build, since))
        found = made_without_loops(run, older, kept) or cheapest(run, older)
        plain = found if _pays(run, plain, found, asked) else plain
        kept = kept if _pays(run, plain, kept, asked) else plain
    if kept is best:
        return kept, None
    # The report says what the widest search refused, and how far below it looked.
    told = replace(kept.cascaded, refused=best.cascaded.refused, least=best.cascaded.least)
    rewritten = replace(kept.rewritten, refused=best.rewritten.refused)
    return replace(kept, rewritten=rewritten, cascaded=told), _declined(run, best, kept, asked)


def _steps(run: RunContext, asked: SearchOptions) -> list[SearchOptions]:
    """Return the ladder from below, without order and plan alone where rewrites bring no operator kind."""
    ladder = [limits for _, limits in reversed(rungs(asked))]
    if asked.rewrite and asked.budget is None:
        rewritten = cheapest(run, ladder[1])
        if rewritten.is_no_worse and not _news(run, rewritten):
            return ladder[1:]
    return ladder


def _pays(run: RunContext, plain: Candidate, other: Candidate, asked: SearchOptions) -> bool:
    """Return whether ``other`` costs no more, and all that it has and ``plain`` does without pays."""
    (is_worse, cost), (was_worse, before) = other.price(asked), plain.price(asked)
    if (is_worse, cost) > (was_worse, before):
        return False
    if was_worse or not _news(run, other) - _news(run, plain):
        return True
    is_needed = other.meets_budget(asked) and not plain.meets_budget(asked)
    return is_needed or cost.need <= (1 - run.worth) * before.need


def _news(run: RunContext, candidate: Candidate) -> frozenset[str]:
    """Return the operator kinds that the candidate has and the original has not."""
    return operator_kinds(candidate.model) - operator_kinds(run.original)


def _declined(run: RunContext, candidate: Candidate, kept: Candidate, asked: SearchOptions) -> Declined | None:
    need = candidate.price(asked)[1].need
    if not candidate.is_no_worse or need >= kept.price(asked)[1].need:
        return None
    kinds = tuple(sorted(_news(run, candidate)))
    return Declined(need, kinds, instructions(candidate.model, run.profile))
