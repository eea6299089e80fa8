"""Channels that hold the zero point for all inputs, by interval arithmetic: a sum of products needs none of them.

Of each channel, the last axis, the least and greatest distance from the zero point, over all inputs in range:

    sum of products    weights of either sign times the ends of the data's range, or 0 for padding, and the bias
    rescaling          within two steps of the real product, whatever a kernel's rounding, and clamped by the activation
    what moves         the same range; joined with 0 by padding

So a ReLU whose sum is never positive by two steps gives the zero point, the activation's least value. Only integers of
8 bits, whose sums fit 32 bits, and scales below 1, which no kernel shifts to the left. What is not in here may be
anything.

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/common.h,
MultiplyByQuantizedMultiplier; CMSIS-NN 4ab83cc3, arm_nnsupportfunctions.h, arm_nn_requantize; esp-nn d45b843c,
src/common/common_functions.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...model.ir.model import DType, Graph, Operator, Tensor
from ...model.ir.tensors import integers, values
from .call import quantization_of

Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.float64]
_STEPS = 2.0
"""By which a kernel's rescaling may differ from the real product."""
_FITS = 2.0**31
_BELOW_ONE = 0.99
"""The largest scale: one that is rounded to 1 is shifted to the left."""
_NONE, _RELU, _RELU6 = 0, 1, 3


@dataclass(frozen=True)
class Range:
    """The least and greatest distance from the zero point, of each channel."""

    low: _Numbers
    high: _Numbers

    @property
    def is_zero(self) -> Mask:
        """Return which channels hold the zero point alone."""
        found: Mask = (self.low == 0) & (self.high == 0)
        return found


def silent_channels(graph: Graph) -> dict[Tensor, Mask]:
    """Return the channels that hold the zero point for all inputs, of each tensor of 8 bits that has any."""
    known: dict[Tensor, Range] = {}
    for operator in graph.operators:
        rule = _RULES.get(operator.name)
        if rule is None or len(operator.outputs) != 1 or not _is_followed(operator.outputs[0]):
            continue
        found = rule(operator, known)
        if found is not None:
            known[operator.outputs[0]] = found
    return {tensor: each.is_zero for tensor, each in known.items() if each.is_zero.any()}


def _is_followed(tensor: Tensor | None) -> bool:
    """Return whether it is an activation of 8 bits with one scale."""
    if tensor is None or tensor.dtype is not DType.INT8 or not tensor.shape or tensor.is_constant:
        return False
    scales, points, _ = quantization_of(tensor)
    return len(scales) == 1 and len(points) == 1


def _limits(tensor: Tensor, activation: int) -> tuple[float, float]:
    """The least and greatest distance from the zero point that an activation leaves; RELU6 may clamp more."""
    (point,) = quantization_of(tensor)[1]
    return 0.0 if activation in (_RELU, _RELU6) else -128.0 - point, 127.0 - point


def _range_of(tensor: Tensor | None, known: Mapping[Tensor, Range]) -> Range | None:
    if tensor is None or not _is_followed(tensor):
        return None
    low, high = _limits(tensor, _NONE)
    channels = tensor.shape[-1]
    return known.get(tensor) or Range(np.full(channels, low), np.full(channels, high))


def _clamped(low: _Numbers, high: _Numbers, operator: Operator) -> Range:
    """Return what is left of a range, by as many steps wider, after the activation."""
    least, most = _limits(operator.outputs[0], int(operator.option("fusedActivationFunction", _NONE)))
    return Range(np.clip(np.floor(low) - _STEPS, least, most), np.clip(np.ceil(high) + _STEPS, least, most))


def _scale(tensor: Tensor) -> float:
    return quantization_of(tensor)[0][0]


def _summed(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED."""
    source, weights = operator.inputs[0], operator.inputs[1]
    data = _range_of(source, known)
    array = None if weights is None or weights.dtype is not DType.INT8 else values(weights)
    scales, points, _ = quantization_of(weights)
    if data is None or source is None or array is None or any(points) or not scales:
        return None
    factors = _by_output(operator, array.astype(np.float64), data)
    factor = np.asarray(scales) * (_scale(source) / _scale(operator.outputs[0]))
    channels = operator.outputs[0].shape[-1]
    if (
        factors is None
        or factors[0].shape[0] != channels
        or factor.size not in (1, channels)
        or factor.max() > _BELOW_ONE
    ):
        return None
    filters, low, high = factors
    one, other = filters * low, filters * high
    least, most = (each.reshape(channels, -1).sum(1) for each in (np.minimum(one, other), np.maximum(one, other)))
    bias = operator.inputs[2] if len(operator.inputs) > 2 else None
    if bias is not None:
        added = integers(bias)
        if bias.dtype is not DType.INT32 or added is None or added.size != channels:
            return None
        least, most = least + added, most + added
    if max(abs(least).max(), abs(most).max()) >= _FITS:
        return None
    return _clamped(least * factor, most * factor, operator)


def _by_output(operator: Operator, filters: _Numbers, data: Range) -> tuple[_Numbers, _Numbers, _Numbers] | None:
    """The weights with outputs first and inputs last, and the range of the factor of each, 0 of padding included."""
    low, high = np.minimum(data.low, 0), np.maximum(data.high, 0)
    if operator.name == "DEPTHWISE_CONV_2D":
        times = int(operator.option("depthMultiplier", 1))
        if filters.ndim != 4 or filters.shape[3] != times * low.size:
            return None
        filters = filters.reshape(-1, filters.shape[3]).T
        return filters, np.repeat(low, times)[:, None], np.repeat(high, times)[:, None]
    return (filters, low, high) if filters.shape[-1] == low.size else None


def _pooled(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """MAX_POOL_2D, AVERAGE_POOL_2D, MEAN over other axes, RELU, RELU6, QUANTIZE: each channel from its own alone."""
    source, output = operator.inputs[0], operator.outputs[0]
    data = _range_of(source, known)
    if data is None or source is None or data.low.size != output.shape[-1]:
        return None
    if operator.name == "MEAN":
        axes = integers(operator.inputs[1])
        if axes is None or len(source.shape) - 1 in axes % len(source.shape):
            return None
    factor = _scale(source) / _scale(output)
    if operator.name.endswith("POOL_2D") and quantization_of(source) != quantization_of(output):
        return None
    found = _clamped(data.low * factor, data.high * factor, operator)
    least = 0.0 if operator.name in ("RELU", "RELU6") else _limits(output, _NONE)[0]
    low, high = np.maximum(found.low, least), np.maximum(found.high, least)
    return Range(np.where(data.is_zero, 0, low), np.where(data.is_zero, 0, high))


def _added(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """ADD of two activations of one shape."""
    one, other = (_range_of(tensor, known) for tensor in operator.inputs[:2])
    output = operator.outputs[0]
    tensors = [tensor for tensor in operator.inputs if tensor is not None and tensor.shape == output.shape]
    if one is None or other is None or len(tensors) != 2:
        return None
    first, second = (_scale(tensor) / _scale(output) for tensor in tensors)
    found = _clamped(one.low * first + other.low * second, one.high * first + other.high * second, operator)
    is_zero = one.is_zero & other.is_zero
    return Range(np.where(is_zero, 0, found.low), np.where(is_zero, 0, found.high))


def _padded(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """PAD, with the zero point."""
    data, amounts = _range_of(operator.inputs[0], known), integers(operator.inputs[1])
    if data is None or amounts is None or amounts.ravel()[-2:].any() or len(operator.inputs) != 2:
        return None
    return Range(np.minimum(data.low, 0), np.maximum(data.high, 0))


def _moved(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """RESHAPE: elements stay in their order, so that channels repeat along a longer last axis."""
    data, channels = _range_of(operator.inputs[0], known), operator.outputs[0].shape[-1]
    if data is None or channels % data.low.size:
        return None
    return Range(np.tile(data.low, channels // data.low.size), np.tile(data.high, channels // data.low.size))


_Rule = Callable[[Operator, Mapping[Tensor, Range]], "Range | None"]
_RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _summed),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "QUANTIZE", "RELU", "RELU6"), _pooled),
    "ADD": _added,
    "PAD": _padded,
    "RESHAPE": _moved,
}
