r"""The table of strategies, and the ways to run them: solve, check, wrap.

By default the planner begins with a *core*: the items that are alive where bytes are short. Their need mostly
decides the total.

    bytes alive          ____
    level   - - - - - __/- - \ - - - -      the core: all items that are alive at some time from a to b
                  ___/  |    | \____
              ___/      a    b      \__

Fewer items never need more: a bound of a core is one of the whole problem. And where the rest finds room around a plan
of the core, within the core's own arena, no plan of the whole is smaller than the core's smallest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ...errors import ErrorKind, InfeasibleError, UsageError
from ..graph.limits import Allowance, SearchLimit, now
from .bounds import changes_of, section_bound
from .check import check_bound, check_given, check_plan
from .exact import allowance_for, exact, fit, improve
from .heuristics import HEURISTICS, Placement
from .problem import BoundCertificate, Item, OffsetStrategy, Plan, PlanProblem, arena_bytes

_LEVELS = (4, 3, 2)
"""Quarters of the bound, above which bytes count as short. Only items that may share are alive above all four."""
_LARGEST = 2
"""A core with a larger share of all items gets no search of its own."""


@dataclass(frozen=True)
class Core:
    """``problem`` has the items ``indices`` of the whole problem, in their order, and the relations between them."""

    problem: PlanProblem
    indices: tuple[int, ...]


def cores_of(problem: PlanProblem) -> Iterator[Core]:
    """Ever larger ones, each with all items whose offset is given; none where few items are alive at quiet times."""
    known = 0
    for quarters in _LEVELS:
        indices = _alive_above(problem.items, section_bound(problem).nbytes * quarters // 4)
        if known < len(indices) <= len(problem.items) // _LARGEST:
            known = len(indices)
            core = Core(restricted(problem, indices), tuple(indices))
            core.problem.analysis.bound = _bound_inside(problem, core)
            yield core


def _bound_inside(problem: PlanProblem, core: Core) -> BoundCertificate | None:
    """Return the bound of the whole problem as one of the core; None where it is not about items of the core only.

    No section of the core has a higher one that is not in the whole problem as well.
    """
    certificate, place = section_bound(problem), {index: place for place, index in enumerate(core.indices)}
    if not all(index in place for index in certificate.items):
        return None
    items = tuple(place[index] for index in certificate.items)
    containers = tuple(tuple(place[i] for i in container) for container in certificate.containers)
    return replace(certificate, items=items, containers=containers)


def around(problem: PlanProblem, core: Core, offsets: Sequence[int], capacity: int) -> tuple[int, ...] | None:
    """The core's plan and, around it, all others within the capacity, largest first; None where one finds no room."""
    inside = set(core.indices)
    rest = sorted((i for i in range(len(problem.items)) if i not in inside), key=lambda i: -problem.items[i].size)
    for find in (Placement.tightest, Placement.lowest):
        placement = Placement(problem)
        placement.place(tuple(zip(core.indices, offsets, strict=True)), 0)
        for index in rest:
            unit = ((index, 0),)
            offset = find(placement, unit)
            if offset + problem.items[index].size > capacity:
                break
            placement.place(unit, offset)
        else:
            return placement.finish()
    return None


def restricted(problem: PlanProblem, indices: Sequence[int]) -> PlanProblem:
    """Return the problem with these items only, in this order, and the relations between them."""
    position = {index: place for place, index in enumerate(indices)}
    relations = tuple(
        replace(relation, first=position[relation.first], second=position[relation.second])
        for relation in problem.relations
        if relation.first in position and relation.second in position
    )
    return PlanProblem(tuple(problem.items[index] for index in indices), relations)


def _alive_above(items: Sequence[Item], level: int) -> list[int]:
    """Return the items that are alive at some time when more bytes than that are, shared bytes counted twice."""
    change = changes_of(items)
    times = sorted(change)
    rank = {time: place for place, time in enumerate(times)}
    # How many of the sections before each time are above the level.
    above, alive = [0], 0
    for time in times:
        alive += change[time]
        above.append(above[-1] + (alive > level))
    return [
        index
        for index, item in enumerate(items)
        if item.offset is not None or (item.size and above[rank[item.end]] > above[rank[item.start]])
    ]


STRATEGIES: Mapping[str, OffsetStrategy] = {**HEURISTICS, "exact": exact}
BEST = "best"
"""The default: the strategies of ``BEST_OF`` in turn, until the best plan meets the bound."""
CHEAP = ("greedy_by_size", "strip_packing_best_fit")
BEST_OF = (*CHEAP, "exact")
"""Cheap ones first; ``exact`` starts from the better of them."""
NAMES = (BEST, *STRATEGIES)
_SHARE_OF_A_CORE = 2
"""A core gets such a part of the work that is left: where it stays open, the search on the whole may still end."""


def solve(problem: PlanProblem, method: str = BEST, limit: SearchLimit | None = None) -> Plan:
    """Plan by a named strategy, or by the best of several; the result and its bound are checked.

    Raises UsageError for an unknown name, InfeasibleError for given offsets that collide and for a strategy that breaks
    a rule.
    """
    if method not in NAMES:
        raise UsageError(f"unknown planner '{method}'; choose one of {', '.join(NAMES)}", ErrorKind.UNKNOWN)
    check_given(problem)
    run = _Portfolio(problem, limit or SearchLimit())
    if method != BEST:
        run.add(method)
    elif not _plan_from_cores(run):
        run.add_each(BEST_OF)
    return run.plan()


def _plan_from_cores(run: _Portfolio) -> bool:
    """Plan the first core around which the rest finds room; then that one, and larger ones, by a search.

    False where there is no such core: that is decided by cheap plans, so that it is the same within every limit. What
    the search spends is taken from one allowance, step after step: so a wider limit does all that a narrower one does.
    """
    is_chosen = False
    for core in cores_of(run.problem):
        inner = run.of(core)
        inner.add_each(CHEAP)
        is_chosen = is_chosen or run.add_around(core, inner.plans[-1])
        if not is_chosen:
            continue
        with run.allowance.part_of(_SHARE_OF_A_CORE):
            inner.add_each(("exact",))
        run.raise_bound(inner.bound)
        if run.add_first_that_fits(core, inner.plans):
            break
    if is_chosen:
        run.add_each(("exact",))
    return is_chosen


def solve_within(problem: PlanProblem, capacity: int, limit: SearchLimit | None = None) -> tuple[int, ...] | None:
    """Look for offsets within ``capacity`` bytes: the question of a deployment. None where none are found.

    The first cheap strategy that fits answers it, else ``exact``. Raises InfeasibleError where given offsets collide.
    """
    check_given(problem)
    limit = limit or SearchLimit()
    if section_bound(problem).nbytes > capacity:
        return None
    for name in CHEAP:
        offsets = STRATEGIES[name](problem, limit).offsets
        if arena_bytes(problem, offsets) <= capacity:
            with suppress(InfeasibleError):
                check_plan(problem, offsets)
                return offsets
    found = fit(problem, capacity, limit)
    if found is not None:
        check_plan(problem, found)
    return found


@dataclass
class _Portfolio:
    """Strategies run one after the other on one problem: ever better plans, and the best bound."""

    problem: PlanProblem
    limit: SearchLimit
    shared: Allowance | None = None
    dropped: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    _stopped_by_clock: bool = False

    def __post_init__(self) -> None:
        self._deadline = self.limit.deadline()
        self._certificate: BoundCertificate = section_bound(self.problem)
        check_bound(self.problem, self._certificate)
        self.bound = self._certificate.nbytes
        self.allowance = self.shared or allowance_for(self.limit)

    def of(self, core: Core) -> _Portfolio:
        """Return the strategies on a core, with the same allowance."""
        limit = replace(self.limit, time_limit=self._deadline.left())
        return _Portfolio(core.problem, limit, self.allowance)

    def add_each(self, names: Sequence[str]) -> None:
        """Run these, until the plan is proved smallest; one whose answer breaks a rule is dropped."""
        for name in names:
            if self.is_done():
                break
            try:
                self.add(name)
            except InfeasibleError as error:
                self.dropped.append(f"{name}: {error}")

    def add(self, name: str) -> None:
        """Run a strategy. Raises InfeasibleError where its answer breaks a rule."""
        started = now()
        left = replace(self.limit, time_limit=self._deadline.left())
        answer = self._runner(name)(self.problem, left)
        seconds = now() - started
        self._stopped_by_clock = self._stopped_by_clock or answer.stopped_by_clock
        for offsets in (*answer.earlier, answer.offsets):
            check_plan(self.problem, offsets)
            size = arena_bytes(self.problem, offsets)
            self._keep(Plan(offsets, size, 0, False, name, seconds, self._certificate))
        # A bound that one strategy proves holds for the plans of all.
        self.raise_bound(answer.lower_bound)

    def add_around(self, core: Core, plan: Plan) -> bool:
        """The plan of a core with the rest around it; False where the rest does not fit into the core's arena."""
        offsets = around(self.problem, core, plan.offsets, plan.arena_bytes)
        if offsets is None:
            return False
        check_plan(self.problem, offsets)
        self._keep(replace(plan, offsets=offsets, certificate=self._certificate))
        return True

    def add_first_that_fits(self, core: Core, plans: Sequence[Plan]) -> bool:
        """Return the smallest of a core's plans around which the rest finds room; whether it is the smallest of all."""
        for plan in reversed(plans):
            if self.plans and plan.arena_bytes >= self.plans[-1].arena_bytes:
                break
            if self.add_around(core, plan):
                break
        return bool(self.plans) and self.plans[-1].arena_bytes <= plans[-1].arena_bytes

    def raise_bound(self, nbytes: int) -> None:
        """Raise the lower bound on every plan to ``nbytes``."""
        self.bound = max(self.bound, nbytes)

    def _keep(self, plan: Plan) -> None:
        if not self.plans or plan.arena_bytes < self.plans[-1].arena_bytes:
            self.plans.append(plan)

    def is_done(self) -> bool:
        """Tell whether the best plan is proved smallest, or none is below the limit's ``below``."""
        below = self.limit.below
        is_hopeless = below is not None and below <= self.bound
        return bool(self.plans) and (is_hopeless or self.plans[-1].arena_bytes <= self.bound)

    def plan(self) -> Plan:
        """Return the best plan with all that is known about it.

        A bound above it shows a fault in this program: no valid plan can lie below a proved bound.
        """
        if not self.plans:
            raise InfeasibleError(f"no strategy returned a plan: {'; '.join(self.dropped)}")
        best, bound = self.plans[-1], self.bound
        if best.arena_bytes < bound:
            raise AssertionError(f"a plan of {best.arena_bytes} bytes lies below the proved bound of {bound} bytes")
        return replace(
            best,
            lower_bound=bound,
            optimal=best.arena_bytes == bound,
            dropped=tuple(self.dropped),
            stopped_by_clock=self._stopped_by_clock and best.arena_bytes > bound,
        )

    def _runner(self, name: str) -> OffsetStrategy:
        if name != "exact":
            return STRATEGIES[name]
        known = self.plans[-1].offsets if self.plans else None
        return lambda problem, limit: improve(problem, known, limit, self.allowance)
