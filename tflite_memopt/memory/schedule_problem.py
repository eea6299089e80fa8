"""The ordering problem of a graph, as integers for the schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest

from ..analysis.side_effects import side_effect_order
from ..graph.alignment import aligned
from ..ir.control_flow import called_subgraphs
from ..ir.head import in_head
from ..ir.model import Graph, Operator, Tensor
from ..kernels.relations import KernelReuse
from ..plan.bounds import max_breadth
from ..plan.problem import PlanProblem
from ..schedule.memory_graph import memory_graph
from ..schedule.problem import Reuse, ScheduleProblem, Step
from .layout import MemoryLayout
from .relations import saved_bytes
from .storages import Atoms, cut_into_atoms
from .ties import readers_before_writers


def schedule_problem(graph: Graph, layout: MemoryLayout) -> ScheduleProblem:
    """The ordering problem of one graph, over atoms in place of tensors.

    A control-flow operator counts as one step, and what its subgraphs need at most as its scratch; they keep their
    own order.
    """
    inside, loops = _called_bytes(graph, layout), {loop.operator for loop in layout.loops.loops}
    atoms = atoms_in(graph, layout)
    positions = {operator: position for position, operator in enumerate(graph.operators)}
    after: dict[int, list[int]] = {}
    for before, later in (*side_effect_order(graph), *readers_before_writers(graph, layout.ties)):
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
        reuses, more = _reuses(op, layout, atoms)
        # What is inside a loop may lie on what rests outside of it at that moment.
        more = max(more, inside[op]) if op in loops else more
        return Step(read, filled, inside.get(op, 0), waits, reuses, more)

    steps = tuple(step(position, op) for position, op in enumerate(graph.operators))
    return ScheduleProblem(atoms.sizes, steps, _given(graph, atoms), pick(graph.outputs))


def atoms_in(graph: Graph, layout: MemoryLayout) -> Atoms:
    """What the ordering problem of a graph counts in place of tensors, in the same order."""
    return cut_into_atoms(_own_tensors(graph, layout), _views_in(graph, layout))


def _own_tensors(graph: Graph, layout: MemoryLayout) -> list[Tensor]:
    """The tensors that take bytes in this graph: of a loop's subgraph, none that lies on one of the main graph.

    And none that an NPU's commands have addresses of: their place is given, and so is the order.
    """
    carried = {tensor for each in layout.loops.carried for tensor in each.tensors}
    is_inside = any(graph in (loop.condition, loop.body) for loop in layout.loops.loops)
    elsewhere = carried.difference(_resting_in(graph, layout)) if is_inside else set()
    taken = [t for t in graph.tensors if in_head(t) and t not in elsewhere]
    found = [t for t in taken if not t.is_placeholder and t.fixed_offset is None]
    if not layout.loops.loops:
        return found
    # By birth: bytes that a result takes over from an image are filled by the image's maker.
    return sorted(found, key=lambda tensor: layout.timeline.tensors[tensor].start)


def _views_in(graph: Graph, layout: MemoryLayout) -> Mapping[Operator, tuple[KernelReuse, ...]]:
    """The views of a graph; what a loop carries, and what lies on it, counts as views of one storage."""
    if not layout.loops.loops:
        return layout.reuses
    own = set(graph.tensors)
    born = layout.timeline.tensors
    carried = [
        sorted((t for t in each.tensors if t in own and not t.is_placeholder), key=lambda t: born[t].start)
        for each in layout.loops.carried
    ]
    views = [KernelReuse(first, other, 0, "view") for first, *others in filter(None, carried) for other in others]
    whole = {tensor for each in carried for tensor in each}
    views += [
        KernelReuse(each.input, each.output, aligned(each.distance), "view")
        for each in layout.loops.over
        if each.input in whole and each.output in whole
    ]
    inner = {operator: found for operator, found in layout.loops.reuses.items() if operator in set(graph.operators)}
    loop = layout.loops.loops[0].operator
    return {**layout.reuses, **inner, loop: (*layout.reuses.get(loop, ()), *views)}


def _given(graph: Graph, atoms: Atoms) -> tuple[int, ...]:
    """Atoms that an input of the graph fills."""
    inputs = set(graph.inputs)
    return tuple(atom for atom, source in enumerate(atoms.source) if source in inputs)


def _reuses(operator: Operator, layout: MemoryLayout, atoms: Atoms) -> tuple[tuple[Reuse, ...], int]:
    """(what the operator saves where an input dies, the most that it may save beside that).

    Only an input of one atom dies as the atom does: what overwrites one of several atoms is not counted.
    """
    found = [reuse for reuse in layout.reuses.get(operator, ()) if reuse.kind != "view"]
    counted = tuple(Reuse(atoms.of[r.input][0], saved_bytes(r)) for r in found if len(atoms.of[r.input]) == 1)
    return counted, max((saved_bytes(r) for r in found if len(atoms.of[r.input]) > 1), default=0)


def _called_bytes(graph: Graph, layout: MemoryLayout) -> dict[Operator, int]:
    """For each operator the most bytes alive at once, while it runs, of its scratch and its subgraphs' items."""
    own = set(graph.tensors)
    found = {op: layout.scratch[op] for op in graph.operators if op in layout.scratch}
    loops = {loop.operator: loop for loop in layout.loops.loops}
    for op in graph.operators:
        if op not in layout.timeline.spans or not called_subgraphs(op):
            continue
        if op in loops:
            found[op] = max(_peak_inside(each, layout) for each in (loops[op].condition, loops[op].body))
            continue
        span = layout.timeline.spans[op]
        inner = [
            item
            for item, tensor in zip_longest(layout.items, layout.tensors)
            if tensor not in own and span.start <= item.start and item.end <= span.end
        ]
        found[op] = max_breadth(PlanProblem(tuple(inner)))
    return found


def _peak_inside(graph: Graph, layout: MemoryLayout) -> int:
    """The most bytes alive at once in a subgraph of a loop, without those that the main graph's tensors have."""
    problem = schedule_problem(graph, layout)
    inside = set(_resting_in(graph, layout)).intersection(graph.inputs)
    peak = memory_graph(problem).peak(range(len(problem.steps)))
    return max(0, peak - sum(aligned(tensor.nbytes) for tensor in inside))


def _resting_in(graph: Graph, layout: MemoryLayout) -> tuple[Tensor, ...]:
    """What a body gets and gives back in slots that it has at its disposal in between."""
    carried = {tensor: number for number, each in enumerate(layout.loops.carried) for tensor in each.tensors}
    rest = {carried[each.input] for each in layout.loops.resting if each.input in carried}
    return tuple(tensor for tensor in (*graph.inputs, *graph.outputs) if carried.get(tensor) in rest)
