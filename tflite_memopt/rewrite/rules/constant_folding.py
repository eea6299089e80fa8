"""An operator that only moves constants: its outputs become constants.

    constants -- RESHAPE, CONCATENATION, TRANSPOSE ... -- y -- op        =>        y (constant) -- op

Exact: elements are copied, or cut to a narrower integer as C does it (CAST); nothing is computed.

It takes an activation out of the arena, and costs flash. So it is done only where the new constants are not larger than
the ones that nothing needs any more: not for a PAD or a TILE that makes more of few values, and never for DEQUANTIZE,
whose float values take two to four times the flash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ...ir.constants import integers, values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from ...kernels.relations import operands, slice_box, strided_slice_box
from ..pattern import Match, Pattern
from ..rule import Rule

Array = npt.NDArray[Any]
_INTEGERS = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Folded:
    """The outputs of an operator, and the values that they have."""

    outputs: tuple[tuple[Tensor, Array], ...]


def _check(match: Match) -> Folded | str | None:
    operator = match.anchor
    inputs = list(operator.present_inputs())
    if not inputs or not all(tensor.is_constant for tensor in inputs):
        return None
    returned = next((tensor.name for tensor in operator.outputs if match.is_returned(tensor)), None)
    if returned is not None:
        return f"it writes '{returned}', which the graph returns"
    before, after = _freed_bytes(match), sum(map(_flash_bytes, operator.outputs))
    if after > before:
        return f"its values would take {after} bytes of flash, and free {before}"
    found = moved(operator)
    if found is None:
        return "its operands, types or quantizations are not those of a plain move of values"
    return Folded(tuple(zip(operator.outputs, found, strict=True)))


def fold(found: Folded, edit: Editor) -> None:
    for tensor, array in found.outputs:
        edit.fill(tensor, array)


def _freed_bytes(match: Match) -> int:
    """Flash of the constants that only the anchor reads; those that share their bytes with others stay."""
    own = {t for t in match.anchor.present_inputs() if all(use.operator is match.anchor for use in t.uses)}
    kept = {id(tensor.buffer) for tensor in match.graph.tensors if tensor not in own}
    freed = {id(tensor.buffer): _flash_bytes(tensor) for tensor in own}
    return sum(size for buffer, size in freed.items() if buffer not in kept)


def _flash_bytes(tensor: Tensor) -> int:
    return -(-tensor.elements * tensor.dtype.packed_bits // 8)


def moved(operator: Operator) -> list[Array] | None:
    """The values of the outputs; None unless they are the operator's inputs, moved."""
    move = _MOVES.get(operator.name)
    arrays = _arrays(operator)
    if move is None or arrays is None:
        return None
    try:
        found = move(operator, arrays)
    except ValueError:  # what numpy raises when operands do not fit each other
        return None
    return found if [each.shape for each in found] == [tensor.shape for tensor in operator.outputs] else None


def _arrays(operator: Operator) -> list[Array] | None:
    """The values to move; None unless they and the outputs are of one type and quantization, or integers to cast."""
    data = _data(operator)
    found = [array for tensor in data if (array := values(tensor)) is not None]
    if not found or len(found) < len(data) or operator.option("fusedActivationFunction", 0):
        return None
    first, tensors = data[0], (*data, *operator.outputs)
    if operator.name == "CAST":
        return found if all(tensor.dtype in _INTEGERS for tensor in tensors) else None
    alike = (t.dtype is first.dtype and quantized_alike(t.quantization, first.quantization) for t in tensors)
    return found if all(alike) else None


def _data(operator: Operator) -> list[Tensor]:
    """The inputs whose elements are moved."""
    if operator.name in ("CONCATENATION", "PACK"):
        return list(operator.present_inputs())
    first, second = operands(operator, 2)
    data = second if operator.name == "SPLIT" else first  # SPLIT has its axis first
    return [] if data is None else [data]


def _operand(operator: Operator, slot: int) -> npt.NDArray[np.int64]:
    found = integers(operands(operator, slot + 1)[slot])
    if found is None:
        raise ValueError(f"{operator.name} has no constant integers at input {slot}")
    return found


def _reshaped(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [arrays[0].reshape(operator.outputs[0].shape)]


def _cut(operator: Operator, arrays: list[Array]) -> list[Array]:
    box = slice_box(operator) if operator.name == "SLICE" else strided_slice_box(operator)
    if box is None:
        raise ValueError("not a box")
    cut = arrays[0][tuple(slice(first, first + count) for first, count in zip(box.first, box.count, strict=True))]
    return [cut.reshape(operator.outputs[0].shape)]


def _joined(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [np.concatenate(arrays, axis=int(operator.option("axis", 0)))]


def _stacked(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [np.stack(arrays, axis=int(operator.option("axis", 0)))]


def _unstacked(operator: Operator, arrays: list[Array]) -> list[Array]:
    return list(np.moveaxis(arrays[0], int(operator.option("axis", 0)), 0))


def _split(operator: Operator, arrays: list[Array]) -> list[Array]:
    (axis,) = _operand(operator, 0 if operator.name == "SPLIT" else 2).tolist()
    if not -arrays[0].ndim <= axis < arrays[0].ndim:
        raise ValueError(f"no axis {axis}")
    ends = list(accumulate(tensor.shape[axis] for tensor in operator.outputs))
    return np.split(arrays[0], ends[:-1], axis=axis)


def _transposed(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [np.transpose(arrays[0], _operand(operator, 1).tolist())]


def _tiled(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [np.tile(arrays[0], _operand(operator, 1).tolist())]


def _padded(operator: Operator, arrays: list[Array]) -> list[Array]:
    """Zeros around the values; for a quantized tensor, its zero point."""
    quantization = operator.outputs[0].quantization
    zero = quantization.zero_point[:1] if quantization is not None and quantization.zero_point.size else 0
    return [np.pad(arrays[0], _operand(operator, 1).reshape(-1, 2).tolist(), constant_values=zero)]


def _cast(operator: Operator, arrays: list[Array]) -> list[Array]:
    return [arrays[0].astype(operator.outputs[0].dtype.label)]


_MOVES: Mapping[str, Callable[[Operator, list[Array]], list[Array]]] = {
    "CAST": _cast,
    "CONCATENATION": _joined,
    "EXPAND_DIMS": _reshaped,
    "PACK": _stacked,
    "PAD": _padded,
    "RESHAPE": _reshaped,
    "SLICE": _cut,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUEEZE": _reshaped,
    "STRIDED_SLICE": _cut,
    "TILE": _tiled,
    "TRANSPOSE": _transposed,
    "UNPACK": _unstacked,
}
"""Outputs from the values to move; ValueError when the operands do not fit."""

CONSTANT_FOLDING = Rule("constant_folding", Pattern("move", (*_MOVES, "DEQUANTIZE")), _check, fold)
