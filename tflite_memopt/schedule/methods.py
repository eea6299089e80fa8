"""The table of methods, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..errors import UsageError
from ..graph.search_limit import SearchLimit
from .as_is import as_is
from .best_first import best_first
from .bounds import any_order
from .check import check_order, peak_of
from .hmcos import hmcos
from .ilp import ilp
from .kahn import kahn
from .problem import Method, Schedule, ScheduleProblem
from .rpo import rpo
from .serenity import serenity

METHODS: Mapping[str, Method] = {
    "as_is": as_is,
    "kahn": kahn,
    "rpo": rpo,
    "serenity": serenity,
    "hmcos": hmcos,
    "ilp": ilp,
    "best_first": best_first,
}
DEFAULT = "best_first"


def solve(problem: ScheduleProblem, method: str = DEFAULT, limit: SearchLimit | None = None) -> Schedule:
    """Order the operators by a named method; the result is checked and its peak recomputed.

    Raises UsageError for an unknown name and InfeasibleError when a method breaks a rule.
    """
    if method not in METHODS:
        raise UsageError(f"unknown scheduler '{method}'; choose one of {', '.join(METHODS)}")
    started = time.perf_counter()
    answer = METHODS[method](problem, limit or SearchLimit())
    seconds = time.perf_counter() - started
    check_order(problem, answer.order)
    peak, bound = peak_of(problem, answer.order), max(any_order(problem), answer.lower_bound)
    return Schedule(answer.order, peak, bound, peak == bound, method, seconds, answer.states)
