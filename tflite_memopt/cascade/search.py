"""The cascading stage: predict what regions need in stripes, select, and let the planner judge.

Work is counted, not timed: the same model and options give the same answer on every machine. The time limit is an
emergency stop, and the report says so when it struck.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from ..analysis.bounds import io_lower_bound
from ..graph.interrupted_search import InterruptedSearch
from ..ir.change import OUT_OF_TIME, Changed, Refusal, RewriteUse
from ..ir.copying import copy_model
from ..ir.model import Model, Operator
from ..ir.names import label, stem
from ..ir.npu import NPU_HAS_ADDRESSES, has_npu
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_in
from ..options import Options
from .in_order import StripeSearch
from .judge import Chosen
from .known_loops import KnownLoops
from .last_first import last_first
from .orders import promising_orders
from .phases import phased
from .region import region_of
from .stop import EmergencyStop
from .streamed import streamed
from .striped_region import StripedRegion

_RULE = "cascade"
_AS_IS = "as_is"
_SAID = 10
"""Selections that were not taken, of which the report says why."""
Progress = Callable[[str], None]
OtherForm = Callable[[Model, Collection[str]], Changed | None]
"""Another form of a model that computes the same, and what is said of it; tensors with these names keep their shape."""


def cascade(
    model: Model,
    profile: KernelProfile,
    options: Options,
    progress: Progress,
    below: int | None = None,
    known: KnownLoops | None = None,
    other_form: OtherForm = lambda _, __: None,
) -> Changed:
    """Run regions stripe by stripe where that lowers the objective, or as little as meets the budget.

    ``below``: bytes of the objective; stripes that need as much or more are not looked for. ``known``: what searches
    before this one have found of loops. ``other_form``: in which stripes are looked for, too. ``model`` itself is
    returned where nothing is gained; it may be left in another order. Raises InterruptedSearch at Ctrl-C.
    """
    if not options.cascade or not model.main.operators:
        return Changed(model, (), ())
    if has_npu(model):
        return Changed(model, (), (Refusal(_RULE, "the graph", NPU_HAS_ADDRESSES),))
    loops = KnownLoops() if known is None else known
    cascading = _Cascading(model, profile, options, progress, below, loops, other_form)
    try:
        return cascading.run()
    except KeyboardInterrupt as stopped:
        raise InterruptedSearch(cascading.best_so_far) from stopped


class _Cascading:
    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: Options,
        progress: Progress,
        below: int | None,
        known: KnownLoops,
        other_form: OtherForm,
    ) -> None:
        self._known = known
        self._profile, self._options, self._progress, self._below = profile, options, progress, below
        self._stop = EmergencyStop(options.seconds_left)
        # Regions are intervals of steps: first of the order that the model would have without stripes.
        self._given, self._given_cost = model, self._ordered(model)
        self._unstriped = self._given_cost
        self._other = other_form(model, [name for name, _ in options.pins])
        self._standing = None if self._other is None else self._other.model
        if self._standing is not None:
            cost = self._ordered(self._standing)
            if cost <= self._unstriped:  # it can be cut in more ways, so that the other form is not looked at
                model, self._standing, self._unstriped = self._standing, None, cost
        self._own = self._search_of(model, self._unstriped)
        self._searches = [self._own]
        self._begun = 0
        self._phased: StripeSearch | None = None
        self._phases_use: RewriteUse | None = None

    def _search_of(self, model: Model, unstriped: Cost) -> StripeSearch:
        return StripeSearch(model, self._profile, self._options, self._stop, unstriped, self._known)

    def run(self) -> Changed:
        """What is found, with its bound."""
        found = self._found()
        if self._stop.has_struck or not self._begun or self._below is not None:
            return found
        return replace(found, least=self._least())

    def _found(self) -> Changed:
        """Search the model's own order, and others in which more regions are intervals."""
        if self._unstriped.head <= io_lower_bound(self._own.model) or self._own.is_enough(self._unstriped):
            return self._uncut(())
        searches, streamed_first = self._searches, self._options.budget is None
        found = self._streamed(self._unstriped) if streamed_first else None  # what is known is not looked for any more
        best: tuple[StripeSearch, Chosen] = (self._own, ())
        for search in self._in_turn():
            best = self._best_in(search, best)
            if best[0].is_enough(best[0].judge.cost(best[1])):
                break
        best = self._best_with_phases(best)
        turned = self._last_first(best[0].judge.cost(best[1]))
        if turned is not None:
            return turned
        if not streamed_first:
            found = self._streamed(best[0].judge.cost(best[1]))
        if found is not None and (best == (self._own, ()) or not streamed_first):
            return found
        if best[0] is not self._phased and not any(each.has_options for each in searches):
            return self._uncut((self._no_region(),))
        search, chosen = best
        refused = (*self._summary(searches), *_refusals(search, chosen))
        if not chosen and search is not self._phased:
            return self._uncut(refused)
        uses = _uses(search, chosen)
        return Changed(search.judge.striped(chosen), (*self._uses_of(search), *uses), refused)

    def _in_turn(self) -> Iterator[StripeSearch]:
        """The searches, the promising orders first: what they find spares the model's own order many options.

        Under a budget last: the model's own order may meet it at a lower price.
        """
        if self._options.budget is not None:
            yield from self._as_it_stands()
        for search in self._promising():
            self._searches.append(search)
            yield search
        if self._options.budget is None:
            yield from self._as_it_stands()

    def _promising(self) -> list[StripeSearch]:
        """The searches in promising orders, the one with the smallest bound first: its answer may spare the others."""
        found = []
        for order in self._orders():
            reordered = copy_model(self._own.model)
            reordered.main.reorder(order)
            found.append(self._search_of(reordered, self._unstriped))
        known = self._capped(self._unstriped)
        return found if len(found) < 2 else sorted(found, key=lambda search: search.least_around_the_peak(known))

    def _as_it_stands(self) -> Iterator[StripeSearch]:
        """The model's own order, and its sequences standing."""
        yield self._own
        if self._standing is not None:
            self._searches.append(self._search_of(self._standing, self._unstriped))
            yield self._searches[-1]

    def _best_with_phases(self, best: tuple[StripeSearch, Chosen]) -> tuple[StripeSearch, Chosen]:
        """The best with dilated sequences as a loop over phases, and stripes in what is left, if that costs less."""
        model = self._own.model if self._standing is None else self._standing
        if best[0].is_enough(best[0].judge.cost(best[1])):
            return best
        found = phased(model, self._profile, self._options, self._unstriped)
        if found is None:
            return best
        names = tuple(label(operator) for operator in found.operators)
        cost, saved = self._ordered(found.model), self._unstriped.need - found.cost.need
        self._phases_use = RewriteUse(f"cascade in a loop over {found.phases} phases", names, "exact", saved)
        self._phased = self._search_of(found.model, cost)
        self._searches.append(self._phased)
        return self._best_in(self._phased, best)

    def _uses_of(self, search: StripeSearch) -> tuple[RewriteUse, ...]:
        """What was done to the model of a search before stripes were looked for in it."""
        return () if search is not self._phased or self._phases_use is None else (self._phases_use,)

    def _capped(self, known: Cost) -> Cost:
        """A cost that is reached, with the need that is to be beaten where that is less."""
        return known if self._below is None or known.need <= self._below else replace(known, need=self._below)

    def _last_first(self, known: Cost) -> Changed | None:
        """The model with single operators in stripes, the last one first, where that costs less than is known."""
        model = self._own.model
        if self._own.is_enough(known) or self._stop.strikes():
            return None
        found = last_first(model, self._profile, self._options, self._capped(known), self._stop)
        if found is None:
            return None
        uses = (use_of(model, each) for each in sorted(found.regions))
        turned = tuple(replace(use, rule=f"{use.rule}, the last one first") for use in uses)
        saved = f"together {self._unstriped.need - found.cost.need:,} bytes less than without stripes"
        return Changed(found.model, turned, (Refusal(_RULE, "the search", saved),))

    def _streamed(self, known: Cost) -> Changed | None:
        """The model with a long causal sequence as one loop, where that costs less than is known, which it is then."""
        model = self._own.model if self._standing is None else self._standing
        if self._own.is_enough(known) or self._stop.strikes():
            return None
        found = streamed(model, self._profile, self._options, self._capped(known))
        if found is None:
            return None
        self._below = found.cost.need
        use = use_of(model, found.region, self._unstriped.need - found.cost.need)
        return Changed(found.model, (use,), ())

    def best_so_far(self) -> Changed:
        """The best that has been planned, if only as a draft: its full plan is no worse."""
        found = [(search.judge.best_so_far(), number) for number, search in enumerate(self._searches)]
        (_, chosen), number = min(found)
        search = self._searches[number]
        if not chosen and search is not self._phased:
            return self._uncut(())
        uses = (*self._uses_of(search), *(use_of(search.model, each) for each in chosen))
        return Changed(search.judge.striped(chosen), uses, (Refusal(_RULE, "the search", "interrupted"),))

    def _ordered(self, model: Model) -> Cost:
        """Put the model in the order that it would have without stripes; what it costs then."""
        placement = arrange(model, self._profile, self._options).placement
        model.main.reorder(placement.order)
        return cost_in(placement.memory, self._options)

    def _uncut(self, refused: tuple[Refusal, ...]) -> Changed:
        """The model without stripes, its sequences standing where that alone costs less: it leaves reshapes out."""
        model, saved = self._own.model, self._given_cost.need - self._unstriped.need
        if self._other is None or model is self._given or self._unstriped == self._given_cost:
            return Changed(self._given, (), refused)
        return Changed(model, tuple(replace(use, saved_bytes=saved) for use in self._other.uses), refused)

    def _orders(self) -> list[tuple[int, ...]]:
        if self._options.scheduler == _AS_IS:
            return []
        limit = self._options.search_limit()
        pinned = [name for name, _ in self._options.pins]
        return promising_orders(self._own.model, self._profile, limit, pinned, self._options.jobs)

    def _best_in(self, search: StripeSearch, best: tuple[StripeSearch, Chosen]) -> tuple[StripeSearch, Chosen]:
        """The best of one order, if it costs less than what is known."""
        self._begun += 1
        where = "stripes" if self._begun == 1 else f"stripes, another way, {self._begun}"
        self._progress(f"{where}: looking for regions")
        known = self._capped(best[0].judge.cost(best[1]))
        chosen = search.run(known, lambda share, cost: self._progress(f"{where}: {self._so_far(share, cost)}"))
        is_better = search.judge.price(search.judge.cost(chosen)) < search.judge.price(known)
        return (search, chosen) if is_better else best

    def _so_far(self, share: float, cost: Cost) -> str:
        return f"{share:.0%} done, best {cost.need:,} bytes, {self._unstriped.need - cost.need:,} less than without"

    def _summary(self, searches: Sequence[StripeSearch]) -> Iterator[Refusal]:
        """How good the answer is, and whether the clock has ended the search."""
        if self._stop.has_struck:
            yield Refusal(_RULE, "the search", OUT_OF_TIME)
            return
        if self._options.budget is not None:
            return
        looked_at, planned = (
            sum(each.looked_at for each in searches),
            sum(len(each.judge.drafts) for each in searches),
        )
        said = f"{looked_at:,} ways to cut a region worked out, {planned} selections planned"
        said += "" if len(searches) == 1 else f" in {len(searches)} orders"
        yield Refusal(_RULE, "the search", said)

    def _least(self) -> int:
        """Bytes that nothing in the orders that were searched goes below."""
        return min(each.least() for each in self._searches)

    def _no_region(self) -> Refusal:
        """Why there is nothing to try, said of the operator that needs most."""
        model, needs = self._own.model, self._own.needs
        operator = model.main.operators[needs.index(max(needs))]
        alone = region_of(model.main, [operator])
        reason = alone if isinstance(alone, str) else "no region with it needs less in stripes, within the limits"
        return Refusal(_RULE, label(operator), reason)


def use_of(model: Model, each: StripedRegion, saved: int = 0) -> RewriteUse:
    """What is said of a region of ``model`` in stripes; ``saved``: bytes, 0 where they were not worked out."""
    names = tuple(label(operator) for operator in model.main.operators[each.first : each.end])
    return RewriteUse(f"cascade in {_said(model, each)}", names, "exact", saved)


def _uses(search: StripeSearch, best: Chosen) -> tuple[RewriteUse, ...]:
    """What is said of each region: it saves what is needed more without it."""
    need, without = search.judge.cost(best).need, [best[:at] + best[at + 1 :] for at in range(len(best))]
    costs = search.judge.cost_of_each(without)
    return tuple(use_of(search.model, each, cost.need - need) for each, cost in zip(best, costs, strict=True))


def _said(model: Model, each: StripedRegion) -> str:
    return each.said(model.main.operators[each.end - 1].outputs[0].shape[1])


def _refusals(search: StripeSearch, best: Chosen) -> tuple[Refusal, ...]:
    """What was planned and found worse: the ten that come next."""
    chosen = search.judge.cost(best)
    costs = {other: search.judge.cost_so_far(other) for other in search.judge.drafts if other != best}
    worse = sorted(costs, key=lambda other: (costs[other], other))[:_SAID]
    return tuple(Refusal(_RULE, _names(search.model, other), _comparison(costs[other], chosen)) for other in worse)


def _names(model: Model, chosen: Sequence[StripedRegion]) -> str:
    operators = model.main.operators
    return "; ".join(
        f"{_short(operators[each.first])} to {_short(operators[each.end - 1])} in {_said(model, each)}"
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
