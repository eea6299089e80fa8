"""What every search needs of a problem: who waits for whom, and what running an operator does to memory.

A set of operators is an ``int`` with one bit for each: bit ``v`` is operator ``v``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ..graph.dependency_graph import DependencyGraph, bits, dependency_graph, set_of
from .problem import ScheduleProblem


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
        """Whether the model's own order is one: each operator needs earlier ones only."""
        return all(needs < 1 << v for v, needs in enumerate(self.needs))

    @property
    def has_one_order(self) -> bool:
        """Whether each operator waits for the one before it, as they are numbered."""
        return all(self.needs[v] >> (v - 1) & 1 for v in range(1, len(self.needs)))

    def alive(self, executed: int) -> tuple[int, ...]:
        """The tensors alive once a set of operators ran. O(operators + tensors)."""
        steps, waiting = self.problem.steps, self.everything & ~executed
        written = (t for v in bits(executed) for t in steps[v].outputs)
        return tuple(t for t in dict.fromkeys((*self.problem.inputs, *written)) if not self.dies(t, waiting))

    def alive_bytes(self, executed: int) -> int:
        """Bytes alive once a set of operators ran. O(operators + tensors)."""
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
        """Whether no operator of ``waiting`` reads the tensor and the graph does not return it."""
        return not (self.readers[tensor] & waiting or self.kept[tensor])


def memory_graph(problem: ScheduleProblem) -> MemoryGraph:
    """The graph of a problem. O(operators + tensors), but for the width of the sets."""
    producer = {t: v for v, step in enumerate(problem.steps) for t in step.outputs}
    readers, outputs = [0] * len(problem.sizes), set(problem.outputs)
    for v, step in enumerate(problem.steps):
        for t in step.inputs:
            readers[t] |= 1 << v
    needs = [set_of((*(producer[t] for t in step.inputs if t in producer), *step.after)) for step in problem.steps]
    order = dependency_graph(needs)
    kept = tuple(t in outputs for t in range(len(problem.sizes)))
    return MemoryGraph(order.needs, order.feeds, problem, tuple(readers), kept)
