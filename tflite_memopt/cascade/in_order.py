"""The search for stripes in one order of a model: rounds of wide and narrow limits, work counted and not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ..analysis.bounds import io_lower_bound
from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost
from ..memory.work import model_work
from ..options import EFFORTS, Options
from .arena_terms import ArenaTerms, arena_terms
from .candidates import Candidates
from .judge import Chosen, StripeJudge
from .known_loops import KnownLoops
from .predict import Aim, OptionFinder
from .rounds import Round, rounds
from .selection import BaseNeed, Selection
from .stop import EmergencyStop
from .striped_region import loop_forms, modes_of

FIRST = (4, 24, 64)
"""Selections that are judged in each round, by effort: those of the smallest least need."""
CENTRES = (0, 1, 12)
"""The first of them of which selections next to them are judged as well, by effort,"""
NEIGHBOURS = (0, 8, 16)
"""and how many of each."""
BATCH = 12
"""Selections that are compared with each other."""


class StripeSearch:
    """``unstriped``: what the model costs without stripes, in whatever order. ``known``: what is known of loops."""

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: Options,
        stop: EmergencyStop,
        unstriped: Cost,
        known: KnownLoops,
    ) -> None:
        self.model, self._profile, self._options, self._stop = model, profile, options, stop
        self.judge = StripeJudge(model, profile, options, stop, unstriped)
        self._terms, self._floor, self._unstriped = arena_terms(model, profile), io_lower_bound(model), unstriped
        self._work, self._base = model_work(model, profile.prices), _base_need(self._terms, options)
        self._candidates: dict[tuple[tuple[str, ...], tuple[str, ...]], Candidates] = {}
        self._barren: list[tuple[Round, int]] = []
        """Rounds that have no selection whose least need is below so many bytes."""
        self._finder: OptionFinder | None = None
        self._known = known
        self._best: Chosen = ()

    def run(self, known: Cost, progress: Callable[[float, Cost], None] = lambda *_: None) -> Chosen:
        """The best of all rounds, of what may cost less than is ``known`` to be possible elsewhere.

        Under a budget the narrowest limits come first, and the first that meets it ends the search. ``progress`` is
        told the share of the rounds that are done, and the least cost that is known.
        """
        in_turn = self._rounds() if self._options.budget is None else self._rounds()[::-1]
        for number, each in enumerate(in_turn):
            for batch in self._batches(each, known):
                progress(number / len(in_turn), min(known, self.judge.cost(self._best)))
                self._best = self.judge.best_of(batch, self._best, known.need)
                if self._ends():
                    return self._best
        self._best = self.judge.best_of_the_next(self._best, known.need)
        return self._best

    def run_widest(self, known: Cost) -> Chosen:
        """As ``run``, the round with the widest limits alone."""
        for batch in self._batches(self._rounds()[0], known):
            self._best = self.judge.best_of(batch, self._best, known.need)
        return self._best

    def _batches(self, each: Round, known: Cost) -> Iterator[list[Chosen]]:
        """What one round judges: by its limits and the effort, whatever comes off well; without what is hopeless.

        So a batch of a narrow round is the same in every search that has it, less what cannot be the answer there.
        """
        if any(each.is_within(wider) and self._below(known) <= most for wider, most in self._barren):
            return
        candidates = self._candidates_of(each, self._below(known))
        yield from self._cheapest(candidates, each)
        centres: list[Chosen] = []
        for level in range(EFFORTS.index(self._options.effort) + 1):
            below = self._below(known)
            found = islice(candidates.within(each.limits, below), FIRST[level])
            first = [candidates.chosen(selection) for selection in found]
            if not first:
                self._barren.append((each, below))
                return
            start = FIRST[level - 1] if level else 0
            for at in range(start, len(first), BATCH):
                yield first[at : at + BATCH]
            for centre in first[: CENTRES[level]]:
                if centre not in centres or level > 1:
                    near = candidates.near(centre, each.limits, self._below(known))
                    yield near[: NEIGHBOURS[level]]
            centres += first[: CENTRES[level]]

    def _cheapest(self, candidates: Candidates, each: Round) -> Iterator[list[Chosen]]:
        """Under a budget, those that may meet it, one by one: what costs least run time first."""
        if self._options.budget is not None:
            found = sorted(candidates.within(each.limits, self._options.budget + 1), key=self._run_time)
            for selection in found[:BATCH]:
                yield [candidates.chosen(selection)]

    def _run_time(self, selection: Selection) -> tuple[int, int, int]:
        """What run time a selection costs: whole percents of work first, then operators."""
        return 100 * selection.work // max(1, self._work), selection.operators, selection.macs

    def _below(self, known: Cost) -> int:
        """What a least need must be below, for an objective below all that is known: it is a multiple of 16 bytes."""
        need = min(known.need, self.judge.cost(self._best).need)
        return (need - 1) // ARENA_ALIGNMENT * ARENA_ALIGNMENT + 1

    def _ends(self) -> bool:
        return self._stop.strikes() or self.is_enough(self.judge.cost(self._best))

    def is_enough(self, cost: Cost) -> bool:
        """Whether the budget is met, so that there is nothing more to look for."""
        return self._options.budget is not None and cost.need <= self._options.budget

    def _rounds(self) -> tuple[Round, ...]:
        options = self._options
        whole = self._terms.macs, self._work
        limits = options.max_extra_macs, *whole, options.max_extra_operators, self._any_number
        return rounds(options.halos, *limits, loop_forms(options), options.extra_work)

    @property
    def _any_number(self) -> int:
        return len(self.model.main.operators) * 1000

    def least_around_the_peak(self, known: Cost) -> int:
        """Bytes that stripes in this order do not go below, by the step that needs most alone; to be asked for first.

        What is ``known`` to be possible, where they do not come below it.
        """
        widest = self._rounds()[0]
        return self._options_finder().least(modes_of(widest.halos, widest.loops), self._below(known))

    def _candidates_of(self, each: Round, below: int) -> Candidates:
        """What cannot need less than ``below`` bytes is not worked out."""
        kind = each.halos, each.loops
        if kind not in self._candidates:
            options = self._options_finder().options(modes_of(each.halos, each.loops), below)
            counts_run_time = self._options.budget is not None
            self._candidates[kind] = Candidates(options, self._base, self._unstriped.need, counts_run_time)
        return self._candidates[kind]

    def _options_finder(self) -> OptionFinder:
        if self._finder is None:
            pinned = {name for name, _ in self._options.pins}
            aim = Aim(self._floor, self._unstriped.need, self._rounds()[0].limits, self._base)
            jobs = self._options.jobs
            self._finder = OptionFinder(self.model, self._profile, aim, pinned, jobs=jobs, known=self._known)
        return self._finder

    @property
    def has_options(self) -> bool:
        """Whether any region may be worth running in stripes."""
        return any(each.options.options for each in self._candidates.values())

    @property
    def needs(self) -> tuple[int, ...]:
        """Bytes of head that each step needs at least as it stands; none before ``run``."""
        return next((each.options.needs for each in self._candidates.values()), ())

    @property
    def looked_at(self) -> int:
        """Ways to cut a region that were worked out."""
        return 0 if self._finder is None else self._finder.looked_at

    def least(self) -> int:
        """Bytes that nothing in this order and within these limits goes below, be it in stripes or not."""
        widest = self._rounds()[0]
        return aligned(self._candidates_of(widest, self._unstriped.need).smallest(widest.limits))


def _base_need(terms: ArenaTerms, options: Options) -> BaseNeed:
    return BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface, options.objective == "total")
