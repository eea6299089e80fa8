"""Write the items of a list that a Keras 3 loop sets in place, so that shapes stay and TFLM can run the loop.

TensorFlow's converter writes the list as a tensor, and an item that is set as the list cut in two around it:

    before = SLICE(list, 0, [t, -1, ...])      after = SLICE(list, [t + n, 0, ...], -1)
    list'  = CONCATENATION(before, item, after)

Both sizes change from iteration to iteration. LiteRT allocates them anew; TFLM plans the shapes of the file, and hangs
or computes something else (tensorflow/tflite-micro issue 3674, open in November 2026). The same values with one shape:

    list'  = DYNAMIC_UPDATE_SLICE(list, item, [t, 0, ...])

Such an item is known by what is computed: all iterations are followed, and in each of them the two slices must be all
that the item leaves of the list. A loop whose iterations depend on data is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...model.analysis.loops import integers_by_iteration, loops_of
from ...model.ir.change import STATIC_LISTS, Changed, changed
from ...model.ir.copying import drop_dead_tensors
from ...model.ir.editor import stem
from ...model.ir.model import DType, Graph, Model, Operator, Tensor
from ...model.ir.tensors import quantized_alike
from ...operators.editor import Editor
from .engine import drop_dead

Iterations = Mapping[Tensor, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class _Item:
    """``value`` takes the place of the items of ``whole`` from ``at`` on, a tensor of one integer."""

    whole: Tensor
    value: Tensor
    at: Tensor


def make_lists_static(model: Model) -> Changed:
    """Write items of lists in place in all loops."""
    names: list[str] = []
    for loop in loops_of(model):
        known = integers_by_iteration(loop)
        for operator in list(loop.body.operators):
            item = _item_at(operator, loop.body, known)
            if item is not None:
                names.append(stem(operator.outputs[0]))
                _write(Editor.in_place_of(model, loop.body, operator), operator, item)
                drop_dead(loop.body)
    if names:
        drop_dead_tensors(model)
    return changed(model, STATIC_LISTS, names)


def _item_at(operator: Operator, graph: Graph, known: Iterations) -> _Item | None:
    """The item that a CONCATENATION sets; None where it does something else, or that is not known.

    whole, of n rows     |--------------------------------------------|
    before               SLICE [0, start)
    value                                 rows [start, end)
    after                                                 SLICE [end, n)
    """
    if operator.name != "CONCATENATION" or len(operator.inputs) != 3 or operator.option("axis") != 0:
        return None
    before, value, after = operator.inputs
    if before is None or value is None or after is None or operator.option("fusedActivationFunction"):
        return None
    heads, tails = _rows_of(before.producer, known), _rows_of(after.producer, known)
    if not heads or not tails or before.producer is None or after.producer is None:
        return None
    whole = before.producer.inputs[0]
    if whole is None or whole is not after.producer.inputs[0] or not _takes_rows(operator.outputs[0], whole, value):
        return None
    count, size = whole.shape[0], value.shape[0]
    for (low, start), (end, high) in zip(heads, tails, strict=True):
        if low != 0 or end - start != size or not end <= high == count:
            return None
    at = _first_with(tuple((start,) for _, start in heads), graph, operator, known)
    return None if at is None else _Item(whole, value, at)


def _takes_rows(made: Tensor, whole: Tensor, value: Tensor) -> bool:
    """Tell whether rows can be set: TFLM writes no booleans so, and CONCATENATION rescales."""
    if whole.shape != made.shape or made.dtype is DType.BOOL:
        return False
    return all(quantized_alike(each.quantization, made.quantization) for each in (whole, value))


def _rows_of(cut: Operator | None, known: Iterations) -> list[tuple[int, int]] | None:
    """The rows that a SLICE reads in each iteration, as (start, end); None where it leaves out a part of them."""
    if cut is None or cut.name != "SLICE" or len([*cut.present_inputs()]) != 3:
        return None
    whole, begin, size = cut.present_inputs()
    rows = []
    for begins, sizes in zip(known.get(begin, ()), known.get(size, ()), strict=False):
        if not len(begins) == len(sizes) == len(whole.shape):
            return None
        ends = [full if count == -1 else at + count for at, count, full in zip(begins, sizes, whole.shape, strict=True)]
        if any(begins[1:]) or tuple(ends[1:]) != whole.shape[1:]:
            return None
        rows.append((begins[0], ends[0]))
    return rows


def _first_with(
    wanted: tuple[tuple[int, ...], ...], graph: Graph, reader: Operator, known: Iterations
) -> Tensor | None:
    """A tensor that has these values in every iteration, and has them before an operator runs."""
    order = {operator: position for position, operator in enumerate(graph.operators)}
    for tensor in graph.tensors:
        is_early = tensor.producer is None or order[tensor.producer] < order[reader]
        if tensor.dtype is DType.INT32 and is_early and known.get(tensor) == wanted:
            return tensor
    return None


def _write(edit: Editor, operator: Operator, item: _Item) -> None:
    name, at, rank = stem(operator.outputs[0]), item.at, len(item.whole.shape)
    if at.shape != (1,):
        at = edit.integers(f"{name}/at", (1,))
        edit.reshape(item.at, at)
    if rank > 1:
        zeros = edit.constant(f"{name}/zeros", np.zeros(rank - 1, np.int32))
        parts, at = (at, zeros), edit.integers(f"{name}/begin", (rank,))
        edit.join(parts, at, 0)
    edit.update_slice(item.whole, item.value, at, operator.outputs[0])
