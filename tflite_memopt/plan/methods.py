"""The table of strategies, and the ways to run them: solve, check, wrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import InfeasibleError, UsageError
from ..graph.clock import now
from ..graph.search_limit import SearchLimit, WorkAllowance
from .bounds import section_bound
from .certificates import BoundCertificate
from .check import check_bound, check_given, check_plan
from .cores import Core, around, cores_of
from .exact.settings import TreeSettings
from .exact.strategy import allowance_for, exact, fit, improve
from .heuristics import HEURISTICS
from .hill_climb.strategy import Climber, hill_climb, record_to_record
from .problem import FitResult, OffsetStrategy, Plan, PlanProblem, arena_bytes

STRATEGIES: Mapping[str, OffsetStrategy] = {
    **HEURISTICS,
    "hill_climb": hill_climb,
    "record_to_record": record_to_record,
    "exact": exact,
}
BEST = "best"
"""The default: the strategies of ``BEST_OF`` in turn, until the best plan meets the bound."""
CHEAP = ("greedy_by_size", "nested_storages", "strip_packing_best_fit", "greedy_by_breadth", "tflm_greedy")
_CLIMBS = 0.1
"""Part of a climb's own work, and of the turns, that comes after ``exact``: with ten times the work it is all."""
CHEAP_IN_CORES = ("greedy_by_size", "strip_packing_best_fit")
"""In a core ``exact`` finds soon what the others find."""
BEST_OF = (*CHEAP, "exact", "hill_climb")
"""Cheap ones first; ``exact`` starts from the best of them; ``hill_climb`` only where ``exact`` gives up."""
IN_TURNS = "record_to_record"
"""What comes last, several times."""
NAMES = (BEST, *STRATEGIES)
_TURNS, _ITEMS_IN_TURNS = 24, 2400
"""With ten times the work so many turns of record-to-record travel, and so many items in all of them together."""
_MOST_TURNS = 8
"""However wide the limit is, so that ``exact`` gets the rest of it."""
_ITEMS_OF_A_WHOLE_CLIMB = 1000
"""With fewer items the hill climb gets that part of its work: where ``exact`` gives up, it seldom finds more."""


def solve(
    problem: PlanProblem,
    method: str = BEST,
    limit: SearchLimit | None = None,
    settings: TreeSettings = TreeSettings(),
) -> Plan:
    """Plan by a named strategy, or by the best of several; the result and its bound are checked.

    The ``settings`` bound the work of ``exact``. Raises UsageError for an unknown name, InfeasibleError for given
    offsets that collide and for a strategy that breaks a rule.
    """
    if method not in NAMES:
        raise UsageError(f"unknown planner '{method}'; choose one of {', '.join(NAMES)}")
    check_given(problem)
    run = _Portfolio(problem, limit or SearchLimit(), settings)
    if method != BEST:
        run.add(method)
    elif not _plan_from_cores(run):
        run.add_each(BEST_OF)
        _take_turns(run)
    return run.plan()


def _plan_from_cores(run: _Portfolio) -> bool:
    """Plan the first core around which the rest finds room; then that one, and larger ones, by a search.

    False where there is no such core: that is decided by cheap plans, so that it is the same within every limit. What
    the search spends is taken from one allowance, step after step: so a wider limit does all that a narrower one does.
    """
    is_chosen = False
    for core in cores_of(run.problem):
        inner = run.of(core)
        inner.add_each(CHEAP_IN_CORES)
        is_chosen = is_chosen or run.add_around(core, inner.plans[-1])
        if not is_chosen:
            continue
        inner.add_each(("exact",))
        run.raise_bound(inner.bound)
        if run.add_first_that_fits(core, inner.plans):
            break
    else:
        if is_chosen:
            run.add_each(("exact",))
    if is_chosen:
        # Where the core stays open, a few turns on the whole find now and then what its search does not.
        _take_turns(run)
    return is_chosen


def _take_turns(run: _Portfolio) -> None:
    """Run ``record_to_record`` with one random seed after the other, more often for small problems.

    Its plans differ by several percent from seed to seed.
    """
    turns = min(_TURNS, _ITEMS_IN_TURNS // max(1, len(run.problem.items))) * run.limit.work * _CLIMBS
    for turn in range(min(_MOST_TURNS, int(turns))):
        if not run.is_done():
            run.add(IN_TURNS, turn)


def solve_within(
    problem: PlanProblem,
    capacity: int,
    limit: SearchLimit | None = None,
    settings: TreeSettings = TreeSettings(),
) -> FitResult:
    """Whether a plan of at most ``capacity`` bytes exists: the question of a deployment, or of a search's cut-off.

    The first cheap strategy that fits answers it, else the tree. Raises InfeasibleError for given offsets that collide.
    """
    check_given(problem)
    limit = limit or SearchLimit()
    if section_bound(problem).nbytes > capacity:
        return FitResult(None, is_proved=True)
    for name in CHEAP:
        offsets = STRATEGIES[name](problem, limit).offsets
        if arena_bytes(problem, offsets) <= capacity and _is_valid(problem, offsets):
            return FitResult(offsets, is_proved=False)
    found = fit(problem, capacity, limit, settings)
    if found.offsets is not None:
        check_plan(problem, found.offsets)
    return found


def _is_valid(problem: PlanProblem, offsets: tuple[int, ...]) -> bool:
    try:
        check_plan(problem, offsets)
    except InfeasibleError:
        return False
    return True


@dataclass
class _Portfolio:
    """Strategies run one after the other on one problem: ever better plans, and the best bound."""

    problem: PlanProblem
    limit: SearchLimit
    settings: TreeSettings
    allowance: WorkAllowance | None = None
    dropped: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    _climber: Climber | None = None
    _stopped_by_clock: bool = False

    def __post_init__(self) -> None:
        self._deadline = self.limit.deadline()
        self._certificate: BoundCertificate = section_bound(self.problem)
        check_bound(self.problem, self._certificate)
        self.bound = self._certificate.nbytes
        self._allowance = self.allowance or allowance_for(self.problem, self.limit, self.settings)

    def of(self, core: Core) -> _Portfolio:
        """The strategies on a core, with the same allowance; all but ``exact`` never get more than their own limit."""
        limit = replace(self.limit, time_limit=self._deadline.left(), work=min(1.0, self.limit.work))
        return _Portfolio(core.problem, limit, self.settings, self._allowance)

    def add_each(self, names: Sequence[str]) -> None:
        """Run these, until the plan is proved smallest; one whose answer breaks a rule is dropped."""
        for name in names:
            if self.is_done() or (name == "nested_storages" and not self.problem.relations):
                continue
            try:
                self.add(name)
            except InfeasibleError as error:
                self.dropped.append(f"{name}: {error}")

    def add(self, name: str, turn: int = 0) -> int:
        """The bytes of a strategy's plan, with another seed in every turn.

        Raises InfeasibleError where its answer breaks a rule.
        """
        started = now()
        left = replace(
            self.limit, seed=self.limit.seed + turn, time_limit=self._deadline.left(), work=self._work_of(name)
        )
        answer = self._runner(name)(self.problem, left)
        seconds = now() - started
        self._stopped_by_clock = self._stopped_by_clock or answer.stopped_by_clock
        for offsets in (*answer.earlier, answer.offsets):
            check_plan(self.problem, offsets)
            size = arena_bytes(self.problem, offsets)
            self._keep(Plan(offsets, size, 0, False, name, seconds, self._certificate))
        # A bound that one strategy proves holds for the plans of all.
        self.raise_bound(answer.lower_bound)
        return size

    def add_around(self, core: Core, plan: Plan) -> bool:
        """The plan of a core with the rest around it; False where the rest does not fit into the core's arena."""
        offsets = around(self.problem, core, plan.offsets, plan.arena_bytes)
        if offsets is None:
            return False
        check_plan(self.problem, offsets)
        self._keep(replace(plan, offsets=offsets, certificate=self._certificate))
        return True

    def add_first_that_fits(self, core: Core, plans: Sequence[Plan]) -> bool:
        """The smallest of a core's plans around which the rest finds room; whether it is the smallest of all."""
        for plan in reversed(plans):
            if self.plans and plan.arena_bytes >= self.plans[-1].arena_bytes:
                break
            if self.add_around(core, plan):
                break
        return bool(self.plans) and self.plans[-1].arena_bytes <= plans[-1].arena_bytes

    def raise_bound(self, nbytes: int) -> None:
        """Every plan takes so many bytes."""
        self.bound = max(self.bound, nbytes)

    def _keep(self, plan: Plan) -> None:
        if not self.plans or plan.arena_bytes < self.plans[-1].arena_bytes:
            self.plans.append(plan)

    def is_done(self) -> bool:
        """Whether the best plan is proved smallest."""
        return bool(self.plans) and self.plans[-1].arena_bytes <= self.bound

    def plan(self) -> Plan:
        """The best plan with all that is known about it.

        A bound above it shows a fault in this program: no valid plan can lie below a proved bound.
        """
        if not self.plans:
            raise InfeasibleError(f"no strategy found a plan: {'; '.join(self.dropped)}")
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

    def _work_of(self, name: str) -> float:
        """The part of its own limit that a strategy may use; the first one asked for gets all."""
        if name not in (IN_TURNS, "hill_climb") or not self.plans:
            return self.limit.work
        part = min(1.0, len(self.problem.items) / _ITEMS_OF_A_WHOLE_CLIMB) if name == "hill_climb" else 1.0
        return self.limit.work * _CLIMBS * part

    def _runner(self, name: str) -> OffsetStrategy:
        if name in (IN_TURNS, "hill_climb"):
            climber = self._climber = self._climber or Climber(self.problem)
            return lambda _, limit: climber.travel(limit) if name == IN_TURNS else climber.climb(limit)
        if name != "exact":
            return STRATEGIES[name]
        known = self.plans[-1].offsets if self.plans else None
        return lambda problem, limit: improve(problem, known, limit, self.settings, self._allowance)
