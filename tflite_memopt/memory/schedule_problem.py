"""The ordering problem of a graph, as integers for the schedulers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from ..analysis.side_effects import side_effect_order
from ..ir.control_flow import called_subgraphs
from ..ir.head import in_head
from ..ir.model import Graph, Operator, Tensor
from ..plan.bounds import max_breadth
from ..plan.problem import PlanProblem
from ..schedule.problem import Reuse, ScheduleProblem, Step
from .byte_ranges import Atoms, cut_into_atoms
from .layout import MemoryLayout
from .relations import saved_bytes


def schedule_problem(graph: Graph, layout: MemoryLayout) -> ScheduleProblem:
    """The ordering problem of one graph, over atoms in place of tensors.

    A control-flow operator counts as one step, and what its subgraphs need at most as its scratch; they keep their
    own order.
    """
    inside = _called_bytes(graph, layout)
    atoms = cut_into_atoms([tensor for tensor in graph.tensors if in_head(tensor)], layout.reuses)
    positions = {operator: position for position, operator in enumerate(graph.operators)}
    after: dict[int, list[int]] = {}
    for before, later in side_effect_order(graph):
        after.setdefault(later, []).append(before)

    def pick(chosen: Iterable[Tensor | None]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(atom for t in chosen if t is not None for atom in atoms.of.get(t, ())))

    def step(position: int, op: Operator) -> Step:
        filled = tuple(atom for atom in pick(op.outputs) if atoms.source[atom].producer is op)
        read = pick(op.inputs)
        # A view is read from atoms that others filled: it must have been made all the same.
        makers = {t.producer for t in op.present_inputs()} - {atoms.source[atom].producer for atom in read}
        made = sorted(positions[maker] for maker in makers if maker in positions)
        waits = tuple(dict.fromkeys((*after.get(position, ()), *made)))
        return Step(read, filled, inside.get(op, 0), waits, _reuses(op, layout, atoms))

    steps = tuple(step(position, op) for position, op in enumerate(graph.operators))
    return ScheduleProblem(atoms.sizes, steps, _given(graph, atoms), pick(graph.outputs))


def _given(graph: Graph, atoms: Atoms) -> tuple[int, ...]:
    """Atoms that an input of the graph fills."""
    inputs = set(graph.inputs)
    return tuple(atom for atom, source in enumerate(atoms.source) if source in inputs)


def _reuses(operator: Operator, layout: MemoryLayout, atoms: Atoms) -> tuple[Reuse, ...]:
    """What the operator saves where an input dies: only inputs of one atom, whose death is that of the atom."""
    return tuple(
        Reuse(atoms.of[reuse.input][0], saved_bytes(reuse))
        for reuse in layout.reuses.get(operator, ())
        if reuse.kind != "view" and len(atoms.of[reuse.input]) == 1
    )


def _called_bytes(graph: Graph, layout: MemoryLayout) -> dict[Operator, int]:
    """For each operator the most bytes alive at once, while it runs, of its scratch and its subgraphs' items."""
    own = set(graph.tensors)
    found = {op: layout.scratch[op] for op in graph.operators if op in layout.scratch}
    for op in graph.operators:
        if op not in layout.timeline.spans or not called_subgraphs(op):
            continue
        span = layout.timeline.spans[op]
        inner = [
            item
            for item, tensor in zip_longest(layout.items, layout.tensors)
            if tensor not in own and span.start <= item.start and item.end <= span.end
        ]
        found[op] = max_breadth(PlanProblem(tuple(inner)))
    return found
