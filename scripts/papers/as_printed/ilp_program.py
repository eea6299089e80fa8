"""Formulation (1)-(6) and pruning (7)-(10) as printed: columns ``O`` and ``T``, one for each step.

Source: "Memory-aware Scheduling for Complex Wired Networks with Iterative Graph Optimization", section IV.A. Four
things had to be settled, and nothing else is changed:

- Nothing in (1)-(6) keeps an output of the graph in memory, since nobody reads it. ``keep_outputs`` adds the one
  equation ``T[i, |V|] = 1`` for each output, from which (4) does the rest.
- (10) ends a tensor after its reader with the *most* descendants. A reader with fewer may run later, and a residual
  connection always has one: then no order is left at all. Here it is the reader with the fewest.
- (6) is written for every pair of a step and an operator. Rows of a step with the same extra size are the same row, and
  are written once. A negative extra size has no effect in it: the rows of the other operators of the step do without.
- Results that nobody reads and that the graph does not return weigh nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from tflite_memopt.published.ilp.program import ALWAYS, NEVER, PEAK, Constraints, StepColumns
from tflite_memopt.solvers.graph.dependency_graph import TransitiveClosure, bits, transitive_closure
from tflite_memopt.solvers.schedule.problem import MemoryGraph, ScheduleProblem, memory_graph


@dataclass(frozen=True)
class PrintedProgram:
    """``runs[v]``: O[v, j]. ``stored[t]``: T[t, j]. Steps count from 0. ``unit``: as in ``IntegerProgram``."""

    unit: int
    columns: int
    runs: tuple[StepColumns, ...]
    stored: dict[int, StepColumns]
    rows: Constraints

    @property
    def variables(self) -> int:
        """How many O and T there are: the paper's V of Table IV."""
        return sum(columns.end - columns.start for columns in (*self.runs, *self.stored.values()))

    def columns_of(self, order: Sequence[int]) -> Iterator[tuple[int, float]]:
        """The O of an order; the solver completes the rest."""
        for place, v in enumerate(order):
            for step in range(self.runs[v].start, self.runs[v].end):
                yield self.runs[v].at(step), float(step == place)

    def order_of(self, values: Sequence[float]) -> tuple[int, ...]:
        """The order that a solution stands for."""

        def place(v: int) -> int:
            return max(range(self.runs[v].start, self.runs[v].end), key=lambda step: values[self.runs[v].at(step)])

        return tuple(sorted(range(len(self.runs)), key=place))


def variables_as_printed(problem: ScheduleProblem, pruning: bool) -> int:
    """How many O and T the program has, without writing it."""
    graph = memory_graph(problem)
    return _Layout(graph, transitive_closure(graph), pruning).columns - (PEAK + 1)


def formulate_as_printed(problem: ScheduleProblem, pruning: bool, keep_outputs: bool = True) -> PrintedProgram:
    """The program of a problem. O(steps * (edges + operators with an extra size * tensors)) entries.

    Order that no tensor shows (``Step.after``) and reuse are not in the paper, and are left out.
    """
    graph = memory_graph(problem)
    layout = _Layout(graph, transitive_closure(graph), pruning)
    rows, unit = Constraints(), max(1, gcd(*problem.sizes, *(step.scratch for step in problem.steps)))
    _write_bijection(layout, rows)
    _write_storage(layout, rows)
    if keep_outputs:
        _write_outputs(layout, rows)
    _write_peak(layout, rows, unit)
    return PrintedProgram(unit, layout.columns, layout.runs, layout.stored, rows)


class _Layout:
    """Gives out the columns; ``pruning`` leaves out those of (7)-(10)."""

    def __init__(self, graph: MemoryGraph, closure: TransitiveClosure, pruning: bool) -> None:
        self.graph = graph
        self.count = len(graph.needs)
        self.columns = PEAK + 1
        self.given = set(graph.problem.inputs)
        self.producer = {t: v for v, step in enumerate(graph.problem.steps) for t in step.outputs}
        first = [closure.before[v].bit_count() if pruning else 0 for v in range(self.count)]
        last = [self.count - closure.after[v].bit_count() if pruning else self.count for v in range(self.count)]
        self.runs = tuple(self._new(start, end) for start, end in zip(first, last, strict=True))
        self.stored = {t: self._new(*self._span(t, first, last)) for t in (*self.given, *self.producer)}

    def stored_before(self, tensor: int, step: int) -> int:
        """T of the step before: for the first one that is (5)."""
        if step == 0:
            return ALWAYS if tensor in self.given else NEVER
        return self.stored[tensor].at(step - 1)

    @cached_property
    def extras(self) -> tuple[int, ...]:
        """ES of each operator in bytes."""
        return tuple(step.scratch for step in self.graph.problem.steps)

    def _new(self, start: int, end: int) -> StepColumns:
        first = self.columns
        self.columns += end - start
        return StepColumns(first, start, end)

    def _span(self, tensor: int, first: Sequence[int], last: Sequence[int]) -> tuple[int, int]:
        """(8) and (10): from its producer's first step to the last step of a reader; outputs to the end."""
        start = first[self.producer[tensor]] if tensor in self.producer else 0
        if self.graph.kept[tensor]:
            return start, self.count
        readers = list(bits(self.graph.readers[tensor]))
        own = last[self.producer[tensor]] if tensor in self.producer else start
        return start, max((last[v] for v in readers), default=own)


def _write_bijection(layout: _Layout, rows: Constraints) -> None:
    """(1) and (2)."""
    for step in range(layout.count):
        rows.equal(((runs.at(step), 1) for runs in layout.runs), 1)
    for runs in layout.runs:
        rows.equal(((runs.at(step), 1) for step in range(runs.start, runs.end)), 1)


def _write_storage(layout: _Layout, rows: Constraints) -> None:
    """(3) and (4), with (5) in place of a step 0."""
    for v, runs in enumerate(layout.runs):
        for t in layout.graph.problem.steps[v].inputs:
            for step in range(runs.start, runs.end):
                rows.at_most(((runs.at(step), 1), (layout.stored[t].at(step), -1)))
    for t, stored in layout.stored.items():
        made = layout.runs[layout.producer[t]] if t in layout.producer else None
        for step in range(stored.start, stored.end):
            earlier, now = layout.stored_before(t, step), made.at(step) if made else NEVER
            if earlier != ALWAYS:
                rows.at_most(((stored.at(step), 1), (earlier, -1), (now, -1)))


def _write_outputs(layout: _Layout, rows: Constraints) -> None:
    for t, stored in layout.stored.items():
        if layout.graph.kept[t]:
            rows.equal(((stored.at(layout.count - 1), 1),), 1)


def _write_peak(layout: _Layout, rows: Constraints, unit: int) -> None:
    """(6), each different row once."""
    sizes = layout.graph.problem.sizes
    for step in range(layout.count):
        alive = [(stored.at(step), sizes[t] // unit) for t, stored in layout.stored.items() if sizes[t]]
        terms = [(column, factor) for column, factor in alive if column != NEVER]
        rows.at_most((*terms, (PEAK, -1)))
        for v, extra in enumerate(layout.extras):
            if extra > 0 and layout.runs[v].at(step) != NEVER:
                rows.at_most((*terms, (layout.runs[v].at(step), extra // unit), (PEAK, -1)))
