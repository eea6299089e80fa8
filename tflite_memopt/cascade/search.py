"""The cascading stage: estimate which regions to run in stripes, and let the real planner judge."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..analysis.bounds import io_lower_bound
from ..analysis.macs import model_macs
from ..errors import InfeasibleError
from ..ir.change import Refusal, RewriteUse
from ..ir.copying import copy_model
from ..ir.model import Model, Operator
from ..ir.names import label, stem
from ..ir.share_constants import share_constants
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_of, footprint
from ..options import Options
from .predict import Cascade, Modes, Striping, apply_cascades, modes_of, striping_of
from .region import region_of
from .select import Cover, Limits, covers

_EVALUATIONS = 24
"""Covers that the real planner judges, the most promising ones by the estimate."""
_ALIKE = 2
"""At most so many of these covers have the same estimate."""
_SHARE = 0.5
"""Of the time limit, for the estimates."""
_LARGEST_OPERAND = 64
"""Bytes of what stripes add as constants: positions, sizes and paddings. Weights are not looked at again."""
Progress = Callable[[str], None]
Cascades = tuple[Cascade, ...]


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
        self._started = time.monotonic()
        self._costs: dict[Cascades, Cost] = {}
        self._base = footprint(model, profile)
        self._modes = modes_of(options.halos)
        operators = options.max_extra_operators
        macs = int(self._base.macs * options.max_extra_macs)
        self._limits = Limits(macs, len(model.main.operators) * 1000 if operators is None else operators)

    def run(self) -> Cascaded:
        self._order()
        first = self._cost(())
        if first.head <= io_lower_bound(self._model) or self._is_enough(first):
            return Cascaded(self._model, (), ())
        self._progress("looking for regions to run in stripes")
        deadline = self._started + _SHARE * self._options.time_limit
        floor = max(io_lower_bound(self._model), first.head // 4)
        pinned = {name for name, _ in self._options.pins}
        striping = striping_of(self._model, self._profile, floor, self._limits, deadline, pinned, self._modes)
        candidates = self._candidates(striping)
        if not candidates:
            return Cascaded(self._model, (), (self._no_region(striping),))
        best = self._best_of(candidates)
        best = self._refined(best)
        if not best:
            return Cascaded(self._model, (), self._refusals(best))
        return Cascaded(self._with(best), tuple(self._use(each, best) for each in best), self._refusals(best))

    def _order(self) -> None:
        """Regions are intervals of steps: of the order that the model would have without stripes."""
        quick = replace(self._options, time_limit=self._options.time_limit / 10)
        self._model.main.reorder(arrange(self._model, self._profile, quick).placement.order)

    def _candidates(self, striping: Striping) -> list[Cascades]:
        """Sets of cascades for the planner to judge: under a budget the cheapest ones first, then the smallest."""
        names = list(striping.options)
        found = covers(striping.needs, [striping.options[name] for name in names], self._limits)
        ordered = sorted((cover for cover in found if cover.options), key=self._promise)
        picked = _few_alike(ordered, self._estimate)
        budget = self._options.budget
        if budget is not None:
            fitting = [cover for cover in ordered if self._estimate(cover) <= budget]
            cheap = sorted(fitting, key=self._price)[: _EVALUATIONS // 2]
            picked = [*cheap, *(cover for cover in picked if cover not in cheap)]
        return [tuple(names[number] for number in cover.options) for cover in picked[:_EVALUATIONS]]

    def _promise(self, cover: Cover) -> tuple[int, int, int]:
        return self._estimate(cover), cover.macs, cover.operators

    def _price(self, cover: Cover) -> tuple[int, int, int]:
        """What run time a cover costs: whole percents of MACs first, then operators."""
        return 100 * cover.macs // max(1, self._base.macs), cover.operators, cover.macs

    def _estimate(self, cover: Cover) -> int:
        if self._options.objective == "head":
            return cover.peak
        base = self._base
        return max(cover.peak, base.temporaries + cover.temporaries) + base.tail + cover.tail

    def _best_of(self, candidates: Sequence[Cascades]) -> Cascades:
        best: Cascades = ()
        for cascades in candidates:
            if self._is_late() or self._is_enough(self._cost(best)):
                break
            best = min((best, cascades), key=self._cost)
        return best

    def _refined(self, best: Cascades) -> Cascades:
        """Change one cascade at a time as long as the real cost falls."""
        improved = bool(best)
        while improved and not self._is_enough(self._cost(best)):
            improved = False
            for other in _neighbours(best, self._modes):
                if self._is_late():
                    return best
                if self._is_possible(other) and self._cost(other) < self._cost(best):
                    best, improved = other, True
                    break
        return best

    def _is_possible(self, cascades: Cascades) -> bool:
        """Whether they can be applied, within the limits."""
        try:
            copied = self._with(cascades)
        except InfeasibleError:
            return False
        more_operators = len(copied.main.operators) - len(self._model.main.operators)
        more_macs = model_macs(copied) - self._base.macs
        return more_operators <= self._limits.operators and more_macs <= self._limits.macs

    def _cost(self, cascades: Cascades) -> Cost:
        if cascades not in self._costs:
            self._costs[cascades] = cost_of(self._with(cascades), self._profile, self._options)
        return self._costs[cascades]

    def _with(self, cascades: Cascades) -> Model:
        """A copy in which they are applied. Raises InfeasibleError where they cannot be."""
        copied = copy_model(self._model)
        apply_cascades(copied, cascades)
        share_constants(copied, _LARGEST_OPERAND)
        return copied

    def _is_enough(self, cost: Cost) -> bool:
        return self._options.budget is not None and cost.need <= self._options.budget

    def _is_late(self) -> bool:
        return time.monotonic() > self._started + self._options.time_limit

    def _use(self, each: Cascade, best: Cascades) -> RewriteUse:
        without = tuple(other for other in best if other != each)
        names = tuple(label(operator) for operator in self._model.main.operators[each.first : each.end])
        rule = f"cascade in {each.count} stripes ({each.halo}, {each.edges})"
        return RewriteUse(rule, names, "exact", self._cost(without).need - self._cost(best).need)

    def _refusals(self, best: Cascades) -> tuple[Refusal, ...]:
        """What the planner judged and found worse."""
        chosen = self._cost(best)
        return tuple(
            Refusal("cascade", self._names(cascades), _comparison(cost, chosen))
            for cascades, cost in self._costs.items()
            if cascades not in (best, ())
        )

    def _no_region(self, striping: Striping) -> Refusal:
        """Why there is nothing to try, said of the operator that needs most."""
        operator = self._model.main.operators[striping.needs.index(max(striping.needs))]
        alone = region_of(self._model.main, [operator])
        reason = alone if isinstance(alone, str) else "no region with it needs less in stripes, within the limits"
        return Refusal("cascade", label(operator), reason)

    def _names(self, cascades: Cascades) -> str:
        operators = self._model.main.operators
        return "; ".join(
            f"{_short(operators[each.first])} to {_short(operators[each.end - 1])} in {each.count} stripes "
            f"({each.halo}, {each.edges})"
            for each in cascades
        )


def _short(operator: Operator) -> str:
    """The operator's name in a list of many; those that the converter gives fused ones fill lines."""
    return stem(operator.outputs[0])


def _few_alike(ordered: Sequence[Cover], estimate: Callable[[Cover], int]) -> list[Cover]:
    """At most ``_ALIKE`` covers of each estimate, the first ones: the planner rarely tells such covers apart."""
    seen: Counter[int] = Counter()
    picked = []
    for cover in ordered:
        seen[estimate(cover)] += 1
        if seen[estimate(cover)] <= _ALIKE:
            picked.append(cover)
    return picked


def _neighbours(cascades: Cascades, modes: Modes) -> Iterator[Cascades]:
    """One cascade left out, or changed a little."""
    for at, each in enumerate(cascades):
        yield cascades[:at] + cascades[at + 1 :]
        steps = {each.count, each.count - 1, each.count + 1, each.count * 3 // 4, each.count * 4 // 3}
        for count in sorted(count for count in steps if count > 1):
            for halo, edges in modes:
                changed = replace(each, count=count, halo=halo, edges=edges)
                if changed != each:
                    yield (*cascades[:at], changed, *cascades[at + 1 :])


def _comparison(cost: Cost, chosen: Cost) -> str:
    if cost.need > chosen.need:
        more = cost.need - chosen.need
        reason = "more tail than it saves in the head" if cost.head < chosen.head else "a larger head"
        return f"it needs {more} bytes more than what was chosen: {reason}"
    return "it needs as much, with a larger head, more MACs or more operators"
