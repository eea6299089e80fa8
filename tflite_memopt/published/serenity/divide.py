"""Divide and conquer at operators that every path crosses; the schedules of the parts, one after the other.

Source: section 3.2 of the Serenity paper (see ``method.py``). All orders run the same operators before a cut, so the
parts are independent, whatever is alive at the cut: no optimum is lost.
"""

from __future__ import annotations

from ...solvers.graph.dependency_graph import sets_at, single_vertex_cuts, transitive_closure
from ...solvers.graph.limits import SearchLimit
from ...solvers.schedule.methods import kahn
from ...solvers.schedule.problem import Method, ScheduleAnswer, ScheduleProblem, memory_graph, schedule_lower_bound
from ..sub_problem import SubProblem, sub_problems


def divide(problem: ScheduleProblem, limit: SearchLimit, method: Method) -> ScheduleAnswer:
    """Any method, part by part. Bounds of parts are bounds of the whole: their states are states of every order.

    The peak of the whole is the largest of its parts, so a part whose Kahn's order needs no more than another part
    keeps that order: parts come in the order of that need.
    """
    parts = split(problem)
    graphs = [memory_graph(part.problem) for part in parts]
    answers = [ScheduleAnswer(kahn(part.problem, limit).order, schedule_lower_bound(part.problem)) for part in parts]
    peaks = [graph.peak(answer.order) for graph, answer in zip(graphs, answers, strict=True)]
    bound = reached = max((answer.lower_bound for answer in answers), default=0)
    for number in sorted(range(len(parts)), key=lambda number: -peaks[number]):
        if peaks[number] <= reached:
            break
        answers[number] = method(parts[number].problem, limit)
        peaks[number] = graphs[number].peak(answers[number].order)
        reached = max(reached, peaks[number])
    return ScheduleAnswer(
        tuple(v for part, answer in zip(parts, answers, strict=True) for v in part.in_whole(answer.order)),
        max((bound, *(answer.lower_bound for answer in answers))),
        sum(answer.states for answer in answers),
        any(answer.stopped_by_clock for answer in answers),
    )


def split(problem: ScheduleProblem) -> list[SubProblem]:
    """Return the parts between cuts, in the order of execution; each but the last ends with its cut."""
    graph = memory_graph(problem)
    closure = transitive_closure(graph)
    return list(sub_problems(graph, sets_at(closure.order, single_vertex_cuts(closure))))
