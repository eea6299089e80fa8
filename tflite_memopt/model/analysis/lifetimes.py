"""Lifetimes exactly as TFLM computes them, called subgraphs included.

Time is counted in *scopes*: scope 0 is before the first operator, when the inputs are set; each operator
takes the next scope, and a called subgraph takes scopes inside its caller's span. Without control flow the
operator of step ``s`` runs in scope ``s + 1``. Tensors that no operator or interface touches are born in
scope -1: TFLM allocates them all the same.

Source: TFLM micro_allocation_info.cc (``MarkAllocationLifetimes``, ``MarkSubgraphLifetimesIfNecessary``).

A *working set* has the bytes that are alive while an operator runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import ErrorKind, UnsupportedModelError
from ...solvers.graph.alignment import aligned
from ..ir.check import called_subgraphs
from ..ir.model import Graph, Model, Operator, Tensor
from ..ir.tensors import in_head

UNBORN = -1
MAX_SCOPES = 1_000_000
"""Subgraphs that call shared subgraphs double the scopes at each level; TFLM would walk them all."""


@dataclass(frozen=True)
class Lifetime:
    """Half-open interval ``[start, end)`` of scopes."""

    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """Scopes of operators and tensors. ``tensors`` holds the head's tensors only, in file order; weights are not in it.

    ``spans`` gives each executed operator its scopes, called subgraphs included; ``end`` is the first scope
    after the last operator.
    """

    tensors: Mapping[Tensor, Lifetime]
    spans: Mapping[Operator, Lifetime]
    end: int

    def executed(self, graph: Graph) -> list[Operator]:
        """Return the operators of a graph that run, in the order in which they do."""
        return sorted(filter(self.spans.__contains__, graph.operators), key=lambda operator: self.spans[operator].start)


def compute_timeline(model: Model, order: Sequence[int] | None = None) -> Timeline:
    """Lifetimes of all tensors of the head in O(steps + tensors).

    ``order``: positions of the main graph's operators in the order in which they run; None: as they stand.
    Raises UnsupportedModelError when the subgraph calls unfold to more than a million steps.
    """
    walk = _Walk(model, order)
    walk.graph(0)
    lifetimes = {
        tensor: Lifetime(walk.first.get(tensor, UNBORN), walk.last.get(tensor, UNBORN) + 1)
        for graph in model.graphs
        for tensor in graph.tensors
        if in_head(tensor)
    }
    spans = {operator: Lifetime(start, end) for operator, (start, end) in walk.spans.items()}
    return Timeline(lifetimes, spans, walk.scope + 1)


class _Walk:
    """One pass in execution order; a subgraph called twice is walked twice and keeps its first birth."""

    def __init__(self, model: Model, order: Sequence[int] | None) -> None:
        self.model = model
        self.main = model.main.operators if order is None else [model.main.operators[at] for at in order]
        self.scope = 0
        self.first: dict[Tensor, int] = {}
        self.last: dict[Tensor, int] = {}
        self.spans: dict[Operator, tuple[int, int]] = {}

    def graph(self, index: int) -> None:
        if self.scope > MAX_SCOPES:
            raise UnsupportedModelError(
                f"subgraph {index}: subgraph calls unfold to more than {MAX_SCOPES} steps", ErrorKind.RECURSION
            )
        graph = self.model.graphs[index]
        self._born(graph.inputs)
        self._used(graph.inputs)
        for operator in self.main if graph is self.model.main else graph.operators:
            self._operator(operator)
        self._born(graph.outputs)
        self._used(graph.outputs)

    def _operator(self, operator: Operator) -> None:
        self.scope += 1
        start = self.spans.get(operator, (self.scope, 0))[0]
        self._born(operator.outputs)
        for called in called_subgraphs(operator):
            self.scope += 1
            self.graph(called)
        self._used(operator.present_inputs())
        self._used(operator.outputs)
        self.spans[operator] = (start, self.scope + 1)

    def _born(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            self.first.setdefault(tensor, self.scope)

    def _used(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            self.last[tensor] = self.scope


@dataclass(frozen=True)
class WorkingSet:
    """Bytes alive during one operator: its live tensors, each aligned, and its scratch.

    ``graph`` and ``position`` say where the operator runs; ``live`` is largest first.
    """

    graph: int
    position: int
    operator: Operator
    nbytes: int
    scratch_bytes: int
    live: tuple[Tensor, ...]


def working_sets(model: Model, timeline: Timeline, scratch: Mapping[Operator, int]) -> list[WorkingSet]:
    """One working set per executed operator, graph by graph in the timeline's order.

    ``scratch`` gives the aligned scratch bytes of operators that ask for any. The bytes alive in a scope are
    computed by a sweep, so that a long chain costs O(n log n); a caller's set covers its subgraphs' scopes.
    """
    births: dict[int, list[Tensor]] = {}
    deaths: dict[int, list[Tensor]] = {}
    for tensor, life in timeline.tensors.items():
        births.setdefault(life.start, []).append(tensor)
        deaths.setdefault(life.end, []).append(tensor)
    alive: dict[Tensor, None] = {}
    by_scope: dict[int, tuple[Tensor, ...]] = {}
    starts = {span.start for span in timeline.spans.values()}
    for scope in range(-1, timeline.end):
        for tensor in deaths.get(scope, ()):
            alive.pop(tensor, None)
        alive.update(dict.fromkeys(births.get(scope, ())))
        if scope in starts:
            by_scope[scope] = tuple(alive)
    result = []
    for graph_index, graph in enumerate(model.graphs):
        for position, operator in enumerate(timeline.executed(graph)):
            live = by_scope[timeline.spans[operator].start]
            largest_first = tuple(sorted(live, key=lambda t: -t.nbytes))
            extra = scratch.get(operator, 0)
            total = sum(aligned(tensor.nbytes) for tensor in live) + extra
            result.append(WorkingSet(graph_index, position, operator, total, extra, largest_first))
    return result


def peak(sets: list[WorkingSet]) -> WorkingSet | None:
    """Return the largest working set, the first of equals; None for a model without operators."""
    return max(sets, key=lambda each: each.nbytes, default=None)


def io_lower_bound(model: Model) -> int:
    """``io_`` bound in bytes: all inputs are alive at once before the first operator, all outputs at the end.

    No static plan goes below the sum of the inputs, nor the largest output: outputs may be views of one another.
    """
    sides = model.main.inputs, model.main.outputs
    inputs, outputs = ([aligned(tensor.nbytes) for tensor in set(side) if in_head(tensor)] for side in sides)
    return max(sum(inputs), *outputs, 0)
