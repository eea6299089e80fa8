"""What every search needs to know of a problem: who waits for whom, and what running an operator does to memory.

A set of operators is an ``int`` with one bit for each: bit ``v`` is operator ``v``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from .problem import ScheduleProblem


def bits(chosen: int) -> Iterator[int]:
    """The operators of a set, smallest first."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def union(sets: Iterable[int]) -> int:
    """The operators of any of the sets."""
    return reduce(or_, sets, 0)


@dataclass(frozen=True)
class Wiring:
    """``needs[v]`` must run before operator v, which must run before ``feeds[v]``; ``readers[t]`` read tensor t.

    ``kept[t]`` says that tensor t is an output of the graph, which never dies.
    """

    problem: ScheduleProblem
    needs: tuple[int, ...]
    feeds: tuple[int, ...]
    readers: tuple[int, ...]
    kept: tuple[bool, ...]

    @property
    def everything(self) -> int:
        """The set of all operators."""
        return (1 << len(self.needs)) - 1

    @cached_property
    def alive_at_start(self) -> int:
        """Bytes alive after "nothing ran": the graph's inputs that somebody reads, or that are outputs too."""
        problem = self.problem
        return sum(problem.sizes[t] for t in set(problem.inputs) if self.readers[t] or self.kept[t])

    def ready(self, executed: int) -> Iterator[int]:
        """Operators that may run after ``executed``. O(n); searches keep their own ready set."""
        return (v for v in bits(self.everything & ~executed) if not self.needs[v] & ~executed)

    def run(self, executed: int, alive: int, operator: int) -> tuple[int, int]:
        """(working set in bytes while ``operator`` runs, bytes alive after it), given those alive before it.

        The one place where the memory model's cost of a step is worked out for the searches.
        """
        sizes, step = self.problem.sizes, self.problem.steps[operator]
        waiting = ~(executed | 1 << operator)
        after = alive + sum(sizes[t] for t in step.outputs)
        need = after + step.scratch
        if step.reuses:
            need -= max((r.saved for r in step.reuses if self.dies(r.tensor, waiting)), default=0)
        after -= sum(sizes[t] for t in step.inputs if self.dies(t, waiting))
        after -= sum(sizes[t] for t in step.outputs if self.dies(t, waiting))
        return need, after

    def dies(self, tensor: int, waiting: int) -> bool:
        """Whether no operator of ``waiting`` reads the tensor and the graph does not return it."""
        return not (self.readers[tensor] & waiting or self.kept[tensor])


def wire(problem: ScheduleProblem) -> Wiring:
    """The wiring of a problem. O(operators + tensors), but for the width of the sets."""
    count = len(problem.steps)
    producer = {t: v for v, step in enumerate(problem.steps) for t in step.outputs}
    needs, feeds, readers = [0] * count, [0] * count, [0] * len(problem.sizes)
    for v, step in enumerate(problem.steps):
        for t in step.inputs:
            readers[t] |= 1 << v
        for before in (*(producer[t] for t in step.inputs if t in producer), *step.after):
            needs[v] |= 1 << before
            feeds[before] |= 1 << v
    outputs = set(problem.outputs)
    kept = tuple(t in outputs for t in range(len(problem.sizes)))
    return Wiring(problem, tuple(needs), tuple(feeds), tuple(readers), kept)
