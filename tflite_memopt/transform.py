"""Transform a model under the limits of a run: rewrites, stripes, tiles, order, offsets.

The result is the best under the limits that were asked for and under narrower ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

from .analysis.macs import model_macs
from .cascade.measure import Measured
from .cascade.search import OtherForm, cascade
from .equivalence.subject import NO_PROMISE, Promise, Subject
from .graph.limits import StageClock
from .io import offline_plan, plan_label
from .io.writer import write_model
from .ir.change import Changed, Decision, Exactness, Refusal, RewriteUse, loosest
from .ir.check import check_model
from .ir.copying import copy_model, drop_unused_codes
from .ir.model import Model
from .kernels.faults import TFLM, faults_in, new_faults
from .kernels.mend import mend
from .kernels.profile import KernelProfile
from .kernels.profiles import PORTABLE
from .kernels.since import needed_since, without_newer
from .kernels.support import support_of
from .memory.arrange import Arrangement, Cost, Declined, ModelPlacement, arrange, cost_in, fitted
from .memory.figures import operator_kinds
from .memory.problems import with_ties
from .memory.reserve import LibraryNeed, needs_by_library
from .memory.work import WorkLimit, instructions
from .options import DEFAULT_LIMIT, EFFORTS, Options, fallbacks
from .rewrite.in_one_row import in_one_row
from .rewrite.sequences_along_h import sequences_along_h
from .rewrite.stage import rewrite
from .rewrite.tiles import Striped, TileSearch

Progress = Callable[[str], None]
NOTHING_BETTER = Refusal(
    "cascade", "the search", "narrower or wider limits, or a plan for any kernels, led to the answer"
)
_DEFAULT = Options()
_SEQUENCES = OtherForm(sequences_along_h, in_one_row)
WORTH = 0.05
"""The share of the objective that a new operator kind or a newer TFLM must save."""


@dataclass(frozen=True)
class Candidate:
    """A model that may be the result, ordered, with a place for every tensor.

    ``rewritten`` is the model before stripes, ``unplanned`` its file. ``is_no_worse``: no library of the profile needs
    more than for the original, and none gets slower than the limit allows.
    """

    rewritten: Changed
    unplanned: bytes
    cascaded: Changed
    arrangement: Arrangement
    is_no_worse: bool

    @property
    def model(self) -> Model:
        return self.cascaded.model

    @property
    def placement(self) -> ModelPlacement:
        return self.arrangement.placement

    @property
    def decision(self) -> Decision:
        """With which another run makes the same of the model, without a search."""
        before = self.rewritten.decision
        return replace(self.cascaded.decision, sites=before.sites, is_rolled=before.is_rolled)

    @property
    def exactness(self) -> Exactness:
        """Return the exactness of its rewrites."""
        return loosest(use.exactness for use in self.rewritten.uses)

    def price(self, options: Options) -> tuple[bool, Cost]:
        """Return the sort key: candidates that make a library need more come last."""
        return not self.is_no_worse, cost_in(self.placement.memory, options)

    def meets_budget(self, options: Options) -> bool:
        """Return whether there is a budget, and it is met."""
        return self.is_no_worse and options.meets_budget(self.most(options))

    def most(self, options: Options) -> int:
        """Return the bytes of the objective with the library that needs the most, of those that firmware may link."""
        needs = (self.arrangement.needs or {}).values()
        sizes = (each.required if options.objective == "total" else each.head for each in needs)
        return max(sizes, default=cost_in(self.placement.memory, options).need)


Cache = dict[tuple[bytes, Options], Candidate]
"""Candidates by the bytes of the model and the options: runs under several limits ask for the same ones."""


@dataclass(frozen=True)
class RunContext:
    """The state that all attempts of a run share.

    ``data``: the model's file, its shapes as LiteRT infers them; ``original``: what it holds, which nobody changes.
    ``before``: what each library needs for it, None if it runs wrongly.
    """

    data: bytes
    original: Model
    profile: KernelProfile
    before: Mapping[str, LibraryNeed] | None
    clock: StageClock
    progress: Progress
    cache: Cache
    measured: Measured = field(default_factory=Measured)

    def saying(self, what: str) -> RunContext:
        """The same, with progress that says what it is of."""
        return replace(self, progress=lambda said: self.progress(f"{what}: {said}"))

    def work_limit(self, options: Options) -> WorkLimit:
        """The limit on run time: what the options allow to be added to the original."""
        return WorkLimit(instructions(self.original, self.profile), options.max_slowdown, self.profile)


def narrower(options: Options) -> tuple[Options, ...]:
    """Return the options with the default limits, where they ask for wider ones.

    A search with wider limits looks at more candidates, and may choose one that gains less by tiles, rules and the
    final plan. So the default limits are tried as well, to the end.
    """
    if not options.cascade or options.decision is not None:
        return ()
    usual = replace(
        options,
        effort=min(options.effort, _DEFAULT.effort, key=EFFORTS.index),
        max_slowdown=min(options.max_slowdown, _DEFAULT.max_slowdown),
    )
    return () if usual == options else (usual,)


LIMITS = (0.0, 0.02, 0.05, DEFAULT_LIMIT, 0.2, 0.3, 0.5, 1.0)
"""Limits on added run time, as fractions, that ``explore`` searches."""


def wider(options: Options) -> tuple[Options, ...]:
    """Return the options with the next wider limit on run time, where they ask for another one than the default.

    What a wider search finds may keep to the limit, and need less than what the search within it finds.
    """
    is_usual = options.max_slowdown == _DEFAULT.max_slowdown
    if is_usual or not options.cascade or options.decision is not None or options.budget is not None:
        return ()
    limit = next((each for each in LIMITS if each > options.max_slowdown and each >= _DEFAULT.max_slowdown), None)
    if limit is None:
        return ()
    led = replace(options, max_slowdown=limit)
    return tuple(dict.fromkeys((led, replace(led, every_byte=False))))


def best_candidate(run: RunContext, options: Options) -> Candidate:
    """Return the cheapest candidate under these limits and narrower ones; the first one that meets a budget.

    A thorough search for one kernel library also makes the candidate for any library, which is smaller now and then.
    """
    every, found = (*narrower(options), options), list[Candidate]()
    for number, each in enumerate(every, 1):
        here = run if len(every) == 1 else run.saying(f"limits {number} of {len(every)}")
        found.append(known_or_made(here, each))
        if found[-1].meets_budget(options):
            break
    is_whole = len(found) == len(every)
    is_searched = options.cascade and options.decision is None
    if options.budget is not None and is_searched and not found[-1].meets_budget(options):
        # Under a budget the search follows the price; without one it follows the RAM, and may still meet the budget.
        found.append(best_candidate(run.saying("the least RAM"), replace(options, budget=None)))
    is_open = is_whole and options.decision is None and options.budget is None
    # What is tied may need what this library's kernels permit.
    is_thorough = options.effort == EFFORTS[-1]
    asks_any_library = is_open and is_thorough and not run.profile.libraries and not options.ties
    if asks_any_library:
        found.append(_for_any_library(run, options))
    best = min(found, key=lambda candidate: candidate.price(options))
    refused = list(best.cascaded.refused)
    if is_whole and best is not found[len(every) - 1]:
        refused.append(NOTHING_BETTER)
    # The bound of the limits that were asked for, on the library that was.
    least = found[len(every) - 1].cascaded.least if is_whole else None
    return replace(best, cascaded=replace(best.cascaded, refused=tuple(refused), least=least))


def _within(run: RunContext, options: Options, candidate: Candidate) -> Candidate:
    """Return a candidate that another limit led to, judged by that of the options."""
    is_kept = candidate.is_no_worse and run.work_limit(options).is_kept_by(candidate.model)
    return replace(candidate, is_no_worse=is_kept)


def worthy_candidate(run: RunContext, options: Options) -> tuple[Candidate, Declined | None]:
    """Return the cheapest candidate of which everything new pays, within the limits, as wider ones lead to it as well;
    and the cheapest one of all where that is another.
    """
    found, declined = _worthy(run, options)
    for other in wider(options):
        led_to = _within(run, options, _worthy(run.saying("a wider limit"), other)[0])
        if led_to.price(options) < found.price(options):
            refused = (*found.cascaded.refused, NOTHING_BETTER)
            told = replace(led_to.cascaded, refused=refused, least=found.cascaded.least)
            found = replace(led_to, cascaded=told)
    if declined is not None and declined.need >= found.price(options)[1].need:
        declined = None
    return found, declined


def _worthy(run: RunContext, options: Options) -> tuple[Candidate, Declined | None]:
    """Return the same of the searches under these limits and narrower ones.

        order and plan  ->  rewrites  ->  stripes on an older TFLM  ->  stripes

    A candidate further to the right replaces the one to its left when it has no operator kind and no newer TFLM that
    the other does without, when it saves ``WORTH`` of the objective, or when it alone meets the budget.
    """
    is_free = options.every_byte or options.decision is not None or run.before is None
    if is_free or not support_of(run.original).runs:
        return best_candidate(run, options), None
    plain, kept = None, None
    for _, attempt in reversed(fallbacks(options)):
        if kept is not None and kept.meets_budget(options):
            return kept, None
        best = best_candidate(run, attempt)
        if kept is None or _pays(run, kept, best, options):
            plain, kept = kept, best
    assert kept is not None
    since = _since(run, kept)
    if plain is not None and since is not None:
        older = best_candidate(run, replace(options, tflm=without_newer(options.build, since)))
        plain = older if _pays(run, plain, older, options) else plain
        kept = kept if _pays(run, plain, kept, options) else plain
    if kept is best:
        return kept, None
    # The report says what the widest search refused, and how far below it looked.
    told = replace(kept.cascaded, refused=best.cascaded.refused, least=best.cascaded.least)
    rewritten = replace(kept.rewritten, refused=best.rewritten.refused)
    return replace(kept, rewritten=rewritten, cascaded=told), _declined(run, best, kept, options)


def _pays(run: RunContext, plain: Candidate, other: Candidate, options: Options) -> bool:
    """Return whether ``other`` costs no more, and all that it has and ``plain`` does without pays."""
    (is_worse, cost), (was_worse, before) = other.price(options), plain.price(options)
    if (is_worse, cost) > (was_worse, before):
        return False
    if was_worse or not _news(run, other) - _news(run, plain):
        return True
    is_needed = other.meets_budget(options) and not plain.meets_budget(options)
    return is_needed or cost.need <= (1 - WORTH) * before.need


def _news(run: RunContext, candidate: Candidate) -> frozenset[str]:
    """Return the operator kinds that the candidate has and the original has not."""
    return operator_kinds(candidate.model) - operator_kinds(run.original)


def _since(run: RunContext, candidate: Candidate) -> date | None:
    return needed_since(_news(run, candidate))


def _declined(run: RunContext, candidate: Candidate, kept: Candidate, options: Options) -> Declined | None:
    need = candidate.price(options)[1].need
    if not candidate.is_no_worse or need >= kept.price(options)[1].need:
        return None
    kinds = tuple(sorted(_news(run, candidate)))
    return Declined(need, kinds, needed_since(kinds), instructions(candidate.model, run.profile))


def _for_any_library(run: RunContext, options: Options) -> Candidate:
    """The answer for any library, its tensors placed for this one."""
    planned = offline_plan.decode(run.original) or {}
    any_library = replace(options, target=None, kernels=PORTABLE.name)
    theirs = None if run.before is None else needs_by_library(run.original, planned, any_library.profile)
    anywhere = replace(run, profile=any_library.profile, before=theirs).saying("for any kernel library")
    found = best_candidate(anywhere, any_library)
    copied = replace(found.cascaded, model=copy_model(found.model))
    return _placed(run, options, Striped(found.rewritten, copied, None), found.unplanned)


def known_or_made(run: RunContext, options: Options) -> Candidate:
    """Return the candidate under these limits alone, from the cache if it is there."""
    key = run.data, replace(options, every_byte=False)  # which decides between candidates
    if key not in run.cache:
        run.cache[key] = _made(run, options)
    return run.cache[key]


def _made(run: RunContext, options: Options) -> Candidate:
    """Under one limit: rewritten, in stripes, in tiles, ordered and placed."""
    clock = run.clock
    with clock.stage("rewrite"):
        rewritten = rewrite(_given(run, options), run.profile, options, run.progress)
        offline_plan.detach(rewritten.model)
        plan_label.detach(rewritten.model)
        rewritten = replace(rewritten, uses=(*rewritten.uses, *_mended(run, rewritten.model)))
    with clock.stage("cascade"):
        cascaded = _in_stripes(run, options, rewritten.model)
        found = _in_tiles(run, options, rewritten, cascaded)
        check_model(found.cascaded.model)
        unplanned = write_model(found.rewritten.model)
    return _placed(run, options, found, unplanned)


def _given(run: RunContext, options: Options) -> Model:
    """The model as it came, with what the options tie."""
    return with_ties(copy_model(run.original), options.ties, run.profile)


def _in_stripes(run: RunContext, options: Options, model: Model, below: int | None = None) -> Changed:
    """In stripes within what is left of the limit on run time: rewrites may have used some of it, or saved time."""
    uses = _mended(run, model)  # with channels in tiles it has other operators
    work = run.work_limit(options)
    if instructions(model, run.profile) != work.before:
        options = replace(options, max_slowdown=work.left_for(model))
    found = cascade(model, run.profile, options, run.progress, below, run.measured, _SEQUENCES)
    return replace(found, uses=(*uses, *found.uses)) if uses else found


def _mended(run: RunContext, model: Model) -> tuple[RewriteUse, ...]:
    """Write what a kernel library computes wrongly otherwise, in place.

    For any library what came so stays, but for faults of TFLM itself: users of another library than the faulty one
    would pay for it.
    """
    met = faults_in(run.original, run.profile) if run.profile.libraries else ()
    kept = {each.output for each in met if each.fault.library != TFLM}
    return mend(model, run.profile, kept)


def _in_tiles(run: RunContext, options: Options, rewritten: Changed, cascaded: Changed) -> Striped:
    """With channels in tiles, within the limits on computation that stripes have."""
    if not options.rewrite:
        return Striped(rewritten, cascaded, None)
    most_macs = int(model_macs(run.original) * (1 + options.max_extra_macs))
    stripes, work = partial(_in_stripes, run, options), run.work_limit(options)
    search = TileSearch(run.profile, stripes, options, run.before, most_macs, work, run.progress)
    return search.run(rewritten, cascaded)


def _placed(run: RunContext, options: Options, found: Striped, unplanned: bytes) -> Candidate:
    """The model, ordered, with a place for every tensor."""
    profile, model = run.profile, found.cascaded.model
    with run.clock.stage("arrange"):
        run.progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
        made = found.arrangement or arrange(model, profile, options)
        fitting = made if run.before is None else fitted(model, made, run.before, profile, options)
        arrangement, fits = fitting or made, fitting is not None
        model.main.reorder(arrangement.placement.order)
        drop_unused_codes(model)
        check_model(model)
    is_no_worse = _is_no_worse(run, options, model, fits)
    return Candidate(found.rewritten, unplanned, found.cascaded, arrangement, is_no_worse)


def _is_no_worse(run: RunContext, options: Options, model: Model, fits: bool) -> bool:
    """As ``Candidate`` says. ``fits``: no library needs more."""
    # A rewrite must not lead to an operator that a kernel library computes wrongly.
    return not new_faults(model, run.original, run.profile) and fits and run.work_limit(options).is_kept_by(model)


def subject_of(run: RunContext, candidate: Candidate, written: bytes) -> Subject:
    """The file of a candidate, to be verified."""
    profile, memory = run.profile, candidate.placement.memory

    def promise(layout: str) -> Promise:
        required = memory.required_bytes[layout] if memory.required_is_exact else None
        return Promise(required, memory.arena_bytes)

    return Subject(
        run.data,
        written,
        candidate.exactness,
        # The wheel has the reference kernels: it says nothing of the scratch of others.
        promise=promise("64") if profile.in_wheel else NO_PROMISE,
        # A runner may have any of several libraries, each of which asks for scratch of its own.
        runner_promise=promise("target") if profile.target and not profile.libraries else NO_PROMISE,
        ties=candidate.model.ties,
    )
