"""The cascading stage: predict what regions need in stripes, select, and let the planner judge.

Work is counted, not timed: the same model and options give the same answer on every machine. The time limit is an
emergency stop, and the report says so when it struck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..analysis.bounds import io_lower_bound
from ..graph.alignment import aligned
from ..ir.change import OUT_OF_TIME, Refusal, RewriteUse
from ..ir.model import Model, Operator
from ..ir.names import label, stem
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost
from ..options import EFFORTS, Options
from .arena_terms import arena_terms
from .candidates import Candidates
from .judge import Chosen, StripeJudge
from .predict import Aim, striping_options
from .region import region_of
from .rounds import Round, rounds
from .select import BaseNeed, Selection, SelectionLimits
from .striped_region import StripedRegion, modes_of

JUDGED = (6, 16, 64)
"""Selections that the planner judges in each round, by effort."""
NEIGHBOURS = (0, 24, 192)
"""Selections next to the best that it judges in each round after that, by effort."""
STEP = 12
"""Neighbours among which one is chosen."""
TURNS = 3
"""Turns of a draft, on average; those that come off best get most."""
FULL = 3
"""Drafts that are planned in full, if they are better than the best that is known."""
_RULE = "cascade"
_DRAFT = "a draft of its plan was not among the best"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Cascaded:
    """The model to order and plan, what was done to it, and what was not for which reason."""

    model: Model
    uses: tuple[RewriteUse, ...]
    refused: tuple[Refusal, ...]


def cascade(model: Model, profile: KernelProfile, options: Options, progress: Progress) -> Cascaded:
    """Run regions stripe by stripe where that lowers the objective, or as little as meets the budget.

    ``model`` itself is returned where nothing is gained; it may be left in another order.
    """
    if not options.cascade or not model.main.operators:
        return Cascaded(model, (), ())
    return _Cascading(model, profile, options, progress).run()


class _Cascading:
    def __init__(self, model: Model, profile: KernelProfile, options: Options, progress: Progress) -> None:
        self._model, self._profile, self._options, self._progress = model, profile, options, progress
        self._deadline = time.monotonic() + options.time_limit
        self._is_late = False
        self._judge = StripeJudge(model, profile, options)
        self._candidates: dict[tuple[str, ...], Candidates] = {}
        self._best: dict[Round, Chosen] = {}

    def run(self) -> Cascaded:
        self._order()
        self._terms = arena_terms(self._model, self._profile)
        first = self._judge.cost(())
        self._floor = io_lower_bound(self._model)
        if first.head <= self._floor or self._is_enough(first):
            return Cascaded(self._model, (), ())
        self._progress("looking for regions to run in stripes")
        best = self._search()
        if not any(each.options.options for each in self._candidates.values()):
            return Cascaded(self._model, (), (self._no_region(),))
        refused = (*self._summary(best), *self._refusals(best))
        if not best:
            return Cascaded(self._model, (), refused)
        return Cascaded(self._judge.striped(best), tuple(self._use(each, best) for each in best), refused)

    def _order(self) -> None:
        """Regions are intervals of steps: of the order that the model would have without stripes."""
        self._model.main.reorder(arrange(self._model, self._profile, self._options).placement.order)

    def _search(self) -> Chosen:
        """The best of all rounds, each starting from the best of those that it holds."""
        for each in self._rounds():
            before: list[Chosen] = [found for other, found in self._best.items() if each.holds(other)]
            best = min((*before, ()), key=self._judge.cost)
            if self._is_enough(self._judge.cost(best)):
                return best
            best = self._selected(each, best)
            self._best[each] = self._improved(each, best)
            self._progress(f"stripes: {len(self._judge.drafts)} planned, best {self._judge.cost(best).need:,} bytes")
        return min((*self._best.values(), ()), key=self._judge.cost)

    def _rounds(self) -> tuple[Round, ...]:
        options, operators = self._options, len(self._model.main.operators)
        effort = EFFORTS.index(options.effort)
        limits = options.max_extra_macs, self._terms.macs, options.max_extra_operators, operators * 1000
        return tuple(rounds(effort, options.halos, *limits))

    def _selected(self, each: Round, best: Chosen) -> Chosen:
        """Judge the selections of one round by their least need, as long as it is below the best cost."""
        candidates = self._candidates_of(each.halos)
        turn = islice(self._in_turn(candidates, each.limits, self._need(best)), JUDGED[each.effort])
        return self._best_of([candidates.chosen(selection) for selection in turn], best)

    def _improved(self, each: Round, best: Chosen) -> Chosen:
        """Change one region at a time as long as the cost falls."""
        candidates, left = self._candidates_of(each.halos), NEIGHBOURS[each.effort]
        before: Chosen | None = None
        while best and best != before and left > 0 and not self._is_enough(self._judge.cost(best)):
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
            if self._stops() or self._is_enough(self._judge.cost(best)):
                return best
            drafts.append(self._judge.draft(other))
            if self._is_enough(drafts[-1].cost):
                best = min((best, other), key=self._judge.cost)
        while sum(draft.turns for draft in drafts) < TURNS * len(drafts) and not self._stops():
            unfinished = [draft for draft in drafts if not draft.is_done]
            if not unfinished:
                break
            self._judge.improve(min(unfinished, key=lambda draft: (draft.turns // 3, draft.cost)))
        for draft in sorted(drafts, key=lambda draft: draft.cost)[:FULL]:
            if draft.cost < self._judge.cost(best) and not self._stops():
                best = min((best, draft.chosen), key=self._judge.cost)
        return best

    def _need(self, chosen: Chosen) -> int:
        return self._judge.cost(chosen).need

    def _in_turn(self, candidates: Candidates, limits: SelectionLimits, most: Callable[[], int]) -> Iterator[Selection]:
        """Those within the limits: under a budget the cheapest that may fit, else the smallest least need first."""
        budget = self._options.budget
        if budget is not None:
            within = candidates.within(limits, most)
            yield from sorted((s for s in within if candidates.least(s) <= budget), key=self._price)[: JUDGED[0]]
        yield from candidates.within(limits, most)

    def _price(self, selection: Selection) -> tuple[int, int, int]:
        """What run time a selection costs: whole percents of MACs first, then operators."""
        return 100 * selection.macs // max(1, self._terms.macs), selection.operators, selection.macs

    def _candidates_of(self, halos: tuple[str, ...]) -> Candidates:
        if halos not in self._candidates:
            terms, below = self._terms, self._need(())
            counts_tail = self._options.objective == "total"
            base = BaseNeed(terms.least_tail, terms.temporaries_with(0, 0, 0), terms.interface, counts_tail)
            widest = self._rounds()[-1].limits
            aim = Aim(self._floor, below, widest, base)
            pinned = {name for name, _ in self._options.pins}
            options = striping_options(self._model, self._profile, aim, modes_of(halos), pinned)
            self._candidates[halos] = Candidates(options, base, below)
        return self._candidates[halos]

    def _is_enough(self, cost: Cost) -> bool:
        return self._options.budget is not None and cost.need <= self._options.budget

    def _stops(self) -> bool:
        self._is_late = self._is_late or time.monotonic() > self._deadline
        return self._is_late

    def _use(self, each: StripedRegion, best: Chosen) -> RewriteUse:
        without = tuple(other for other in best if other != each)
        names = tuple(label(operator) for operator in self._model.main.operators[each.first : each.end])
        saved = self._judge.cost(without).need - self._judge.cost(best).need
        return RewriteUse(f"cascade in {self._said(each)}", names, "exact", saved)

    def _said(self, each: StripedRegion) -> str:
        return each.said(self._model.main.operators[each.end - 1].outputs[0].shape[1])

    def _summary(self, best: Chosen) -> Iterator[Refusal]:
        """How good the answer is, and whether the clock has ended the search."""
        if self._is_late:
            yield Refusal(_RULE, "the search", OUT_OF_TIME)
            return
        if self._options.budget is not None:
            return
        need, least = self._need(best), self._candidates_of(self._rounds()[-1].halos).smallest(self._rounds()[-1].limits)
        looked_at = sum(each.options.looked_at for each in self._candidates.values())
        said = f"{looked_at:,} ways to cut a region worked out, {len(self._judge.drafts)} selections planned"
        if least is not None and aligned(least) < need:
            yield Refusal(_RULE, "the search", f"{said}: none can need less than {aligned(least):,} bytes")
        else:
            yield Refusal(_RULE, "the search", f"{said}: the best of this family, proved")

    def _refusals(self, best: Chosen) -> tuple[Refusal, ...]:
        """What the planner judged and found worse."""
        chosen = self._judge.cost(best)
        return tuple(
            Refusal(_RULE, self._names(other), _comparison(cost, chosen))
            for other, cost in self._judge.costs.items()
            if other not in (best, ())
        ) + tuple(Refusal(_RULE, self._names(other), _DRAFT) for other in self._judge.drafts if other not in self._judge.costs)

    def _no_region(self) -> Refusal:
        """Why there is nothing to try, said of the operator that needs most."""
        needs = next(iter(self._candidates.values())).options.needs
        operator = self._model.main.operators[needs.index(max(needs))]
        alone = region_of(self._model.main, [operator])
        reason = alone if isinstance(alone, str) else "no region with it needs less in stripes, within the limits"
        return Refusal(_RULE, label(operator), reason)

    def _names(self, chosen: Sequence[StripedRegion]) -> str:
        operators = self._model.main.operators
        return "; ".join(
            f"{_short(operators[each.first])} to {_short(operators[each.end - 1])} in {self._said(each)}"
            for each in chosen
        )


def _short(operator: Operator) -> str:
    """The operator's name in a list of many; those that the converter gives fused ones fill lines."""
    return stem(operator.outputs[0])


def _comparison(cost: Cost, chosen: Cost) -> str:
    if cost.need > chosen.need:
        more = cost.need - chosen.need
        reason = "more tail than it saves in the head" if cost.head < chosen.head else "a larger head"
        return f"it needs {more} bytes more than what was chosen: {reason}"
    return "it needs as much, with a larger head, more MACs or more operators"
