"""Divide and conquer at operators that every path crosses; the schedules of the parts, one after the other.

Source: section 3.2 of the Serenity paper (see ``dp.py``), after Wilken et al. (PLDI 2000). A cut is an operator
that is an ancestor or a descendant of every other one. All orders run the same operators before it, so the parts
are independent, whatever is alive at the cut: no optimum is lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ...graph.search_limit import SearchLimit
from ..bounds import any_order
from ..kahn import kahn
from ..peak import order_peak
from ..problem import Answer, Method, Reuse, ScheduleProblem, Step
from ..reach import reach
from ..wiring import Wiring, wire


@dataclass(frozen=True)
class Part:
    """A problem of its own: its step ``v`` is operator ``operators[v]`` of the whole."""

    operators: tuple[int, ...]
    problem: ScheduleProblem


def divide(problem: ScheduleProblem, limit: SearchLimit, method: Method) -> Answer:
    """Any method, part by part. Bounds of parts are bounds of the whole: their states are states of every order.

    The peak of the whole is the largest of its parts, so a part whose Kahn's order needs no more than another part
    keeps that order: parts come in the order of that need, with equal shares of the time that is left.
    """
    parts = split(problem)
    deadline = time.monotonic() + limit.time_limit
    answers = [Answer(kahn(part.problem, limit).order, any_order(part.problem)) for part in parts]
    peaks = [order_peak(wire(part.problem), answer.order) for part, answer in zip(parts, answers, strict=True)]
    bound = reached = max((answer.lower_bound for answer in answers), default=0)
    for number in sorted(range(len(parts)), key=lambda number: -peaks[number]):
        if peaks[number] <= reached:
            break
        share = max(0.0, deadline - time.monotonic()) / sum(peak > reached for peak in peaks)
        answers[number] = method(parts[number].problem, replace(limit, time_limit=share))
        peaks[number] = order_peak(wire(parts[number].problem), answers[number].order)
        reached = max(reached, peaks[number])
    return Answer(
        tuple(part.operators[v] for part, answer in zip(parts, answers, strict=True) for v in answer.order),
        max((bound, *(answer.lower_bound for answer in answers))),
        sum(answer.states for answer in answers),
    )


def split(problem: ScheduleProblem) -> list[Part]:
    """The parts between cuts, in the order of execution; each ends with its cut. O(n^2) bits for n operators."""
    wiring = wire(problem)
    splitter = _Splitter(wiring)
    return [splitter.part(operators) for operators in _segments(wiring)]


def _segments(wiring: Wiring) -> list[tuple[int, ...]]:
    closure = reach(wiring)
    others = len(wiring.needs) - 1
    segments: list[tuple[int, ...]] = []
    open_segment: list[int] = []
    for v in closure.order:
        open_segment.append(v)
        if closure.before[v].bit_count() + closure.after[v].bit_count() == others:
            segments.append(tuple(sorted(open_segment)))
            open_segment = []
    return [*segments, tuple(sorted(open_segment))] if open_segment else segments


class _Splitter:
    """Cuts parts off the front of a problem, and keeps what is alive where the next part starts."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._whole = wiring.problem
        self._waiting = wiring.everything
        self._alive = set(self._whole.inputs)
        self._alive_bytes = sum(self._whole.sizes[t] for t in self._alive)
        # Inputs that nobody reads: they count only before the first step, so the first part must get them.
        self._unread = [t for t in sorted(self._alive) if wiring.dies(t, self._waiting)]

    def part(self, operators: tuple[int, ...]) -> Part:
        """The next part. Tensors that it does not touch are one tensor that comes in and goes out."""
        steps = [self._whole.steps[v] for v in operators]
        touched = dict.fromkeys([*self._unread, *(t for step in steps for t in (*step.inputs, *step.outputs))])
        numbers = {t: number for number, t in enumerate(touched)}
        self._unread = []
        entering = [t for t in touched if t in self._alive]
        passing = self._alive_bytes - sum(self._whole.sizes[t] for t in entering)
        self._waiting &= ~sum(1 << v for v in operators)
        leaving = [t for t in touched if not self._wiring.dies(t, self._waiting)]
        self._alive = self._alive.difference(touched).union(leaving)
        self._alive_bytes = passing + sum(self._whole.sizes[t] for t in leaving)
        rest = len(numbers)
        problem = ScheduleProblem(
            (*(self._whole.sizes[t] for t in touched), passing),
            _renumber(steps, numbers, {v: position for position, v in enumerate(operators)}),
            (*(numbers[t] for t in entering), rest),
            (*(numbers[t] for t in leaving), rest),
        )
        return Part(operators, problem)


def _renumber(steps: list[Step], tensors: dict[int, int], operators: dict[int, int]) -> tuple[Step, ...]:
    """The steps in the numbers of a part. Operators of earlier parts have run: no need to wait for them."""
    return tuple(
        Step(
            tuple(tensors[t] for t in step.inputs),
            tuple(tensors[t] for t in step.outputs),
            step.scratch,
            tuple(operators[v] for v in step.after if v in operators),
            tuple(Reuse(tensors[reuse.tensor], reuse.saved) for reuse in step.reuses),
        )
        for step in steps
    )
