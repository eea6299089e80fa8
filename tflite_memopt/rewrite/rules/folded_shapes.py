"""Arithmetic with shapes: its results become constants.

    x -- SHAPE -- GATHER -- REDUCE_PROD -- PACK -- shape        =>        shape (constant)

Exact: the shape of every tensor is fixed in the arena, and integers are computed as C does it.

Keras writes such operators around layers that flatten all but the batch, where the batch size was not fixed. They cost
more flash than the few integers that they make, and TFLM has no REDUCE_PROD: without them it loads the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...ir.constants import integers, values
from ...ir.dtype import DType
from ...ir.model import Operator
from ...kernels.relations import axis_of
from ..pattern import Match, Pattern
from ..rule import Rule
from .constant_folding import Folded, fold, moved

Array = npt.NDArray[Any]
_MOST = 16
"""Integers in an output: fewer bytes than the entry of an operator takes in the file."""
_NUMPY = {DType.INT32: np.int32, DType.INT64: np.int64}


def _check(match: Match) -> Folded | str | None:
    operator = match.anchor
    if len(operator.outputs) != 1 or operator.outputs[0].dtype not in _NUMPY or operator.outputs[0].elements > _MOST:
        return None
    if operator.name != "SHAPE" and not all(tensor.is_constant for tensor in operator.present_inputs()):
        return None
    output = operator.outputs[0]
    if match.is_returned(output):
        return f"it writes '{output.name}', which the graph returns"
    compute = _COMPUTED.get(operator.name)
    found = compute(operator) if compute is not None else (moved(operator) or (None,))[0]
    if found is None or found.shape != output.shape:
        return "its operands are not those of plain arithmetic with shapes"
    return Folded(((output, found.astype(_NUMPY[output.dtype])),))


def _shape(operator: Operator) -> Array | None:
    (x,) = operator.inputs
    return None if x is None else np.asarray(x.shape, np.int64)


def _gathered(operator: Operator) -> Array | None:
    """Elements of a vector. Source: tensorflow/lite/kernels/internal/reference/gather.h."""
    source, chosen = (None if tensor is None else values(tensor) for tensor in operator.inputs)
    if source is None or chosen is None or source.ndim != 1 or operator.option("batchDims", 0):
        return None
    if axis_of(int(operator.option("axis", 0)), 1) is None or chosen.min() < 0 or chosen.max() >= source.size:
        return None
    found: Array = source[chosen]
    return found


def _product(operator: Operator) -> Array | None:
    """Of all elements of a vector."""
    source, axes = operator.inputs
    array, chosen = None if source is None else values(source), integers(axes)
    if array is None or chosen is None or array.ndim != 1 or [axis_of(int(at), 1) for at in chosen] != [0]:
        return None
    found: Array = np.prod(array, axis=0, keepdims=bool(operator.option("keepDims", False)), dtype=array.dtype)
    return np.asarray(found)


def _multiplied(operator: Operator) -> Array | None:
    a, b = (None if tensor is None else values(tensor) for tensor in operator.inputs)
    if a is None or b is None or a.dtype != b.dtype or operator.option("fusedActivationFunction", 0):
        return None
    found: Array = a * b
    return np.asarray(found)


_COMPUTED: Mapping[str, Callable[[Operator], Array | None]] = {
    "GATHER": _gathered,
    "MUL": _multiplied,
    "REDUCE_PROD": _product,
    "SHAPE": _shape,
}
"""The output's values; None where the operands are others."""
_MOVED = ("CAST", "CONCATENATION", "PACK", "RESHAPE", "SLICE", "STRIDED_SLICE")

FOLDED_SHAPES = Rule("folded_shapes", Pattern("arithmetic", (*_COMPUTED, *_MOVED)), _check, fold)
