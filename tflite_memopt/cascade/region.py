"""Regions that can be run stripe by stripe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..ir.dtype import DType
from ..ir.model import Graph, Operator, Tensor
from .receptive_field import RowByRow, row_by_row

_CUT = frozenset({DType.BOOL, DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32})
"""Types that TFLM both slices and concatenates (slice.cc, concatenation.cc)."""


@dataclass(frozen=True)
class Region:
    """Operators, in execution order, whose last one writes the only tensor that is read outside them.

    ``ways[i]`` is how operator i is run for some rows. ``inputs`` are the tensors from outside that are cut into
    stripes; what is read whole is not among them.
    """

    operators: tuple[Operator, ...]
    ways: tuple[RowByRow, ...]
    inputs: tuple[Tensor, ...]

    @property
    def exit(self) -> Tensor:
        """The tensor that the stripes make up."""
        return self.operators[-1].outputs[0]


def region_of(graph: Graph, operators: Sequence[Operator]) -> Region | str:
    """The region of these operators, given in execution order, or the reason why they are no region."""
    ways = []
    for operator in operators:
        way = row_by_row(operator)
        if isinstance(way, str):
            return f"{operator.name} '{operator.outputs[0].name if operator.outputs else ''}': {way}"
        ways.append(way)
    inside = {operator.outputs[0] for operator in operators}
    inputs: dict[Tensor, None] = {}
    for operator, way in zip(operators, ways, strict=True):
        for slot, tensor in enumerate(operator.inputs):
            if tensor is None or tensor.is_constant:
                continue
            if tensor.is_variable or (tensor in inside and slot not in way.sliced):
                return f"'{tensor.name}' is a variable, or needed whole inside the region"
            if tensor not in inside and slot in way.sliced:
                inputs[tensor] = None
    reason = _reason_against_types((*inputs, *inside)) or _reason_against_exit(graph, operators, inside)
    return reason or Region(tuple(operators), tuple(ways), tuple(inputs))


def _reason_against_types(tensors: Iterable[Tensor]) -> str | None:
    wrong = next((tensor for tensor in tensors if tensor.dtype not in _CUT), None)
    return None if wrong is None else f"TFLM cannot slice '{wrong.name}', which is {wrong.dtype.label}"


def _reason_against_exit(graph: Graph, operators: Sequence[Operator], inside: set[Tensor]) -> str | None:
    """Why the last operator's output is not the only one that is read outside, and outside only."""
    chosen, last = set(operators), operators[-1].outputs[0]
    for tensor in inside:
        readers_inside = [use.operator in chosen for use in tensor.uses]
        is_returned = any(tensor is each for each in graph.outputs)
        if tensor is last and any(readers_inside):
            return f"'{tensor.name}' is read inside the region as well"
        if tensor is not last and (is_returned or not all(readers_inside)):
            return f"'{tensor.name}' is read outside the region as well"
        if tensor is not last and not readers_inside:
            return f"nothing reads '{tensor.name}'"
    return None
