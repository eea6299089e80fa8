"""The table of strategies, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from ..budget import Budget
from ..errors import UsageError
from .bounds import max_breadth
from .check import check_plan
from .greedy_by_breadth import greedy_by_breadth
from .greedy_by_size import greedy_by_size
from .hill_climb import hill_climb
from .naive import naive
from .problem import Plan, PlanProblem, Strategy
from .tflm_greedy import tflm_greedy

STRATEGIES: Mapping[str, Strategy] = {
    "naive": naive,
    "tflm_greedy": tflm_greedy,
    "greedy_by_size": greedy_by_size,
    "greedy_by_breadth": greedy_by_breadth,
    "hill_climb": hill_climb,
}
BEST = "best"
"""The default: the strategies of ``BEST_OF`` in turn until one meets the bound."""
BEST_OF = ("greedy_by_size", "greedy_by_breadth", "tflm_greedy", "hill_climb")
NAMES = (BEST, *STRATEGIES)


def solve(problem: PlanProblem, method: str = BEST, budget: Budget | None = None) -> Plan:
    """Plan by a named strategy, or by the best of several; the result is checked.

    Raises UsageError for an unknown name and InfeasibleError when a strategy breaks a rule.
    """
    budget = budget or Budget()
    if method != BEST:
        return _run(problem, method, budget)
    started = time.perf_counter()
    best: Plan | None = None
    for name in BEST_OF:
        plan = _run(problem, name, budget)
        if best is None or plan.arena_bytes < best.arena_bytes:
            best = plan
        if best.optimal or time.perf_counter() - started > budget.time_limit:
            break
    assert best is not None
    return best


def arena_bytes(problem: PlanProblem, offsets: Sequence[int]) -> int:
    """max(offset + size) in bytes: TFLM's head under this plan."""
    return max((o + i.size for o, i in zip(offsets, problem.items, strict=True)), default=0)


def _run(problem: PlanProblem, name: str, budget: Budget) -> Plan:
    if name not in STRATEGIES:
        raise UsageError(f"unknown planner '{name}'; choose one of {', '.join(NAMES)}")
    started = time.perf_counter()
    offsets = STRATEGIES[name](problem, budget)
    seconds = time.perf_counter() - started
    check_plan(problem, offsets)
    size, bound = arena_bytes(problem, offsets), max_breadth(problem)
    return Plan(offsets, size, bound, size == bound, name, seconds)
