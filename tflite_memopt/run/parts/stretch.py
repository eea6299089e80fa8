"""The RAM of stretches of a model's steps as parts: bounds of their tensors, drafts, and parts that are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ...kernels.arena import arena_beside_head
from ...kernels.profile import KernelProfile
from ...memory.figures import least_tail
from ...memory.reserve import Needs, needs_by_library
from ...memory.work import construction, instructions, model_work, moving
from ...model.io.writer import write_model
from ...model.ir.model import Model, Tensor
from ...options import Effort, Options
from ...search.cascade.draft import Drafts
from ...solvers.graph.alignment import aligned
from ...solvers.graph.limits import StageClock
from ..candidate import Cache, Candidate, Progress, RunContext, drafted_within, drafts_of, known_or_made
from .choice import Price, Stretch
from .cutting import crossing, part_of
from .handover import least_arena
from .space import counted_library, part_space

SHARE = 1_000_000
"""Of the limit on added run time: a work of so much uses all of it."""
_MOST_CUTS: Mapping[Effort, int] = {"quick": 14, "normal": 40, "thorough": 40}
"""Positions that may be cut: of more, those where the fewest bytes cross."""
_DRAFTED: Effort = "quick"
"""With which stretches are measured; those that are chosen are searched as the options have it."""
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.1, 0.0)
"""Of the work that a stretch may add beside interpreters: a stretch has a price within each."""


@dataclass(frozen=True)
class PartFacts:
    """Of a part as it is: bytes of TFLM's structures, and instructions to make its interpreter."""

    tail: int
    construction: Mapping[str, int]


@dataclass(frozen=True)
class PartLimits:
    """The run time that a stretch may add, as a share of its own, and what it may have."""

    max_slowdown: float
    stripes: bool
    loops: bool


@dataclass
class StretchCosts:
    """Prices of the stretches of ``model``, which runs in the order in which it stands and is not changed.

    The work of a stretch is the added work, including its interpreter, as a share of what the options allow the
    whole model; of several kernel libraries, that of the one which uses most of its own.
    ``original``: instructions by kernel library that the limit is a share of, where they are not those of ``model``.
    ``cache``: as of ``optimize``.
    """

    model: Model
    options: Options
    progress: Progress
    found: dict[tuple[Stretch, int], Candidate] = field(default_factory=dict)
    original: Mapping[str, int] | None = None
    cache: Cache = field(default_factory=Cache)
    _limits: dict[Stretch, list[PartLimits]] = field(default_factory=dict, init=False)
    _facts: dict[Stretch, PartFacts] = field(default_factory=dict, init=False)
    _work: dict[Stretch, Mapping[str, int]] = field(default_factory=dict, init=False)

    @cached_property
    def most_work(self) -> int:
        """Return the work that a path may add, at most ``SHARE``: less if the model takes more than the original."""
        return SHARE - max(self._share(name, each - self.counted_from[name]) for name, each in self._before.items())

    @property
    def counts_head(self) -> bool:
        """Return whether bytes are those of the head, in place of the whole arena."""
        return self.options.objective == "head"

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Both ends, and the positions between them that may be cut."""
        sizes = [sum(tensor.nbytes for tensor in tensors) for tensors in self._across]
        inner = list(range(1, len(sizes) - 1))
        most = _MOST_CUTS[self.options.effort]
        if len(inner) > most:
            narrow = [at for at in inner if sizes[at] <= min(sizes[at - 1], sizes[at + 1])]
            inner = sorted(narrow or inner, key=lambda at: sizes[at])[:most]
        return (0, *sorted(inner), len(sizes) - 1)

    def least(self, stretch: Stretch) -> int:
        """Return a lower bound in bytes at once: the larger side of the interface, and structures of filters."""
        return max(map(self.least_side, stretch)) + self.least_filters(stretch)

    def least_side(self, at: int) -> int:
        """Return a lower bound on bytes that cross: what a part takes lies apart, but outputs may be views."""
        sizes = [tensor.nbytes for tensor in self._across[at]]
        return max(sizes, default=0) if at == len(self._across) - 1 else sum(sizes)

    def least_filters(self, stretch: Stretch) -> int:
        """Return the bytes of TFLM's structures in every form; 0 where the head alone counts."""
        first, end = stretch
        profile = counted_library(self._profile)
        return 0 if self.counts_head else least_tail(self.model.main.operators[first:end], profile)

    def estimate(self, stretch: Stretch) -> int:
        """Bytes: the larger side of the interface, and TFLM's structures for the operators as they are."""
        sides = (sum(tensor.nbytes for tensor in self._across[at]) for at in stretch)
        return max(sides) + self.least_tail(stretch)

    def bound(self, stretch: Stretch) -> Price | None:
        """Return what no price of a stretch is below, told at once; None of the whole, which no cut makes."""
        is_whole = stretch == (0, self.positions[-1])
        return None if is_whole else Price(self.estimate(stretch), self.least_work(stretch))

    def more(self, stretch: Stretch, other: Stretch) -> int:
        """Return the bytes that ``other``, around a stretch, needs beyond it at least: it has more structures.

        What crosses an end of the stretch alone need not be there as a whole.
        """
        ends = (at for at, end in zip(stretch, other, strict=True) if at != end)
        freed = sum(tensor.nbytes for at in ends for tensor in self._across[at])
        return self.least_tail(other) - self.least_tail(stretch) - freed

    def least_tail(self, stretch: Stretch) -> int:
        """Return the bytes of TFLM's structures for the operators as they are; 0 where the head alone counts."""
        return 0 if self.counts_head else self._as_it_is(stretch).tail

    def least_work(self, stretch: Stretch) -> int:
        """Making the interpreter of the part."""
        return max(self._share(name, each) for name, each in self._as_it_is(stretch).construction.items())

    def least_work_before(self, at: int) -> int:
        """All that is before a cut, as one part; 0 where there is nothing."""
        return self.least_work((0, at)) if at else 0

    def least_work_behind(self, at: int) -> int:
        """All that is behind a cut, as one part; 0 where there is nothing."""
        return self.least_work((at, self.positions[-1])) if at < self.positions[-1] else 0

    def own_work(self, stretch: Stretch) -> Mapping[str, int]:
        """Return the instructions of the operators as they are, by kernel library."""
        if stretch not in self._work:
            self._work[stretch] = instructions(part_of(self.model, *stretch), self._profile)
        return self._work[stretch]

    def _as_it_is(self, stretch: Stretch) -> PartFacts:
        """Compute the facts of a part once."""
        if stretch not in self._facts:
            part, profile = part_of(self.model, *stretch), counted_library(self._profile)
            tail = arena_beside_head(part, profile.requests, profile.abi, planner="table").tail
            self._facts[stretch] = PartFacts(tail, self._construction(stretch, part))
        return self._facts[stretch]

    def draft(self, stretch: Stretch) -> list[Price]:
        """Return prices of a stretch, about: within all the work that is left for it, and within shares of that."""
        self.progress(f"drafting operators {stretch[0]} to {stretch[1] - 1} as a part")
        part, own = part_of(self.model, *stretch), self.own_work(stretch)
        beside = self.least_work_before(stretch[0]), self.least_work_behind(stretch[1])
        left = (self.most_work - self.least_work(stretch) - sum(beside)) / SHARE
        if left < 0:
            return []
        widest = min([1.0, *(left * self._allowed[name] / each for name, each in own.items() if each)])
        apart = sum(aligned(tensor.nbytes) for tensor in part.main.inputs) if stretch[0] else None
        shares = [widest * share for share in (_SHARES if self.options.cascade else _SHARES[-1:])]
        prices, least, found = self._profile.prices, self.least_work(stretch), dict[Price, PartLimits]()
        whole = max(1, model_work(part, prices))
        making = 100 * (prices.making.operator + prices.making.tensor)  # at least: most have a constant, too
        works = [int(whole * share) for share in shares]
        options = self.options_within(PartLimits(widest, stripes=True, loops=True)).search
        known = [] if self._drafts is None else list(self._drafts.of(*stretch, part, works, making, apart))
        drafts = drafted_within(self._run(part), options, works, making, apart, known)
        for share, draft in zip(shares, drafts, strict=True):
            # A plan, or another library, may need more than the draft: all the work of the share may do then.
            for spent in (min(share, max(0.0, draft.work / whole)), share):
                work = least + max(self._share(name, each * spent) for name, each in own.items())
                limits = PartLimits(
                    max(0.0, spent - draft.making / whole), draft.is_tiled, draft.has_loop or not stretch[0]
                )
                found.setdefault(Price(draft.need, work), limits)
        if not any(each.stripes for each in found.values()):  # then tiles of channels may do, which drafts leave out
            limits = PartLimits(widest, stripes=False, loops=False)
            found = {self._made(stretch, limits, _DRAFTED)[0]: limits} | found
        self._limits[stretch] = list(found.values())
        return list(found)

    def measure(self, stretch: Stretch, limit: int) -> Price:
        """Make the part within the limits of a draft."""
        self.progress(f"measuring operators {stretch[0]} to {stretch[1] - 1} as a part")
        price, self.found[stretch, limit] = self._made(stretch, self._limits[stretch][limit], _DRAFTED)
        return price

    def searched(self, stretch: Stretch, limit: int) -> Candidate:
        """Return the candidate for a stretch that was measured under a limit, or a better one of a longer search."""
        drafted = self.found[stretch, limit]
        if self.options.effort == _DRAFTED:
            return drafted
        price = self._price(stretch, part_of(self.model, *stretch), drafted)
        other, found = self._made(stretch, self._limits[stretch][limit], self.options.effort)
        is_better = other.need < price.need and other.work <= price.work
        return found if is_better else drafted

    def _made(self, stretch: Stretch, limits: PartLimits, effort: Effort) -> tuple[Price, Candidate]:
        part = part_of(self.model, *stretch)
        run = replace(self._run(part), before=self.most_needed(part))
        found = known_or_made(run, replace(self.options_within(limits).search, effort=effort))
        return self._price(stretch, part, found), found

    def _run(self, part: Model) -> RunContext:
        return RunContext(write_model(part), part, self._profile, None, StageClock(), lambda _: None, self.cache)

    def most_needed(self, part: Model) -> Needs | None:
        """Return what no library may need more than; None where nothing is searched that could."""
        return needs_by_library(part, {}, self._profile)

    def _price(self, stretch: Stretch, part: Model, found: Candidate) -> Price:
        own = instructions(part, self._profile)
        after, made = instructions(found.model, self._profile), self._construction(stretch, found.model)
        added = max(self._share(name, after[name] - own[name] + made[name]) for name in own)
        if self.counts_head:
            return Price(found.placement.memory.arena_bytes, max(0, added))
        space = part_space(found.model, counted_library(self._profile), found.placement.offsets)
        return Price(least_arena(space) if stretch[0] else space.required, max(0, added))

    def options_for(self, stretch: Stretch, limit: int) -> Options:
        """Return the options of a part within one of the limits of its drafts."""
        return self.options_within(self._limits[stretch][limit])

    def options_within(self, limits: PartLimits) -> Options:
        """Return the options of a part within limits."""
        cascade, loops = self.options.cascade and limits.stripes, self.options.loops and limits.loops
        return replace(self.options, budget=None, max_slowdown=limits.max_slowdown, cascade=cascade, loops=loops)

    @cached_property
    def _drafts(self) -> Drafts | None:
        left = self.most_work - min(map(self.least_work_before, self.positions))  # a front may save some
        widest = PartLimits(max(0.0, min(1.0, self.options.max_slowdown * left / SHARE)), stripes=True, loops=True)
        return drafts_of(self._run(self.model), self.options_within(widest).search)

    @cached_property
    def _profile(self) -> KernelProfile:
        return self.options.profile

    @cached_property
    def _across(self) -> list[tuple[Tensor, ...]]:
        return crossing(self.model)

    @cached_property
    def _allowed(self) -> Mapping[str, float]:
        """Instructions that may be added, by kernel library."""
        return {name: each * self.options.max_slowdown for name, each in self.counted_from.items()}

    @cached_property
    def counted_from(self) -> Mapping[str, int]:
        """Return the instructions that the limit on run time is a share of, by kernel library."""
        return self._before if self.original is None else self.original

    @cached_property
    def _before(self) -> Mapping[str, int]:
        return instructions(self.model, self._profile)

    def _construction(self, stretch: Stretch, part: Model) -> Mapping[str, int]:
        """Instructions of making the interpreter of a part in each run; that of the whole model is made once.

        Tensors that cross the cut are assumed to be moved once before it.
        """
        made = construction(part, self._profile)
        moved = moving(sum(tensor.nbytes for tensor in part.main.inputs)) if stretch[0] else 0
        is_whole = stretch == (0, len(self.model.main.operators))
        return {name: 0 if is_whole else each + moved for name, each in made.items()}

    def _share(self, name: str, added: float) -> int:
        allowed = self._allowed[name]
        return int(SHARE * added / allowed) if allowed else (0 if added <= 0 else 2 * SHARE)


@dataclass
class ResultCosts(StretchCosts):
    """Prices of the stretches of a result, ``model``, in parts as it is: its stripes and its order stay.

    The options are for a search without any. ``steps``: the bytes of the head while each operator runs.
    """

    steps: tuple[int, ...] = ()

    def estimate(self, stretch: Stretch) -> int:
        """Bytes: the head of the operator that needs most, and TFLM's structures."""
        first, end = stretch
        return max(self.steps[first:end]) + self.least_tail(stretch)

    def draft(self, stretch: Stretch) -> list[Price]:
        """Return what its operators need."""
        self._limits[stretch] = [PartLimits(self.options.max_slowdown, False, False)]
        return [Price(self.estimate(stretch), self.least_work(stretch))]

    def most_needed(self, part: Model) -> None:
        """Nothing is searched."""
