"""A model as problems of integers for planners and schedulers, and lower bounds on its head in its own order.

A *tie* is an output at the place of the input that it feeds, so that state passes from run to run without a copy.

    run 1:   x, h --> ... --> y, h'        h' is written where h was, once nothing reads h any more
    run 2:   x, h --> ...                  h has the bytes that run 1 wrote there

From the last reader of the input to the writer of the output the bytes are nobody's state: other tensors may use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import numpy as np

from ..errors import ErrorKind, ModelFormatError, UsageError
from ..kernels.profile import KernelProfile
from ..model.analysis.loops import Integers
from ..model.analysis.side_effects import side_effect_order
from ..model.io import offline_plan, plan_label
from ..model.ir.check import called_subgraphs
from ..model.ir.model import Graph, Model, Operator, Tensor
from ..model.ir.tensors import in_head
from ..operators.reuse import KernelReuse
from ..solvers.graph.alignment import aligned
from ..solvers.graph.dependency_graph import dependency_graph, kahn_order, set_of
from ..solvers.graph.interval import intersect
from ..solvers.plan.bounds import max_breadth
from ..solvers.plan.problem import PlanProblem
from ..solvers.plan.together import Groups
from ..solvers.schedule.problem import Reuse, ScheduleProblem, Step, memory_graph
from .layout import MemoryLayout, memory_layout
from .storage import Atoms, Reuses, cut_into_atoms, saved_bytes


def ties_named(model: Model, texts: Sequence[str]) -> tuple[tuple[Tensor, Tensor], ...]:
    """(output, input) pairs from texts such as ``state_out:state_in``; names may have colons themselves.

    Raises UsageError for a text that names no such pair, for tensors that differ in shape, type or quantization, and
    for a tensor in two ties.
    """
    outputs, inputs = _by_name(model.main.outputs), _by_name(model.main.inputs)
    found: list[tuple[Tensor, Tensor]] = []
    for text in texts:
        cuts = [at for at, sign in enumerate(text) if sign == ":"]
        pairs = [(text[:at], text[at + 1 :]) for at in cuts if text[:at] in outputs and text[at + 1 :] in inputs]
        if len(pairs) != 1:
            known = f"outputs are {', '.join(outputs)}; inputs are {', '.join(inputs)}"
            raise UsageError(f"--tie {text}: write OUTPUT:INPUT with names of the model; {known}", ErrorKind.UNKNOWN)
        output, source = outputs[pairs[0][0]], inputs[pairs[0][1]]
        for tensor in (output, source):
            if any(tensor in pair for pair in found):
                raise UsageError(f"--tie {text}: '{tensor.name}' is in another tie", ErrorKind.TIE)
        _check_alike(text, output, source)
        found.append((output, source))
    return tuple(found)


def tie_positions(model: Model, texts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return (output, input) positions of the ties that texts name. Raises UsageError as ``ties_named``."""
    return _positions(model.main, ties_named(model, texts))


def labeled_ties(model: Model) -> tuple[str, ...]:
    """Return the ties that the plan in a model's file was made with, as texts. Raises ModelFormatError for no texts."""
    label = plan_label.decode(model) if offline_plan.decode(model) else None
    found = () if label is None else label.options.get("ties", ())
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, str) for each in found):
        raise ModelFormatError("the label in the file has no valid ties: optimize the model again", ErrorKind.DAMAGED)
    return tuple(found)


def with_ties(model: Model, texts: Sequence[str], profile: KernelProfile) -> Model:
    """Return the model itself with ties that texts name, its operators in an order in which they can be kept.

    Raises UsageError for a wrong text, and where the output of a tie would overwrite its input too early in any order.
    """
    if not texts:
        return model
    graph, pairs = model.main, ties_named(model, texts)
    model.ties = _positions(graph, pairs)
    places = {operator: at for at, operator in enumerate(graph.operators)}
    before = [
        (places[t.producer], at) for op, at in places.items() for t in op.present_inputs() if t.producer in places
    ]
    every = {*before, *side_effect_order(graph), *readers_before_writers(graph, pairs)}
    if not all(first < second for first, second in every):
        needs = [set_of(first for first, second in every if second == at) for at in range(len(places))]
        order = kahn_order(dependency_graph(needs))
        if len(order) == len(places):  # else an input is read after its output is written: the groups say which
            graph.reorder(order)
    groups_with(memory_layout(model, profile), pairs)
    return model


def _positions(graph: Graph, pairs: Sequence[tuple[Tensor, Tensor]]) -> tuple[tuple[int, int], ...]:
    return tuple((graph.outputs.index(output), graph.inputs.index(source)) for output, source in pairs)


def readers_before_writers(graph: Graph, ties: Sequence[tuple[Tensor, Tensor]]) -> Iterator[tuple[int, int]]:
    """By position, the readers of the input of a tie, and the writer of the output."""
    places = {operator: at for at, operator in enumerate(graph.operators)}
    for output, source in ties:
        if output.producer in places:
            writer = places[output.producer]
            yield from ((places[use.operator], writer) for use in source.uses if use.operator is not output.producer)


def groups_with(layout: MemoryLayout, ties: Sequence[tuple[Tensor, Tensor]]) -> Groups:
    """Return the items by number that lie at one offset: those that loops carry, and the ``ties``.

    Raises UsageError where the output of a tie would overwrite its input too early.
    """
    for output, source in ties:
        _check_times(layout, output, source)
    return layout.groups_with(ties)


def _by_name(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in tensors}


def _check_alike(text: str, output: Tensor, source: Tensor) -> None:
    if output is source or output.is_constant:
        raise UsageError(f"--tie {text}: no operator writes the output", ErrorKind.TIE)
    pairs = (("shape", output.shape, source.shape), ("type", output.dtype, source.dtype))
    scales = [
        (t.quantization.scale.tolist(), t.quantization.zero_point.tolist()) if t.quantization else None
        for t in (output, source)
    ]
    for what, one, other in (*pairs, ("quantization", *scales)):
        if one != other:
            raise UsageError(
                f"--tie {text}: the output has {what} {one} and the input {other}; they must be the same", ErrorKind.TIE
            )


def _check_times(layout: MemoryLayout, output: Tensor, source: Tensor) -> None:
    first, second = layout.tensors.index(output), layout.tensors.index(source)
    may_share = any({r.first, r.second} == {first, second} and r.allows(0, 0) for r in layout.problem.relations)
    if may_share or not intersect(layout.items[first], layout.items[second]):
        return
    born = layout.items[first].start
    late = [use.operator.name for use in source.uses if layout.timeline.spans[use.operator].end > born]
    why = f"{late[-1]} reads '{source.name}' then, or later" if late else f"'{source.name}' is returned as well"
    raise UsageError(
        f"--tie {output.name}:{source.name}: '{output.name}' is written where '{source.name}' lies, and {why}: "
        "copy the state in the firmware",
        ErrorKind.TIE,
    )


def schedule_problem(graph: Graph, layout: MemoryLayout) -> ScheduleProblem:
    """Return the ordering problem of one graph, over atoms in place of tensors.

    A control-flow operator counts as one step, and the largest need of its subgraphs as its scratch; they keep their
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
        # Tensors inside a loop may lie on tensors outside that are dead at that moment.
        more = max(more, inside[op]) if op in loops else more
        return Step(read, filled, inside.get(op, 0), waits, reuses, more)

    steps = tuple(step(position, op) for position, op in enumerate(graph.operators))
    return ScheduleProblem(atoms.sizes, steps, _given(graph, atoms), pick(graph.outputs))


def atoms_in(graph: Graph, layout: MemoryLayout) -> Atoms:
    """Return the atoms that the ordering problem of a graph counts in place of tensors, in the same order."""
    return cut_into_atoms(_own_tensors(graph, layout), _views_in(graph, layout))


def _own_tensors(graph: Graph, layout: MemoryLayout) -> list[Tensor]:
    """Return the tensors that take bytes in this graph: of a loop's subgraph, none that lies on one of the main graph.

    And none that an NPU's commands have addresses of: their place is given, and so is the order.
    """
    carried = {tensor for each in layout.loops.carried for tensor in each}
    is_inside = any(graph in (loop.condition, loop.body) for loop in layout.loops.loops)
    elsewhere = carried.difference(_dead_in(graph, layout)) if is_inside else set()
    taken = [t for t in graph.tensors if in_head(t) and t not in elsewhere]
    found = [t for t in taken if not t.is_placeholder and t.fixed_offset is None]
    if not layout.loops.loops:
        return found
    # By birth: bytes that a result takes over from an image are filled by the image's maker.
    return sorted(found, key=lambda tensor: layout.timeline.tensors[tensor].start)


def _views_in(graph: Graph, layout: MemoryLayout) -> Reuses:
    """Return the views of a graph; tensors that a loop carries, and views of them, count as one storage."""
    if not layout.loops.loops:
        return layout.reuses
    own = set(graph.tensors)
    born = layout.timeline.tensors
    carried = [
        sorted((t for t in each if t in own and not t.is_placeholder), key=lambda t: born[t].start)
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
    """(bytes that the operator saves where an input dies, the most that it may save beside that).

    Only an input of one atom dies as the atom does: overwriting one of several atoms is not counted. Tensors of an NPU
    have places of their own, and no atoms.
    """
    every = (reuse for reuse in layout.reuses.get(operator, ()) if reuse.kind != "view")
    found = [reuse for reuse in every if reuse.input in atoms.of and reuse.output in atoms.of]
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
    """Return the most bytes alive at once in a subgraph of a loop, without those that the main graph's tensors have."""
    problem = schedule_problem(graph, layout)
    inside = set(_dead_in(graph, layout)).intersection(graph.inputs)
    peak = memory_graph(problem).peak(range(len(problem.steps)))
    return max(0, peak - sum(aligned(tensor.nbytes) for tensor in inside))


def _dead_in(graph: Graph, layout: MemoryLayout) -> tuple[Tensor, ...]:
    """Return the tensors that a body gets and gives back in slots that are free in between."""
    carried = {tensor: number for number, each in enumerate(layout.loops.carried) for tensor in each}
    dead = {carried[each.input] for each in layout.loops.dead_in_body if each.input in carried}
    return tuple(tensor for tensor in (*graph.inputs, *graph.outputs) if carried.get(tensor) in dead)


class Alive:
    """Bytes of the main graph's tensors by step, and around intervals of steps."""

    def __init__(self, model: Model, profile: KernelProfile) -> None:
        self._layout = memory_layout(model, profile)
        self._problem = schedule_problem(model.main, self._layout)
        self._atoms, self._operators = atoms_in(model.main, self._layout).of, model.main.operators
        count, steps = len(self._problem.sizes), len(self._problem.steps)
        self._sizes: Integers = np.asarray(self._problem.sizes, np.int64)
        self._born: Integers = np.full(count, steps, np.int64)
        self._dies: Integers = np.full(count, -1, np.int64)
        self._born[list(self._problem.inputs)] = -1
        self._touched = [list({*step.inputs, *step.outputs}) for step in self._problem.steps]
        for at, step in enumerate(self._problem.steps):
            self._born[list(step.outputs)] = at
            self._dies[self._touched[at]] = at
        self._dies[list(self._problem.outputs)] = steps
        self._across: dict[tuple[int, int], int] = {}

    def needs(self) -> list[int]:
        """Return the bytes of the working set of each step, less the most that its kernel may save.

        The scheduler's working set counts a saving only where the input is one range of bytes. Here an input saves
        what dies of it, in however many ranges.
        """
        found = []
        for at, (operator, step) in enumerate(zip(self._operators, self._problem.steps, strict=True)):
            alive = int(self._sizes[(self._born <= at) & (self._dies >= at)].sum())
            saved = 0
            for reuse in self._layout.reuses.get(operator, ()):
                if reuse.kind != "view":
                    atoms = np.asarray(self._atoms.get(reuse.input, ()), np.int64)
                    dying = int(self._sizes[atoms[self._dies[atoms] == at]].sum())
                    saved = max(saved, min(saved_bytes(reuse), dying))
            found.append(alive + step.scratch - saved)
        return found

    def across(self, first: int, end: int) -> int:
        """Bytes that are alive during all of steps ``first`` to ``end``, half-open, and that none of them touches.

        Less the bytes that the inputs of these steps share: measured alone, the region has it twice.
        """
        if (first, end) not in self._across:
            alive = (self._born < first) & (self._dies >= end)
            alive[[atom for touched in self._touched[first:end] for atom in touched]] = False
            self._across[first, end] = int(self._sizes[alive].sum()) - self._in_common(first, end)
        return self._across[first, end]

    def _in_common(self, first: int, end: int) -> int:
        """Return the bytes of inputs that are views of one another, beyond those of one of them."""
        inside = {operator.outputs[0] for operator in self._operators[first:end]}
        read = (tensor for operator in self._operators[first:end] for tensor in operator.present_inputs())
        inputs = dict.fromkeys(tensor for tensor in read if tensor not in inside)
        atoms = [atom for tensor in inputs for atom in self._atoms.get(tensor, ())]
        return int(self._sizes[atoms].sum() - self._sizes[list(set(atoms))].sum())
