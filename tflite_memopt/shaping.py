"""A model rewritten, in stripes, in tiles, ordered and placed: the best that the limits and narrower ones lead to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from .cascade.known_loops import KnownLoops
from .cascade.narrower import narrower
from .cascade.rounds import limits_at
from .cascade.search import cascade
from .equivalence.original import Original
from .equivalence.pool import Interpreters
from .io import offline_plan, plan_label
from .io.reader import read_model
from .io.writer import write_model
from .ir.change import Changed, Refusal
from .ir.check import check_model
from .ir.model import Model
from .kernels.profile import KernelProfile
from .memory.arrange import Arrangement, arena_by_kernels, arrange
from .memory.cost import Cost, cost_in
from .memory.every_library import arranged_for_every_library
from .memory.libraries import LibraryNeed, miscomputed
from .memory.reading import read_planned
from .memory.run_through import check_loops
from .options import Options
from .report.interruption import Interruption
from .report.stage_clock import StageClock
from .rewrite.rules.legal_concatenation import LEGAL_CONCATENATION
from .rewrite.tile_search import TileSearch, TilesFound

Progress = Callable[[str], None]
_NOTHING_BETTER = Refusal("cascade", "the search", "the widest limits found nothing better than narrower ones")


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
    looked_at: Original | None
    notes: list[str]
    answers: Answers
    loops: KnownLoops
    running: Interpreters | None = None
    """The interpreters of the look at the original, where it went on beside the search."""

    def original(self) -> Model:
        """The model as it came, which nobody changes."""
        return read_model(self.data) if self.looked_at is None else self.looked_at.model


@dataclass(frozen=True)
class Shaped:
    """What the stages that change the graph and place its tensors made of the model.

    ``unplanned`` is the rewritten model as a file, before stripes. ``is_no_worse``: no library of the profile needs
    more than for the original, or TFLM loads the model only now.
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

    def meets_budget(self, options: Options) -> bool:
        """Whether there is a budget, and it is met."""
        is_over, cost = self.price(options)
        return options.budget is not None and not is_over and cost.need <= options.budget


@dataclass(frozen=True)
class Answers:
    """What the stages made of one model, by the options: it is asked for again by runs with wider limits."""

    found: dict[Options, Shaped] = field(default_factory=dict)


@dataclass(frozen=True)
class StripedModel:
    """The model rewritten, as a file too, and in stripes. ``options``: for what comes after, as for :func:`shape`."""

    rewritten: Changed
    unplanned: bytes
    cascaded: Changed
    options: Options


def best_within(
    run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None, early: StripedModel | None
) -> Shaped:
    """What costs least of what these options and those with narrower limits lead to; the first to meet a budget is it.

    ``before`` as for :func:`shape`; ``early``: the model in stripes by these options, where that is known.
    """
    every, found = (*narrower(options), options), list[Shaped]()
    for number, each in enumerate(every, 1):
        here = run if len(every) == 1 else _said_of(run, f"limits {number} of {len(every)}")
        found.append(_known_or_shaped(here, each, before, early if each is options else None))
        if run.interruption.said or found[-1].meets_budget(options):
            break
    best = min(found, key=lambda shaped: shaped.price(options))
    if best is found[-1] or len(found) < len(every):
        return best
    return replace(best, cascaded=replace(best.cascaded, refused=(*best.cascaded.refused, _NOTHING_BETTER)))


def _said_of(run: Setting, what: str) -> Setting:
    """The same, with progress that says what it is of."""
    return replace(run, progress=lambda said: run.progress(f"{what}: {said}"))


def _known_or_shaped(
    run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None, early: StripedModel | None
) -> Shaped:
    known = run.answers.found.get(options)
    if known is not None:
        return known
    shaped = shape(run, stripe(run, options) if early is None else early, before)
    if not run.interruption.said:
        run.answers.found[options] = shaped
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
            "the search for stripes", options, lambda each: run.stages.cascade(rewritten.model, profile, each, progress)
        )
    return StripedModel(rewritten, unplanned, cascaded, options)


def shape(run: Setting, striped: StripedModel, before: Mapping[str, LibraryNeed] | None) -> Shaped:
    """Tiles, order and plan; ``before`` is what each library needs for the original, None if it runs wrongly."""
    clock, progress, profile, interruption = run.clock, run.progress, run.profile, run.interruption
    rewritten, cascaded, options, unplanned = striped.rewritten, striped.cascaded, striped.options, striped.unplanned

    with clock.stage("cascade"):
        tiles, searched = TilesFound(rewritten, cascaded), options
        if run.stages.has_tiles:
            tiles, options = interruption.during(
                "the search for tiles",
                options,
                lambda each: _tile_search(run, each, before).run(rewritten, cascaded),
            )
            unplanned = unplanned if tiles.rewritten is rewritten else write_model(tiles.rewritten.model)
        known = tiles.arrangement if options is searched else None
        model = tiles.cascaded.model
        check_model(model)

    with clock.stage("arrange"):
        progress(f"ordering {len(model.main.operators)} operators, placing {len(model.main.tensors)} tensors")
        arrangement, options = interruption.during(
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
    # What TFLM does not load as it came has no need that the result could exceed.
    is_no_worse = fitting is not None or any(use.rule == LEGAL_CONCATENATION.name for use in tiles.rewritten.uses)
    # A rewrite must not lead to an operator that a kernel library computes wrongly.
    is_no_worse = is_no_worse and set(miscomputed(model, profile)) <= set(miscomputed(run.original(), profile))
    return Shaped(model, unplanned, tiles.rewritten, tiles.cascaded, arrangement, arenas, is_no_worse)


def _tile_search(run: Setting, options: Options, before: Mapping[str, LibraryNeed] | None) -> TileSearch:
    """The search for channels in tiles, within the limits on computation that stripes have."""

    def most(macs: int, work: int) -> tuple[int, int]:
        more = limits_at(options.max_extra_macs, macs, work, 0, options.max_extra_work)
        return macs + more.macs, work + more.work

    return TileSearch(run.profile, partial(cascade, known=run.loops), options, before, most, run.progress)
