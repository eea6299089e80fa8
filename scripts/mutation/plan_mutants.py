"""Planned models with one thing wrong: an offset, a view, an order, an operator that works in place and must not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Graph, Model, Tensor

_STEPS = (-64, -16, 16, 64)
_COPYING = ("CONCATENATION", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "RESHAPE", "PACK", "UNPACK")
_IN_PLACE = ("ADD", "SUB", "MUL", "RELU", "RELU6", "LOGISTIC", "TANH", "QUANTIZE", "DEQUANTIZE", "HARD_SWISH")
Change = Callable[[Model, dict[Tensor, int]], "str | None"]
"""Changes the model or its plan and says where; None when that is no change."""


@dataclass(frozen=True)
class Mutant:
    """A planned model, and the ``kind`` and place of its fault."""

    kind: str
    where: str
    data: bytes


def plan_mutants(data: bytes, per_kind: int, seed: int) -> Iterator[Mutant]:
    """At most ``per_kind`` mutants of each kind of a planned model, drawn by the seed; all of them when it is 0."""
    for kind, sites in _KINDS.items():
        chances = list(sites(read_model(data)))
        random.Random(f"{kind} {seed}").shuffle(chances)
        for change in chances[: per_kind or None]:
            model = read_model(data)
            plan = dict(offline_plan.decode(model) or {})
            where = change(model, plan)
            if where is not None:
                offline_plan.attach(model, plan)
                yield Mutant(kind, where, write_model(model))


def _planned(model: Model, graphs: Sequence[Graph]) -> list[int]:
    """Tensors of these graphs that have an offset, by their position among those of all graphs."""
    plan, inside = offline_plan.decode(model) or {}, {tensor for graph in graphs for tensor in graph.tensors}
    every = enumerate(offline_plan.tensors_in_file_order(model))
    return [index for index, tensor in every if tensor in plan and tensor in inside]


def _wrong_offsets(model: Model) -> Iterator[Change]:
    yield from _wrong_in(model, [model.main])


def _wrong_offsets_in_loops(model: Model) -> Iterator[Change]:
    yield from _wrong_in(model, model.graphs[1:])


def _wrong_in(model: Model, graphs: Sequence[Graph]) -> Iterator[Change]:
    tensors = offline_plan.tensors_in_file_order(model)
    for index in _planned(model, graphs):
        shape = tensors[index].shape
        row = tensors[index].nbytes // shape[1] if len(shape) > 1 and shape[1] else 0
        for step in {*_STEPS, row // 16 * 16, -(row // 16) * 16} - {0}:
            yield lambda other, plan, index=index, step=step: _move(other, plan, index, step)  # type: ignore[misc]


def _move(model: Model, plan: dict[Tensor, int], index: int, step: int) -> str | None:
    tensor = offline_plan.tensors_in_file_order(model)[index]
    if tensor not in plan or plan[tensor] + step < 0:
        return None
    plan[tensor] += step
    return f"'{tensor.name}' by {step}"


def _shifted_views(model: Model) -> Iterator[Change]:
    """Pieces that lie in what they are cut from or joined to."""
    plan, every = offline_plan.decode(model) or {}, offline_plan.tensors_in_file_order(model)
    for operator in (each for graph in model.graphs for each in graph.operators):
        if operator.name not in _COPYING:
            continue
        ends = [tensor for tensor in (*operator.present_inputs(), *operator.outputs) if tensor in plan]
        for piece in ends:
            others = (each for each in ends if each is not piece and each.nbytes >= piece.nbytes)
            if len(piece.shape) > 2 and any(_overlap(plan, piece, each) for each in others):
                index, row = every.index(piece), piece.nbytes // piece.shape[1]
                for step in (row, -row):
                    yield lambda other, plan, index=index, step=step: _move(other, plan, index, step)  # type: ignore[misc]


def _overlap(plan: dict[Tensor, int], a: Tensor, b: Tensor) -> bool:
    return max(plan[a], plan[b]) < min(plan[a] + a.nbytes, plan[b] + b.nbytes)


def _swapped_operators(model: Model) -> Iterator[Change]:
    """Neighbors in time, the second of which reads what the first one writes."""
    operators = model.main.operators
    for step in range(len(operators) - 1):
        outputs = set(operators[step].outputs)
        if any(tensor in outputs for tensor in operators[step + 1].present_inputs()):
            yield lambda other, _, step=step: _exchange(other, step)  # type: ignore[misc]


def _exchange(model: Model, step: int) -> str:
    order = list(range(len(model.main.operators)))
    order[step], order[step + 1] = order[step + 1], order[step]
    name = model.main.operators[step].outputs[0].name
    model.main.reorder(order)
    return name


def _false_in_place(model: Model) -> Iterator[Change]:
    planned = set(_planned(model, model.graphs))
    positions = {tensor: index for index, tensor in enumerate(offline_plan.tensors_in_file_order(model))}
    for operator in (each for graph in model.graphs for each in graph.operators):
        if operator.name in (*_COPYING, *_IN_PLACE) or not operator.outputs:
            continue
        for tensor in operator.present_inputs():
            pair = positions[tensor], positions[operator.outputs[0]]
            if set(pair) <= planned:
                yield lambda other, plan, pair=pair: _lay_on(other, plan, *pair)  # type: ignore[misc]


def _lay_on(model: Model, plan: dict[Tensor, int], source: int, result: int) -> str | None:
    tensors = offline_plan.tensors_in_file_order(model)
    first, second = tensors[source], tensors[result]
    if plan[first] == plan[second]:
        return None
    plan[second] = plan[first]
    return f"'{second.name}' on '{first.name}'"


_KINDS: dict[str, Callable[[Model], Iterator[Change]]] = {
    "offset wrong": _wrong_offsets,
    "offset wrong in a loop": _wrong_offsets_in_loops,
    "view shifted by a row": _shifted_views,
    "operators swapped": _swapped_operators,
    "false in place": _false_in_place,
}
