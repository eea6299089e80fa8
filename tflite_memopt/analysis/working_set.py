"""Working sets: the bytes that are alive while an operator runs, and where they peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..graph.alignment import aligned
from ..ir.head import in_head
from ..ir.model import Model, Operator, Tensor
from .lifetimes import Timeline


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
    found by a sweep, so that a long chain costs O(n log n); a caller's set covers its subgraphs' scopes.
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
        executed = [operator for operator in graph.operators if operator in timeline.spans]
        for position, operator in enumerate(sorted(executed, key=lambda each: timeline.spans[each].start)):
            live = by_scope[timeline.spans[operator].start]
            largest_first = tuple(sorted(live, key=lambda t: -t.nbytes))
            extra = scratch.get(operator, 0)
            total = sum(aligned(tensor.nbytes) for tensor in live) + extra
            result.append(WorkingSet(graph_index, position, operator, total, extra, largest_first))
    return result


def peak(sets: list[WorkingSet]) -> WorkingSet | None:
    """The largest working set, the first of equals; None for a model without operators."""
    return max(sets, key=lambda each: each.nbytes, default=None)


def io_lower_bound(model: Model) -> int:
    """``io_`` bound in bytes: all inputs are alive at once before the first operator, all outputs at the end.

    No static plan goes below the larger of the two sums, whatever the order and the kernels.
    """
    sums = (
        sum(aligned(tensor.nbytes) for tensor in set(tensors) if in_head(tensor))
        for tensors in (model.main.inputs, model.main.outputs)
    )
    return max(sums, default=0)
