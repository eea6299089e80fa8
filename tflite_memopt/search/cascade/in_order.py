"""The search in one order of a model: a lazy branch and bound.

    choose    the cheapest sets of tilings below the incumbent, by their bounds
    measure   the tilings of these sets that have a bound alone, and choose again
    plan      the sets of which all is measured; the best becomes the incumbent
    stop      when no set lies below the incumbent, or when enough has been planned

Work is counted, not timed. A search begins with sets far below the present need, of which there are few.

``Plans`` computes what a set of tilings really costs: it is written into a copy of the model, and planned in the order
in which it is written and in the scheduler's. The plan that is written comes of the same planner with a wider limit;
where that needs more, the set's own offsets go with the model (``settled``).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import islice, product
from operator import itemgetter

from ...errors import InfeasibleError
from ...kernels.arena import arena_beside_head
from ...kernels.faults import faults_in
from ...kernels.mend import mend
from ...kernels.profile import KernelProfile
from ...memory.arrange import Cost, head_below, need_at, planned_head
from ...memory.layout import MemoryLayout, memory_layout
from ...memory.problems import schedule_problem
from ...memory.work import WorkLimit, instructions, model_work
from ...model.analysis.macs import model_macs
from ...model.ir.copying import copy_model
from ...model.ir.model import Model
from ...options import WORTH, Effort, SearchOptions
from ...solvers.graph.alignment import ARENA_ALIGNMENT, aligned
from ...solvers.graph.side_by_side import side_by_side
from ...solvers.plan.bounds import max_breadth
from ...solvers.plan.problem import Plan
from ...solvers.schedule.methods import solve as solve_schedule
from ...solvers.schedule.problem import memory_graph
from .measure import Measured
from .select import HEADS, OptionSet
from .space import Modes, Space, modes_of
from .table import Forms
from .tiling import Tilings, Unrolled, apply_tilings, has_loop, text_of, with_rows_cut

Order = tuple[int, ...]
"""Positions of a model's operators."""
_EFFORT_OF_PLAN = 4.0
"""The planner's effort for a set. What is written gets more."""
_FINAL = 2.0
"""The planner's effort for the last sets of a search, as a multiple of that for what is written."""
_EFFORT_OF_ORDER = 0.1
"""The part of its limit in which the scheduler has to find another order. What is written gets all of it."""
ANY = 1 << 62
"""More than any need."""
_LEAST_AT_ONCE = 200
"""Operators of all models to plan at once: with fewer, processes take longer than they save."""
Finish = Callable[[Model, KernelProfile], Model]
"""The form in which a model that is cut is written."""


def as_it_is(model: Model, _: KernelProfile) -> Model:
    """Return the model itself."""
    return model


@dataclass(frozen=True)
class Planned:
    """A set of tilings that is written: its ``operators``, and its ``work`` by library; None where it cannot be.

    ``cost``: where it is planned, in the ``order`` that is best and by the ``plan`` of its items; None where none may
    be ``below`` the bytes of the objective that were to be beaten.
    """

    operators: int
    work: Mapping[str, int] | None = None
    is_planned: bool = False
    cost: Cost | None = None
    order: Order | None = None
    plan: Plan | None = None
    below: int = 0


class Plans:
    """Costs of sets of tilings of one model, each computed once. The model stays as it is.

    Sets are chosen by an estimate of their run time with one library; here the limit is that of the options with each
    library, and what is beyond it has no cost. ``measured``: has the plans of searches before, under any limit.
    """

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: SearchOptions,
        measured: Measured,
        finish: Finish = as_it_is,
    ) -> None:
        self._model, self._profile, self._options, self._finish = model, profile, options, finish
        self._wrong = {each.form for each in faults_in(model, profile)}
        self._work = WorkLimit(instructions(finish(model, profile), profile), options.max_slowdown, profile)
        self._known = measured.plans.setdefault(
            (measured.whole(model, profile), finish, options.planner, options.effort, options.objective, options.seed),
            {},
        )
        self.effort = 0
        """The operators of all models that have been planned."""
        self.costs: dict[Tilings, Cost | None] = {}
        self._best: dict[Tilings, Planned] = {}
        """Sets with the order in which they are best planned."""

    @property
    def planned(self) -> list[tuple[Cost, Tilings]]:
        """The sets that have a cost."""
        return [(cost, chosen) for chosen, cost in self.costs.items() if cost is not None]

    def price(self, cost: Cost) -> tuple[int, ...]:
        """Return a key to compare costs by. Under a budget all that meet it need as much, and fewest MACs are best."""
        need = cost.need if self._options.budget is None else max(cost.need, self._options.budget)
        return (need, cost.macs, cost.operators, cost.head) if need > cost.need else astuple(cost)

    def of(self, every: Sequence[Tilings], below: int) -> list[Cost | None]:
        """Return the costs of sets whose objective may be less than ``below`` bytes; None for the others."""
        asked = [chosen for chosen in dict.fromkeys(every) if chosen not in self.costs]
        new = [chosen for chosen in asked if self._is_new(self._known.get((chosen, below)))]
        is_much = len(new) * len(self._model.main.operators) >= _LEAST_AT_ONCE
        found = side_by_side(partial(self._planned, below=below), new, self._options.jobs if is_much else 1)
        self._known |= {(chosen, below): plan for chosen, plan in zip(new, found, strict=True)}
        for chosen in asked:
            made = self._known[chosen, below]
            self.costs[chosen] = made.cost if self._is_within(made) else None
            self.effort += made.operators
            if made.order is not None:
                self._best[chosen] = made
        return [self.costs[chosen] for chosen in every]

    def _is_new(self, known: Planned | None) -> bool:
        """Tell whether a set has yet to be planned: one that exceeded the limit of another search was only written."""
        return known is None or (not known.is_planned and self._is_within(known))

    def _is_within(self, made: Planned) -> bool:
        """Return whether it can be written, and keeps the limit on run time."""
        return made.work is not None and self._work.allows(made.work)

    def _planned(self, chosen: Tilings, below: int) -> Planned:
        try:
            model = self._written(chosen)
        except InfeasibleError:
            return Planned(0)
        made = Planned(len(model.all_operators), instructions(model, self._profile))
        if not self._is_within(made):
            return made
        own = memory_layout(model, self._profile, range(len(model.main.operators)))
        layouts = [own, *self._in_other_order(model, own)]
        made = replace(made, is_planned=True)
        found = [placed for layout in layouts for placed in self._placed(model, layout, below)]
        if not found:
            return made
        cost, order, plan = min(found, key=itemgetter(0))
        return replace(made, cost=cost, order=order, plan=plan, below=below)

    def _placed(
        self, model: Model, layout: MemoryLayout, below: int, effort: float = _EFFORT_OF_PLAN
    ) -> Iterator[tuple[Cost, Order | None, Plan]]:
        """Yield the cost in the order of a layout, the order, and the plan; nothing where its bound is not below."""
        profile, options = self._profile, self._options
        beside = arena_beside_head(model, profile.requests, profile.abi, layout.order)
        if need_at(max_breadth(layout.joined.problem), beside, options) >= below:
            return
        limit = replace(options.search_limit(effort), below=head_below(below, beside, options))
        head, plan = planned_head(model, layout, options, limit)
        macs = model_macs(model, layout.loops.loops)
        yield Cost(need_at(head, beside, options), head, macs, len(model.all_operators)), layout.order, plan

    def _in_other_order(self, model: Model, own: MemoryLayout) -> Iterator[MemoryLayout]:
        """The scheduler's order, where that is not the one in which the tilings are written."""
        problem = schedule_problem(model.main, own)
        as_written = tuple(range(len(problem.steps)))
        limit = replace(self._options.search_limit(_EFFORT_OF_ORDER), below=memory_graph(problem).peak(as_written))
        order = solve_schedule(problem, limit=limit).order
        if order != as_written:
            yield memory_layout(model, self._profile, order)

    def _written(self, chosen: Tilings) -> Model:
        model = self._finish(apply_tilings(copy_model(self._model), chosen), self._profile)
        mend(model, self._profile, self._wrong)
        return model

    def tiled(self, chosen: Tilings) -> Model:
        """A copy with these tilings, in the order that is best. Raises InfeasibleError where one does not fit."""
        model = self._written(chosen)
        best = self._best.get(chosen)
        if best is not None and best.order is not None:
            model.main.reorder(best.order)
        return model

    def below_to_know(self, chosen: Tilings) -> int | None:
        """Return bytes of the objective that the plan of a set is below only if the planner knows them; else None."""
        best, limit = self._best[chosen], self._options.plan_limit(1.0)
        assert best.cost is not None
        model = self._written(chosen)
        head, _ = planned_head(model, memory_layout(model, self._profile, best.order), self._options, limit)
        return best.below if head > best.cost.head else None

    def settled(self, chosen: Tilings, below: int) -> tuple[int, ...] | None:
        """Return offsets of the items of a set that need less than ``below`` bytes of the objective; None without.

        They depend on the set and the bytes alone, whatever has been planned before: of the first order, planned as the
        search plans sets, or with more effort.
        """
        model = self._written(chosen)
        own = memory_layout(model, self._profile, range(len(model.main.operators)))
        ways = (below, _EFFORT_OF_PLAN), (ANY, self._options.plan_limit(_FINAL).effort)
        for layout, (limit, effort) in product((own, *self._in_other_order(model, own)), ways):
            for cost, order, plan in self._placed(model, layout, limit, effort):
                if cost.need < below:
                    self._best[chosen] = replace(self._best[chosen], order=order, plan=plan)
                    return plan.offsets
        return None

    def least(self, chosen: Tilings) -> int:
        """Return the bytes of the objective of a planned set if its plan met the bound."""
        best = self._best[chosen]
        assert best.cost is not None
        assert best.plan is not None
        return best.cost.need - best.plan.gap_bytes

    def plan_again(self, chosen: Tilings) -> Cost:
        """Return the cost of a planned set, with more of the planner's effort where that finds a smaller one."""
        model, best = self._written(chosen), self._best[chosen]
        assert best.cost is not None
        layout = memory_layout(model, self._profile, best.order)
        ((cost, _, plan),) = self._placed(model, layout, ANY, self._options.plan_limit(_FINAL).effort)
        if cost < best.cost:
            self.costs[chosen], self._best[chosen] = cost, replace(best, cost=cost, plan=plan, below=cost.need + 1)
        return min(cost, best.cost)


Progress = Callable[[], None]
_LOG = logging.getLogger(__name__)
PATIENCE: Mapping[Effort, int] = {"quick": 1, "normal": 4, "thorough": 12}
"""The number of plans without a better one, after which the search goes on with larger needs."""
_AT_ONCE = 8
"""Sets that are measured or planned together."""
_NEAR = 12
"""Sets next to another one that are planned."""
_FINALISTS = 2
"""Sets that are planned with more effort in the end."""
_CLOSE = 32
"""They need by such a part of the best set's need more than it, at most."""
_CENTERS: Mapping[Effort, int] = {"quick": 0, "normal": 3, "thorough": 8}
"""The number of sets whose neighbors are looked at."""
_CHOICES: Mapping[Effort, int] = {"quick": 30, "normal": 60, "thorough": 240}
"""The most iterations of the search."""
_AFTERWARDS = 0.5
"""The part of the limit on effort that trying a new incumbent with fewer tilings may take; and a last descent, where
nothing was planned before."""
_EFFORT: Mapping[Effort, int] = {"quick": 2_500, "normal": 24_000, "thorough": 200_000}
"""Operators of all models that are planned, after which no more sets are chosen."""
_MEASURED = 4
"""Number of operators that are measured in the time that planning one takes."""
TARGETS = (16, 8, 4, 2, 1)
"""Sets are looked for up to a sixteenth of the way from the least possible need to the present one, and on."""


class OrderSearch:
    """``untiled``: what the model costs without tilings, in whatever order.

    Once it has run, ``least`` is a bound, and ``center`` the best set with loops in the forms that have bounds.
    """

    def __init__(
        self,
        model: Model,
        profile: KernelProfile,
        options: SearchOptions,
        untiled: Cost,
        measured: Measured,
        modes: Modes | None = None,
        finish: Finish = as_it_is,
    ) -> None:
        self.model, self._options, self._untiled = model, options, untiled
        self.plans = Plans(model, profile, options, measured, finish)
        # Bounds and measurements are of columns; what is planned is in the form in which it will be written.
        profile = profile if finish is as_it_is else profile.with_columns_as_rows
        self.space = Space(model, profile, options, measured, modes_of(options) if modes is None else modes)
        self._work = model_work(model, profile.prices)
        self.least = 0
        self.center: Tilings = ()

    def run(self, known: Cost, progress: Progress = lambda *_: None, part: float = 1) -> tuple[Cost, Tilings]:
        """Return the best set that costs less than ``known``, and its cost; else ``known`` and none."""
        self.space.bounds.fill(_cutoff(known.need))
        _LOG.info(
            "stripes: %d ways to cut a region looked at; %d bytes to beat", self.space.bounds.looked_at, known.need
        )
        best: tuple[Cost, Tilings] = known, ()
        most, has_budget = _CHOICES[self._options.effort], self._options.budget is not None
        families, budgets = self.space.modes.families(has_budget), dict.fromkeys((self._options.budget, None))
        steps = list(product(budgets, families))  # by run time where there is a budget, then by RAM
        for number, (budget, forms) in enumerate(steps, 1):  # each leaves its share of the effort to those behind it
            share = part * number / (len(steps) + (not has_budget))
            best = self._descended(best, forms, budget, share, most, progress)
        if has_loop(best[1]) and not has_budget:
            best = min(best, self._without_loops(best[0], part, progress), key=lambda each: self.plans.price(each[0]))
        if not self.plans.costs:  # bounds far below what fits have taken all iterations
            least = self.least
            self.space.tilings.keep_measured()
            best = self._descended(best, families[-1], None, part + _AFTERWARDS, most, progress)
            self.least = least
        best = self._nearby(best, part)
        best = self._final(best)
        self.center = best[1]
        best = self._better(best, list(self._with_rows_cut(best[1])))
        self.least = min(best[0].need, aligned(self.least))
        return best

    def _descended(
        self,
        best: tuple[Cost, Tilings],
        forms: Forms,
        budget: int | None,
        share: float,
        left: int,
        progress: Progress = lambda: None,
    ) -> tuple[Cost, Tilings]:
        """The best set of these forms, or ``best``. It stops when ``share`` of the limit on effort is used up.

        ``budget``: bytes, within which it goes by run time; None: it goes by RAM. ``left``: the most iterations.
        """
        effort, below = self._options.effort, _cutoff(best[0].need)
        least = self.space.sets.least(forms)
        for part in TARGETS:
            target, patience = min(below, least + -(-(below - least) // part)), PATIENCE[effort]
            while left and patience and self._has_effort(share):
                if self._options.meets_budget(best[0].need):
                    return best
                left -= 1
                fresh, heads = self._fresh(target, forms, budget)
                if budget is not None and self.least > budget:
                    return best  # the smallest bound exceeds it, and larger needs only add larger bounds
                if not fresh:
                    break
                ready = list(filter(self.space.tilings.is_measured, fresh[:heads]))
                if not ready:
                    self.space.measurements.take([tiling for chosen in fresh for tiling in chosen])
                    continue
                before, best = best, self._best_of(best, ready)
                gap = 100 * (best[0].need - least) / best[0].need
                _LOG.info("%3d sets below %d; bound %d, best %d, gap %.1f %%", heads, target, least, best[0].need, gap)
                patience = PATIENCE[effort] if best != before else patience - 1
                target = min(target, _cutoff(best[0].need))
                progress()
            below = _cutoff(best[0].need)
            if target >= below:
                break
        return best

    def _nearby(self, best: tuple[Cost, Tilings], share: float) -> tuple[Cost, Tilings]:
        """The neighborhoods of the best sets with heads that differ: a bound says little of how well a plan fits."""
        centers: list[Tilings] = []
        effort = self._options.effort
        while len(centers) < _CENTERS[effort] and self._has_effort(share):
            if self._options.meets_budget(best[0].need):
                break
            center = next((chosen for chosen in self._best_by_head() if chosen not in centers), None)
            if center is None:
                break
            centers.append(center)
            best = self._best_of(best, self._next_to(center, best[0].need))
        return best

    def _final(self, best: tuple[Cost, Tilings]) -> tuple[Cost, Tilings]:
        """Return the best of a few sets, planned with more effort: with less, plans are a few percent off, or far.

        They are those close to the best one, and that of the smallest bound.
        """
        plans, need = self.plans, best[0].need
        others = [each for each in plans.planned if best[1] and plans.least(each[1]) < need]
        close = [each for each in others if need <= each[0].need <= need + need // _CLOSE]
        close.sort(key=lambda each: (plans.price(each[0]), each[1]))
        lowest = sorted(others, key=lambda each: (plans.least(each[1]), each[1]))
        for _, chosen in dict.fromkeys((*close[:_FINALISTS], *lowest[:1])):
            if plans.least(chosen) < best[0].need:
                best = min(best, (plans.plan_again(chosen), chosen), key=lambda each: plans.price(each[0]))
        return best

    def _without_loops(self, best: Cost, share: float, progress: Progress) -> tuple[Cost, Tilings]:
        """The best set without loops of those that may need less than loops must save of it, which then do not pay.

        What is measured may be a few percent above what is planned: so sets twice as far from it are looked at.
        """
        most = replace(best, need=math.ceil(best.need / (1 - 2 * WORTH)))
        # What was planned to be below the best one is planned again.
        self.plans.costs = {chosen: cost for chosen, cost in self.plans.costs.items() if cost is not None}
        return self._descended((most, ()), (Unrolled,), None, share, _CHOICES[self._options.effort], progress)

    def _next_to(self, center: Tilings, need: int) -> list[Tilings]:
        """Return sets next to one that are not planned yet and may be below a need, measured."""

        def near() -> Iterator[Tilings]:
            for chosen in self.space.sets.near(center, _cutoff(need)):
                if chosen not in self.plans.costs:
                    yield chosen

        self.space.measurements.take([tiling for chosen in islice(near(), _NEAR) for tiling in chosen])
        return list(islice(filter(self.space.tilings.is_measured, near()), _NEAR))

    def _with_rows_cut(self, chosen: Tilings) -> Iterator[Tilings]:
        """Yield the set with its loops in a slower form of fewer tensors: all of them, and one alone."""
        slower = tuple(with_rows_cut(self.model, tiling) for tiling in chosen)
        changed = [at for at, (tiling, other) in enumerate(zip(chosen, slower, strict=True)) if other != tiling]
        if len(changed) > 1:
            yield slower
        for at in changed:
            yield (*chosen[:at], slower[at], *chosen[at + 1 :])

    def _best_by_head(self) -> list[Tilings]:
        """The best set with each head, of those that are planned; the best of all first."""
        first: dict[int, Tilings] = {}
        for cost, chosen in sorted(self.plans.planned, key=lambda each: (self.plans.price(each[0]), each[1])):
            first.setdefault(self._alike(cost.head), chosen)
        return list(first.values())

    def _alike(self, head: int) -> int:
        """The same for heads that are nearly so."""
        return head // max(1, self._untiled.need // HEADS)

    def _fresh(self, below: int, forms: Forms, budget: int | None) -> tuple[list[Tilings], int]:
        """The sets to look at next, and how many of them have heads that differ, which are those to plan.

        They are the cheapest with each head, since plans come nearer to the bound of a larger one; then the next ones.
        Under a budget one by one: what costs least run time first.
        """
        found = self.space.sets.choices(below, forms, by_work=budget is not None)
        self.least = found[0][1].least if found else below
        if budget is not None:
            found.sort(key=lambda pair: (pair[1].least > budget, self._run_time(pair[1])))
            return [chosen for chosen, _ in found if chosen not in self.plans.costs][:1], 1
        first, others = dict[int, Tilings](), list[Tilings]()
        for chosen, choice in found:
            if chosen not in self.plans.costs and first.setdefault(self._alike(choice.figures.head), chosen) != chosen:
                others.append(chosen)
        return [*first.values(), *others][:_AT_ONCE], len(first)

    def _run_time(self, choice: OptionSet) -> tuple[int, int, int]:
        """Return the run time that a set costs: whole percents first, then operators."""
        figures = choice.figures
        return 100 * figures.work // max(1, self._work), figures.operators, figures.macs

    def _best_of(self, best: tuple[Cost, Tilings], others: Sequence[Tilings]) -> tuple[Cost, Tilings]:
        """Plan these sets; the best one that costs less than ``best``, or ``best``."""
        found = self._better(best, others)
        return best if found is best else self._simpler(found)

    def _better(self, best: tuple[Cost, Tilings], others: Sequence[Tilings]) -> tuple[Cost, Tilings]:
        costs = self.plans.of(others, _cutoff(best[0].need))
        found = [(cost, chosen) for cost, chosen in zip(costs, others, strict=True) if cost is not None]
        for cost, chosen in found:
            _LOG.info("    planned %d bytes: %s", cost.need, text_of(chosen))
        return min((best, *found), key=lambda each: self.plans.price(each[0]))

    def _simpler(self, best: tuple[Cost, Tilings]) -> tuple[Cost, Tilings]:
        """Without one tiling after the other: in the scheduler's order fewer may do, which no bound here says."""
        left = self._sets_afterwards(best[0])
        while len(best[1]) > 1 and left:
            fewer = [best[1][:at] + best[1][at + 1 :] for at in range(len(best[1]))][:left]
            left -= len(fewer)
            before, best = best, self._better(best, fewer)
            if best is before:
                break
        return best

    def _sets_afterwards(self, best: Cost) -> int:
        """Return the number of sets like the best one that may be planned to try it with fewer tilings."""
        return int(_AFTERWARDS * _EFFORT[self._options.effort]) // max(1, best.operators)

    def _has_effort(self, share: float) -> bool:
        """Tell whether models planned and regions measured have taken less than ``share`` of the limit on effort."""
        return self.plans.effort + self.space.effort // _MEASURED < share * _EFFORT[self._options.effort]


def _cutoff(need: float) -> int:
    """Return the value that a bound must be below, for an objective below ``need``: a multiple of 16, plus 1."""
    return (math.ceil(need) - 1) // ARENA_ALIGNMENT * ARENA_ALIGNMENT + 1
