"""The search for stripes in one order of a model: rounds from narrow to wide limits, work counted and not timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from .select import BaseNeed, Selection, SelectionLimits
from .stop import EmergencyStop
from .striped_region import loop_forms, modes_of

JUDGED = (6, 12, 64)
"""Selections that the planner judges in each round, by effort."""
NEIGHBOURS = (0, 24, 192)
"""Selections next to the best that it judges in each round after that, by effort."""
STEP = 12
"""Neighbours among which one is chosen."""
TURNS = 4
"""Turns of a draft, on average; those that come off best get most."""
FULL = 3
"""Drafts that are planned in full, if they are better than the best that is known."""


class StripeSearch:
    """``unstriped``: what the model costs without stripes, in whatever order; None: in this one."""

    def __init__(
        self, model: Model, profile: KernelProfile, options: Options, stop: EmergencyStop, unstriped: Cost | None = None
    ) -> None:
        self.model, self._profile, self._options, self._stop = model, profile, options, stop
        self.judge = StripeJudge(model, profile, options, unstriped)
        self._terms, self._floor = arena_terms(model, profile), io_lower_bound(model)
        self._candidates: dict[tuple[tuple[str, ...], tuple[str, ...]], Candidates] = {}
        self._best: dict[Round, Chosen] = {}
        self._finder: OptionFinder | None = None

    def run(self) -> Chosen:
        """The best of all rounds, each starting from the best of those that it holds."""
        for each in self._rounds():
            before: list[Chosen] = [found for other, found in self._best.items() if each.holds(other)]
            best = min((*before, ()), key=self.judge.cost)
            if self.is_enough(self.judge.cost(best)):
                return best
            best = self._selected(each, best)
            self._best[each] = self._improved(each, best)
        return min((*self._best.values(), ()), key=self.judge.cost)

    def _rounds(self) -> tuple[Round, ...]:
        options, operators = self._options, len(self.model.main.operators)
        effort = EFFORTS.index(options.effort)
        limits = options.max_extra_macs, self._terms.macs, options.max_extra_operators, operators * 1000
        return tuple(rounds(effort, options.halos, *limits, loop_forms(options)))

    def _selected(self, each: Round, best: Chosen) -> Chosen:
        """Judge the selections of one round by their least need, as long as it is below the best cost."""
        candidates = self._candidates_of(each, self._need(best))
        turn = islice(self._in_turn(candidates, each.limits, self._need(best)), JUDGED[each.effort])
        return self._best_of([candidates.chosen(selection) for selection in turn], best)

    def _improved(self, each: Round, best: Chosen) -> Chosen:
        """Change one region at a time as long as the cost falls."""
        candidates, left = self._candidates_of(each, self._need(best)), NEIGHBOURS[each.effort]
        before: Chosen | None = None
        while best and best != before and left > 0 and not self.is_enough(self.judge.cost(best)):
            others = candidates.near(best, each.limits, self._need(best))[: min(left, STEP)]
            left -= len(others)
            before, best = best, self._best_of(others, best)
        return best

    def _best_of(self, others: Sequence[Chosen], best: Chosen) -> Chosen:
        """The best of all, and ``best`` where none costs less: drafts first, then the full plan of the best drafts.

        Under a budget the first that meets it.
        """
        drafts = []
        for other in others:
            if self._stop.strikes() or self.is_enough(self.judge.cost(best)):
                return best
            drafts.append(self.judge.draft(other))
            if self.is_enough(drafts[-1].cost):
                best = min((best, other), key=self.judge.cost)
        while sum(draft.turns for draft in drafts) < TURNS * len(drafts) and not self._stop.strikes():
            most = min((draft.cost.need for draft in drafts), default=0)
            unfinished = [draft for draft in drafts if not draft.is_done and draft.least < most]
            if not unfinished:
                break
            self.judge.improve(min(unfinished, key=lambda draft: (draft.turns // 2, draft.cost)))
        for draft in sorted(drafts, key=lambda draft: draft.cost)[:FULL]:
            if draft.cost < self.judge.cost(best) and not self._stop.strikes():
                best = min((best, draft.chosen), key=self.judge.cost)
        return best

    def _need(self, chosen: Chosen) -> int:
        return self.judge.cost(chosen).need

    def _in_turn(self, candidates: Candidates, limits: SelectionLimits, most: int) -> Iterator[Selection]:
        """Those within the limits: under a budget the cheapest that may fit, else the smallest least need first."""
        budget = self._options.budget
        if budget is not None:
            within = candidates.within(limits, most)
            yield from sorted((s for s in within if candidates.least(s) <= budget), key=self._price)[: JUDGED[0]]
        yield from candidates.within(limits, most)

    def _price(self, selection: Selection) -> tuple[int, int, int]:
        """What run time a selection costs: whole percents of MACs first, then operators."""
        return 100 * selection.macs // max(1, self._terms.macs), selection.operators, selection.macs

    def _candidates_of(self, turn: Round, known: int) -> Candidates:
        """``known`` is the best need that has been found: loops that cannot come below it are not worked out."""
        kind = turn.halos, turn.loops
        if kind not in self._candidates:
            terms, below = self._terms, self._need(())
            counts_tail = self._options.objective == "total"
            base = BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface, counts_tail)
            widest = self._rounds()[-1].limits
            aim = Aim(self._floor, below, widest, base)
            pinned = {name for name, _ in self._options.pins}
            if self._finder is None:
                self._finder = OptionFinder(self.model, self._profile, aim, pinned)
            options = self._finder.options(modes_of(turn.halos, turn.loops), known)
            self._candidates[kind] = Candidates(options, base, below)
        return self._candidates[kind]

    def is_enough(self, cost: Cost) -> bool:
        return self._options.budget is not None and cost.need <= self._options.budget

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
        widest = self._rounds()[-1]
        found = self._candidates_of(widest, self._need(())).smallest(widest.limits)
        return None if found is None else aligned(found)
