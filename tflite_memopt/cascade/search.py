"""The cascading stage: regions of a model in stripes or loops, where that lowers the objective.

    for each variant of the model     other orders, its own order, its sequences laid along H
        search it (in_order.py)       all variants share one incumbent
    single operators, the last stripe first, where that is cheaper (reversing.py)

Work is counted, not timed: the same model and options give the same answer on every machine. The time limit is an
emergency stop, and the report says so when it struck.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from ..analysis.working_set import io_lower_bound
from ..graph.interrupted_search import InterruptedSearch
from ..ir.change import OUT_OF_TIME, Changed, Refusal, RewriteUse
from ..ir.copying import copy_model
from ..ir.model import Model
from ..ir.names import label, stem
from ..ir.npu import NPU_HAS_ADDRESSES, has_npu
from ..kernels.profile import KernelProfile
from ..memory.arrange import arrange
from ..memory.cost import Cost, cost_in
from ..options import Options
from .in_order import OrderSearch
from .measure import Measured
from .orders import promising_orders
from .region import region_of
from .reversing import reversed_stripes
from .stop import EmergencyStop
from .tiling import Tiling, Tilings

_RULE = "cascade"
_AS_IS = "as_is"
_SAID = 10
"""Sets that were not taken, of which the report says why."""
Progress = Callable[[str], None]
OtherForm = Callable[[Model, Collection[str]], Changed | None]
"""Another form of a model that computes the same, and what is said of it; tensors with these names keep their shape."""


def cascade(
    model: Model,
    profile: KernelProfile,
    options: Options,
    progress: Progress,
    below: int | None = None,
    measured: Measured | None = None,
    other_form: OtherForm = lambda _, __: None,
) -> Changed:
    """Run regions in stripes or loops where that lowers the objective, or as little as meets the budget.

    ``below``: bytes of the objective; what needs as much or more is not looked for. ``measured``: what searches before
    this one have measured. ``other_form``: another variant to look at. ``model`` itself is returned where nothing is
    gained; it may be left in another order. Raises InterruptedSearch at Ctrl-C.
    """
    if not options.cascade or not model.main.operators:
        return Changed(model, (), ())
    if has_npu(model):
        return Changed(model, (), (Refusal(_RULE, "the graph", NPU_HAS_ADDRESSES),))
    search = _Cascade(model, profile, options, progress, below, Measured() if measured is None else measured)
    try:
        return search.run(other_form(model, [name for name, _ in options.pins]))
    except KeyboardInterrupt as stopped:
        raise InterruptedSearch(search.best_so_far) from stopped


class _Cascade:
    """``_best``: the incumbent, the search that has found it, and its tilings."""

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: Options,
        progress: Progress,
        below: int | None,
        measured: Measured,
    ) -> None:
        self._given, self._profile, self._options, self._progress = model, profile, options, progress
        self._below, self._measured = below, measured
        self._stop = EmergencyStop(options.seconds_left)
        self._searches: list[OrderSearch] = []
        self._best: tuple[Cost, OrderSearch | None, Tilings] | None = None
        self._own = Changed(model, (), ())
        self._uses: dict[OrderSearch, tuple[RewriteUse, ...]] = {}

    def run(self, other: Changed | None) -> Changed:
        """What is found, with its bound; ``other``: another form of the model."""
        self._untiled = self._ordered(self._own.model)
        if other is not None:
            given, cost = self._untiled, self._ordered(other.model)
            uses = tuple(replace(use, saved_bytes=max(0, given.need - cost.need)) for use in other.uses)
            other = replace(other, uses=uses)
            if cost <= given:  # it can be cut in more ways, so that the form that was given is not looked at
                self._own, self._untiled, other = other, cost, None
        self._best = self._untiled, None, ()
        if self._untiled.head <= io_lower_bound(self._own.model) or self._is_enough():
            return self._changed()
        for variant in self._variants(other):
            if self._stop.strikes():
                break
            self._look_at(variant)
            if self._is_enough():
                break
        found = self._reversed() or self._changed(*self._notes())
        if self._stop.has_struck or self._below is not None:
            return found
        return replace(found, least=min(search.least for search in self._searches))

    def _variants(self, other: Changed | None) -> Iterator[Changed]:
        """Other orders first: what they find spares the model's own order many tilings.

        Under a budget last: the model's own order may meet it at a lower price.
        """
        as_it_is = [self._own] if other is None else [self._own, other]
        if self._options.budget is not None:
            yield from as_it_is
        for order in self._orders():
            reordered = copy_model(self._own.model)
            reordered.main.reorder(order)
            yield replace(self._own, model=reordered)
        if self._options.budget is None:
            yield from as_it_is

    def _orders(self) -> list[tuple[int, ...]]:
        if self._options.scheduler == _AS_IS:
            return []
        limit = self._options.search_limit()
        pinned = [name for name, _ in self._options.pins]
        return promising_orders(self._own.model, self._profile, limit, pinned, self._options.jobs)

    def _look_at(self, variant: Changed) -> None:
        """Search one variant; what costs less than the incumbent takes its place."""
        search = OrderSearch(variant.model, self._profile, self._options, self._stop, self._untiled, self._measured)
        self._searches.append(search)
        self._uses[search] = variant.uses
        number = len(self._searches)
        where = "stripes" if number == 1 else f"stripes, another way, {number}"
        self._progress(f"{where}: looking for regions")
        known = self._capped()
        cost, chosen = search.run(known, lambda share, cost: self._progress(f"{where}: {self._so_far(share, cost)}"))
        if chosen and search.plans.price(cost) < search.plans.price(known):
            self._best = cost, search, chosen

    def _so_far(self, share: float, cost: Cost) -> str:
        return f"{share:.0%} done, best {cost.need:,} bytes, {self._untiled.need - cost.need:,} less than without"

    def _incumbent(self) -> Cost:
        assert self._best is not None
        return self._best[0]

    def _is_enough(self) -> bool:
        return self._options.budget is not None and self._incumbent().need <= self._options.budget

    def _capped(self) -> Cost:
        """The incumbent's cost, with the need that is to be beaten where that is less."""
        known = self._incumbent()
        return known if self._below is None or known.need <= self._below else replace(known, need=self._below)

    def _reversed(self) -> Changed | None:
        """The model with single operators in stripes, the last one first, where that costs less than the incumbent."""
        if self._is_enough() or self._stop.strikes():
            return None
        found = reversed_stripes(self._own.model, self._profile, self._options, self._capped(), self._stop)
        if found is None:
            return None
        uses = (*self._own.uses, *(use_of(self._own.model, each) for each in sorted(found.tilings)))
        saved = f"together {self._untiled.need - found.cost.need:,} bytes less than without stripes"
        return Changed(found.model, uses, (Refusal(_RULE, "the search", saved),))

    def best_so_far(self) -> Changed:
        """The best that has been planned, if only as a draft: its full plan is no worse."""
        if self._best is None:
            return Changed(self._given, (), ())
        drafts = [(*found, search) for search in self._searches if (found := search.plans.best_so_far()) is not None]
        best = min(drafts, key=lambda each: each[:2], default=None)
        if best is not None and best[0] < self._incumbent():
            self._best = best[0], best[2], best[1]
        return self._changed(Refusal(_RULE, "the search", "interrupted"))

    def _changed(self, *refused: Refusal) -> Changed:
        """The incumbent. The model itself is returned where another form of it costs no less."""
        _, search, chosen = self._best or (None, None, ())
        if search is not None:
            uses = (*self._uses[search], *(self._use(search, chosen, at) for at in range(len(chosen))))
            return Changed(search.plans.tiled(chosen), uses, refused)
        if not any(use.saved_bytes for use in self._own.uses):
            return Changed(self._given, (), refused)
        return replace(self._own, refused=refused)

    def _ordered(self, model: Model) -> Cost:
        """Put the model in the order that it would have without tilings; what it costs then."""
        placement = arrange(model, self._profile, self._options).placement
        model.main.reorder(placement.order)
        return cost_in(placement.memory, self._options)

    def _use(self, search: OrderSearch, chosen: Tilings, at: int) -> RewriteUse:
        """What is said of each region: it saves what is needed more without it."""
        without = chosen[:at] + chosen[at + 1 :]
        if without:
            search.plans.draft([without], _ANY)
        cost = search.plans.drafts[without] if without else self._untiled
        saved = 0 if cost is None else max(0, cost.need - self._incumbent().need)
        return use_of(search.model, chosen[at], saved)

    def _notes(self) -> Iterator[Refusal]:
        """How good the answer is, whether the clock has ended the search, and what was planned and found worse."""
        if self._stop.has_struck:
            yield Refusal(_RULE, "the search", OUT_OF_TIME)
        elif not any(search.space.looked_at for search in self._searches):
            yield self._no_region()
            return
        elif self._options.budget is None:
            looked_at = sum(search.space.looked_at for search in self._searches)
            planned = sum(len(search.plans.drafts) for search in self._searches)
            said = f"{looked_at:,} ways to cut a region looked at, {planned} sets of them planned"
            orders = len(self._searches)
            yield Refusal(_RULE, "the search", said if orders == 1 else f"{said} in {orders} orders")
        yield from self._worse()

    def _worse(self) -> Iterator[Refusal]:
        """The sets that come next."""
        cost, search, chosen = self._best or (None, None, ())
        if search is None or cost is None:
            return
        costs = {other: each for other, each in search.plans.drafts.items() if each is not None and other != chosen}
        for other in sorted(costs, key=lambda other: (costs[other], other))[:_SAID]:
            yield Refusal(_RULE, _names(search.model, other), _comparison(costs[other], cost))

    def _no_region(self) -> Refusal:
        """Why there is nothing to try, said of the operator that needs most."""
        search = self._searches[-1]
        needs = search.space.needs
        operator = search.model.main.operators[needs.index(max(needs))]
        alone = region_of(search.model.main, [operator])
        reason = alone if isinstance(alone, str) else "no region with it needs less in stripes, within the limits"
        return Refusal(_RULE, label(operator), reason)


_ANY = 1 << 62
"""More than any need."""


def use_of(model: Model, each: Tiling, saved: int = 0) -> RewriteUse:
    """What is said of a tiling of ``model``; ``saved``: bytes, 0 where they were not computed."""
    names = tuple(label(operator) for operator in model.main.operators[each.first : each.end])
    return RewriteUse(f"cascade in {_described(model, each)}", names, "exact", saved)


def _described(model: Model, each: Tiling) -> str:
    return each.described(model.main.operators[each.end - 1].outputs[0].shape[1])


def _names(model: Model, chosen: Tilings) -> str:
    operators = model.main.operators
    return "; ".join(
        f"{stem(operators[each.first].outputs[0])} to {stem(operators[each.end - 1].outputs[0])}"
        f" in {_described(model, each)}"
        for each in chosen
    )


def _comparison(cost: Cost, chosen: Cost) -> str:
    if cost.need > chosen.need:
        more = cost.need - chosen.need
        reason = "more tail than it saves in the head" if cost.head < chosen.head else "a larger head"
        return f"it needs {more} bytes more than what was chosen: {reason}"
    return "it needs as much, with a larger head, more MACs or more operators"
