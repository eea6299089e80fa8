"""The table of methods, and the one way to run them: solve, check, wrap."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

from ...errors import ErrorKind, InfeasibleError, UsageError
from ..graph.dependency_graph import kahn_order, reverse_post_order
from ..graph.limits import SearchLimit, now
from .best_first import best_first
from .check import check_order, check_problem, peak_of
from .problem import Method, Schedule, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound


def as_is(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Return the model's own order."""
    return ScheduleAnswer(tuple(range(len(problem.steps))))


def kahn(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Return the operators in the order in which they become ready."""
    return ScheduleAnswer(kahn_order(memory_graph(problem)))


def rpo(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
    """Return the reverse post-order of a depth-first walk; of two ready branches it finishes the earlier one first."""
    return ScheduleAnswer(reverse_post_order(memory_graph(problem)))


def _published(paper: str) -> Method:
    """Return the method of a paper, which is in ``published/``: loaded when it is first asked for."""

    def method(problem: ScheduleProblem, limit: SearchLimit) -> ScheduleAnswer:
        run: Method = getattr(import_module(f"tflite_memopt.published.{paper}.method"), paper)
        return run(problem, limit)

    return method


METHODS: Mapping[str, Method] = {
    "as_is": as_is,
    "kahn": kahn,
    "rpo": rpo,
    **{paper: _published(paper) for paper in ("serenity", "hmcos", "ilp")},
    "best_first": best_first,
}
DEFAULT = "best_first"
_NEEDED = {"ilp": "highspy"}
"""Packages that only the extra ``published`` installs."""


def lacking_package(method: str) -> str | None:
    """Return the package that a method needs and that is not installed; None where it can run."""
    package = _NEEDED.get(method)
    return package if package is not None and find_spec(package) is None else None


def check_method(method: str) -> None:
    """Raise UsageError for a name that the table does not have, and where the method's package is not installed."""
    if method not in METHODS:
        raise UsageError(f"unknown scheduler '{method}'; choose one of {', '.join(METHODS)}", ErrorKind.UNKNOWN)
    package = lacking_package(method)
    if package is not None:
        raise UsageError(
            f"the scheduler '{method}' needs the package '{package}', which is not installed: "
            "run pip install 'tflite-memopt[published]', or choose other schedulers",
            ErrorKind.NOT_INSTALLED,
        )


@lru_cache(maxsize=64)  # candidates of a run have many problems in common
def _answered(method: Method, problem: ScheduleProblem, limit: SearchLimit) -> tuple[ScheduleAnswer, float]:
    started = now()
    return method(problem, limit), now() - started


def solve(problem: ScheduleProblem, method: str = DEFAULT, limit: SearchLimit | None = None) -> Schedule:
    """Order the operators by a named method; the result is checked and its peak recomputed.

    Raises UsageError as :func:`check_method`, and InfeasibleError when the problem contradicts itself or a method
    breaks a rule.
    """
    check_method(method)
    check_problem(problem)
    answer, seconds = _answered(METHODS[method], problem, limit or SearchLimit())
    check_order(problem, answer.order)
    peak, bound = peak_of(problem, answer.order), max(schedule_lower_bound(problem), answer.lower_bound)
    if bound > peak:
        raise InfeasibleError(
            f"the scheduler '{method}' says that every order needs {bound} bytes, but its own needs {peak}: "
            "report this",
            ErrorKind.BOUND,
        )
    stopped = answer.stopped_by_clock and peak > bound
    return Schedule(answer.order, peak, bound, peak == bound, method, seconds, answer.states, stopped)
