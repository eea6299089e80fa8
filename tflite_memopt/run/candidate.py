"""Make one candidate of a model under one set of limits: rewrites, stripes, tiles, order, offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import zip_longest

from ..errors import InfeasibleError
from ..evidence.equivalence.shapes import InferredModel
from ..kernels.faults import FaultMet, new_faults
from ..kernels.mend import kept_forms, mend
from ..kernels.profile import KernelProfile
from ..kernels.since import runs_on
from ..memory.arrange import Arrangement, Cost, ModelPlacement, arrange, cost_in, fitted
from ..memory.figures import least_need
from ..memory.problems import with_ties
from ..memory.reserve import LibraryNeed
from ..memory.work import WorkLimit, instructions, instructions_to_compare
from ..model.analysis.macs import model_macs
from ..model.io import plan_label
from ..model.io.writer import write_model
from ..model.ir.change import Changed, Decision, Exactness, Refusal, loosest
from ..model.ir.check import check_model
from ..model.ir.copying import copy_model, drop_unused_codes
from ..model.ir.model import Model
from ..options import SearchOptions
from ..search.cascade.draft import Draft, Drafts
from ..search.cascade.measure import Key, Measured
from ..search.cascade.search import OtherForm, cascade, drafted_otherwise
from ..search.rewrite.in_one_row import in_one_row
from ..search.rewrite.planes import planes_along_h
from ..search.rewrite.sequences_along_h import sequences_along_h
from ..search.rewrite.stage import mended, rewrite
from ..search.rewrite.tiles import KnownTiles, Striped, TileSearch
from ..search.rewrite.turned_images import turn_images
from ..solvers.graph.limits import StageClock

Progress = Callable[[str], None]


def _rows_along_h(model: Model) -> Changed:
    """Let sequences, images of which windows have all rows, and images with channels first have rows."""
    done = Changed(model)
    for lay in (turn_images, sequences_along_h, planes_along_h):
        laid = lay(copy_model(done.model))
        done = done.then(laid) if laid.uses else done
    return done


_ALONG_H = OtherForm(_rows_along_h, in_one_row)


@dataclass(frozen=True)
class Candidate:
    """A model that may be the result, ordered, with a place for every tensor.

    ``base`` is the rewritten model, before channels are in tiles, ``rewritten`` the model before stripes, ``unplanned``
    its file. ``is_no_worse``: no library of the profile needs more than for the original, none gets slower than the
    limit allows, and there are no ``faults``: of kernels, met by operators in forms that the original does not have.
    """

    base: Model
    rewritten: Changed
    unplanned: bytes
    cascaded: Changed
    arrangement: Arrangement
    is_no_worse: bool
    faults: tuple[FaultMet, ...]

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
        found = replace(self.cascaded.decision, sites=before.sites, is_rolled=before.is_rolled)
        return replace(found, is_rewritten=before.is_rewritten)

    @property
    def exactness(self) -> Exactness:
        """Return the exactness of its rewrites."""
        return loosest(use.exactness for use in self.rewritten.uses)

    def price(self, options: SearchOptions) -> tuple[bool, Cost]:
        """Return the sort key: candidates that make a library need more come last."""
        return not self.is_no_worse, cost_in(self.placement.memory, options)

    def meets_budget(self, options: SearchOptions) -> bool:
        """Return whether there is a budget, and it is met."""
        return self.is_no_worse and options.meets_budget(self.most(options))

    def most(self, options: SearchOptions) -> int:
        """Return the bytes of the objective with the library that needs the most, of those that firmware may link."""
        needs = (self.arrangement.needs or {}).values()
        sizes = (each.required if options.objective == "total" else each.head for each in needs)
        return max(sizes, default=cost_in(self.placement.memory, options).need)


_Asked = tuple[bytes, KernelProfile, SearchOptions, tuple[tuple[str, LibraryNeed], ...] | None]


@dataclass
class Cache:
    """What runs under several limits, and those of parts of one model, have in common.

    ``shaped``: files with the shapes that LiteRT infers, by the file as it came, where no run verifies it.
    ``originals``: models, which nobody changes, by their bytes, which begin all other keys. ``candidates``: by kernels
    and limits, and what each library may need. ``rewritten``: by what rewrites depend on; its models are in ``equals``,
    each once.
    """

    shaped: dict[bytes, InferredModel] = field(default_factory=dict)
    originals: dict[bytes, Model] = field(default_factory=dict)
    equals: dict[Key, Model] = field(default_factory=dict)
    rewritten: dict[tuple[bytes, KernelProfile, SearchOptions], Changed] = field(default_factory=dict)
    candidates: dict[_Asked, Candidate] = field(default_factory=dict)
    measured: Measured = field(default_factory=Measured)
    tiles: KnownTiles = field(default_factory=KnownTiles)


@dataclass(frozen=True)
class RunContext:
    """The state that all attempts of a run share.

    ``data``: the model's file, its shapes as LiteRT infers them; ``original``: what it holds, which nobody changes.
    ``before``: what each library needs for it, None if it runs wrongly. ``worth``: the share of the objective that a
    new operator kind or a newer TFLM must save; 0 where all that saves a byte is taken.
    """

    data: bytes
    original: Model
    profile: KernelProfile
    before: Mapping[str, LibraryNeed] | None
    clock: StageClock
    progress: Progress
    cache: Cache
    worth: float = 0.0

    def saying(self, what: str) -> RunContext:
        """The same, with progress that says what it is of."""
        return replace(self, progress=lambda said: self.progress(f"{what}: {said}"))

    def work_limit(self, options: SearchOptions) -> WorkLimit:
        """The limit on run time: what the options allow to be added to the original, as the libraries need it."""
        return WorkLimit(self._work_before, options.max_slowdown, self.profile)

    @cached_property
    def _work_before(self) -> Mapping[str, int]:
        return instructions_to_compare(self.original, self.profile)


def known_or_made(run: RunContext, options: SearchOptions) -> Candidate:
    """Return the candidate under these limits alone, from the cache if it is there."""
    key = run.data, run.profile, options, None if run.before is None else tuple(run.before.items())
    if key not in run.cache.candidates:
        run.cache.candidates[key] = _fitting(run, options, _made(run, options))
    return run.cache.candidates[key]


def _fitting(run: RunContext, options: SearchOptions, found: Candidate) -> Candidate:
    """Return the candidate, or one of the sets next to its own where that makes a kernel library need more."""
    if found.is_no_worse or found.faults:
        return found
    for decision in found.cascaded.next_best:
        try:
            other = _made(run, options, decision)
        except InfeasibleError:  # what was not planned may exceed the limit on run time
            continue
        if other.is_no_worse:
            # The report says what the search refused, and how far below it looked.
            told = replace(other.cascaded, refused=found.cascaded.refused, least=found.cascaded.least)
            return replace(other, cascaded=told)
    return found


def made_without_loops(run: RunContext, options: SearchOptions, found: Candidate) -> Candidate | None:
    """Return a candidate of what the search for another one found without loops, with tiles under these limits.

    That without stripes where it found none of use; None where rewrites are others under these limits.
    """
    known = found.cascaded.without_loops
    if known is not None and not (known.tilings or known.is_along_h):
        return known_or_made(run, replace(options, cascade=False))
    return None if known is None else _made_again(run, options, found, known)


def _made_again(run: RunContext, options: SearchOptions, found: Candidate, known: Decision) -> Candidate | None:
    return None if _rewritten(run, options).model is not found.base else _made(run, options, known)


def placed_again(run: RunContext, options: SearchOptions, found: Candidate) -> Candidate:
    """Return a candidate that was made for other kernels, its tensors placed for those of the run.

    It counts as worse where it meets a fault of the run's library: for other kernels nothing was mended of that.
    """
    copied = replace(found.cascaded, model=copy_model(found.model))
    order = found.placement.order  # a replay of the decision has the model as it was before
    copied.model.main.reorder(sorted(range(len(order)), key=order.__getitem__))
    placed = _placed(run, options, found.base, Striped(found.rewritten, copied, None), found.unplanned)
    return replace(placed, is_no_worse=placed.is_no_worse and not _mended(run, copy_model(found.model)).uses)


def _made(run: RunContext, options: SearchOptions, stripes: Decision | None = None) -> Candidate:
    """Under one limit: rewritten, in stripes, in tiles, ordered and placed. ``stripes``: those that are known."""
    if options.decision is not None and not options.decision.is_rewritten:
        options = replace(options, rewrite=False)
    with run.clock.stage("rewrite"):
        rewritten = _rewritten(run, options)
    with run.clock.stage("cascade"):
        known = options if stripes is None else replace(options, replay=str(stripes))
        cascaded = _in_stripes(run, known, rewritten.model)
        found = _in_tiles(run, options, rewritten, cascaded)
        check_model(found.cascaded.model)
        unplanned = write_model(found.rewritten.model)
    return _placed(run, options, rewritten.model, found, unplanned)


def _rewritten(run: RunContext, options: SearchOptions) -> Changed:
    """The model with rewrites, which depend neither on stripes nor on a budget: made once, and nobody changes it."""
    key, known = (run.data, run.profile, replace(options, cascade=True, budget=None)), run.cache.rewritten
    if key not in known:
        found = rewrite(_given(run, options), run.profile, options, run.progress)
        plan_label.detach(found.model)
        if options.decision is None:
            found = mended(found, partial(_mended, run))
        else:
            found = replace(found, uses=(*found.uses, *_mended(run, found.model).uses))
        # What is known of one model is known of its equals, which other limits lead to.
        same = run.cache.equals.setdefault(run.cache.measured.whole(found.model, run.profile), found.model)
        known[key] = replace(found, model=same)
    return known[key]


def drafts_of(run: RunContext, options: SearchOptions) -> Drafts | None:
    """Return drafts of the stretches of a model; None where rules change it."""
    is_changed = len(_rewritten(run, options).model.main.operators) != len(run.original.main.operators)
    return None if is_changed else Drafts(run.original, run.profile, options, run.cache.measured, is_cut=True)


def drafted_within(
    run: RunContext, options: SearchOptions, works: Sequence[int], making: int, apart: int | None, own: list[Draft]
) -> list[Draft]:
    """Return what a search would find within each of ``works``; ``own``: in its order and form, where that is drafted.

    Other arguments as of ``Drafts.of``.
    """
    model, measured = _rewritten(run, options).model, run.cache.measured
    if not own:
        drafts = Drafts(model, run.profile, options, measured)
        own = list(drafts.of(0, len(model.main.operators), model, works, making, apart))
    others = drafted_otherwise(model, run.profile, options, works, making, apart, measured, _ALONG_H)
    ways = (filter(None, each) for each in zip_longest(own, *others))
    return [min(each, key=lambda draft: (draft.need, draft.work)) for each in ways]


def least_as_one(run: RunContext, options: SearchOptions) -> int:
    """Return the bytes of the objective that no form of the model goes below, in one file."""
    return least_need(_rewritten(run, options).model, run.profile, options.objective)


def _given(run: RunContext, options: SearchOptions) -> Model:
    """The model as it came, with what the options tie."""
    return with_ties(copy_model(run.original), options.ties, run.profile)


def _in_stripes(run: RunContext, options: SearchOptions, model: Model, below: int | None = None) -> Changed:
    """In stripes within what is left of the limit on run time: rewrites may have used some of it, or saved time."""
    model = copy_model(model)
    done = _mended(run, model)  # with channels in tiles it has other operators
    work = run.work_limit(options)
    if instructions(model, run.profile) != work.before:
        options = replace(options, max_slowdown=work.left_for(model))
    return done.then(cascade(model, run.profile, options, run.progress, below, run.cache.measured, _ALONG_H))


def _mended(run: RunContext, model: Model) -> Changed:
    """Write what a kernel library computes wrongly otherwise."""
    return mend(model, run.profile, kept_forms(run.original, run.profile))


def _in_tiles(run: RunContext, options: SearchOptions, rewritten: Changed, cascaded: Changed) -> Striped:
    """With channels in tiles, within the limits on computation that stripes have."""
    if not options.rewrite:
        return Striped(rewritten, cascaded, None)
    most_macs = int(model_macs(run.original) * (1 + options.max_extra_macs))
    stripes, work = partial(_in_stripes, run, options), run.work_limit(options)
    search = TileSearch(run.profile, stripes, options, run.before, most_macs, work, run.progress, run.cache.tiles)
    return search.run(rewritten, cascaded)


def _placed(run: RunContext, options: SearchOptions, base: Model, found: Striped, unplanned: bytes) -> Candidate:
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
    # A rewrite must not lead to an operator that a kernel library computes wrongly, or that the firmware's TFLM lacks.
    faults = new_faults(model, run.original, profile)
    is_right = not faults and runs_on(model, options.build)
    is_no_worse = is_right and fits and run.work_limit(options).is_kept_by(model)
    return Candidate(base, found.rewritten, unplanned, found.cascaded, arrangement, is_no_worse, faults)


def declined_for_faults(run: RunContext, options: SearchOptions, chosen: Candidate) -> Iterator[Refusal]:
    """Yield why a smaller candidate was declined, if a library computes one of its operators wrongly."""
    known = run.cache.candidates.items()
    faulty = [each for key, each in known if key[:2] == (run.data, run.profile) and each.faults]
    kept = [each for each in faulty if run.work_limit(options).is_kept_by(each.model)]
    least = min([*kept, chosen], key=lambda each: cost_in(each.placement.memory, options))
    for met in least.faults[:1]:
        need = cost_in(least.placement.memory, options).need
        advice = "; --target leaves out other libraries" if run.profile.libraries else ""
        said = f"{met.library} computes wrongly ({met.fault.name}: {met.releases})"
        yield Refusal("cascade", met.output, f"{need:,} bytes in a form that {said}{advice}")
