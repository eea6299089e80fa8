"""The table of strategies, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from ..errors import UsageError
from ..graph.search_limit import SearchLimit
from .bounds import max_breadth
from .check import check_given, check_plan
from .exact import exact
from .greedy_by_breadth import greedy_by_breadth
from .greedy_by_size import greedy_by_size
from .hill_climb import hill_climb
from .naive import naive
from .problem import Plan, PlanProblem, Strategy, arena_bytes
from .strip_packing_best_fit import strip_packing_best_fit
from .tflm_greedy import tflm_greedy

STRATEGIES: Mapping[str, Strategy] = {
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
    deadline = time.perf_counter() + limit.time_limit
    best: Plan | None = None
    for name in BEST_OF:
        if name == "exact" and problem.relations:
            continue
        share = limit.time_limit if problem.relations else _SHARES.get(name, limit.time_limit)
        left = SearchLimit(min(share, max(0.0, deadline - time.perf_counter())), limit.seed)
        plan = _run(problem, name, left, bound)
        # A bound that one strategy proves holds for the plans of all.
        bound = plan.lower_bound
        if best is None or plan.arena_bytes < best.arena_bytes:
            best = plan
        if best.arena_bytes == bound or time.perf_counter() > deadline:
            break
    assert best is not None
    return replace(best, lower_bound=bound, optimal=best.arena_bytes == bound)


def _run(problem: PlanProblem, name: str, limit: SearchLimit, bound: int) -> Plan:
    started = time.perf_counter()
    answer = STRATEGIES[name](problem, limit)
    seconds = time.perf_counter() - started
    check_plan(problem, answer.offsets)
    size, bound = arena_bytes(problem, answer.offsets), max(bound, answer.lower_bound)
    return Plan(answer.offsets, size, bound, size == bound, name, seconds)
