"""The cascading stage: predict what regions need in stripes, select, and let the planner judge.

Work is counted, not timed: the same model and options give the same answer on every machine. The time limit is an
emergency stop, and the report says so when it struck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..analysis.bounds import io_lower_bound
from ..ir.change import OUT_OF_TIME, Refusal, RewriteUse
from ..ir.model import Model, Operator
from ..ir.names import label, stem
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost
from ..options import Options
from .arena_terms import arena_terms
from .judge import Chosen, StripeJudge
from .predict import Aim, StripingOptions, striping_options
from .region import region_of
from .rounds import EFFORTS, Round, rounds
from .select import BaseNeed, Selection, SelectionLimits, least_heads, least_need, selections
from .striped_region import StripedRegion, modes_of

JUDGED = (8, 24, 96)
"""Selections that the planner judges in each round, by effort."""
_PARTS = (16, 8, 4, 2, 1)
"""Selections are worked out up to a sixteenth of the way from the least that may be needed to what is needed, and on."""
_RULE = "cascade"
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


class _Candidates:
    """Selections of one choice of halos, the smallest least need first; worked out as far as they are asked for."""

    def __init__(self, options: StripingOptions, limits: SelectionLimits, base: BaseNeed, below: int) -> None:
        self.options, self._limits, self._base, self._below = options, limits, base, below
        least = least_heads(options.needs, options.options)[0]
        self._start = min(below, base.least(least, 0, 0))
        self._found: list[Selection] = []
        self._parts = list(_PARTS)
        self._reached = 0

    def within(self, limits: SelectionLimits) -> Iterator[Selection]:
        """Those that keep these limits."""
        at = 0
        while True:
            while at < len(self._found):
                selection = self._found[at]
                at += 1
                if selection.macs <= limits.macs and selection.operators <= limits.operators:
                    yield selection
            if not self._parts:
                return
            self._work_out()

    def _work_out(self) -> None:
        """The next part: those whose least need is a step further from the smallest that may be."""
        reached, self._reached = self._reached, self._start - (self._start - self._below) // self._parts.pop(0)
        found = selections(self.options.needs, self.options.options, self._limits, self._base, self._reached)
        self._found += [each for each in found if self.least(each) >= reached]

    def chosen(self, selection: Selection) -> Chosen:
        """The regions that a selection stands for."""
        return tuple(self.options.regions[number] for number in selection.options)

    def least(self, selection: Selection) -> int:
        """The least that the objective can be, in bytes."""
        return least_need(self._base, selection)


class _Cascading:
    def __init__(self, model: Model, profile: KernelProfile, options: Options, progress: Progress) -> None:
        self._model, self._profile, self._options, self._progress = model, profile, options, progress
        self._deadline = time.monotonic() + options.time_limit
        self._is_late = False
        self._judge = StripeJudge(model, profile, options)
        self._candidates: dict[tuple[str, ...], _Candidates] = {}
        self._best: dict[Round, Chosen] = {}

    def run(self) -> Cascaded:
        self._order()
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
        """The best of all rounds, each starting from the best of those before it."""
        best: Chosen = ()
        for each in self._rounds():
            if self._is_enough(self._judge.cost(best)):
                break
            best = self._searched(each, best)
        return best

    def _rounds(self) -> Iterator[Round]:
        options, operators = self._options, len(self._model.main.operators)
        macs = arena_terms(self._model, self._profile).macs
        effort = EFFORTS.index(getattr(options, "effort", "normal"))
        return rounds(effort, options.halos, options.max_extra_macs, macs, options.max_extra_operators, operators * 1000)

    def _searched(self, each: Round, best: Chosen) -> Chosen:
        """Judge the selections of one round by their least need, as long as it is below the best cost."""
        candidates = self._candidates_of(each)
        judged = 0
        for selection in self._in_turn(candidates, each.limits):
            if judged >= JUDGED[each.effort] or self._is_enough(self._judge.cost(best)) or self._stops():
                break
            if candidates.least(selection) >= self._judge.cost(best).need and self._options.budget is None:
                break
            judged += 1
            best = min((best, candidates.chosen(selection)), key=self._judge.cost)
            self._progress(f"stripes: {judged} judged, best so far {self._judge.cost(best).need} bytes")
        return best

    def _in_turn(self, candidates: _Candidates, limits: SelectionLimits) -> Iterator[Selection]:
        """Those within the limits: under a budget the cheapest that may fit, else the smallest least need first."""
        budget = self._options.budget
        if budget is None:
            return candidates.within(limits)
        within = list(candidates.within(limits))
        fitting = sorted((s for s in within if candidates.least(s) <= budget), key=self._price)
        half = fitting[: JUDGED[0]]
        return iter([*half, *(s for s in within if s not in half)])

    def _price(self, selection: Selection) -> tuple[int, int, int]:
        """What run time a selection costs: whole percents of MACs first, then operators."""
        macs = max(1, arena_terms(self._model, self._profile).macs)
        return 100 * selection.macs // macs, selection.operators, selection.macs

    def _candidates_of(self, each: Round) -> _Candidates:
        if each.halos not in self._candidates:
            self._candidates[each.halos] = self._found(each.halos)
        return self._candidates[each.halos]

    def _found(self, halos: tuple[str, ...]) -> _Candidates:
        """Every selection that may be worth it within the widest limits."""
        widest = list(self._rounds())[-1].limits
        terms = arena_terms(self._model, self._profile)
        base = BaseNeed(
            terms.tail, terms.temporaries_with(0, 0, 0), terms.interface, self._options.objective == "total"
        )
        below = self._judge.cost(()).need
        pinned = {name for name, _ in self._options.pins}
        aim = Aim(self._floor, below, widest, base)
        options = striping_options(self._model, self._profile, aim, modes_of(halos), pinned)
        return _Candidates(options, widest, base, below)

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
        widest = self._candidates_of(list(self._rounds())[-1])
        cost, need = self._judge.cost(best), self._judge.cost(best).need
        least = next((widest.least(each) for each in widest.within(list(self._rounds())[-1].limits)), need)
        looked_at = sum(each.options.looked_at for each in self._candidates.values())
        said = f"{looked_at:,} ways to cut a region worked out, {len(self._judge.costs) - 1} selections planned"
        if self._options.budget is None and cost.head and least < need:
            yield Refusal(_RULE, "the search", f"{said}: nothing can need less than {least} bytes, the best found {need}")
        elif self._options.budget is None:
            yield Refusal(_RULE, "the search", f"{said}: the best of this family, proved")

    def _refusals(self, best: Chosen) -> tuple[Refusal, ...]:
        """What the planner judged and found worse."""
        chosen = self._judge.cost(best)
        return tuple(
            Refusal(_RULE, self._names(other), _comparison(cost, chosen))
            for other, cost in self._judge.costs.items()
            if other not in (best, ())
        )

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
