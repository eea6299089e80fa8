"""The ordering problem and its solution, as frozen integers: no model, no tensor, no flatbuffer.

Sizes are bytes. A tensor is alive from the step that writes it to the last step that reads it; the graph's
inputs from the first step on, its outputs to the last. A tensor here is a range of bytes with one writer: where
several tensors of a model are views of the same bytes, the problem has those bytes once, with the readers of all of
them, so that no method has to know views.

``MemoryGraph`` has what every search needs of a problem: who waits for whom, and what running an operator does to
memory. A set of operators is an ``int`` with one bit for each: bit ``v`` is operator ``v``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ..graph.dependency_graph import DependencyGraph, bits, dependency_graph, set_of
from ..graph.limits import SearchLimit


@dataclass(frozen=True)
class Reuse:
    """``saved`` bytes of input ``tensor`` and of the outputs are the same bytes, if the tensor dies at the step.

    In-place: the smaller of the two sizes. Overlap: what the distance between the two leaves of that.
    """

    tensor: int
    saved: int


@dataclass(frozen=True)
class Step:
    """One operator: distinct tensors read and written, scratch bytes, operators that must run before it.

    Its working set is everything alive, its outputs and its scratch, less the largest ``saved`` of the reuses
    whose tensor has no reader left. ``after`` holds order that data does not show, such as side effects.
    ``uncounted``: bytes that a plan may save here at most and that no scheduler counts.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    scratch: int = 0
    after: tuple[int, ...] = ()
    reuses: tuple[Reuse, ...] = ()
    uncounted: int = 0


@dataclass(frozen=True)
class ScheduleProblem:
    """``sizes[t]`` is tensor t's bytes in the arena; ``inputs`` and ``outputs`` are the graph's tensors."""

    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """``order[s]`` is the operator that runs at step s.

    ``peak_bytes`` is the largest working set; ``lower_bound`` holds for any order (the ``schedule_``
    bound); ``optimal`` says that the two are proved equal. ``states`` counts what the search visited.
    ``stopped_by_clock`` admits that the time limit ended a search: another machine may find another order.
    """

    order: tuple[int, ...]
    peak_bytes: int
    lower_bound: int
    optimal: bool
    method: str
    seconds: float
    states: int
    stopped_by_clock: bool = False


@dataclass(frozen=True)
class ScheduleAnswer:
    """The result of a method: an order, a bound it proved for any order (0 for none), and its effort.

    ``stopped_by_clock``: without the time limit it would have gone on.
    """

    order: tuple[int, ...]
    lower_bound: int = 0
    states: int = 0
    stopped_by_clock: bool = False


Method = Callable[[ScheduleProblem, SearchLimit], ScheduleAnswer]
"""The signature of a method. ``methods.solve`` times it, checks it and works out the peak."""


def schedule_lower_bound(problem: ScheduleProblem) -> int:
    """Bytes that no order can avoid: the largest need of one operator, or all inputs or outputs. No search."""
    sizes = problem.sizes
    saved = (max((reuse.saved for reuse in step.reuses), default=0) for step in problem.steps)
    steps = (
        sum(sizes[t] for t in {*step.inputs, *step.outputs}) + step.scratch - least
        for step, least in zip(problem.steps, saved, strict=True)
    )
    ends = (sum(sizes[t] for t in set(tensors)) for tensors in (problem.inputs, problem.outputs))
    return max((*steps, *ends), default=0)


def head_lower_bound(problem: ScheduleProblem, lower_bound: int) -> int:
    """Return the bytes of the head that no plan of any order goes below, given what no order's peak goes below.

    A peak is at a step that may save ``uncounted`` bytes more, or at one that may not. No search.
    """
    most = max((step.uncounted for step in problem.steps), default=0)
    if not most:
        return lower_bound
    saving = replace(problem, steps=tuple(_saving_all(step) for step in problem.steps))
    return max(lower_bound - most, schedule_lower_bound(saving))


def _saving_all(step: Step) -> Step:
    """Return the step as if what is not counted were saved by one of its inputs."""
    if not step.uncounted:
        return step
    return replace(step, reuses=(*step.reuses, Reuse(step.inputs[0], step.uncounted)))


class Ran(NamedTuple):
    """One operator of an order: those before it, bytes while it runs, bytes alive after it."""

    operator: int
    executed: int
    need: int
    alive: int


@dataclass(frozen=True)
class MemoryGraph(DependencyGraph):
    """The dependency graph of the operators. ``readers[t]`` is the set of operators that read tensor t.

    ``kept[t]`` says that tensor t is an output of the graph, which never dies.
    """

    problem: ScheduleProblem
    readers: tuple[int, ...]
    kept: tuple[bool, ...]

    @cached_property
    def alive_at_start(self) -> int:
        """Bytes alive after "nothing ran": the graph's inputs that somebody reads, or that are outputs too."""
        return self.alive_bytes(0)

    @property
    def runs_as_numbered(self) -> bool:
        """Tell whether the model's own order is one: each operator needs earlier ones only."""
        return all(needs < 1 << v for v, needs in enumerate(self.needs))

    @property
    def has_one_order(self) -> bool:
        """Tell whether each operator waits for the one before it, as they are numbered."""
        return all(self.needs[v] >> (v - 1) & 1 for v in range(1, len(self.needs)))

    def alive(self, executed: int) -> tuple[int, ...]:
        """Return the tensors alive once a set of operators ran. O(operators + tensors)."""
        steps, waiting = self.problem.steps, self.everything & ~executed
        written = (t for v in bits(executed) for t in steps[v].outputs)
        return tuple(t for t in dict.fromkeys((*self.problem.inputs, *written)) if not self.dies(t, waiting))

    def alive_bytes(self, executed: int) -> int:
        """Return the bytes alive once a set of operators ran. O(operators + tensors)."""
        return sum(self.problem.sizes[t] for t in self.alive(executed))

    def run(self, executed: int, alive: int, operator: int) -> tuple[int, int]:
        """(working set in bytes while ``operator`` runs, bytes alive after it), given those alive before it.

        The one place where the memory model's cost of a step is computed for the searches.
        """
        sizes, step, after = self.problem.sizes, self.problem.steps[operator], alive
        waiting = ~(executed | 1 << operator)
        for t in step.outputs:
            after += sizes[t]
        need = after + step.scratch
        if step.reuses:
            need -= max((r.saved for r in step.reuses if self.dies(r.tensor, waiting)), default=0)
        for t in (*step.inputs, *step.outputs):
            if self.dies(t, waiting):
                after -= sizes[t]
        return need, after

    def follow(self, order: Iterable[int], executed: int = 0) -> Iterator[Ran]:
        """Run a valid order of operators, one after the other, after those of ``executed``."""
        alive = self.alive_bytes(executed)
        for operator in order:
            need, alive = self.run(executed, alive, operator)
            yield Ran(operator, executed, need, alive)
            executed |= 1 << operator

    def needs_along(self, order: Iterable[int]) -> list[int]:
        """Working set in bytes of each step of a valid order."""
        return [ran.need for ran in self.follow(order)]

    def peak(self, order: Iterable[int]) -> int:
        """Largest working set in bytes of a valid order, the graph's inputs before the first step included. O(n).

        Quicker than the checker's, which must not share code with the methods.
        """
        given = sum(self.problem.sizes[t] for t in set(self.problem.inputs))
        return max((given, *self.needs_along(order)))

    def dies(self, tensor: int, waiting: int) -> bool:
        """Tell whether no operator of ``waiting`` reads the tensor and the graph does not return it."""
        return not (self.readers[tensor] & waiting or self.kept[tensor])


def memory_graph(problem: ScheduleProblem) -> MemoryGraph:
    """Return the graph of a problem. O(operators + tensors), but for the width of the sets."""
    producer = {t: v for v, step in enumerate(problem.steps) for t in step.outputs}
    readers, outputs = [0] * len(problem.sizes), set(problem.outputs)
    for v, step in enumerate(problem.steps):
        for t in step.inputs:
            readers[t] |= 1 << v
    needs = [set_of((*(producer[t] for t in step.inputs if t in producer), *step.after)) for step in problem.steps]
    order = dependency_graph(needs)
    kept = tuple(t in outputs for t in range(len(problem.sizes)))
    return MemoryGraph(order.needs, order.feeds, problem, tuple(readers), kept)
