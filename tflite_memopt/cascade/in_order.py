"""The search for stripes in one order of a model: rounds of wide and narrow limits, work counted and not timed."""

from __future__ import annotations

from itertools import islice

from ..analysis.bounds import io_lower_bound
from ..graph.alignment import aligned
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost
from ..options import EFFORTS, Options
from .arena_terms import arena_terms
from .candidates import Candidates
from .judge import Chosen, StripeJudge
from .predict import Aim, OptionFinder
from .rounds import Round, rounds
from .select import BaseNeed
from .stop import EmergencyStop
from .striped_region import modes_of

JUDGED = (6, 12, 64)
"""Selections that the planner judges in each round, by effort: the first ones, then those that follow them."""
NEIGHBOURS = (0, 24, 192)
"""Selections next to the best that it judges in each round after that, by effort."""
STEP = 12
"""Neighbours among which one is chosen."""


class StripeSearch:
    """``unstriped``: what the model costs without stripes, in whatever order."""

    def __init__(
        self, model: Model, profile: KernelProfile, options: Options, stop: EmergencyStop, unstriped: Cost
    ) -> None:
        self.model, self._profile, self._options, self._stop = model, profile, options, stop
        self.judge = StripeJudge(model, profile, options, stop, unstriped)
        self._terms, self._floor, self._unstriped = arena_terms(model, profile), io_lower_bound(model), unstriped
        self._candidates: dict[tuple[str, ...], Candidates] = {}
        self._finder: OptionFinder | None = None
        self._none: Chosen = ()

    def run(self, known: Cost) -> Chosen:
        """The best of all rounds, but of those that cannot get below what is ``known`` to be possible elsewhere.

        Under a budget the narrowest limits come first, and the first that meets it ends the search.
        """
        best = self._none
        in_turn = self._rounds() if self._options.budget is None else reversed(self._rounds())
        for each in in_turn:
            least = self._candidates_of(each.halos).smallest(each.limits)
            if least is None or aligned(least) >= min(known.need, self.judge.cost(best).need):
                continue
            best = min((best, self._best_in(each)), key=lambda chosen: self.judge.price(self.judge.cost(chosen)))
            if self._ends(best):
                break
        return best

    def _ends(self, best: Chosen) -> bool:
        return self._stop.strikes() or self.is_enough(self.judge.cost(best))

    def is_enough(self, cost: Cost) -> bool:
        """Whether the budget is met, so that there is nothing more to look for."""
        return self._options.budget is not None and cost.need <= self._options.budget

    def _rounds(self) -> tuple[Round, ...]:
        options, operators = self._options, len(self.model.main.operators)
        limits = options.max_extra_macs, self._terms.macs, options.max_extra_operators, operators * 1000
        return rounds(options.halos, *limits)

    def _best_in(self, each: Round) -> Chosen:
        """The best of one round, each effort going on from where the one before has ended."""
        candidates, best = self._candidates_of(each.halos), self._none
        for level in range(EFFORTS.index(self._options.effort) + 1):
            if self._ends(best):
                break
            first = islice(candidates.within(each.limits, self.judge.cost(best).need), JUDGED[level])
            best = self.judge.best_of([candidates.chosen(selection) for selection in first], best)
            best = self._improved(each, best, NEIGHBOURS[level])
        return best

    def _improved(self, each: Round, best: Chosen, left: int) -> Chosen:
        """Change one region at a time as long as the cost falls, ``left`` selections being judged at most."""
        candidates = self._candidates_of(each.halos)
        before: Chosen | None = None
        while best and best != before and left > 0 and not self._ends(best):
            others = candidates.near(best, each.limits, self.judge.cost(best).need)[: min(left, STEP)]
            left -= len(others)
            before, best = best, self.judge.best_of(others, best)
        return best

    def _candidates_of(self, halos: tuple[str, ...]) -> Candidates:
        if halos not in self._candidates:
            terms, below = self._terms, self._unstriped.need
            counts_tail = self._options.objective == "total"
            base = BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface, counts_tail)
            widest = self._rounds()[0].limits
            if self._finder is None:
                pinned = {name for name, _ in self._options.pins}
                self._finder = OptionFinder(self.model, self._profile, Aim(self._floor, below, widest, base), pinned)
            self._candidates[halos] = Candidates(self._finder.options(modes_of(halos)), base, widest, below)
        return self._candidates[halos]

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

    def least(self) -> int | None:
        """Bytes that no selection of this order and these limits goes below; None where there is no selection."""
        widest = self._rounds()[0]
        found = self._candidates_of(widest.halos).smallest(widest.limits)
        return None if found is None else aligned(found)
