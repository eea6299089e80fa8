"""The table of strategies, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from ..errors import InfeasibleError, UsageError
from ..graph.search_limit import SearchLimit
from .bounds import max_breadth
from .check import check_given, check_plan
from .exact.strategy import exact
from .greedy_by_breadth import greedy_by_breadth
from .greedy_by_size import greedy_by_size
from .hill_climb import hill_climb
from .naive import naive
from .problem import OffsetStrategy, Plan, PlanProblem, arena_bytes
from .strip_packing_best_fit import strip_packing_best_fit
from .tflm_greedy import tflm_greedy

STRATEGIES: Mapping[str, OffsetStrategy] = {
    "naive": naive,
    "tflm_greedy": tflm_greedy,
    "greedy_by_size": greedy_by_size,
    "greedy_by_breadth": greedy_by_breadth,
    "strip_packing_best_fit": strip_packing_best_fit,
    "hill_climb": hill_climb,
    "exact": exact,
}
BEST = "best"
"""The default: the strategies of ``BEST_OF`` in turn, cheap ones first and searches last, until one meets the bound."""
BEST_OF = ("greedy_by_size", "strip_packing_best_fit", "greedy_by_breadth", "tflm_greedy", "hill_climb", "exact")
_SHARES = {"hill_climb": 1.0}
"""Seconds that a strategy of ``BEST_OF`` may take where ``exact`` comes after it."""
NAMES = (BEST, *STRATEGIES)


def solve(problem: PlanProblem, method: str = BEST, limit: SearchLimit | None = None) -> Plan:
    """Plan by a named strategy, or by the best of several; the result is checked.

    Raises UsageError for an unknown name, InfeasibleError for given offsets that collide and for a strategy that
    breaks a rule.
    """
    if method not in NAMES:
        raise UsageError(f"unknown planner '{method}'; choose one of {', '.join(NAMES)}")
    check_given(problem)
    limit, bound = limit or SearchLimit(), max_breadth(problem)
    if method != BEST:
        return _run(problem, method, limit, bound)
    return _best(problem, limit, bound)


def _best(problem: PlanProblem, limit: SearchLimit, bound: int) -> Plan:
    """The smallest plan of the portfolio. A strategy that breaks a rule is left out, and named in the result."""
    deadline = time.perf_counter() + limit.time_limit
    best: Plan | None = None
    dropped: list[str] = []
    for name in BEST_OF:
        if name == "exact" and problem.relations:
            continue
        share = limit.time_limit if problem.relations else _SHARES.get(name, limit.time_limit)
        left = SearchLimit(min(share, max(0.0, deadline - time.perf_counter())), limit.seed)
        try:
            plan = _run(problem, name, left, bound)
        except InfeasibleError as error:
            dropped.append(f"{name}: {error}")
            continue
        # A bound that one strategy proves holds for the plans of all.
        bound = plan.lower_bound
        if best is None or plan.arena_bytes < best.arena_bytes:
            best = plan
        if best.arena_bytes <= bound or time.perf_counter() > deadline:
            break
    if best is None:
        raise InfeasibleError(f"no strategy found a plan: {'; '.join(dropped)}")
    return _with_bound(replace(best, dropped=tuple(dropped)), bound)


def _run(problem: PlanProblem, name: str, limit: SearchLimit, bound: int) -> Plan:
    started = time.perf_counter()
    answer = STRATEGIES[name](problem, limit)
    seconds = time.perf_counter() - started
    check_plan(problem, answer.offsets)
    size = arena_bytes(problem, answer.offsets)
    return _with_bound(Plan(answer.offsets, size, bound, False, name, seconds), max(bound, answer.lower_bound))


def _with_bound(plan: Plan, bound: int) -> Plan:
    """The plan with a proved bound, which no valid plan can lie below: one that does shows a fault in this program."""
    if plan.arena_bytes < bound:
        raise AssertionError(f"a plan of {plan.arena_bytes} bytes lies below the proved bound of {bound} bytes")
    return replace(plan, lower_bound=bound, optimal=plan.arena_bytes == bound)
