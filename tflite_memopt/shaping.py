"""A model rewritten, in stripes, in tiles, ordered and placed: the best that the limits and narrower ones lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from .analysis.macs import model_macs
from .cascade.measure import Measured
from .cascade.search import cascade
from .equivalence.baseline import Baseline
from .equivalence.pool import Interpreters
from .io import offline_plan, plan_label
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import OUT_OF_TIME, Changed, Refusal
from .ir.check import check_model
from .ir.copying import copy_model
from .ir.decision import Decision
from .ir.model import Model
from .kernels.portable import PORTABLE
from .kernels.profile import KernelProfile
from .memory.arrange import Arrangement, arena_by_kernels, arrange
from .memory.cost import Cost, cost_in
from .memory.every_library import arranged_for_every_library
from .memory.libraries import LibraryNeed, miscomputed, needs_by_library
from .memory.reading import read_planned
from .memory.run_through import check_loops
from .memory.work import WorkLimit, instructions
from .options import EFFORTS, LEAST_WORK, Options
from .report.interruption import Interruption
from .report.stage_clock import StageClock
from .rewrite.rules.legal_concatenation import LEGAL_CONCATENATION
from .rewrite.sequences_along_h import sequences_along_h
from .rewrite.tile_search import TileSearch, TilesFound

Progress = Callable[[str], None]
_NOTHING_BETTER = Refusal("cascade", "the search", "narrower limits, or a plan for any kernels, led to the answer")
_OUT_OF_TIME = Refusal("cascade", "the search", OUT_OF_TIME)
MACS = (0.0, 0.1, 0.3, 1.0)
"""Limits on added MACs, as fractions, from which wider ones start."""
_DEFAULT = Options()


@dataclass(frozen=True)
class Stages:
    """What changes the graph: the searches of this package, or what another one has found for the same model.

    ``has_tiles``: whether channels in tiles are looked for once there are stripes, and then stripes anew.
    """

    rewrite: Callable[[Model, KernelProfile, Options, Progress], Changed]
    cascade: Callable[[Model, KernelProfile, Options, Progress], Changed]
    has_tiles: bool = False


@dataclass(frozen=True)
class Setting:
    """What stays the same from attempt to attempt."""

    data: bytes
    profile: KernelProfile
    stages: Stages
    clock: StageClock
    progress: Progress
    interruption: Interruption
    looked_at: Baseline | None
    notes: list[str]
    answers: Answers
    measured: Measured
    running: Interpreters | None = None
    """The interpreters that looked at the original; the proof takes them, too."""

    def original(self) -> Model:
        """The model as it came, which nobody changes."""
        return read_model(self.data) if self.looked_at is None else self.looked_at.model

    def work_limit(self, options: Options) -> WorkLimit:
        """The limit on run time: what the options allow to be added to the original."""
        return WorkLimit(instructions(self.original(), self.profile), options.extra_work, self.profile)


@dataclass(frozen=True)
class Shaped:
    """What the stages that change the graph and place its tensors made of the model.

    ``unplanned`` is the rewritten model as a file, before stripes. ``is_no_worse``: no library of the profile needs
    more than for the original, and none gets slower than the limit allows; or TFLM loads the model only now.
    """

    model: Model
    unplanned: bytes
    rewritten: Changed
    cascaded: Changed
    arrangement: Arrangement
    arenas: dict[str, int]
    is_no_worse: bool

    def price(self, options: Options) -> tuple[bool, Cost]:
        """What is compared: what makes a library need more comes last."""
        return not self.is_no_worse, cost_in(self.arrangement.placement.memory, options)

    @property
    def decision(self) -> Decision:
        """With which another run makes the same of the model, without a search."""
        return replace(self.cascaded.decision, sites=self.rewritten.decision.sites)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the clock has ended one of its searches."""
        return any(each.reason == OUT_OF_TIME for each in (*self.rewritten.refused, *self.cascaded.refused))

    def meets_budget(self, options: Options) -> bool:
        """Whether there is a budget, and it is met."""
        is_over, cost = self.price(options)
        return options.budget is not None and not is_over and cost.need <= options.budget


@dataclass(frozen=True)
class Answers:
    """What the stages made of a file, by its bytes and the options: it is asked for again by runs with wider limits."""

    found: dict[tuple[bytes, Options], Shaped] = field(default_factory=dict)


@dataclass(frozen=True)
class StripedModel:
    """The model rewritten, as a file too, and in stripes. ``options``: for what comes after, as for :func:`shape`."""

    rewritten: Changed
    unplanned: bytes
    cascaded: Changed
    options: Options


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


def best_within(
    run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None, early: StripedModel | None
) -> Shaped:
    """What costs least of what these options and those with narrower limits lead to; the first to meet a budget is it.

    A plan for one library is also compared with the answer for any library: naming a target never ends worse.
    ``before`` as for :func:`shape`; ``early``: the model in stripes by these options, where that is known.
    """
    every, found = (*narrower(options), options), list[Shaped]()
    for number, each in enumerate(every, 1):
        here = run if len(every) == 1 else _said_of(run, f"limits {number} of {len(every)}")
        found.append(_known_or_shaped(here, each, before, early if each is options else None))
        if run.interruption.said or found[-1].meets_budget(options):
            break
    is_whole = len(found) == len(every) and not run.interruption.said
    is_asked = options.decision is None and not found[-1].meets_budget(options)
    is_open = is_whole and is_asked and not run.profile.libraries
    is_late = is_open and options.seconds_left <= 0
    if is_open and not is_late:
        make = partial(_for_any_library, run, options, before)
        anywhere = run.interruption.beside("the search for any kernel library", make)
        found += [] if anywhere is None else [anywhere]
    best = min(found, key=lambda shaped: shaped.price(options))
    refused = list(best.cascaded.refused)
    if is_whole and best is not found[len(every) - 1]:
        refused.append(_NOTHING_BETTER)
    if is_late or any(each.is_out_of_time for each in found):
        refused += [] if best.is_out_of_time else [_OUT_OF_TIME]
    # The bound of the limits that were asked for, on the library that was.
    least = found[len(every) - 1].cascaded.least if is_whole else None
    return replace(best, cascaded=replace(best.cascaded, refused=tuple(refused), least=least))


def _for_any_library(run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None) -> Shaped:
    """The answer for any library, its tensors placed for this one.

    Ctrl-C ends it with nothing: there is an answer without it.
    """
    run = replace(run, interruption=Interruption(False, run.progress))
    original = read_planned(run.data)
    theirs = None if before is None else needs_by_library(original, offline_plan.decode(original) or {}, PORTABLE)
    anywhere = _said_of(replace(run, profile=PORTABLE), "for any kernel library")
    found = best_within(anywhere, replace(options, target=None, kernels=PORTABLE.name), theirs, None)
    model = copy_model(found.model)
    return _placed(run, found.unplanned, found.rewritten, found.cascaded, model, None, options, before)


def _said_of(run: Setting, what: str) -> Setting:
    """The same, with progress that says what it is of."""
    return replace(run, progress=lambda said: run.progress(f"{what}: {said}"))


def _known_or_shaped(
    run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None, early: StripedModel | None
) -> Shaped:
    known = run.answers.found.get((run.data, options))
    if known is not None:
        return known
    shaped = shape(run, stripe(run, options) if early is None else early, before)
    if not run.interruption.said:
        run.answers.found[run.data, options] = shaped
    return shaped


def stripe(run: Setting, options: Options) -> StripedModel:
    """Rewrite and cascade."""
    clock, progress, profile, interruption = run.clock, run.progress, run.profile, run.interruption

    with clock.stage("rewrite"):
        rewritten, options = interruption.during(
            "rewriting", options, lambda each: run.stages.rewrite(read_planned(run.data), profile, each, progress)
        )
        offline_plan.detach(rewritten.model)
        plan_label.detach(rewritten.model)
        unplanned = write_model(rewritten.model)

    with clock.stage("cascade"):
        cascaded, options = interruption.during(
            "the search for stripes",
            options,
            lambda each: run.stages.cascade(rewritten.model, profile, _left(run, rewritten.model, each), progress),
        )
    return StripedModel(rewritten, unplanned, cascaded, options)


def _left(run: Setting, model: Model, options: Options) -> Options:
    """The options with what is left of the limit on run time: rewrites may have used some of it, or saved time."""
    work = run.work_limit(options)
    if instructions(model, run.profile) == work.before:
        return options
    return replace(options, max_extra_work=min(1.0, work.left_for(model)))


def shape(run: Setting, striped: StripedModel, before: Mapping[str, LibraryNeed] | None) -> Shaped:
    """Tiles, order and plan; ``before`` is what each library needs for the original, None if it runs wrongly."""
    rewritten, cascaded, options, unplanned = striped.rewritten, striped.cascaded, striped.options, striped.unplanned

    with run.clock.stage("cascade"):
        tiles, searched = TilesFound(rewritten, cascaded), options
        if run.stages.has_tiles:
            tiles, options = run.interruption.during(
                "the search for tiles",
                options,
                lambda each: _tile_search(run, each, before).run(rewritten, cascaded),
            )
            unplanned = unplanned if tiles.rewritten is rewritten else write_model(tiles.rewritten.model)
        known = tiles.arrangement if options is searched else None
        check_model(tiles.cascaded.model)
    return _placed(run, unplanned, tiles.rewritten, tiles.cascaded, tiles.cascaded.model, known, options, before)


def _placed(
    run: Setting,
    unplanned: bytes,
    rewritten: Changed,
    cascaded: Changed,
    model: Model,
    known: Arrangement | None,
    options: Options,
    before: Mapping[str, LibraryNeed] | None,
) -> Shaped:
    """The model, ordered, with a place for every tensor. ``known``: its arrangement, where that is known."""
    profile = run.profile
    with run.clock.stage("arrange"):
        run.progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
        arrangement, options = run.interruption.during(
            "ordering and planning", options, lambda each: known or arrange(model, profile, each)
        )
        fitting = (
            arrangement if before is None else arranged_for_every_library(model, arrangement, before, profile, options)
        )
        arrangement = arrangement if fitting is None else fitting
        others = arena_by_kernels(model, options) if options.all_kernels else {}
        arenas = others | {profile.name: arrangement.placement.memory.arena_bytes}
        model.main.reorder(arrangement.placement.order)
        check_model(model)
        check_loops(model, arrangement.placement)
    return Shaped(
        model,
        unplanned,
        rewritten,
        cascaded,
        arrangement,
        arenas,
        _is_no_worse(run, rewritten, model, fitting, options),
    )


def _is_no_worse(run: Setting, rewritten: Changed, model: Model, fitting: Arrangement | None, options: Options) -> bool:
    """As ``Shaped`` says. ``fitting``: the arrangement under which no library needs more, None if there is none."""
    original, profile = run.original(), run.profile
    # A rewrite must not lead to an operator that a kernel library computes wrongly.
    if not set(miscomputed(model, profile)) <= set(miscomputed(original, profile)):
        return False
    # What TFLM does not load as it came needs nothing, and takes no time, that the result could exceed.
    if any(use.rule == LEGAL_CONCATENATION.name for use in rewritten.uses):
        return True
    return fitting is not None and run.work_limit(options).is_kept_by(model)


def _tile_search(run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None) -> TileSearch:
    """The search for channels in tiles, within the limits on computation that stripes have."""
    most_macs = int(model_macs(run.original()) * (1 + options.max_extra_macs))

    def in_stripes(model: Model, below: int) -> Changed:
        left = _left(run, model, options)
        return cascade(model, run.profile, left, run.progress, below, run.measured, sequences_along_h)

    return TileSearch(run.profile, in_stripes, options, before, most_macs, run.work_limit(options), run.progress)
