"""Integer programming on a graph made small by fusion and partition: Algorithm 2 and its parts.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization". Each part of the method
can be switched off (:class:`IlpParts`), so that the paper's Tables II to VI can be run again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..budget import Budget
from .bounds import any_order
from .check import peak_of
from .fusion import fuse, unfused
from .ilp_model import formulate
from .ilp_solver import solve_program
from .partition import Part, forced_cuts, light_cuts, parts_of
from .problem import Answer, ScheduleProblem
from .reach import reach
from .rpo import rpo_order
from .wiring import wire

PART_SIZE = 24
"""Operators after fusion that HiGHS orders in seconds; larger graphs are cut into parts of about this size."""


@dataclass(frozen=True)
class IlpParts:
    """What to use. ``partitions`` is the paper's k; 1 is exact.

    None cuts where every order passes anyway, which is exact too, and cuts the pieces further where they have more
    than ``PART_SIZE`` operators, which is not.
    """

    pruning: bool = True
    fusion: bool = True
    partitions: int | None = None


@dataclass(frozen=True)
class IlpAnswer:
    """``fused`` operators are left after fusion; ``parts`` is how many of them each part has.

    ``variables`` counts those of all programs that were solved, ``largest`` those of the largest one.
    ``answer.states`` are branch-and-bound nodes.
    """

    answer: Answer
    fused: int
    parts: tuple[int, ...]
    variables: int
    largest: int


def ilp(problem: ScheduleProblem, budget: Budget) -> Answer:
    """The method with all its parts on. Proves what it can: see :func:`ilp_with`."""
    return ilp_with(problem, budget, IlpParts()).answer


def ilp_with(problem: ScheduleProblem, budget: Budget, parts: IlpParts) -> IlpAnswer:
    """Order by integer programming with chosen parts of the method.

    With one partition the bound is HiGHS' own, and the optimum if time suffices. With more it is that of the parts
    that start and end where every order must pass. When time is up, parts keep their reverse post-order.
    """
    deadline = time.perf_counter() + budget.time_limit
    fused = fuse(problem) if parts.fusion else unfused(problem)
    sections = _sections(fused.problem, parts.partitions)
    _improve(sections, budget, deadline, parts.pruning)
    order = fused.expand(v for section in sections for v in section.order)
    best = min(order, rpo_order(wire(problem)), key=lambda candidate: peak_of(problem, candidate))
    bound = max((section.lower_bound for section in sections if section.exact), default=0)
    variables = [section.variables for section in sections]
    return IlpAnswer(
        Answer(best, bound, sum(section.nodes for section in sections)),
        len(fused.members),
        tuple(len(section.part.members) for section in sections),
        sum(variables),
        max(variables, default=0),
    )


class _Section:
    """A part, the best order known of it, and what the solver said. ``exact``: a bound of it is one of the whole."""

    def __init__(self, part: Part, exact: bool) -> None:
        self.part, self.exact = part, exact
        self._order: tuple[int, ...] = rpo_order(wire(part.problem))
        self.peak = peak_of(part.problem, self._order)
        self.lower_bound = any_order(part.problem)
        self.solved = self.peak == self.lower_bound
        self.variables = self.nodes = 0

    @property
    def order(self) -> tuple[int, ...]:
        """In the numbers of the whole."""
        return tuple(self.part.members[v] for v in self._order)

    def solve(self, budget: Budget, pruning: bool) -> None:
        """Run the integer program once."""
        program = formulate(self.part.problem, pruning)
        found = solve_program(self.part.problem, program, self._order, budget)
        self._order, self.lower_bound, self.nodes = found.order, found.lower_bound, found.nodes
        self.peak = peak_of(self.part.problem, self._order)
        self.variables, self.solved = program.variables, True


def _sections(problem: ScheduleProblem, partitions: int | None) -> list[_Section]:
    """The parts, in order."""
    wiring = wire(problem)
    order = rpo_order(wiring)
    ends = [0, wiring.everything] if partitions is not None else forced_cuts(reach(wiring))
    found: list[_Section] = []
    for done, upto in pairwise(ends):
        inside = [v for v in order if upto & ~done & 1 << v]
        wanted = partitions if partitions is not None else -(-len(inside) // PART_SIZE)
        cuts = light_cuts(wiring, inside, done, wanted)
        found += [_Section(part, exact=len(cuts) == 2) for part in parts_of(wiring, cuts)]
    return found


def _improve(sections: Sequence[_Section], budget: Budget, deadline: float, pruning: bool) -> None:
    """Solve the part with the peak, until the peak is in a part that is solved (Algorithm 2) or time is up.

    The parts that may still hold the peak share the time that is left.
    """
    while True:
        settled = max((section.peak for section in sections if section.solved), default=0)
        higher = [section for section in sections if not section.solved and section.peak > settled]
        left = deadline - time.perf_counter()
        if not higher or left <= 0:
            return
        worst = max(higher, key=lambda section: section.peak)
        worst.solve(replace(budget, time_limit=left / len(higher)), pruning)
