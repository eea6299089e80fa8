"""The search in one order of a model: a lazy branch and bound.

    choose    the cheapest sets of tilings below the incumbent, by their bounds
    measure   the tilings of these sets that have a bound alone, and choose again
    plan      the sets of which all is measured; the best becomes the incumbent
    stop      when no set lies below the incumbent, or when enough has been planned

Work is counted, not timed. A search begins with sets far below the present need, of which there are few.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from ..graph.alignment import ARENA_ALIGNMENT, aligned
from ..graph.clock import EmergencyStop
from ..ir.model import Model
from ..kernels.profile import KernelProfile
from ..memory.cost import Cost
from ..memory.work import model_work
from ..options import Effort, Options
from .measure import Measured
from .plans import Plans
from .select import HEADS, OptionSet
from .space import Forms, Modes, Space, modes_of
from .tiling import Tilings, text_of

Progress = Callable[[float, Cost], None]
_LOG = logging.getLogger(__name__)
PATIENCE: Mapping[Effort, int] = {"quick": 1, "normal": 4, "thorough": 12}
"""How often sets are planned without a better one among them, before it goes on with larger needs."""
_AT_ONCE = 8
"""Sets that are measured or drafted together."""
_IN_FULL = 2
"""Of the sets that are drafted together, those that are planned in full."""
_NEAR = 12
"""Sets next to another one that are drafted."""
_CENTERS: Mapping[Effort, int] = {"quick": 0, "normal": 3, "thorough": 8}
"""How many sets have neighbors that are looked at."""
_CHOICES: Mapping[Effort, int] = {"quick": 30, "normal": 60, "thorough": 240}
"""How often sets are chosen, at most: the iterations of the search."""
_AFTERWARDS = 0.5
"""The part of the limit on work that each step after the search may take."""
_WORK: Mapping[Effort, int] = {"quick": 2_500, "normal": 24_000, "thorough": 200_000}
"""Operators of all models that are planned, after which no more sets are chosen."""
_MEASURED = 4
"""So many operators that are measured take the time of one that is planned."""
_PROMISING = 1.03
"""A draft that needs at most so much more than the incumbent is planned in full."""
_PARTS = (16, 8, 4, 2, 1)
"""Sets are looked for up to a sixteenth of the way from the least possible need to the present one, and on."""


class OrderSearch:
    """``untiled``: what the model costs without tilings, in whatever order. ``least``: a bound, once it has run."""

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: Options,
        stop: EmergencyStop,
        untiled: Cost,
        measured: Measured,
        modes: Modes | None = None,
    ) -> None:
        self.model, self._options, self._stop, self._untiled = model, options, stop, untiled
        pinned = {name for name, _ in options.pins}
        self.space = Space(model, profile, options, measured, modes_of(options) if modes is None else modes, pinned)
        self.plans = Plans(model, profile, options)
        self._work = model_work(model, profile.prices)
        self.least = 0

    def run(self, known: Cost, progress: Progress = lambda *_: None, part: float = 1) -> tuple[Cost, Tilings]:
        """The best set that costs less than ``known``, and its cost; else ``known`` and none. ``part`` of the work."""
        self.space.fill(_cutoff(known), self._stop.strikes)
        _LOG.info("stripes: %d ways to cut a region looked at; %d bytes to beat", self.space.looked_at, known.need)
        best: tuple[Cost, Tilings] = known, ()
        families = self.space.families
        for number, forms in enumerate(families, 1):  # each leaves its share of the work to those behind it
            best = self._descended(best, forms, part * number / len(families), progress)
        best = self._simpler(self._nearby(best, part))
        self.least = min(best[0].need, aligned(self.least))
        return best

    def _descended(
        self, best: tuple[Cost, Tilings], forms: Forms, share: float, progress: Progress
    ) -> tuple[Cost, Tilings]:
        """The best set of these forms, or ``best``. It stops when ``share`` of the limit on work is used up."""
        effort, below = self._options.effort, _cutoff(best[0])
        least, left = self.space.least(forms), _CHOICES[effort]
        for part in _PARTS:
            target, patience = min(below, least + -(-(below - least) // part)), PATIENCE[effort]
            while left and patience and self._has_work(share):
                if self._stop.strikes() or self._options.meets_budget(best[0].need):
                    return best
                left -= 1
                fresh, heads = self._fresh(target, forms)
                if not fresh:
                    break
                ready = list(filter(self.space.is_measured, fresh[:heads]))
                if not ready:
                    self.space.measure([tiling for chosen in fresh for tiling in chosen])
                    continue
                before, best = best, self._best_of(best, ready)
                gap = 100 * (best[0].need - least) / best[0].need
                _LOG.info("%3d sets below %d; bound %d, best %d, gap %.1f %%", heads, target, least, best[0].need, gap)
                patience = PATIENCE[effort] if best != before else patience - 1
                target = min(target, _cutoff(best[0]))
                progress(1 - left / _CHOICES[effort], best[0])
            below = _cutoff(best[0])
            if target >= below:
                break
        return best

    def _nearby(self, best: tuple[Cost, Tilings], share: float) -> tuple[Cost, Tilings]:
        """The neighborhoods of the best sets with heads that differ: a bound says little of how well a plan fits."""
        centers: list[Tilings] = []
        effort = self._options.effort
        while len(centers) < _CENTERS[effort] and self._has_work(share):
            if self._stop.strikes() or self._options.meets_budget(best[0].need):
                break
            center = next((chosen for chosen in self._best_by_head() if chosen not in centers), None)
            if center is None:
                break
            centers.append(center)
            below = _cutoff(best[0])
            near = [chosen for chosen in self.space.near(center, below) if chosen not in self.plans.drafts]
            self.space.measure([tiling for chosen in near[:_NEAR] for tiling in chosen])
            near = [chosen for chosen in self.space.near(center, below) if chosen not in self.plans.drafts]
            best = self._best_of(best, list(filter(self.space.is_measured, near))[:_NEAR], _NEAR)
        return best

    def _best_by_head(self) -> list[Tilings]:
        """The best set with each head, of those that are planned in full; the best of all first."""
        first: dict[int, Tilings] = {}
        for cost, chosen in sorted(self.plans.planned, key=lambda each: (self.plans.price(each[0]), each[1])):
            first.setdefault(self._alike(cost.head), chosen)
        return list(first.values())

    def _alike(self, head: int) -> int:
        """The same for heads that are nearly so."""
        return head // max(1, self._untiled.need // HEADS)

    def _fresh(self, below: int, forms: Forms) -> tuple[list[Tilings], int]:
        """The sets to look at next, and how many of them have heads that differ, which are those to plan.

        They are the cheapest with each head, since plans come nearer to the bound of a larger one; then the next ones.
        Under a budget one by one: what costs least run time first.
        """
        budget = self._options.budget
        found = self.space.choices(below, forms, by_work=budget is not None)
        self.least = found[0][1].least if found else below
        if budget is not None:
            found.sort(key=lambda pair: (pair[1].least > budget, self._run_time(pair[1])))
            return [chosen for chosen, _ in found if chosen not in self.plans.drafts][:1], 1
        first, others = dict[int, Tilings](), list[Tilings]()
        for chosen, choice in found:
            if chosen not in self.plans.drafts and first.setdefault(self._alike(choice.figures.head), chosen) != chosen:
                others.append(chosen)
        return [*first.values(), *others][:_AT_ONCE], len(first)

    def _run_time(self, choice: OptionSet) -> tuple[int, int, int]:
        """What run time a set costs: whole percents of work first, then operators."""
        figures = choice.figures
        return 100 * figures.work // max(1, self._work), figures.operators, figures.macs

    def _best_of(
        self, best: tuple[Cost, Tilings], others: Sequence[Tilings], most: int = _IN_FULL
    ) -> tuple[Cost, Tilings]:
        """Draft these sets, and plan in full ``most`` of them: one that costs less than ``best``, or ``best``."""
        below, price = _cutoff(best[0]), self.plans.price
        self.plans.draft(others, below)
        drafts = [(cost, chosen) for chosen in others if (cost := self.plans.drafts[chosen]) is not None]
        drafts.sort(key=lambda each: (price(each[0]), each[1]))
        good = [chosen for cost, chosen in drafts[:most] if cost.need <= _PROMISING * best[0].need]
        full = zip(self.plans.full(good, below), good, strict=True)
        found = [(cost, chosen) for cost, chosen in full if cost is not None]
        for cost, chosen in found:
            _LOG.info("    planned %d bytes: %s", cost.need, text_of(chosen))
        return min((best, *found), key=lambda each: price(each[0]))

    def _simpler(self, best: tuple[Cost, Tilings]) -> tuple[Cost, Tilings]:
        """Without one tiling after the other: in the scheduler's order fewer may do, which no bound here says."""
        left = self._sets_afterwards(best[0])
        while len(best[1]) > 1 and left and not self._stop.strikes():
            fewer = [best[1][:at] + best[1][at + 1 :] for at in range(len(best[1]))][:left]
            left -= len(fewer)
            found = zip(self.plans.full(fewer, _cutoff(best[0])), fewer, strict=True)
            cheaper = [(cost, chosen) for cost, chosen in found if cost is not None]
            first = min(cheaper, key=lambda each: self.plans.price(each[0]), default=best)
            if self.plans.price(first[0]) >= self.plans.price(best[0]):
                break
            best = first
        return best

    def _sets_afterwards(self, best: Cost) -> int:
        """How many sets like the best one may be planned in a step after the search."""
        return int(_AFTERWARDS * _WORK[self._options.effort]) // max(1, best.operators)

    def _has_work(self, share: float) -> bool:
        """Whether models planned and regions measured have taken less than ``share`` of the limit on work."""
        return self.plans.work + self.space.work // _MEASURED < share * _WORK[self._options.effort]


def _cutoff(cost: Cost) -> int:
    """What a bound must be below, for an objective below a cost: that is a multiple of 16 bytes."""
    return (cost.need - 1) // ARENA_ALIGNMENT * ARENA_ALIGNMENT + 1
