"""The table of methods, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InfeasibleError, UsageError
from ..graph.clock import now
from ..graph.search_limit import SearchLimit
from .as_is import as_is
from .best_first.method import best_first
from .bounds import schedule_lower_bound
from .check import check_order, check_problem, peak_of
from .hmcos.method import hmcos
from .ilp.method import ilp
from .kahn import kahn
from .problem import Method, Schedule, ScheduleProblem
from .rpo import rpo
from .serenity.method import serenity

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

    Raises UsageError for an unknown name, and InfeasibleError when the problem contradicts itself or a method breaks
    a rule.
    """
    if method not in METHODS:
        raise UsageError(f"unknown scheduler '{method}'; choose one of {', '.join(METHODS)}")
    check_problem(problem)
    started = now()
    answer = METHODS[method](problem, limit or SearchLimit())
    seconds = now() - started
    check_order(problem, answer.order)
    peak, bound = peak_of(problem, answer.order), max(schedule_lower_bound(problem), answer.lower_bound)
    if bound > peak:
        raise InfeasibleError(
            f"the scheduler '{method}' says that every order needs {bound} bytes, but its own needs {peak}: report this"
        )
    stopped = answer.stopped_by_clock and peak > bound
    return Schedule(answer.order, peak, bound, peak == bound, method, seconds, answer.states, stopped)
