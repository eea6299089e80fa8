"""A part of a problem with its best known order, and the integer program run on it."""

from __future__ import annotations

from collections.abc import Sequence

from ...solvers.graph.dependency_graph import reverse_post_order
from ...solvers.graph.limits import Allowance
from ...solvers.schedule.check import peak_of
from ...solvers.schedule.problem import memory_graph, schedule_lower_bound
from ..sub_problem import SubProblem
from .program import formulate
from .solver import solve_program


class OrderedPart:
    """The best order known of a part, and what the solver said of it.

    ``exact``: all orders of the whole pass through the part's two ends, so that a bound of the part is one of the
    whole. ``peak`` and ``lower_bound`` are bytes; ``solved``: the solver has had its turn, or is not needed.
    ``nodes`` are those of the solver's run.
    """

    def __init__(self, part: SubProblem, exact: bool, start: Sequence[int] = ()) -> None:
        """``start`` orders the part's operators, in the numbers of the whole; without it in reverse post-order."""
        place = {v: number for number, v in enumerate(part.operators)}
        self._part = part
        self._order = tuple(place[v] for v in start) if start else reverse_post_order(memory_graph(part.problem))
        self.exact = exact
        self.peak = peak_of(part.problem, self._order)
        self.lower_bound = schedule_lower_bound(part.problem)
        self.solved = self.peak == self.lower_bound
        self.nodes = 0

    @property
    def order(self) -> tuple[int, ...]:
        """The part's operators, in the numbers of the whole."""
        return self._part.in_whole(self._order)

    def solve(self, seed: int, allowance: Allowance) -> None:
        """Run the integer program once; a better order replaces the known one."""
        program = formulate(self._part.problem)
        found = solve_program(self._part.problem, program, self._order, seed, allowance)
        self._order, self.lower_bound, self.nodes = found.order, found.lower_bound, found.nodes
        self.peak = peak_of(self._part.problem, self._order)
        self.solved = True
