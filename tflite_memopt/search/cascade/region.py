"""Regions that can be run stripe by stripe."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...model.ir.model import DType, Graph, Operator, Tensor
from ...model.ir.tensors import QUANTIZED
from ...operators.rows import RowMap
from ...operators.table import row_map_of

_CUT = frozenset({DType.BOOL, DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32})
"""Types that TFLM both slices and concatenates (slice.cc, concatenation.cc)."""
_PADDED = frozenset({*QUANTIZED, DType.INT32})
"""Types whose zero point pads."""


@dataclass(frozen=True)
class Region:
    """Operators, in execution order, whose last one writes the only tensor that is read outside them.

    ``row_maps[i]`` is how operator i is run for some rows. ``inputs`` are the tensors from outside that are cut into
    stripes; tensors that are read whole are not among them.
    """

    operators: tuple[Operator, ...]
    row_maps: tuple[RowMap, ...]
    inputs: tuple[Tensor, ...]

    @property
    def steps(self) -> tuple[tuple[Operator, RowMap], ...]:
        """Each operator with its row map."""
        return tuple(zip(self.operators, self.row_maps, strict=True))

    @property
    def exit(self) -> Tensor:
        """The tensor that the stripes make up."""
        return self.operators[-1].outputs[0]


def region_of(graph: Graph, operators: Sequence[Operator], known: Sequence[RowMap | str] | None = None) -> Region | str:
    """Return the region of these operators, given in execution order, or the reason why they are no region.

    ``known``: their row maps, where they are.
    """
    row_maps = []
    for operator, row_map in zip(operators, map(row_map_of, operators) if known is None else known, strict=True):
        if isinstance(row_map, str):
            return f"{operator.name} '{operator.outputs[0].name if operator.outputs else ''}': {row_map}"
        row_maps.append(row_map)
    inside = dict.fromkeys(operator.outputs[0] for operator in operators)
    inputs: dict[Tensor, None] = {}
    for operator, row_map in zip(operators, row_maps, strict=True):
        for slot, tensor in enumerate(operator.inputs):
            if tensor is None or tensor.is_constant:
                continue
            if tensor.is_variable or (tensor in inside and slot not in row_map.sliced):
                return f"'{tensor.name}' is a variable, or needed whole inside the region"
            if tensor not in inside and slot in row_map.sliced:
                inputs[tensor] = None
    reason = reason_against_types((*inputs, *inside)) or _reason_against_exit(graph, operators, inside)
    reason = reason or _reason_against_reshapes(operators, row_maps, inside)
    return reason or Region(tuple(operators), tuple(row_maps), tuple(inputs))


def start_of_region(graph: Graph, exit_: int, row_maps: Sequence[RowMap | str], longest: int) -> int:
    """The first step of the longest region that ends with step ``exit_``: it is one from every step after that too.

    ``row_maps[s]`` is how step s is run for some rows, or why it is not. At most ``longest`` operators.
    ``exit_ + 1`` when the step is no region itself.
    """
    operators, inside = graph.operators, set[Operator]()
    for first in range(exit_, max(-1, exit_ - longest), -1):
        operator, row_map = operators[first], row_maps[first]
        if isinstance(row_map, str) or not _is_inner(graph, operator, inside, row_map, first == exit_):
            return first + 1
        inside.add(operator)
    return max(0, exit_ - longest + 1)


def regions_above(
    graph: Graph, exit_: int, row_maps: Sequence[RowMap | str], longest: int
) -> Iterator[tuple[int, ...]]:
    """Yield the steps of regions that end with step ``exit_``, each with one operator more than the one before it.

    They need not follow one another: steps between them can run before them all. Arguments as for
    ``start_of_region``.
    """
    operators, inside = graph.operators, set[Operator]()
    found: tuple[int, ...] = ()
    for step in range(exit_, -1, -1):
        row_map = row_maps[step]
        if isinstance(row_map, str) or not _is_inner(graph, operators[step], inside, row_map, step == exit_):
            if step == exit_:
                return
            continue
        inside.add(operators[step])
        found = (step, *found)
        yield found
        if len(found) >= longest:
            return


def _is_inner(graph: Graph, operator: Operator, inside: set[Operator], row_map: RowMap, is_exit: bool) -> bool:
    """Tell whether an operator can stand before those inside, all of its output's readers being among them."""
    output = operator.outputs[0]
    sources = [tensor for tensor in operator.present_inputs() if not tensor.is_constant]
    if any(tensor.is_variable for tensor in sources) or reason_against_types((*sources, output)) is not None:
        return False
    if row_map.passes_on and (is_exit or len(sources[0].uses) > 1):
        return False
    if is_exit:
        return bool(output.uses) or any(output is each for each in graph.outputs)
    if not output.uses or any(output is each for each in graph.outputs):
        return False
    for use in output.uses:
        if use.operator not in inside:
            return False
        found = row_map_of(use.operator)
        if isinstance(found, str) or use.slot not in found.sliced:
            return False
    return True


def reason_against_types(tensors: Iterable[Tensor]) -> str | None:
    """Return why rows of one of the tensors cannot be cut, joined or padded; None where all can."""
    for tensor in tensors:
        if tensor.dtype not in _CUT:
            return f"TFLM cannot slice '{tensor.name}', which is {tensor.dtype.label}"
        if not _has_zero(tensor):
            return f"'{tensor.name}' cannot be padded: its zero point is no {tensor.dtype.label}"
    return None


def _has_zero(tensor: Tensor) -> bool:
    """Tell whether the tensor's type has its zero point; in a damaged file it may be any number."""
    if tensor.quantization is None or tensor.dtype not in _PADDED:
        return True
    limits = np.iinfo(tensor.dtype.label)
    return all(limits.min <= zero <= limits.max for zero in tensor.quantization.zero_point.tolist())


def _reason_against_reshapes(
    operators: Sequence[Operator], row_maps: Sequence[RowMap], inside: Collection[Tensor]
) -> str | None:
    """Return a reshape stands between two operators of a region: at an end of it, the region may as well do without."""
    for operator, row_map in zip(operators, row_maps, strict=True):
        source = operator.inputs[0] if row_map.passes_on else None
        if source is not None and (source not in inside or operator is operators[-1] or len(source.uses) > 1):
            return f"'{operator.outputs[0].name}' is a reshape of an input or of the exit of the region"
    return None


def _reason_against_exit(graph: Graph, operators: Sequence[Operator], inside: Collection[Tensor]) -> str | None:
    """Return the reason why the last operator's output is not the only one that is read outside, and outside only."""
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
