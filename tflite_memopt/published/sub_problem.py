"""Parts of a problem that can be ordered by themselves, between sets of operators that have run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..solvers.graph.dependency_graph import bits
from ..solvers.schedule.problem import MemoryGraph, Reuse, ScheduleProblem, Step


@dataclass(frozen=True)
class SubProblem:
    """A problem of its own: its step ``v`` is operator ``operators[v]`` of the whole."""

    problem: ScheduleProblem
    operators: tuple[int, ...]

    def in_whole(self, order: Iterable[int]) -> tuple[int, ...]:
        """Return an order of the part's steps in the numbers of the whole."""
        return tuple(self.operators[v] for v in order)


def sub_problems(graph: MemoryGraph, cuts: Sequence[int]) -> Iterator[SubProblem]:
    """Yield the part between each cut and the next; ``cuts`` are sets of executed operators, each within the next.

    A part's inputs are what is alive before it, its outputs what is alive after it. Tensors that it does not touch are
    one tensor more, which comes in and goes out. Inputs of the graph that nobody reads count before the first step
    only, so they are in the part that begins with nothing executed.
    """
    sizes, steps = graph.problem.sizes, graph.problem.steps
    alive = set(graph.alive(cuts[0]) if cuts[0] else graph.problem.inputs)
    alive_bytes = sum(sizes[t] for t in alive)
    waiting = graph.everything & ~cuts[0]
    unread = {t for t in alive if graph.dies(t, waiting)}
    for done, upto in pairwise(cuts):
        operators = tuple(bits(upto & ~done))
        touched = sorted({*unread, *(t for v in operators for t in (*steps[v].inputs, *steps[v].outputs))})
        waiting &= ~upto
        entering = [t for t in touched if t in alive]
        leaving = [t for t in touched if not graph.dies(t, waiting)]
        passing = alive_bytes - sum(sizes[t] for t in entering)
        yield SubProblem(_renumbered(graph.problem, operators, touched, (entering, leaving), passing), operators)
        alive = alive.difference(touched).union(leaving)
        alive_bytes = passing + sum(sizes[t] for t in leaving)
        unread = set()


def _renumbered(
    whole: ScheduleProblem,
    operators: Sequence[int],
    tensors: Sequence[int],
    ends: tuple[Sequence[int], Sequence[int]],
    passing: int,
) -> ScheduleProblem:
    """Some operators and the tensors they touch, by their places in these lists; the last tensor is what passes."""
    number = {t: place for place, t in enumerate(tensors)}
    place = {v: number for number, v in enumerate(operators)}
    inputs, outputs = ((*(number[t] for t in end), len(tensors)) for end in ends)
    steps = tuple(_step(whole.steps[v], number, place) for v in operators)
    return ScheduleProblem((*(whole.sizes[t] for t in tensors), passing), steps, inputs, outputs)


def _step(step: Step, number: Mapping[int, int], place: Mapping[int, int]) -> Step:
    """Return the operators of earlier parts have run: no need to wait for them."""
    return Step(
        tuple(number[t] for t in step.inputs),
        tuple(number[t] for t in step.outputs),
        step.scratch,
        tuple(place[v] for v in step.after if v in place),
        tuple(Reuse(number[reuse.tensor], reuse.saved) for reuse in step.reuses),
    )
