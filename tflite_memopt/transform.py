"""What a run makes of a model under its limits: rewritten, in stripes, in tiles, ordered and placed.

The best of the answers under the limits that were asked for, under narrower ones, and for any kernel library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from .analysis.macs import model_macs
from .cascade.measure import Measured
from .cascade.search import cascade
from .equivalence.failure import NO_PROMISE, Promise, Subject
from .graph.limits import StageClock
from .io import offline_plan, plan_label
from .io.writer import write_model
from .ir.change import Changed, Decision, Refusal, loosest, out_of_time
from .ir.check import check_model
from .ir.copying import copy_model
from .ir.model import Model, pieces_in, pieces_in_loops
from .kernels.profile import KernelProfile
from .kernels.profiles import PORTABLE
from .memory.arrange import (
    Arrangement,
    Cost,
    ModelPlacement,
    arena_by_kernels,
    arrange,
    cost_in,
    fitted,
    miscomputed,
    needs_by_library,
)
from .memory.figures import LibraryNeed
from .memory.problems import with_ties
from .memory.run_through import check_loops
from .memory.work import WorkLimit, instructions
from .options import EFFORTS, LEAST_WORK, Options
from .rewrite.channels import LEGAL_CONCATENATION
from .rewrite.sequences_along_h import sequences_along_h
from .rewrite.stage import rewrite
from .rewrite.tiles import Striped, TileSearch

Progress = Callable[[str], None]
_NOTHING_BETTER = Refusal("cascade", "the search", "narrower limits, or a plan for any kernels, led to the answer")
MACS = (0.0, 0.1, 0.3, 1.0)
"""Limits on added MACs, as fractions, from which wider ones start."""
_DEFAULT = Options()


@dataclass(frozen=True)
class Candidate:
    """A model that may be the result, ordered, with a place for every tensor.

    ``rewritten`` is the model before stripes, ``unplanned`` its file. ``is_no_worse``: no library of the profile needs
    more than for the original, and none gets slower than the limit allows; or TFLM loads the model only now.
    """

    rewritten: Changed
    unplanned: bytes
    cascaded: Changed
    arrangement: Arrangement
    arenas: Mapping[str, int]
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
        return replace(self.cascaded.decision, sites=self.rewritten.decision.sites)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the clock has ended one of its searches."""
        return any(each.cause == "out_of_time" for each in (*self.rewritten.refused, *self.cascaded.refused))

    def price(self, options: Options) -> tuple[bool, Cost]:
        """What is compared: what makes a library need more comes last."""
        return not self.is_no_worse, cost_in(self.placement.memory, options)

    def meets_budget(self, options: Options) -> bool:
        """Whether there is a budget, and it is met."""
        is_worse, cost = self.price(options)
        return not is_worse and options.meets_budget(cost.need)


Cache = dict[tuple[bytes, Options], Candidate]
"""Candidates by the bytes of the model and the options: runs under several limits ask for the same ones."""


@dataclass(frozen=True)
class RunContext:
    """What all attempts of a run share.

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
        return WorkLimit(instructions(self.original, self.profile), options.extra_work, self.profile)


def narrower(options: Options) -> tuple[Options, ...]:
    """The options with each narrower limit, from narrow to wide; none where no limit is wider than by default.

        asked for: 30 % more MACs, thorough

        10 %, normal -> 30 %, normal -> 10 %, thorough -> 30 %, thorough      the best of the four is the answer

    A search with wider limits looks at more, and may choose what seems better and then gains less by tiles, rules and
    the final plan. So each of these runs goes all the way. The default limits are where this starts: narrower ones are
    not run again, since each takes as long as the run itself.
    """
    if not options.cascade or options.decision is not None:
        return ()
    wanted, least = (EFFORTS.index(each) for each in (options.effort, _DEFAULT.effort))
    efforts = EFFORTS[min(wanted, least) : wanted + 1]
    shares = [each for each in MACS if _DEFAULT.max_extra_macs <= each < options.max_extra_macs]
    every = product(efforts, (*shares, options.max_extra_macs))
    found = [
        replace(options, effort=effort, max_extra_macs=share, max_extra_work=work)
        for effort, share in every
        for work in _works(options.max_extra_work, share)
    ]
    return tuple(each for each in found if each != options)


def _works(asked: float | None, share: float) -> Sequence[float | None]:
    """The limits on work to go through with a share of MACs: first what that allows by itself, if that is less."""
    return (None, asked) if asked is not None and asked > max(LEAST_WORK, share) else (asked,)


def best_candidate(run: RunContext, options: Options) -> Candidate:
    """The cheapest under these limits and narrower ones; the first to meet a budget is it.

    A plan for one library is also compared with the answer for any library: naming a target never ends worse.
    """
    every, found = (*narrower(options), options), list[Candidate]()
    for number, each in enumerate(every, 1):
        here = run if len(every) == 1 else run.saying(f"limits {number} of {len(every)}")
        found.append(known_or_made(here, each))
        if found[-1].meets_budget(options):
            break
    is_whole = len(found) == len(every)
    is_open = is_whole and options.decision is None and not found[-1].meets_budget(options)
    # What is tied may need what this library's kernels permit.
    asks_any_library = is_open and not run.profile.libraries and not options.ties
    is_late = asks_any_library and options.seconds_left <= 0
    if asks_any_library and not is_late:
        found.append(_for_any_library(run, options))
    best = min(found, key=lambda candidate: candidate.price(options))
    refused = list(best.cascaded.refused)
    if is_whole and best is not found[len(every) - 1]:
        refused.append(_NOTHING_BETTER)
    if is_late or any(each.is_out_of_time for each in found):
        refused += [] if best.is_out_of_time else [out_of_time("cascade", "the search")]
    # The bound of the limits that were asked for, on the library that was.
    least = found[len(every) - 1].cascaded.least if is_whole else None
    return replace(best, cascaded=replace(best.cascaded, refused=tuple(refused), least=least))


def _for_any_library(run: RunContext, options: Options) -> Candidate:
    """The answer for any library, its tensors placed for this one."""
    planned = offline_plan.decode(run.original) or {}
    theirs = None if run.before is None else needs_by_library(run.original, planned, PORTABLE)
    anywhere = replace(run, profile=PORTABLE, before=theirs).saying("for any kernel library")
    found = best_candidate(anywhere, replace(options, target=None, kernels=PORTABLE.name))
    copied = replace(found.cascaded, model=copy_model(found.model))
    return _placed(run, options, Striped(found.rewritten, copied, None), found.unplanned)


def known_or_made(run: RunContext, options: Options) -> Candidate:
    """What these limits alone lead to, from the cache where it is there."""
    known = run.cache.get((run.data, options))
    if known is not None:
        return known
    run.cache[run.data, options] = made = _made(run, options)
    return made


def _made(run: RunContext, options: Options) -> Candidate:
    """Under one limit: rewritten, in stripes, in tiles, ordered and placed."""
    clock = run.clock
    with clock.stage("rewrite"):
        rewritten = rewrite(_given(run, options), run.profile, options, run.progress)
        offline_plan.detach(rewritten.model)
        plan_label.detach(rewritten.model)
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
    work = run.work_limit(options)
    if instructions(model, run.profile) != work.before:
        options = replace(options, max_extra_work=work.left_for(model))
    return cascade(model, run.profile, options, run.progress, below, run.measured, sequences_along_h)


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
        others = arena_by_kernels(model, options) if options.all_kernels else {}
        arenas = others | {profile.name: arrangement.placement.memory.arena_bytes}
        model.main.reorder(arrangement.placement.order)
        check_model(model)
        check_loops(model, arrangement.placement)
    is_no_worse = _is_no_worse(run, options, found.rewritten, model, fits)
    return Candidate(found.rewritten, unplanned, found.cascaded, arrangement, arenas, is_no_worse)


def _is_no_worse(run: RunContext, options: Options, rewritten: Changed, model: Model, fits: bool) -> bool:
    """As ``Candidate`` says. ``fits``: no library needs more."""
    # A rewrite must not lead to an operator that a kernel library computes wrongly.
    if not set(miscomputed(model, run.profile)) <= set(miscomputed(run.original, run.profile)):
        return False
    # What TFLM does not load as it came needs nothing, and takes no time, that the result could exceed.
    if any(use.rule == LEGAL_CONCATENATION.name for use in rewritten.uses):
        return True
    return fits and run.work_limit(options).is_kept_by(model)


def subject_of(run: RunContext, candidate: Candidate, written: bytes) -> Subject:
    """What is to be verified of a candidate."""
    profile, uses, memory = run.profile, candidate.rewritten.uses, candidate.placement.memory

    def promise(layout: str) -> Promise:
        required = memory.required_bytes[layout] if memory.required_is_exact else None
        return Promise(required, memory.arena_bytes)

    return Subject(
        run.data,
        candidate.unplanned,
        written,
        loosest(use.exactness for use in uses),
        pieces_in(candidate.model.main),
        tuple(name for use in uses if use.exactness == "approximates" for name in use.operators),
        # The wheel has the reference kernels: it says nothing of the scratch of others.
        promise=promise("64") if profile.in_wheel else NO_PROMISE,
        # A runner may have any of several libraries, each of which asks for scratch of its own.
        runner_promise=promise("target") if profile.target and not profile.libraries else NO_PROMISE,
        loop_pieces=pieces_in_loops(candidate.model),
        ties=candidate.model.ties,
    )
