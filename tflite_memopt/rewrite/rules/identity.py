"""Operators that change nothing: their readers read the input instead.

    x -- RESHAPE to the shape of x -- y -- op        =>        x -- op

Exact: shape, type and quantization of ``y`` are those of ``x``, and the kernel copies every element to where it was:

    RESHAPE, SQUEEZE, EXPAND_DIMS   the shape stays
    BROADCAST_TO, TILE              the shape stays, so nothing is repeated
    TRANSPOSE                       the dimensions longer than one stay in order
    PAD, PADV2, MIRROR_PAD          all paddings are 0
    SLICE, STRIDED_SLICE            the whole is cut out
    CONCATENATION, SPLIT, SPLIT_V   one input, one output
    CAST                            to the same type
    QUANTIZE                        integers of one scale: a multiplier of exactly 1 (TFLM quantize_common.cc)
    AVERAGE_POOL_2D, MAX_POOL_2D    integers, windows of one element, stride 1, no activation; a float pool would not
                                    let infinities and NaN through (its output is clamped)

Memory never grows: ``x`` and ``y`` are of one size and alive together at the operator, as one tensor they are alive
where either was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...ir.constants import integers
from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from ...ir.quantization import is_quantized
from ...kernels.relations import axis_of, operands, slice_box, strided_slice_box
from ..copies import Copy, source_of
from ..pattern import Match, Pattern
from ..rule import Rule

_INTEGERS = (DType.INT8, DType.INT16)


def _check(match: Match) -> Copy | str | None:
    operator = match.anchor
    x = _source(operator)
    if x is None or len(operator.outputs) != 1:
        return None
    y = operator.outputs[0]
    if x.shape != y.shape or x.dtype is not y.dtype or not _IDENTITIES[operator.name](operator):
        return None
    if match.is_returned(y):
        return f"it writes '{y.name}', which the graph returns"
    source = source_of(x, y)
    return source if isinstance(source, str) else Copy(source, y)


def _source(operator: Operator) -> Tensor | None:
    first, second = operands(operator, 2)
    return second if operator.name == "SPLIT" else first  # SPLIT has its axis first


def _always(_: Operator) -> bool:
    return True


def _is_fixed(operator: Operator) -> bool:
    """A new shape that is computed is left alone: it may be another one at run time."""
    return all(tensor is None or tensor.is_constant for tensor in operator.inputs[1:])


def _keeps_order(operator: Operator) -> bool:
    x, chosen = operands(operator, 2)
    order = integers(chosen)
    if x is None or order is None or order.size != len(x.shape):
        return False
    axes = [axis_of(axis, len(x.shape)) for axis in order.tolist()]
    moved = [axis for axis in axes if axis is not None and x.shape[axis] > 1]
    return None not in axes and moved == sorted(moved)


def _pads_nothing(operator: Operator) -> bool:
    paddings = integers(operands(operator, 2)[1])
    return paddings is not None and not paddings.any()


def _cuts_nothing(operator: Operator) -> bool:
    (x,) = operands(operator, 1)
    box = slice_box(operator) if operator.name == "SLICE" else strided_slice_box(operator)
    return x is not None and box is not None and box.count == x.shape


def _joins_nothing(operator: Operator) -> bool:
    return len(operator.inputs) == 1 and not operator.option("fusedActivationFunction", 0)


def _keeps_scale(operator: Operator) -> bool:
    y = operator.outputs[0]
    return y.dtype in _INTEGERS and is_quantized(y.quantization)


def _pools_nothing(operator: Operator) -> bool:
    windows = ("filterHeight", "filterWidth", "strideH", "strideW")
    if operator.option("fusedActivationFunction", 0) or operator.outputs[0].dtype not in _INTEGERS:
        return False
    return all(operator.option(name, 0) == 1 for name in windows)


_IDENTITIES: Mapping[str, Callable[[Operator], bool]] = {
    "AVERAGE_POOL_2D": _pools_nothing,
    "BROADCAST_TO": _is_fixed,
    "CAST": _always,
    "CONCATENATION": _joins_nothing,
    "EXPAND_DIMS": _is_fixed,
    "MAX_POOL_2D": _pools_nothing,
    "MIRROR_PAD": _pads_nothing,
    "PAD": _pads_nothing,
    "PADV2": _pads_nothing,
    "QUANTIZE": _keeps_scale,
    "RESHAPE": _is_fixed,
    "SLICE": _cuts_nothing,
    "SPLIT": _always,
    "SPLIT_V": _always,
    "SQUEEZE": _is_fixed,
    "STRIDED_SLICE": _cuts_nothing,
    "TILE": _is_fixed,
    "TRANSPOSE": _keeps_order,
}
"""Whether an operator with one output, of the shape and type of its input, keeps every element where it was."""

IDENTITY = Rule("identity", Pattern("identity", tuple(_IDENTITIES)), _check, Copy.leave_out)
