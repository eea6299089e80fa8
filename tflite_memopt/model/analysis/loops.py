"""The iterations of a WHILE, where they do not depend on data.

Integers that are computed from constants alone are followed through the iterations: the counter, and with it where
every SLICE and DYNAMIC_UPDATE_SLICE of the body begins.

A *placeholder* is a variable whose first value nobody reads: the place where a loop's result grows. Such a variable
goes from one DYNAMIC_UPDATE_SLICE, or WHILE that does the same in every iteration, to the next; nothing else reads what
they make until every byte has been written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from operator import add, and_, lt

import numpy as np
import numpy.typing as npt

from ...solvers.graph.interval import covered
from ..ir.check import called_subgraphs
from ..ir.model import DType, Graph, Model, Operator, Tensor
from ..ir.tensors import integers, values

MAX_ITERATIONS = 100_000
"""Loops with more iterations are not followed."""
Integers = npt.NDArray[np.int64]
Values = dict[Tensor, tuple[int, ...]]
Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Begin and size of a part of a tensor, by dimension."""


@dataclass(frozen=True)
class Loop:
    """A WHILE of the main graph whose subgraphs nothing else calls.

    ``iterations``: how many there are, None when it depends on data. ``begins[o][t]``: where operator o of the body, a
    SLICE or a DYNAMIC_UPDATE_SLICE, begins in iteration t; only operators of which that is known.
    """

    operator: Operator
    condition: Graph
    body: Graph
    iterations: int | None
    begins: Mapping[Operator, tuple[tuple[int, ...], ...]]

    @cached_property
    def parts(self) -> Mapping[Operator, tuple[Integers, Integers] | None]:
        """As ``begins``: the first bytes, and the ends, of what the operator reads or writes, by iteration."""
        return {operator: _bytes_of_parts(operator, begins) for operator, begins in self.begins.items()}

    @property
    def slots(self) -> range:
        """The numbers of what is carried from iteration to iteration."""
        return range(len(self.operator.outputs))

    def filled_by(self, slot: int) -> Operator | None:
        """Return the DYNAMIC_UPDATE_SLICE that is all that an iteration does with what is carried in a slot."""
        read, made = self.body.inputs[slot], self.body.outputs[slot]
        update = made.producer
        if update is None or update.name != "DYNAMIC_UPDATE_SLICE" or update.inputs[0] is not read:
            return None
        is_alone = len(read.uses) == 1 and not made.uses and not self.condition.inputs[slot].uses
        return update if is_alone else None

    def ranges(self, operator: Operator) -> list[tuple[int, int]]:
        """Return the first byte and the end of what an operator of the body reads or writes, by iteration.

        Iterations in which that is not one range, or not known, are left out.
        """
        whole = operator.required(0)
        boxes = (box_of(operator, begin) for begin in self.begins.get(operator, ()))
        return [bytes_of(box, whole) for box in boxes if box is not None and is_one_run(box, whole)]


def loops_of(model: Model) -> tuple[Loop, ...]:
    """The loops of the main graph, in order."""
    whiles = [operator for operator in model.main.operators if operator.name == "WHILE"]
    if not whiles:
        return ()
    calls = Counter(called for op in model.all_operators for called in called_subgraphs(op))
    found = []
    for operator in whiles:
        condition, body = called_subgraphs(operator)
        if calls[condition] == calls[body] == 1 and _fits(operator, model.graphs[condition], model.graphs[body]):
            found.append(_followed(operator, model.graphs[condition], model.graphs[body]))
    return tuple(found)


def box_of(operator: Operator, begin: Sequence[int] | None = None) -> Box | None:
    """The part of its first input that a SLICE reads, or of its output that a DYNAMIC_UPDATE_SLICE writes.

    ``begin`` is given where it is not a constant. None when it is not known.
    """
    whole = operator.inputs[0]
    found = integers(operator.inputs[1 if operator.name == "SLICE" else 2]) if begin is None else begin
    if whole is None or found is None or len(found) != len(whole.shape):
        return None
    if operator.name == "DYNAMIC_UPDATE_SLICE":
        size = operator.inputs[1].shape if operator.inputs[1] is not None else ()
        # The kernel moves a part that would reach beyond the end inwards.
        start = tuple(max(0, min(int(b), w - s)) for b, w, s in zip(found, whole.shape, size, strict=True))
        return start, size
    return tuple(int(each) for each in found), operator.outputs[0].shape


def bytes_of(box: Box, tensor: Tensor) -> tuple[int, int]:
    """First byte of a part, and the one after its last, in the tensor that it is a part of."""
    first = last = 0
    for begin, size, whole in zip(*box, tensor.shape, strict=True):
        first, last = first * whole + begin, last * whole + begin + size - 1
    return first * tensor.dtype.arena_bytes, (last + 1) * tensor.dtype.arena_bytes


def bytes_of_part(operator: Operator) -> tuple[int, int] | None:
    """First byte and end of what a SLICE reads of its input, or a DYNAMIC_UPDATE_SLICE writes of its output.

    None for other operators, and where the begin is not a constant.
    """
    if operator.name not in _PARTS:
        return None
    box, whole = box_of(operator), operator.inputs[0] if operator.name == "SLICE" else operator.outputs[0]
    return None if box is None or whole is None else bytes_of(box, whole)


def _bytes_of_parts(operator: Operator, begins: Sequence[Sequence[int]]) -> tuple[Integers, Integers] | None:
    """The same of an operator for many begins at once."""
    box, whole = box_of(operator, begins[0]) if begins else None, operator.inputs[0]
    if box is None or whole is None:  # without an iteration there is nothing to say
        return None
    first, size = np.asarray(begins, np.int64), np.asarray(box[1], np.int64)
    if operator.name == "DYNAMIC_UPDATE_SLICE":
        first = np.maximum(0, np.minimum(first, np.asarray(whole.shape, np.int64) - size))
    steps = [whole.dtype.arena_bytes * prod(whole.shape[axis + 1 :]) for axis in range(len(whole.shape))]
    return first @ steps, (first + size - 1) @ steps + whole.dtype.arena_bytes


def is_one_run(box: Box, tensor: Tensor) -> bool:
    """Tell whether a part is consecutive bytes."""
    low, high = bytes_of(box, tensor)
    return high - low == prod(box[1]) * tensor.dtype.arena_bytes


def _fits(operator: Operator, condition: Graph, body: Graph) -> bool:
    count = len(operator.inputs)
    lengths = {len(operator.outputs), len(condition.inputs), len(body.inputs), len(body.outputs)}
    return lengths == {count} and len(condition.outputs) == 1 and all(each is not None for each in operator.inputs)


def _followed(operator: Operator, condition: Graph, body: Graph) -> Loop:
    parts = {op: op.inputs[_PARTS[op.name]] for op in body.operators if op.name in _PARTS}
    wanted = [tensor for tensor in parts.values() if tensor is not None]
    iterations, known = _in_every_iteration(operator, condition, body, wanted)
    begins = {op: known[tensor] for op, tensor in parts.items() if tensor in known}
    return Loop(operator, condition, body, iterations, begins)


def integers_by_iteration(loop: Loop) -> Mapping[Tensor, tuple[tuple[int, ...], ...]]:
    """The values of the body's tensors in each iteration: of those whose integers depend on no data."""
    return _in_every_iteration(loop.operator, loop.condition, loop.body, loop.body.tensors)[1]


def _in_every_iteration(
    operator: Operator, condition: Graph, body: Graph, wanted: Iterable[Tensor]
) -> tuple[int | None, dict[Tensor, tuple[tuple[int, ...], ...]]]:
    """The number of iterations, None where it depends on data, and the values of those wanted that all iterations
    know.
    """
    carried = [None if tensor is None else _constant(tensor) for tensor in operator.inputs]
    found: dict[Tensor, list[tuple[int, ...]]] = {tensor: [] for tensor in wanted}
    asks, works = _Followed(condition), _Followed(body)
    for iteration in range(MAX_ITERATIONS):
        asked = asks.run(carried).get(condition.outputs[0])
        if asked is None:
            break
        if not asked[0]:
            return iteration, {tensor: tuple(each) for tensor, each in found.items() if len(each) == iteration}
        values = works.run(carried)
        for tensor, each in found.items():
            if tensor in values:
                each.append(values[tensor])
        carried = [values.get(tensor) for tensor in body.outputs]
    return None, {}


_PARTS = {"SLICE": 1, "DYNAMIC_UPDATE_SLICE": 2}
"""Operators that read or write a part of a tensor, with the input that says where."""


class _Followed:
    """A subgraph whose integers are followed: those of its constants, which stay, and the operators with a rule."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = graph.inputs
        self._operators = [operator for operator in graph.operators if _has_rule(operator)]
        followed = (*self._operators, *(operator for operator in graph.operators if operator.name in _PARTS))
        read = {tensor for operator in followed for tensor in operator.present_inputs()}
        lists = (each for each in (*read, *graph.outputs) if each.is_constant and len(each.shape) <= 1)
        self._constants = {each: known for each in lists if (known := _constant(each)) is not None}

    def run(self, carried: Sequence[tuple[int, ...] | None]) -> Values:
        """The integers that are known after one run."""
        values = dict(self._constants)
        values.update((t, each) for t, each in zip(self._inputs, carried, strict=True) if each is not None)
        for operator in self._operators:
            inputs = [None if tensor is None else values.get(tensor) for tensor in operator.inputs]
            if all(each is not None for each in inputs):
                rule = _RULES[operator.name]
                values[operator.outputs[0]] = rule(operator, [each for each in inputs if each is not None])
        return values


def _constant(tensor: Tensor) -> tuple[int, ...] | None:
    found = None
    if tensor.is_constant:
        found = values(tensor) if tensor.dtype is DType.BOOL else integers(tensor)
    return None if found is None else tuple(found.ravel().tolist())


Rule = Callable[[Operator, Sequence[tuple[int, ...]]], tuple[int, ...]]


def _of_pairs(compute: Callable[[int, int], int]) -> Rule:
    """A rule that computes element by element; one element goes with any number of others."""

    def rule(operator: Operator, inputs: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        count = operator.outputs[0].elements
        ones, others = (each * count if len(each) == 1 else each for each in inputs)
        return tuple(map(compute, ones, others))

    return rule


_RULES: Mapping[str, Rule] = {
    "ADD": _of_pairs(add),
    "CONCATENATION": lambda _, inputs: tuple(chain.from_iterable(inputs)),
    "LESS": _of_pairs(lt),
    "LOGICAL_AND": _of_pairs(and_),
    "RESHAPE": lambda _, inputs: inputs[0],
    "SLICE": lambda cut, inputs: inputs[0][inputs[1][0] : inputs[1][0] + cut.outputs[0].elements],
}


def _has_rule(operator: Operator) -> bool:
    """Tell whether it computes vectors or scalars by a rule."""
    tensors = (*operator.present_inputs(), *operator.outputs)
    is_plain = operator.name in _RULES and not operator.option("fusedActivationFunction")
    return is_plain and all(len(tensor.shape) <= 1 for tensor in tensors)


Written = Iterable[tuple[int, int]]


def mark_placeholders(model: Model, planned: Mapping[Tensor, int]) -> None:
    """Mark the variables of the main graph that have an offset and whose first value nobody reads.

    TFLM has a variable in the head only where the plan says so; what other variables hold is never given up.
    """
    loops = {loop.operator: loop for loop in loops_of(model)}
    for tensor in model.main.tensors:
        if tensor.is_variable and tensor in planned and tensor.producer is None and loops:
            tensor.is_placeholder = _is_overwritten(tensor, loops, model.main.outputs)


def cleared_inputs(model: Model, planned: Mapping[Tensor, int]) -> tuple[Tensor, ...]:
    """Inputs of the model that share bytes with a variable, which ``MicroInterpreter::Reset`` clears.

    Source: tflite-micro commit 90b983c2b3f1, micro_interpreter_graph.cc, ``ResetVariableTensors``.
    """
    places = [range(at, at + tensor.nbytes) for tensor, at in planned.items() if tensor.is_variable]
    return tuple(
        tensor
        for tensor in model.main.inputs
        if tensor in planned
        and any(each.start < planned[tensor] + tensor.nbytes and planned[tensor] < each.stop for each in places)
    )


def _is_overwritten(variable: Tensor, loops: Mapping[Operator, Loop], returned: Iterable[Tensor]) -> bool:
    """Tell whether all bytes are written before anything but the next writer reads them."""
    written: list[tuple[int, int]] = []
    tensor, outputs = variable, set(returned)
    while len(tensor.uses) == 1 and tensor not in outputs:
        operator, slot = tensor.uses[0]
        made = _written_by(operator, slot, loops)
        if made is None:
            return False
        tensor, ranges = made
        written += ranges
        if covered(written) == tensor.nbytes:
            return True
    return False


def _written_by(operator: Operator, slot: int, loops: Mapping[Operator, Loop]) -> tuple[Tensor, Written] | None:
    """Return the output that an operator makes of the tensor in this slot, and the bytes that it has written there."""
    if operator.name == "DYNAMIC_UPDATE_SLICE" and slot == 0:
        box = box_of(operator)
        output = operator.outputs[0]
        return None if box is None or not is_one_run(box, output) else (output, [bytes_of(box, output)])
    if operator not in loops:
        return None
    update = loops[operator].filled_by(slot)
    ranges = [] if update is None else loops[operator].ranges(update)
    return (operator.outputs[slot], ranges) if ranges else None
