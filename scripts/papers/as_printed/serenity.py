"""Serenity with Algorithm 2 as printed, to judge the paper's claims; for use there is ``method.py``.

Three things differ from ``method.py``. A step may be limited in seconds, so that two machines may disagree. The next
soft budget follows the printed formulas: after "timeout" half the budget, after "no solution" the mean of the last two.
And nothing stands behind it: where it ends without a schedule, or has more states than
memory allows, the answer is the order of the file.

Source: Ahn et al., "Ordering Chaos" (MLSys 2020), section 3.2, Algorithm 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tflite_memopt.published.serenity import dynamic_programming as dp
from tflite_memopt.published.serenity.divide import split
from tflite_memopt.published.serenity.method import SerenityParts, operators_of
from tflite_memopt.solvers.graph.dependency_graph import kahn_order
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.problem import ScheduleAnswer, ScheduleProblem, memory_graph

_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class StepLimit:
    """The paper's T, a limit on one search step, for which it gives no value.

    ``signatures`` counts what a step makes, so that every machine agrees; ``seconds`` is as printed.
    """

    seconds: float = math.inf
    signatures: float = math.inf


@dataclass(frozen=True)
class TriedBudget:
    """A soft budget in bytes, and what a search within it came to."""

    budget: int
    outcome: str


def serenity_as_printed(
    problem: ScheduleProblem,
    limit: SearchLimit,
    step: StepLimit,
    parts: SerenityParts = SerenityParts(),
    tried: list[TriedBudget] | None = None,
) -> ScheduleAnswer:
    """An order; its bound is 0 where some part ended without a schedule. ``parts`` are those of Table 2.

    ``tried`` gets every search, part after part.
    """
    allowance = Allowance(_UNLIMITED, limit)
    searches = [] if tried is None else tried
    if not parts.divide:
        return _part(problem, allowance, step, parts.budgeting, searches)
    pieces = split(problem)
    answers = [_part(piece.problem, allowance, step, parts.budgeting, searches) for piece in pieces]
    order = tuple(v for piece, answer in zip(pieces, answers, strict=True) for v in piece.in_whole(answer.order))
    bounds = [answer.lower_bound for answer in answers]
    bound = max(bounds) if all(bounds) else 0
    return ScheduleAnswer(order, bound, sum(each.states for each in answers), allowance.stopped_by_clock)


def next_budgets(old: int, new: int, outcome: dp.SearchOutcome) -> tuple[int, int]:
    """The next (old, new) soft budget in bytes, lines 9 to 15 of the algorithm: both are assigned at once."""
    if outcome is dp.SearchOutcome.TIMEOUT:
        return new, new // 2
    return new, (new + old) // 2


def _part(
    problem: ScheduleProblem,
    allowance: Allowance,
    step: StepLimit,
    has_budgets: bool,
    searches: list[TriedBudget],
) -> ScheduleAnswer:
    graph = memory_graph(problem)
    own = tuple(range(len(graph.needs)))
    start = dp.PartialSchedule(0, graph.alive_at_start, 0)
    old = new = graph.peak(kahn_order(graph))
    known: set[tuple[int, int]] = set()
    states = 0
    while not allowance.is_spent() and (old, new) not in known:
        known.add((old, new))
        limits = dp.ProgramLimits(allowance=allowance)
        if has_budgets:
            limits = dp.ProgramLimits(new, step.signatures, step_seconds=step.seconds, allowance=allowance)
        found = dp.DynamicProgram(operators_of(graph), limits).search(start)
        states += found.states
        searches.append(TriedBudget(new, found.outcome.value))
        if found.outcome is dp.SearchOutcome.SOLUTION:
            return ScheduleAnswer(found.order, graph.peak(found.order), states)
        if found.outcome is dp.SearchOutcome.EXHAUSTED or not has_budgets:
            break
        old, new = next_budgets(old, new, found.outcome)
    return ScheduleAnswer(own if graph.runs_as_numbered else kahn_order(graph), 0, states, allowance.stopped_by_clock)
