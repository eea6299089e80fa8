r"""Run the unrolled steps of a recurrent network as one loop, so that the operators of a step exist once.

    x -- UNPACK -- x1, x2, ... xn          each step: the same operators, the same weights, what the one before has made

    s0, x1 -- step -- s1          s1, x2 -- step -- s2          ...          PACK(y1, y2, ... yn)

    body    at = SLICE(table, counter)     row = SLICE(x, at)     s', y = step(s, row)     ys' = DYNAMIC_UPDATE_SLICE
    cond    SLICE(is_turn, counter)

Tables say where each iteration reads and writes, as in a loop over stripes. What a step takes is one of: what the step
before has made, a row of a tensor that is taken apart, or the same tensor in all steps. What others read of it is the
last step's, or one item of all steps in a PACK. PyTorch's converter writes SLICE and CONCATENATION for both.

A converter computes what a first step makes of a state of zeros: that step is another one and stays outside.

It is no rule of the table: whether steps are equal depends on all of them. It takes many structures out of the tail
and adds operators to each iteration, so that the limit on run time decides. Exactness: exact.

In a model that was quantized after training every step has scales of its own, and kernels know scales before they run.
Such steps become equal when each tensor has the range of all of its steps. Exactness: approximates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

import numpy as np

from ...model.analysis.side_effects import has_side_effects
from ...model.ir.change import Changed, Exactness, Refusal, RewriteUse
from ...model.ir.copying import drop_dead_tensors, share_constants
from ...model.ir.editor import Array, last_part, stem
from ...model.ir.model import DType, Graph, Model, Operator, Quantization, Tensor
from ...model.ir.tensors import Affine, affine_of, per_tensor, quantized_alike
from ...operators.boxes import slice_box
from ...operators.editor import Editor, iteration_condition
from ...operators.table import kind_of
from ...operators.window import CONVOLUTIONS
from ...solvers.graph.dependency_graph import dependency_graph, set_of, transitive_closure
from .engine import is_dead

NAME = "steps_in_a_loop"
_LEAST = 3
"""Steps of the shortest loop that is looked at."""


@dataclass
class _Step:
    """One step: the operator for each of the first step's, and the tensor for each that the first step takes."""

    operators: dict[Operator, Operator] = field(default_factory=dict)
    taken: dict[Tensor, Tensor] = field(default_factory=dict)

    def made(self, tensor: Tensor) -> Tensor:
        """The tensor for one that the first step makes."""
        assert tensor.producer is not None
        return self.operators[tensor.producer].outputs[tensor.producer.outputs.index(tensor)]


@dataclass(frozen=True)
class _Rows:
    """A row of ``whole`` for each step, as UNPACK gives or PACK takes it; rows of ``shape`` follow one another."""

    whole: Tensor
    shape: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def joined(self) -> tuple[int, ...]:
        """The shape of all rows together, with as many dimensions as one of them."""
        first, *rest = self.shape
        return (self.whole.elements // max(1, prod(self.shape)) * first, *rest)

    def begin(self, place: int) -> list[int]:
        """Return the first element of a row."""
        return [place * self.shape[0], *(0 for _ in self.shape[1:])]


@dataclass(frozen=True)
class _Pack:
    """A PACK, or a CONCATENATION that reads others, which are the ``operators`` behind it; and the ``items`` joined."""

    operators: tuple[Operator, ...]
    items: tuple[Tensor, ...]


@dataclass(frozen=True)
class Steps:
    """Equal steps, each of which takes what the one before has made.

    By the first step's tensors: ``states`` with what the next step takes in their place, ``rows``, and what all steps
    take (``same``). ``items``: what is packed of each step, and where. ``scales``: for the range of all steps, of
    tensors that have others in other steps.
    """

    operators: tuple[Operator, ...]
    steps: tuple[_Step, ...]
    states: Mapping[Tensor, Tensor]
    rows: Mapping[Tensor, _Rows]
    same: tuple[Tensor, ...]
    items: Mapping[Tensor, tuple[_Pack, _Rows]]
    scales: Mapping[Tensor, Quantization]

    @property
    def exactness(self) -> Exactness:
        """Return the exactness of the loop."""
        return "approximates" if self.scales else "exact"


def steps_in(graph: Graph) -> Iterator[Steps | Refusal]:
    """Chains of steps that are equal but for scales, or why such a chain is none."""
    position = {operator: at for at, operator in enumerate(graph.operators)}
    needs = [set_of(position[t.producer] for t in op.present_inputs() if t.producer is not None) for op in position]
    before = dict(zip(position, transitive_closure(dependency_graph(needs)).before, strict=True))
    readers: dict[Tensor, list[Operator]] = defaultdict(list)
    for operator in graph.operators:
        weights = operator.inputs[1] if len(operator.inputs) > 1 else None
        if weights is not None and weights.is_constant and operator.name in ("FULLY_CONNECTED", "BATCH_MATMUL"):
            readers[weights].append(operator)
    for weights, found in readers.items():
        if len(found) >= _LEAST and all(before[later] >> position[one] & 1 for one, later in pairwise(found)):
            inside = before[found[1]] & ~before[found[0]]
            steps = _steps(graph, [op for op, at in position.items() if inside >> at & 1], found)
            yield Refusal(NAME, stem(weights), steps) if isinstance(steps, str) else steps


def _steps(graph: Graph, inside: Sequence[Operator], anchors: Sequence[Operator]) -> Steps | str:
    """The steps of which each has one of the anchors; or why they are not equal.

    ``inside``: what is computed between the first two. A cut of what is there before is a row that a step takes.
    """
    operators = tuple(op for op in inside if op.name != "SLICE" or op.required(0).producer in inside)
    if any(has_side_effects(op) for op in operators):
        return "a step has an effect beyond its outputs"
    steps: list[_Step] = []
    used: set[Operator] = set()
    for anchor in anchors:
        step = _alike(operators, anchors[0], anchor)
        if step is None:
            break
        if not used.isdisjoint(step.operators.values()):
            return "its steps share operators"
        used.update(step.operators.values())
        steps.append(step)
    if len(steps) < _LEAST:
        return "its steps are not equal"
    return _joined(graph, operators, tuple(steps), used)


def _alike(operators: Sequence[Operator], first: Operator, other: Operator) -> _Step | None:
    """The step of ``other`` by the operators of the first step; None where it is not equal to that."""
    step, inside = _Step(), frozenset(operators)
    if other is first:
        taken = (tensor for op in operators for tensor in op.present_inputs() if tensor.producer not in inside)
        return _Step({op: op for op in operators}, {tensor: tensor for tensor in taken})
    if not _pair(step, inside, first, other):
        return None
    waiting = [op for op in operators if op not in step.operators]
    while waiting:
        found = next(_candidates(step, waiting), None)
        if found is None:
            return None
        operator, candidates = found
        for candidate in candidates:
            trial = _Step(dict(step.operators), dict(step.taken))
            if _pair(trial, inside, operator, candidate):
                step = trial
                break
        else:
            return None
        waiting = [op for op in waiting if op not in step.operators]
    return step


def _candidates(step: _Step, waiting: Sequence[Operator]) -> Iterator[tuple[Operator, list[Operator]]]:
    """Operators of the first step of which an input is known, and those that read it in the other step."""
    known = set(step.operators.values())
    for operator in waiting:
        for slot, tensor in enumerate(operator.inputs):
            if tensor is not None and tensor.producer in step.operators:
                uses = step.made(tensor).uses
                yield operator, [use.operator for use in uses if use.slot == slot and use.operator not in known]
                break


def _pair(step: _Step, inside: frozenset[Operator], one: Operator, other: Operator) -> bool:
    """Note that an operator stands for one of the first step, and so do those that make what both read."""
    if one in step.operators:
        return step.operators[one] is other
    if _kind(one) != _kind(other):
        return False
    step.operators[one] = other
    for a, b in zip(one.inputs, other.inputs, strict=True):
        if a is None or b is None:
            if a is not b:
                return False
        elif a.producer in inside and a.producer is not None:
            if b.producer is None or a.producer.outputs.index(a) != b.producer.outputs.index(b):
                return False
            if not _pair(step, inside, a.producer, b.producer):
                return False
        elif step.taken.setdefault(a, b) is not b:
            return False
    return True


def _kind(operator: Operator) -> tuple[object, ...]:
    """The operator, its options, and the types and shapes of its tensors."""
    tables = [each.fields for each in (operator.options, operator.options2) if each is not None]
    options = [{name: repr(value) for name, value in fields.items()} for fields in tables]
    sides = [None if each is None else (each.dtype, each.shape) for each in operator.inputs]
    return operator.opcode.label, options, sides, [(each.dtype, each.shape) for each in operator.outputs]


def _joined(
    graph: Graph, operators: tuple[Operator, ...], steps: tuple[_Step, ...], used: set[Operator]
) -> Steps | str:
    """Return the values that steps take from each other and give to others, or the value that no loop can carry."""
    states, rows, same = dict[Tensor, Tensor](), dict[Tensor, _Rows](), list[Tensor]()
    for tensor in steps[0].taken:
        every = [step.taken[tensor] for step in steps]
        if set(every) == {tensor}:
            same.append(tensor)
        elif _is_state(steps, every):
            states[tensor] = every[1]
        elif (of_row := _rows_of(every)) is not None:
            rows[tensor] = of_row
        else:
            return f"'{stem(tensor)}' is neither made by the step before nor a row of one tensor"
    made = [tensor for op in operators for tensor in op.outputs]
    items = _items_of(graph, steps, used, {tensor: tensor in states.values() for tensor in made})
    if isinstance(items, str):
        return items
    scales = _common_scales(steps, made, states)
    joined = Steps(operators, steps, states, rows, tuple(same), items, scales)
    return _reason_against_scales(joined) or joined


def _is_state(steps: Sequence[_Step], every: Sequence[Tensor]) -> bool:
    """Tell whether each step makes what the next one takes; ``every``: what the steps take in one place.

    s0 -- step -- s1 -- step -- s2 -- step -- s3        every: s0, s1, s2
    """
    first = every[1]
    if first.producer not in steps[0].operators:
        return False
    return all(step.made(first) is tensor for step, tensor in zip(steps, every[1:], strict=False))


def _items_of(
    graph: Graph, steps: Sequence[_Step], used: set[Operator], is_state: Mapping[Tensor, bool]
) -> dict[Tensor, tuple[_Pack, _Rows]] | str:
    """Return what is packed of every step, and where, or the value that others read in another way.

    ``is_state``: for all that the first step makes, whether the next one takes it; the state after the last step may
    be read by anybody.
    """
    items: dict[Tensor, tuple[_Pack, _Rows]] = {}
    for tensor, is_taken in is_state.items():
        every = [step.made(tensor) for step in steps]
        *reads, of_last = [_read_outside(graph, each, used) for each in every]
        if not any(reads):
            if of_last and not is_taken:
                return f"others read '{stem(tensor)}' of the last step alone, and it is no state"
            continue
        packed = _packed([*reads, of_last], every, is_taken)
        if packed is None or any(op.outputs[0] in graph.outputs for op in packed[0].operators[1:]):
            return f"'{stem(tensor)}' is read outside, and not as an item of every step"
        if any(packed[1].whole is rows.whole for _, rows in items.values()):
            return f"'{stem(packed[1].whole)}' takes several tensors of every step"
        items[tensor] = packed
    return items


def _reason_against_scales(found: Steps) -> str | None:
    """Why tensors cannot have one scale in all steps; None where they can, or have."""
    carried = {state: found.scales[made] for state, made in found.states.items() if made in found.scales}
    scales = {**found.scales, **carried}
    wrong = next((each for each in scales if each in found.items or _keeps_its_scale(each)), None)
    if wrong is not None:
        return f"'{stem(wrong)}' has another scale in every step, and what reads it has that, too"
    if any(not _is_one_scale(operator, scales) for operator in found.operators if kind_of(operator).keeps_scale):
        return "a step moves values between tensors that would get different scales"
    return None


def _common_scales(
    steps: Sequence[_Step], made: Sequence[Tensor], states: Mapping[Tensor, Tensor]
) -> dict[Tensor, Quantization]:
    """By the first step's tensor, a scale for the range of all steps where these have different ones."""
    given = {made: [state] for state, made in states.items()}
    scales = {}
    for tensor in made:
        every = [step.made(tensor) for step in steps] + given.get(tensor, [])
        if any(not quantized_alike(each.quantization, tensor.quantization) for each in every):
            scales[tensor] = _for_all([affine for each in every if (affine := affine_of(each)) is not None])
    return scales


def _for_all(every: Sequence[Affine]) -> Quantization:
    """The scale of 8 bits whose range has all of the others."""
    low = min(each.scale * (-128 - each.zero_point) for each in every)
    high = max(each.scale * (127 - each.zero_point) for each in every)
    scale = (high - low) / 255
    return per_tensor(scale, round(-128 - low / scale))


def _keeps_its_scale(tensor: Tensor) -> bool:
    """Tell whether it is of other than 8 bits, or a reader has a bias, whose scale goes with that of the input."""
    biased = (use.operator for use in tensor.uses if use.slot == 0 and use.operator.name in _WITH_BIAS)
    has_bias = any(len(reader.inputs) > 2 and reader.inputs[2] is not None for reader in biased)
    return has_bias or tensor.dtype is not DType.INT8


_WITH_BIAS = frozenset({*CONVOLUTIONS, "FULLY_CONNECTED"})


def _is_one_scale(operator: Operator, scales: Mapping[Tensor, Quantization]) -> bool:
    """Tell whether all tensors of an operator have one scale in the loop."""
    sides = [each for each in (*operator.present_inputs(), *operator.outputs) if affine_of(each) is not None]
    return all(
        quantized_alike(scales.get(one, one.quantization), scales.get(other, other.quantization))
        for one, other in pairwise(sides)
    )


def _rows_of(found: Sequence[Tensor]) -> _Rows | None:
    """The rows that one UNPACK, or a SLICE for each, gives to all steps; None where they are no such rows."""
    unpack = found[0].producer
    if unpack is not None and unpack.name == "SLICE":
        return _rows_cut(found, unpack.required(0))
    if unpack is None or unpack.name != "UNPACK" or any(tensor.producer is not unpack for tensor in found):
        return None
    whole = unpack.required(0)
    if whole.is_constant or not _follow_one_another(whole, unpack):
        return None
    return _Rows(whole, found[0].shape, tuple(unpack.outputs.index(tensor) for tensor in found))


def _rows_cut(found: Sequence[Tensor], whole: Tensor) -> _Rows | None:
    """Rows that are cut out one by one."""
    shape, places = found[0].shape, []
    for cut in (tensor.producer for tensor in found):
        if cut is None or cut.name != "SLICE" or cut.required(0) is not whole:
            return None
        box = slice_box(cut)
        start = None if box is None or box.count != shape else box.run_start(whole.shape)
        if start is None or start % prod(shape):
            return None
        places.append(start // prod(shape))
    is_apart = not whole.is_constant and len(shape) <= _RANK and whole.elements % prod(shape) == 0
    return _Rows(whole, shape, tuple(places)) if is_apart else None


def _follow_one_another(whole: Tensor, operator: Operator) -> bool:
    """Tell whether the rows of a PACK or UNPACK are one after another in memory, and few integers say where."""
    axis = int(operator.option("axis", 0)) % len(whole.shape)
    return prod(whole.shape[:axis]) == 1 and 1 < len(whole.shape) <= _RANK + 1


def _read_outside(graph: Graph, tensor: Tensor, used: set[Operator]) -> list[tuple[Operator | None, int]]:
    """Return the readers of a step's tensor outside of the steps; None for the application."""
    read = ((use.operator, use.slot) for use in tensor.uses if use.operator not in used)
    return [*read, *((None, at) for at, each in enumerate(graph.outputs) if each is tensor)]


def _packed(
    reads: Sequence[Sequence[tuple[Operator | None, int]]], made: Sequence[Tensor], is_state: bool
) -> tuple[_Pack, _Rows] | None:
    """Return the operators that pack a tensor of every step, and its places.

    None if anything else reads it, except the state after the last step.
    """
    lasts = {_last_of(op) for each in reads for op, _ in each if op is not None and op.name in _PACKS}
    if len(lasts) != 1 or any(len(each) != 1 for each in reads[:-1]) or (len(reads[-1]) > 1 and not is_state):
        return None
    pack = _pack_of(lasts.pop())
    if any(pack.items.count(tensor) != 1 for tensor in made):
        return None
    whole, item = pack.operators[0].outputs[0], made[0]
    is_plain = whole.dtype is not DType.BOOL and {each.shape for each in pack.items} == {item.shape}
    if not is_plain or not all(_only_joins(op, item) for op in pack.operators):
        return None
    return pack, _Rows(whole, item.shape, tuple(map(pack.items.index, made)))


def _only_joins(operator: Operator, item: Tensor) -> bool:
    whole = operator.outputs[0]
    is_same = quantized_alike(whole.quantization, item.quantization) and not operator.option("fusedActivationFunction")
    return is_same and _follow_one_another(whole, operator)


_PACKS = ("CONCATENATION", "PACK")


def _last_of(operator: Operator) -> Operator:
    """The CONCATENATION that the others of a longer one lead to: TFLM's takes few inputs."""
    uses = operator.outputs[0].uses
    return _last_of(uses[0].operator) if len(uses) == 1 and _continues(uses[0].operator, operator) else operator


def _pack_of(last: Operator) -> _Pack:
    operators, items = [last], list[Tensor]()
    for tensor in last.present_inputs():
        if tensor.producer is not None and len(tensor.uses) == 1 and _continues(last, tensor.producer):
            found = _pack_of(tensor.producer)
            operators += found.operators
            items += found.items
        else:
            items.append(tensor)
    return _Pack(tuple(operators), tuple(items))


def _continues(operator: Operator, inner: Operator) -> bool:
    """Tell whether both join along one axis."""
    are_both = operator.name == inner.name == "CONCATENATION"
    return are_both and operator.option("axis", 0) == inner.option("axis", 0)


_RANK = 4
"""Integers of a row of each table: the begin of a slice of up to so many dimensions."""


def roll_up(model: Model, is_exact: bool = True) -> Changed:
    """Write all chains of equal steps as loops.

    ``is_exact``: only those whose steps have the same scales.
    """
    uses, refused, unpacks = list[RewriteUse](), list[Refusal](), dict[Operator, None]()
    while True:
        found = list(steps_in(model.main))
        chains = [each for each in found if isinstance(each, Steps) and not (is_exact and each.scales)]
        placed = next(((each, at) for each in chains if (at := _place_of(model.main, each)) is not None), None)
        if placed is None:
            refused += [each if isinstance(each, Refusal) else _refusal(each, is_exact) for each in found]
            break
        chain, place = placed
        rows = (step.taken[row] for step in chain.steps for row in chain.rows)
        unpacks |= {row.producer: None for row in rows if row.producer is not None}
        _Writer(model, chain).write(place)
        uses.append(RewriteUse(NAME, tuple(stem(op.outputs[0]) for op in chain.operators), chain.exactness, 0))
    for unpack in unpacks:
        _cut_rows_left(model, unpack)
    if uses:
        drop_dead_tensors(model)
        share_constants(model)
    return Changed(model, tuple(uses), tuple(refused))


def _refusal(found: Steps, is_exact: bool) -> Refusal:
    name = stem(found.operators[-1].outputs[0])
    if is_exact and found.scales:
        reason = (
            "every step has scales of its own: one scale for all would change values (--allow-approximate permits it)"
        )
        return Refusal(NAME, name, reason, "needs_approximation")
    return Refusal(NAME, name, "others read what its steps make before all that they take is made")


def _cut_rows_left(model: Model, unpack: Operator) -> None:
    """Cut the rows out that others read, one by one: UNPACK would keep all of them."""
    if unpack.name == "SLICE":
        if is_dead(model.main, unpack):
            model.main.remove_operator(unpack)
        return
    edit, whole = Editor.in_place_of(model, model.main, unpack), unpack.required(0)
    axis = int(unpack.option("axis", 0)) % len(whole.shape)
    for place, tensor in enumerate(unpack.outputs):
        if tensor.uses or tensor in edit.graph.outputs:
            shape = [1 if at == axis else size for at, size in enumerate(whole.shape)]
            cut = edit.activation(f"{stem(tensor)}/row", shape, tensor)
            edit.slice(whole, [place * (at == axis) for at in range(len(whole.shape))], cut.shape, cut)
            edit.reshape(cut, tensor)


def _place_of(graph: Graph, found: Steps) -> int | None:
    """The position before which the loop can stand: behind all that it takes, before all that take from it."""
    gone = {op for step in found.steps for op in step.operators.values()}
    places = {operator: position for position, operator in enumerate(graph.operators)}
    outer = [item for pack, _ in found.items.values() for item in pack.items if item.producer not in gone]
    given = (*(rows.whole for rows in found.rows.values()), *found.same, *found.states, *outer)
    low = max((places[tensor.producer] + 1 for tensor in given if tensor.producer is not None), default=0)
    made = [tensor for op in gone for tensor in op.outputs]
    readers = [use.operator for tensor in made for use in tensor.uses if use.operator not in gone]
    return low if all(places[reader] >= low for reader in readers) else None


@dataclass(frozen=True)
class _Carried:
    """A slot of a loop: as ``given``, in the body ``before`` and ``after`` an iteration, and at ``last``."""

    given: Tensor
    before: Tensor
    after: Tensor
    last: Tensor | None = None


class _Writer:
    """Writes the subgraphs of a loop over steps, and the loop in their place."""

    def __init__(self, model: Model, found: Steps) -> None:
        self._model, self._found = model, found
        self._iterations = len(found.steps)
        self._graph = Graph(f"{stem(found.operators[-1].outputs[0])}/step")
        self._edit = Editor(model, self._graph, 0)
        self._counter = self._edit.integers("counter", (1,))
        self._twins: dict[Tensor, Tensor] = {}
        self._begins: dict[tuple[int, bytes], Tensor] = {}
        self._wholes: dict[tuple[Tensor, tuple[int, ...]], Tensor] = {}
        self._before: dict[Tensor, Tensor] = {}
        self._lists: dict[Tensor, Tensor] = {}
        self._grown: dict[Tensor, Tensor] = {}

    def write(self, place: int) -> None:
        """Replace the steps by a loop that stands before the operator at this position.

        what a step takes        slot of the loop              in the body
        the same tensor          unchanged                     read
        a row of one tensor      unchanged, the whole tensor   SLICE
        what the last one made   state, before and after       made
        what others read         list, so far and with this    DYNAMIC_UPDATE_SLICE
        """
        after = self._write_body()
        last_of = {made: self._found.steps[-1].made(made) for made in self._found.states.values()}
        edit = self._without_steps(place)
        carried = [*self._unchanged(edit), *self._states(edit, last_of)]
        results = {
            tensor: edit.activation(f"{stem(tensor)}/items", so_far.shape, so_far)
            for tensor, so_far in self._lists.items()
        }
        carried += self._items(edit, results)
        self._graph.inputs = (self._counter, *(each.before for each in carried))
        self._graph.outputs = (after, *(each.after for each in carried))
        self._model.graphs += [iteration_condition(self._model, self._graph, self._iterations, _RANK), self._graph]
        self._write_while(edit, carried)
        for tensor, whole in results.items():
            edit.reshape(whole, self._found.items[tensor][1].whole)

    def _write_body(self) -> Tensor:
        """Write one iteration; return the counter of the next one."""
        found, edit = self._found, self._edit
        for tensor in found.same:
            twin = replace(tensor, name=edit.unique(last_part(tensor)))
            self._twins[tensor] = self._graph.add_tensor(twin)
        self._wholes = {
            key: edit.activation(last_part(key[0]), key[1], key[0])
            for key in dict.fromkeys((rows.whole, rows.joined) for rows in found.rows.values())
        }
        self._before = {
            tensor: edit.activation(f"{last_part(tensor)}/before", tensor.shape, made, found.scales.get(made))
            for tensor, made in found.states.items()
        }
        self._twins.update(self._before)
        self._lists = {
            tensor: edit.activation(f"{last_part(rows.whole)}/so_far", rows.joined, rows.whole)
            for tensor, (_, rows) in found.items.items()
        }
        for operator in found.operators:
            self._write_operator(operator)
        return self._slice(np.repeat(np.arange(1, self._iterations + 1, dtype=np.int32) * _RANK, _RANK), "next", 1)

    def _write_operator(self, operator: Operator) -> None:
        """Write an operator of the step, behind the rows that it reads and before the lists that it adds to."""
        found, edit = self._found, self._edit
        for tensor in operator.present_inputs():
            if tensor in found.rows and tensor not in self._twins:
                rows = found.rows[tensor]
                self._twins[tensor] = self._cut(tensor, rows, self._wholes[rows.whole, rows.joined])
        outputs = [
            edit.activation(last_part(each), each.shape, each, found.scales.get(each)) for each in operator.outputs
        ]
        inputs = [None if each is None else self._twins[each] for each in operator.inputs]
        edit.twin(operator, inputs, outputs)
        self._twins.update(zip(operator.outputs, outputs, strict=True))
        for each in operator.outputs:
            if each in self._lists:
                self._grown[each] = self._grow(each, self._lists[each])

    def _unchanged(self, edit: Editor) -> Iterator[_Carried]:
        for tensor in self._found.same:
            if not tensor.is_constant:
                yield _Carried(tensor, self._twins[tensor], self._twins[tensor])
        for (whole, shape), inner in self._wholes.items():
            yield _Carried(edit.reshaped(whole, shape, f"{stem(whole)}/rows"), inner, inner)

    def _states(self, edit: Editor, last_of: dict[Tensor, Tensor]) -> Iterator[_Carried]:
        """``last_of``: what the last step made, by what the first made; the first of several states gives it."""
        for state, made in self._found.states.items():
            last = last_of.pop(made, None)
            is_read = last is not None and (bool(last.uses) or last in self._model.main.outputs)
            given = _rescaled(edit, state, self._before[state])
            yield _Carried(given, self._before[state], self._twins[made], last if is_read else None)

    def _items(self, edit: Editor, results: Mapping[Tensor, Tensor]) -> Iterator[_Carried]:
        for tensor, so_far in self._lists.items():
            yield _Carried(self._first_items(edit, tensor), so_far, self._grown[tensor], results[tensor])

    def _cut(self, tensor: Tensor, rows: _Rows, whole: Tensor) -> Tensor:
        """The row that an iteration takes."""
        cut = self._edit.activation(last_part(tensor), rows.shape, tensor)
        size = self._edit.constant(f"{cut.name}/size", np.asarray(cut.shape, np.int32))
        self._edit.operator("SLICE", (whole, self._begin(rows), size), (cut,), "SliceOptions")
        return cut

    def _grow(self, tensor: Tensor, so_far: Tensor) -> Tensor:
        """The list with the item that an iteration makes."""
        grown = self._edit.activation(f"{so_far.name}/and_this", so_far.shape, so_far)
        self._edit.update_slice(so_far, self._twins[tensor], self._begin(self._found.items[tensor][1]), grown)
        return grown

    def _begin(self, rows: _Rows) -> Tensor:
        """Return the tensor with the first element of an iteration's row."""
        table = np.zeros((self._iterations, _RANK), np.int32)
        table[:, 0] = [rows.begin(place)[0] for place in rows.places]
        key = (len(rows.shape), table.tobytes())
        if key not in self._begins:
            self._begins[key] = self._slice(table.ravel(), "begin", len(rows.shape))
        return self._begins[key]

    def _slice(self, table: Array, name: str, count: int) -> Tensor:
        """Return ``count`` integers of a table for this iteration."""
        made = self._edit.integers(name, (count,))
        size = self._edit.constant(f"{name}/size", np.asarray([count], np.int32))
        values = self._edit.constant(f"{name}/table", table)
        self._edit.operator("SLICE", (values, self._counter, size), (made,), "SliceOptions")
        return made

    def _without_steps(self, place: int) -> Editor:
        """The main graph without the steps and what packs their items; the editor stands at the place."""
        found, graph = self._found, self._model.main
        gone = {op for step in found.steps for op in step.operators.values()}
        gone |= {operator for pack, _ in found.items.values() for operator in pack.operators}
        behind = next((op for op in graph.operators[place:] if op not in gone), None)
        for operator in gone:
            graph.remove_operator(operator)
        return Editor(self._model, graph, len(graph.operators) if behind is None else graph.operators.index(behind))

    def _first_items(self, edit: Editor, tensor: Tensor) -> Tensor:
        """The list before the loop: the items of other steps are in it, nobody reads the rest."""
        pack, rows = self._found.items[tensor]
        so_far = edit.activation(f"{stem(rows.whole)}/unset", rows.joined, rows.whole)
        so_far.is_variable = so_far.is_placeholder = True
        for place, other in enumerate(pack.items):
            if place not in rows.places:
                begin = edit.constant(f"{stem(other)}/begin", np.asarray(rows.begin(place), np.int32))
                grown = edit.activation(f"{stem(rows.whole)}/so_far", rows.joined, rows.whole)
                edit.update_slice(so_far, other, begin, grown)
                so_far = grown
        return so_far

    def _write_while(self, edit: Editor, carried: Sequence[_Carried]) -> None:
        outputs: list[Tensor] = []
        for each in carried:
            last = each.last
            if last is None or not quantized_alike(last.quantization, each.after.quantization):
                last = edit.activation(f"{stem(each.given)}/carried", each.given.shape, each.given)
            outputs.append(last)
        start = edit.constant(f"{self._graph.name}/first", np.zeros(1, np.int32))
        count = len(self._model.graphs)
        edit.operator(
            "WHILE",
            (start, *(each.given for each in carried)),
            (edit.integers(f"{self._graph.name}/turns", (1,)), *outputs),
            "WhileOptions",
            condSubgraphIndex=count - 2,
            bodySubgraphIndex=count - 1,
        )
        for each, output in zip(carried, outputs, strict=True):
            if each.last is not None and output is not each.last:
                edit.operator("QUANTIZE", (output,), (each.last,), "QuantizeOptions")


def _rescaled(edit: Editor, tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor in the scale of another one."""
    if quantized_alike(tensor.quantization, like.quantization):
        return tensor
    made = edit.activation(f"{stem(tensor)}/rescaled", tensor.shape, like)
    edit.operator("QUANTIZE", (tensor,), (made,), "QuantizeOptions")
    return made
