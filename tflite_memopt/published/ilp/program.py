"""The integer program of the ordering problem: formulation (1)-(6) with variable pruning (7)-(10).

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.A. Steps
count from 0 here. The program is the paper's after one change of variables: the columns hold the running sums
``x[v, j] = O[v, 0] + ... + O[v, j]``, "operator v has run by the end of step j". Each O is a difference of two of
them, there are as many of them, and the rows get short. Rows (3) and (4) come added up over the steps, which says the
same of whole numbers and more of fractions: the relaxation is much tighter. (The darts cell network of 58 steps after
fusion: HiGHS has the best order within 40 s; with the rows as printed it has neither that order nor a bound above the
trivial one after a minute.)

What the paper's graphs do not have is put in its terms: several results per operator, kept tensors, order without
data, and reuse of dying inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd

from ...solvers.graph.dependency_graph import TransitiveClosure, bits, transitive_closure
from ...solvers.schedule.problem import MemoryGraph, Reuse, ScheduleProblem, memory_graph

PEAK = 0
"""The column of the objective, the paper's ``mem``."""
ALWAYS, NEVER = -1, -2
"""In place of a column: the constants 1 and 0."""

Term = tuple[int, int]
"""(column, factor)."""


@dataclass(frozen=True)
class StepColumns:
    """Consecutive columns for the steps ``[start, end)`` of one variable, which is ``later`` from ``end`` on."""

    first: int
    start: int
    end: int
    later: int = NEVER

    def at(self, step: int) -> int:
        """Return the column of a step, or the constant that the variable is there."""
        if step < self.start:
            return NEVER
        return self.first + step - self.start if step < self.end else self.later


@dataclass
class Constraints:
    """Linear constraints ``lower <= sum of factor * column <= upper``, row by row, as solvers take them."""

    starts: list[int] = field(default_factory=lambda: [0])
    columns: list[int] = field(default_factory=list)
    factors: list[int] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def at_most(self, terms: Iterable[Term], bound: int = 0) -> None:
        """Add: the terms sum to ``bound`` at most."""
        constant = self._put(terms)
        self._close(float("-inf"), bound - constant)

    def equal(self, terms: Iterable[Term], value: int) -> None:
        """Add: the terms sum to ``value``."""
        constant = self._put(terms)
        self._close(value - constant, value - constant)

    def _put(self, terms: Iterable[Term]) -> int:
        """Add up the terms by column; the sum of the constant ones."""
        total: dict[int, int] = {}
        for column, factor in terms:
            total[column] = total.get(column, 0) + factor
        constant = total.pop(ALWAYS, 0)
        total.pop(NEVER, None)
        self.columns += total.keys()
        self.factors += total.values()
        return constant

    def _close(self, lower: float, upper: float) -> None:
        """End the row; rows of constants only are true by construction and are left out."""
        if self.starts[-1] == len(self.columns):
            return
        self.starts.append(len(self.columns))
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class IntegerProgram:
    """``ran[v]``: x[v, j], 0 or 1. ``stored[t]``: T[t, j], 0 or 1. Further columns: savings, from 0 to 1.

    ``unit`` is the greatest common divisor of all sizes: column ``PEAK`` counts in units of so many bytes.
    """

    unit: int
    columns: int
    ran: tuple[StepColumns, ...]
    stored: dict[int, StepColumns]
    rows: Constraints

    @property
    def variables(self) -> int:
        """How many x and T there are: the paper's V of Table IV (kept tensors and savings need none)."""
        return sum(columns.end - columns.start for columns in (*self.ran, *self.stored.values()))

    def columns_of(self, order: Sequence[int]) -> Iterator[tuple[int, float]]:
        """Yield the x of an order; the solver completes the rest."""
        for place, v in enumerate(order):
            ran = self.ran[v]
            for step in range(ran.start, ran.end):
                yield ran.at(step), float(place <= step)

    def order_of(self, values: Sequence[float]) -> tuple[int, ...]:
        """Return the order that a solution stands for: each operator runs at the step where its x turns to 1."""

        def place(v: int) -> int:
            ran = self.ran[v]
            return ran.end - sum(round(values[ran.at(step)]) for step in range(ran.start, ran.end))

        return tuple(sorted(range(len(self.ran)), key=place))


def formulate(problem: ScheduleProblem, pruning: bool = True) -> IntegerProgram:
    """Return the program of a problem. At most O(operators * (edges + readers)) entries."""
    graph = memory_graph(problem)
    closure = transitive_closure(graph)
    layout = _ColumnLayout(graph, closure, pruning)
    rows = Constraints()
    _write_order(layout, rows)
    _write_storage(layout, rows)
    unit = gcd(*problem.sizes, *(n for step in problem.steps for n in (step.scratch, *(r.saved for r in step.reuses))))
    _write_peak(layout, rows, max(unit, 1))
    return IntegerProgram(max(unit, 1), layout.columns, layout.ran, layout.stored, rows)


class _ColumnLayout:
    """Gives out the columns; ``pruning`` leaves out those that topology decides, (7)-(10)."""

    def __init__(self, graph: MemoryGraph, closure: TransitiveClosure, pruning: bool) -> None:
        self.graph = graph
        self.closure = closure
        self.columns = PEAK + 1
        self.count = len(graph.needs)
        self.producer = {t: v for v, step in enumerate(graph.problem.steps) for t in step.outputs}
        self.ran = tuple(self._ran(v, pruning) for v in range(self.count))
        self.stored = {t: self._stored(t, pruning) for t in range(len(graph.problem.sizes)) if self._varies(t)}

    def columns_for(self, start: int, end: int, later: int = NEVER) -> StepColumns:
        """New columns for the steps ``[start, end)``."""
        first = self.columns
        self.columns += end - start
        return StepColumns(first, start, end, later)

    def has_written(self, tensor: int, step: int) -> int:
        """Return whether the tensor exists by the end of a step: x of its producer; the graph's inputs always do."""
        return self.ran[self.producer[tensor]].at(step) if tensor in self.producer else ALWAYS

    def _ran(self, operator: int, pruning: bool) -> StepColumns:
        """x is 0 until all ancestors ran (7), and 1 from when only descendants are left (9)."""
        if not pruning:
            return self.columns_for(0, self.count - 1, ALWAYS)
        start, descendants = self.closure.before[operator].bit_count(), self.closure.after[operator].bit_count()
        return self.columns_for(start, self.count - descendants - 1, ALWAYS)

    def _varies(self, tensor: int) -> bool:
        """Kept tensors stay once they exist, and unread ones last for a step: these need no T."""
        graph = self.graph
        return bool(graph.readers[tensor] and graph.problem.sizes[tensor]) and not graph.kept[tensor]

    def _stored(self, tensor: int, pruning: bool) -> StepColumns:
        """T is 0 before its producer can run (8), and after its last reader must have run (10)."""
        if not pruning:
            return self.columns_for(0, self.count)
        start = self.ran[self.producer[tensor]].start if tensor in self.producer else 0
        return self.columns_for(start, 1 + max(self.ran[v].end for v in bits(self.graph.readers[tensor])))


def _write_order(layout: _ColumnLayout, rows: Constraints) -> None:
    """(1) and (2), each step runs one operator, once; and operators wait for what they need, from (3) and (4)."""
    for step in range(layout.count):
        rows.equal(((ran.at(step), 1) for ran in layout.ran), step + 1)
    for v, ran in enumerate(layout.ran):
        for step in range(ran.start, ran.end - 1):
            rows.at_most(((ran.at(step), 1), (ran.at(step + 1), -1)))
        for needed in bits(layout.graph.needs[v]):
            # One step beyond the last column x is 1: the needed operator must have run before even then.
            for step in range(ran.start, ran.end + 1):
                rows.at_most(((ran.at(step), 1), (layout.ran[needed].at(step - 1), -1)))


def _write_storage(layout: _ColumnLayout, rows: Constraints) -> None:
    """(3)-(5): a tensor is stored from the step that writes it until every reader has run."""
    for t, stored in layout.stored.items():
        for reader in bits(layout.graph.readers[t]):
            ran = layout.ran[reader]
            for step in range(stored.start, min(stored.end, ran.end + 1)):
                rows.at_most(((layout.has_written(t, step), 1), (ran.at(step - 1), -1), (stored.at(step), -1)))


def _write_peak(layout: _ColumnLayout, rows: Constraints, unit: int) -> None:
    """(6): what is stored, and the extra of the operator that runs, is ``mem`` at most."""
    problem = layout.graph.problem
    kept = [t for t, keep in enumerate(layout.graph.kept) if keep and (t in layout.producer or t in problem.inputs)]
    saved = [_write_savings(layout, rows, v) for v in range(layout.count)]
    extra = [_extra(layout, v) for v in range(layout.count)]
    for step in range(layout.count):
        terms = [(stored.at(step), problem.sizes[t] // unit) for t, stored in layout.stored.items()]
        terms += [(layout.has_written(t, step), problem.sizes[t] // unit) for t in kept]
        for v, ran in enumerate(layout.ran):
            terms += [(ran.at(step), extra[v] // unit), (ran.at(step - 1), -extra[v] // unit)]
            terms += [(saving.at(step), -(more // unit)) for saving, more in saved[v]]
        rows.at_most((*((column, factor) for column, factor in terms if factor), (PEAK, -1)))


def _extra(layout: _ColumnLayout, operator: int) -> int:
    """ES: scratch, results that nobody reads, less what reuse saves in every order; in bytes, of either sign."""
    graph = layout.graph
    step = graph.problem.steps[operator]
    unread = sum(graph.problem.sizes[t] for t in step.outputs if not graph.readers[t] and not graph.kept[t])
    return step.scratch + unread - _sure_saving(layout, operator)


def _sure_saving(layout: _ColumnLayout, operator: int) -> int:
    """Return the bytes of the best reuse whose tensor dies at the operator in every order."""
    earlier = layout.closure.before[operator] | 1 << operator
    reuses = _possible(layout, operator)
    return max((r.saved for r in reuses if not layout.graph.readers[r.tensor] & ~earlier), default=0)


def _possible(layout: _ColumnLayout, operator: int) -> Iterator[Reuse]:
    """Reuses whose tensor can die at the operator: not kept, and no reader must come later."""
    graph, later = layout.graph, layout.closure.after[operator]
    for reuse in graph.problem.steps[operator].reuses:
        if not graph.kept[reuse.tensor] and not graph.readers[reuse.tensor] & later:
            yield reuse


def _write_savings(layout: _ColumnLayout, rows: Constraints, operator: int) -> list[tuple[StepColumns, int]]:
    """Variables for reuse that depends on the order, with the bytes each saves beyond the sure saving.

    One may be 1 at the step of its operator if every reader of its tensor has run by then; one of them at a time.
    """
    sure, ran = _sure_saving(layout, operator), layout.ran[operator]
    found = [(r, layout.columns_for(ran.start, ran.end + 1)) for r in _possible(layout, operator) if r.saved > sure]
    if not found:
        return []
    for step in range(ran.start, ran.end + 1):
        chosen = [(saving.at(step), 1) for _, saving in found]
        rows.at_most((*chosen, (ran.at(step), -1), (ran.at(step - 1), 1)))
        for reuse, saving in found:
            for reader in bits(layout.graph.readers[reuse.tensor] & ~(1 << operator)):
                rows.at_most(((saving.at(step), 1), (layout.ran[reader].at(step), -1)))
    return [(saving, reuse.saved - sure) for reuse, saving in found]
