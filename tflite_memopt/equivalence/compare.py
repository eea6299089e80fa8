"""The values of two runs, compared: outputs, and every inner tensor that both have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..io.offline_plan import tensors_in_file_order
from ..ir.check import called_subgraphs
from ..ir.model import Model, Tensor
from ..ir.tensors import values
from .adapter import Run, Values
from .correspondence import Link
from .tolerance import EXACT, Tolerance, arrays_agree, max_abs_diff

_CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
"""Operators that cut values off at a limit, and so leave less of a channel's magnitude than its sums have had."""


@dataclass(frozen=True)
class InnerDifference:
    """The first inner tensor that differs, in the order of execution: its name, its sample, how far it is off."""

    tensor: str
    sample: int
    max_abs_diff: float


@dataclass(frozen=True)
class OutputDifference:
    """The first output that differs: its sample, its position, and how far any output is off."""

    sample: int
    output: int
    max_abs_diff: float


def first_output_difference(before: Values, after: Values, tolerance: Tolerance = EXACT) -> OutputDifference | None:
    """By position of the output, the values for each sample. An output that ``after`` lacks is infinitely far off."""
    found = []
    for output, wanted in before.items():
        got, limit = after.get(output, ()), tolerance.limit(wanted)
        for sample, a in enumerate(wanted):
            b = got[sample] if sample < len(got) else None
            if b is None or not arrays_agree(a, b, tolerance, limit):
                found.append((sample, output, float("inf") if b is None else max_abs_diff(a, b)))
    if not found:
        return None
    return OutputDifference(*min(found)[:2], max(each[2] for each in found))


def first_inner_difference(
    links: Iterable[Link], before: Run, after: Run, model: Model, tolerance: Tolerance = EXACT
) -> InnerDifference | None:
    """The first linked tensor of ``model``, the optimized one, that differs from its range of the original.

    Tensors that a run has no value of are passed over; a constant in place of what was computed is looked at. A clamp
    takes no values further apart: what it gives may be off as far as what it was given, of which that has been seen.
    """
    tensors = tensors_in_file_order(model)
    order, clamped = _order_of_execution(model, tensors), _clamped(model, tensors)
    limits: dict[int, npt.NDArray[np.float64]] = {}
    for link in sorted(links, key=lambda each: order.get(each.after, (0, 0))):
        wanted, got = before.tensors.get(link.before), after.tensors.get(link.after)
        if wanted is None:
            continue
        if got is None:
            constant = values(tensors[link.after])
            if constant is None:
                continue
            got = [constant] * len(wanted)
        ranges = [link.range_of(whole, piece) for whole, piece in zip(wanted, got, strict=False)]
        limit = tolerance.limit([a for a in ranges if a is not None])
        given = limits.get(clamped.get(link.after, -1))
        if given is not None and given.shape == limit.shape:
            limit = np.maximum(limit, given)
        limits[link.after] = limit
        for sample, (a, piece) in enumerate(zip(ranges, got, strict=False)):
            if a is None or not arrays_agree(a, piece, tolerance, limit):
                distance = float("inf") if a is None else max_abs_diff(a, piece)
                return InnerDifference(tensors[link.after].name, sample, distance)
    return None


def _clamped(model: Model, tensors: Sequence[Tensor]) -> dict[int, int]:
    """The positions of what clamps give, and of what they are given, among the tensors of all subgraphs."""
    place = {id(tensor): at for at, tensor in enumerate(tensors)}
    clamps = (operator for graph in model.graphs for operator in graph.operators if operator.name in _CLAMPS)
    return {place[id(each.outputs[0])]: place[id(each.inputs[0])] for each in clamps}


def _order_of_execution(model: Model, tensors: Sequence[Tensor]) -> dict[int, tuple[int, int]]:
    """By position of a tensor among those of all subgraphs, the step that writes it; in a subgraph the caller's first.

    A subgraph that several operators call stands where the last of them does.
    """
    called = {0: 0}
    steps: dict[int, tuple[int, int]] = {}
    for number, graph in enumerate(model.graphs):
        for step, operator in enumerate(graph.operators, 1):
            called.update((each, step) for each in called_subgraphs(operator) if not number)
            place = (step, 0) if not number else (called.get(number, 0), step)
            steps.update((id(tensor), place) for tensor in operator.outputs)
    return {index: steps.get(id(tensor), (0, 0)) for index, tensor in enumerate(tensors)}
