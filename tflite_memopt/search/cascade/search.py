"""The cascading stage: regions of a model in stripes or loops, where that lowers the objective.

    for each variant of the model     other orders, its own order, its sequences laid along H
        search it (in_order.py)       all variants share one incumbent

Work is counted, not timed: the same model and options give the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

from ...errors import ErrorKind, InfeasibleError
from ...kernels.profile import KernelProfile
from ...memory.arrange import Cost, arrange, cost_in
from ...memory.layout import memory_layout
from ...memory.problems import schedule_problem
from ...memory.work import WorkLimit, instructions, model_work
from ...model.analysis.lifetimes import io_lower_bound
from ...model.ir.change import Changed, Decision, Refusal, RewriteUse
from ...model.ir.check import NPU_HAS_ADDRESSES, is_fixed_by_npu
from ...model.ir.copying import copy_model
from ...model.ir.editor import label
from ...model.ir.model import Model
from ...operators.table import row_map_of
from ...options import SearchOptions
from ...solvers.graph.limits import SearchLimit
from ...solvers.schedule.contracted_orders import Repeatable, contracted_orders
from .draft import Draft, Drafts
from .in_order import ANY, Finish, OrderSearch, Plans, as_it_is
from .measure import Measured
from .region import region_of, regions_above
from .tiling import Tiling, Tilings, has_loop, text_of, tilings_in

_LONGEST = 24


def promising_orders(model: Model, profile: KernelProfile, limit: SearchLimit, jobs: int = 1) -> list[tuple[int, ...]]:
    """Orders with one or more regions in a row that may have a smaller peak than the model's own, best ones first.

    ``jobs``: processes that try regions out side by side.
    """
    problem = schedule_problem(model.main, memory_layout(model, profile))
    return contracted_orders(problem, _regions(model), limit, jobs)


def _regions(model: Model) -> list[Repeatable]:
    """All regions, small ones first."""
    operators = model.main.operators
    row_maps = [row_map_of(operator) for operator in operators]
    kinds = [(operator.name, *(output.shape for output in operator.outputs)) for operator in operators]
    found: list[tuple[int, ...]] = []
    for exit_, operator in enumerate(operators):
        shape = operator.outputs[0].shape if operator.outputs else ()
        if len(shape) == 4 and shape[1] > 1:
            found += regions_above(model.main, exit_, row_maps, _LONGEST)
    several = sorted((region for region in found if len(region) > 1), key=lambda region: (len(region), region))
    return [Repeatable(region, tuple(kinds[step] for step in region)) for region in several]


_RULE = "cascade"
_EFFORT_OF_ORDERS = 0.01
"""The part of its limit in which the scheduler must find an order with some regions as single steps."""
_EFFORT_BELOW = 0.5
"""The part of the limit on effort that a search may use if the result of another search is to be beaten."""
_NEXT = 3
"""Sets next to the best one that are tried where the best makes a kernel library need more."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class OtherForm:
    """Another form of a model that computes the same, in which more can be cut.

    ``of`` is the pass that makes it; ``finish`` returns the form in which a model that is cut is written.
    """

    of: Callable[[Model], Changed] = Changed
    finish: Finish = as_it_is


def cascade(
    model: Model,
    profile: KernelProfile,
    options: SearchOptions,
    progress: Progress,
    below: int | None = None,
    measured: Measured | None = None,
    other_form: OtherForm = OtherForm(),
) -> Changed:
    """Run regions in stripes or loops where that lowers the objective, or as little as meets the budget.

    ``below``: bytes of the objective; what needs as much or more is not looked for. ``measured``: what searches before
    this one have measured. ``other_form``: another variant to look at. ``model`` stays as it is, and is returned itself
    where nothing is gained. Raises InfeasibleError where a decision of the options does not fit the model.
    """
    if not options.cascade or not model.main.operators:
        return Changed(model, (), ())
    if is_fixed_by_npu(model):
        return Changed(model, (), (Refusal(_RULE, "the graph", NPU_HAS_ADDRESSES),))
    own = _variant_of(Changed(model, (), ()), False, options)
    if options.decision is not None and not options.decision.is_along_h:
        return _replayed(own, profile, options.decision)
    along_h = _along_h(model, profile, options, other_form)
    if options.decision is not None:
        return _replayed(along_h, profile, options.decision)
    search = _Cascade(own, profile, progress, below, Measured() if measured is None else measured)
    return search.run(along_h)


def drafted_otherwise(
    model: Model,
    profile: KernelProfile,
    options: SearchOptions,
    works: Sequence[int],
    making: int,
    apart: int | None,
    measured: Measured,
    other_form: OtherForm,
) -> Iterator[list[Draft]]:
    """Yield the drafts of a model in other orders, and in its other form, within those of ``works`` that suffice.

    Arguments as of ``Drafts.of``.
    """

    def of(form: Model, profile: KernelProfile, options: SearchOptions, spent: int) -> list[Draft]:
        within = [work - spent for work in works if work >= spent]
        drafts = Drafts(form, profile, options, measured)
        found = drafts.of(0, len(form.main.operators), form, within, making, apart)
        return [replace(draft, work=draft.work + spent) for draft in found]

    for order in promising_orders(model, profile, options.search_limit(_EFFORT_OF_ORDERS), options.jobs):
        ordered = copy_model(model)
        ordered.main.reorder(order)
        yield of(ordered, profile, options, 0)
    along_h = _along_h(model, profile, options, other_form)
    if along_h is not None:
        spent = model_work(along_h.finish(along_h.model, profile), profile.prices) - model_work(model, profile.prices)
        as_columns = profile if along_h.finish is as_it_is else profile.with_columns_as_rows
        yield of(along_h.model, as_columns, along_h.options, spent)


@dataclass(frozen=True)
class _Variant:
    """A form of the model that computes the same, in some order. ``order``: positions in that form as it came.

    ``options``: with what is left of the limit on run time, which counts from the model as it was given.
    """

    model: Model
    uses: tuple[RewriteUse, ...]
    is_along_h: bool
    options: SearchOptions
    order: tuple[int, ...]
    finish: Finish = as_it_is

    def in_order(self, order: Sequence[int]) -> _Variant:
        """A copy in another order: positions in this one."""
        model = copy_model(self.model)
        model.main.reorder(order)
        return replace(self, model=model, order=tuple(self.order[at] for at in order))

    def decision(self, chosen: Tilings, below: int | None = None) -> Decision:
        """With which another run makes the variant with these tilings."""
        return Decision((), self.is_along_h, self.order, text_of(chosen), below=below)

    def tiled(self, plans: Plans, chosen: Tilings, uses: Iterable[RewriteUse], below: int | None) -> Changed:
        """The variant with these tilings; ``below``: as of ``Plans.below_to_know``."""
        offsets = None if below is None else plans.settled(chosen, below)
        decision = self.decision(chosen, None if offsets is None else below)
        return Changed(plans.tiled(chosen), (*self.uses, *uses), (), offsets=offsets, decision=decision)


def _variant_of(form: Changed, is_along_h: bool, options: SearchOptions, finish: Finish = as_it_is) -> _Variant:
    order = tuple(range(len(form.model.main.operators)))
    return _Variant(form.model, form.uses, is_along_h, options, order, finish)


def _along_h(model: Model, profile: KernelProfile, options: SearchOptions, other_form: OtherForm) -> _Variant | None:
    """The other form, where there is one and its own run time, such as that of narrow rows, is within the limit.

    Of a decision the limit is that of the result.
    """
    form = other_form.of(copy_model(model))
    if not form.uses:
        return None
    limit = WorkLimit(instructions(model, profile), options.max_slowdown, profile)
    finished = other_form.finish(form.model, profile)
    if options.decision is None and not limit.is_kept_by(finished):
        return None
    left = replace(options, max_slowdown=limit.left_for(finished))
    return _variant_of(form, True, left, as_it_is if finished is form.model else other_form.finish)


def _replayed(variant: _Variant | None, profile: KernelProfile, decision: Decision) -> Changed:
    """The decision's form of the model with its tilings. Raises InfeasibleError where they do not fit it."""
    if variant is None:
        raise InfeasibleError("no sequence of this model lies along H", ErrorKind.DECISION)
    chosen = tilings_in(decision.tilings)
    if decision.order:
        if sorted(decision.order) != list(variant.order):
            raise InfeasibleError(
                f"the order of the decision is none of {len(variant.order)} operators", ErrorKind.DECISION
            )
        variant = variant.in_order(decision.order)
    if not chosen:
        return Changed(variant.finish(variant.model, profile), variant.uses, decision=variant.decision(chosen))
    # The limit is that of the result, which rules after the stripes can bring within it.
    plans = Plans(variant.model, profile, replace(variant.options, max_slowdown=inf), Measured(), variant.finish)
    plans.tiled(chosen)  # says what does not fit
    plans.of([chosen], ANY)
    found = variant.tiled(plans, chosen, (use_of(variant.model, each) for each in chosen), decision.below)
    if decision.below is None or found.offsets is not None:
        return found
    return replace(
        found, refused=(Refusal(_RULE, "the decision", f"no plan below {decision.below:,} bytes was found"),)
    )


class _Cascade:
    """``_best``: the incumbent, its search, and its tilings."""

    def __init__(
        self, own: _Variant, profile: KernelProfile, progress: Progress, below: int | None, measured: Measured
    ) -> None:
        self._given, self._profile, self._options, self._progress = own.model, profile, own.options, progress
        self._below, self._measured, self._part = below, measured, 1 if below is None else _EFFORT_BELOW
        self._own = own
        self._searches: dict[OrderSearch, _Variant] = {}
        self._best: tuple[Cost, OrderSearch | None, Tilings] | None = None

    def run(self, along_h: _Variant | None) -> Changed:
        """Run the search; return its result and bound. ``along_h``: another form of the model."""
        self._own, self._untiled = self._arranged(self._own)
        if along_h is not None:
            along_h, cost = self._arranged(along_h)
            saved = max(0, self._untiled.need - cost.need)
            along_h = replace(along_h, uses=tuple(replace(use, saved_bytes=saved) for use in along_h.uses))
            if cost <= self._untiled:  # it can be cut in more ways, and so comes first
                self._own, self._untiled, along_h = along_h, cost, self._own
        self._best = self._untiled, None, ()
        if self._untiled.head <= io_lower_bound(self._own.model) or self._is_enough():
            return self._changed()
        for variant in self._variants(along_h):
            self._look_at(variant)
            if self._is_enough():
                break
        found = self._changed(*self._notes())
        if self._below is not None:
            return found
        least = min(search.least for search in self._searches)
        return replace(found, least=least, without_loops=self._without_loops(), next_best=tuple(self._next_best()))

    def _variants(self, along_h: _Variant | None) -> Iterator[_Variant]:
        """Other orders first: what they find spares the model's own order many tilings.

        Under a budget last: the model's own order may meet it at a lower price.
        """
        as_it_is = [self._own] if along_h is None else [self._own, along_h]
        if self._options.budget is not None:
            yield from as_it_is
        yield from map(self._own.in_order, self._orders())
        if self._options.budget is None:
            yield from as_it_is

    def _orders(self) -> list[tuple[int, ...]]:
        limit = self._options.search_limit(self._part * _EFFORT_OF_ORDERS)
        return promising_orders(self._own.model, self._profile, limit, self._options.jobs)

    def _look_at(self, variant: _Variant) -> None:
        """Search one variant; what costs less than the incumbent takes its place."""
        search = OrderSearch(
            variant.model, self._profile, variant.options, self._untiled, self._measured, finish=variant.finish
        )
        self._searches[search] = variant
        number = len(self._searches)
        where = "stripes" if number == 1 else f"stripes, another way, {number}"
        self._progress(f"{where}: looking for regions")

        rounds = count(1)

        def say() -> None:
            # No bytes: another library, limit, or step may decline what is the best one here.
            self._progress(f"{where}: round {next(rounds)}")

        known = self._capped()
        cost, chosen = search.run(known, say, self._part)
        if chosen and search.plans.price(cost) < search.plans.price(known):
            self._best = cost, search, chosen

    def _incumbent(self) -> Cost:
        assert self._best is not None
        return self._best[0]

    def _is_enough(self) -> bool:
        return self._options.meets_budget(self._incumbent().need)

    def _capped(self) -> Cost:
        """The incumbent's cost, with the need that is to be beaten where that is less."""
        known = self._incumbent()
        return known if self._below is None or known.need <= self._below else replace(known, need=self._below)

    def _changed(self, *refused: Refusal) -> Changed:
        """The incumbent. The model itself is returned where another form of it costs no less."""
        _, search, chosen = self._best or (None, None, ())
        if search is not None:
            below = search.plans.below_to_know(chosen)
            found = self._searches[search].tiled(search.plans, chosen, self._uses(search, chosen), below)
            return replace(found, refused=refused)
        if not any(use.saved_bytes for use in self._own.uses):
            return Changed(self._given, (), refused)
        decision = self._own.decision(())
        model = self._own.finish(self._own.model, self._profile)
        return Changed(model, self._own.uses, refused, decision=decision)

    def _without_loops(self) -> Decision | None:
        """The best without loops, where the incumbent has one."""
        _, best, chosen = self._best or (None, None, ())
        if best is None or not has_loop(chosen):
            return None
        cost, found, without = self._untiled, best, tilings_in("")
        for search in self._searches:
            for other, tilings in search.plans.planned:
                if not has_loop(tilings) and search.plans.price(other) < search.plans.price(cost):
                    cost, found, without = other, search, tilings
        return self._searches[found].decision(without)

    def _next_best(self) -> Iterator[Decision]:
        """Yield sets that cost less than none: the cheapest ones planned beside the incumbent, and sets next to it."""
        _, best, chosen = self._best or (None, None, ())
        planned = [(search, *each) for search in self._searches for each in search.plans.planned]
        others = [each for each in planned if each[1] < self._untiled and each[2] != chosen]
        others.sort(key=lambda each: (each[0].plans.price(each[1]), each[2]))
        known = [(search, tilings) for search, _, tilings in others[:_NEXT]]
        if best is not None and len(known) < _NEXT:
            near = best.space.sets.near(best.center, self._untiled.need)
            known += [(best, tilings) for tilings in near if tilings not in best.plans.costs]
        for search, tilings in known[:_NEXT]:
            yield self._searches[search].decision(tilings)

    def _arranged(self, variant: _Variant) -> tuple[_Variant, Cost]:
        """The variant in the order that it would have without tilings; what it costs then."""
        placement = arrange(variant.model, self._profile, self._options, self._part).placement
        variant = variant.in_order(placement.order)
        finished = variant.finish(variant.model, self._profile)
        if finished is not variant.model:
            placement = arrange(finished, self._profile, self._options, self._part).placement
        return variant, cost_in(placement.memory, self._options)

    def _uses(self, search: OrderSearch, chosen: Tilings) -> Iterator[RewriteUse]:
        """Describe each region; it saves the bytes that are added without it."""
        without = [chosen[:at] + chosen[at + 1 :] for at in range(len(chosen))]
        search.plans.of([rest for rest in without if rest], ANY)
        for tiling, rest in zip(chosen, without, strict=True):
            cost = search.plans.costs[rest] if rest else self._untiled
            saved = 0 if cost is None else max(0, cost.need - self._incumbent().need)
            yield use_of(search.model, tiling, saved)

    def _notes(self) -> Iterator[Refusal]:
        """Describe the search: the number of candidates, or the reason why there was none."""
        if not any(search.space.bounds.looked_at for search in self._searches):
            yield self._no_region()
        elif self._options.budget is None:
            looked_at = sum(search.space.bounds.looked_at for search in self._searches)
            planned = sum(len(search.plans.costs) for search in self._searches)
            said = f"{looked_at:,} ways to cut a region looked at, {planned} sets of them planned"
            orders = len(self._searches)
            yield Refusal(_RULE, "the search", said if orders == 1 else f"{said} in {orders} orders")

    def _no_region(self) -> Refusal:
        """Return the reason why there is nothing to try, for the operator that needs most."""
        search = list(self._searches)[-1]
        needs = search.space.tilings.needs.of_steps
        operator = search.model.main.operators[needs.index(max(needs))]
        alone = region_of(search.model.main, [operator])
        reason = alone if isinstance(alone, str) else "no region with it needs less in stripes, within the limits"
        return Refusal(_RULE, label(operator), reason)


def use_of(model: Model, each: Tiling, saved: int = 0) -> RewriteUse:
    """Describe a tiling of ``model``; ``saved``: bytes, 0 where they were not computed."""
    names = tuple(label(operator) for operator in model.main.operators[each.first : each.end])
    stripes = _described(model, each)
    return RewriteUse(f"cascade in {stripes}", names, "exact", saved, stripes)


def _described(model: Model, each: Tiling) -> str:
    return each.described(model.main.operators[each.end - 1].outputs[0].shape[1])
