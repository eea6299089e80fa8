"""Channels that hold the zero point for all inputs, by intervals of stored integers: the proof's own derivation.

It follows the integer arithmetic of kernels, for operators within their contracts, and shares nothing with what
rewrites know of ranges (``model/analysis/ranges.py``). Both ends of an interval belong to it. Of each channel, which is
the last axis:

    sums        the accumulator, exactly: positive weights times the most, negative ones times the least
    rescaling   (accumulator * multiplier) >> shift, with the multiplier of 31 bits. Kernels round it once or twice: one
                step more at either end. It is monotone and keeps 0, so that no rounding crosses the zero point
    a mean      of zeros is 0 at the same scale alone: LiteRT's optimized kernel rounds the zero point at the other one
    clamps      to the stored integers that a fused activation leaves
    copies      the stored integers, whatever the zero point of the output is

Whatever is not here may hold any integer of its type.

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal: common.h, MultiplyByQuantizedMultiplier;
quantization_util.cc, QuantizeMultiplier; reference/add.h, AddElementwise; reference/integer_ops/pooling.h;
tensorflow/lite/kernels/kernel_util.cc, CalculateActivationRangeQuantized; micro/kernels/activations.cc, Relu6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.ir.model import DType, Graph, Operator, Tensor
from .call import constant_of, quantization_of
from .contracts import broken_clause
from .outcome import UndecidedError
from .ring import Value

Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
_LEAST, _MOST = -128, 127
_ONE_BIT_MORE = 1 << 31
_LEFT_SHIFT_OF_ADD = 20
_MOST_SHIFT = 8
"""To the left, of one element: from there on every step but 0 fills 8 bits."""
_WIDEST_SUM = 1 << 15
"""Steps of a sum of two; LiteRT's optimized ADD wraps beyond (optimized/integer_ops/add.h)."""
_SAME = 0
_CLAMPS: Mapping[int, tuple[float | None, float | None]] = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}
"""By fused activation, as the schema numbers them: NONE, RELU, RELU_N1_TO_1, RELU6."""


@dataclass(frozen=True)
class Stored:
    """The least and the most stored integer of each channel."""

    least: Integers
    most: Integers

    def only(self, point: int) -> Mask:
        """Return which channels hold this integer alone."""
        found: Mask = (self.least == point) & (self.most == point)
        return found


class _UnknownError(Exception):
    """The output may hold any integer."""


def silent_channels(graph: Graph) -> dict[Tensor, Mask]:
    """Return the channels that hold the zero point for all inputs, of each tensor of 8 bits that has any."""
    found = {tensor: each.only(_point(tensor)) for tensor, each in stored_in(graph).items()}
    return {tensor: mask for tensor, mask in found.items() if mask.any()}


def stored_in(graph: Graph) -> dict[Tensor, Stored]:
    """Return the interval of each computed tensor of 8 bits that is followed."""
    known: dict[Tensor, Stored] = {}
    for operator in graph.operators:
        rule = RULES.get(operator.name)
        if rule is None or len(operator.outputs) != 1 or broken_clause(operator) is not None:
            continue
        try:
            known[operator.outputs[0]] = rule(operator, known)
        except _UnknownError:
            continue
    return known


def _quantized(tensor: Tensor | None) -> tuple[float, int]:
    """Return the scale and the zero point of an activation of 8 bits."""
    if tensor is None or tensor.dtype is not DType.INT8 or tensor.is_constant or not tensor.shape:
        raise _UnknownError
    scales, points, _ = quantization_of(tensor)
    if len(scales) != 1 or len(points) != 1:
        raise _UnknownError
    return scales[0], points[0]


def _point(tensor: Tensor) -> int:
    return _quantized(tensor)[1]


def _of(tensor: Tensor | None, known: Mapping[Tensor, Stored]) -> Stored:
    _quantized(tensor)
    assert tensor is not None
    channels = tensor.shape[-1]
    return known.get(tensor) or Stored(np.full(channels, _LEAST, np.int64), np.full(channels, _MOST, np.int64))


def _constant(tensor: Tensor | None) -> Value:
    if tensor is None or not tensor.is_constant:
        raise _UnknownError
    try:
        return constant_of(tensor)
    except UndecidedError:
        raise _UnknownError from None


def _multiplier(scale: float, most_shift: int) -> tuple[int, int]:
    """Return a factor of 31 bits and a shift to the right: QuantizeMultiplier."""
    fraction, exponent = frexp(scale)
    factor = int(np.floor(fraction * _ONE_BIT_MORE + 0.5))
    if factor == _ONE_BIT_MORE:
        factor, exponent = factor >> 1, exponent + 1
    if exponent > most_shift:
        raise _UnknownError
    return (0, 31) if exponent < -31 else (factor, 31 - exponent)


def _rescaled(least: Integers, most: Integers, scales: Any, most_shift: int = 0) -> tuple[Integers, Integers]:
    """Return the ends after rescaling; ``most_shift``: to the left, beyond which accumulators overflow."""
    made = [_multiplier(float(scale), most_shift) for scale in np.ravel(scales)]
    factors, shifts = (np.asarray(each, np.int64) for each in zip(*made, strict=True))
    low, high = ((least * factors) >> shifts) - 1, -((-most * factors) >> shifts) + 1
    return np.where(least >= 0, np.maximum(low, 0), low), np.where(most <= 0, np.minimum(high, 0), high)


def _clamped(operator: Operator, least: Integers, most: Integers, activation: int | None = None) -> Stored:
    """Return what the activation, by default the fused one, leaves of stored integers."""
    scale, point = _quantized(operator.outputs[0])
    kind = int(operator.option("fusedActivationFunction") or 0) if activation is None else activation
    if kind not in _CLAMPS:
        raise _UnknownError
    low, high = _CLAMPS[kind]
    ends = _end(low, _LEAST, scale, point), _end(high, _MOST, scale, point)
    return Stored(np.clip(least, *ends), np.clip(most, *ends))


def _end(number: float | None, otherwise: int, scale: float, point: int) -> int:
    """Return the stored integer of a number at which an activation clamps."""
    if number is None:
        return otherwise
    steps = float(np.float32(number) / np.float32(scale))
    if abs(steps - np.floor(steps) - 0.5) < 1e-3:
        raise _UnknownError  # halves are rounded away from 0, or to the even one
    return int(np.clip(point + np.rint(np.clip(steps, -1e6, 1e6)), _LEAST, _MOST))


def _products(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED."""
    data, weights, output = operator.inputs[0], operator.inputs[1], operator.outputs[0]
    (scale_in, point_in), (scale_out, point_out) = _quantized(data), _quantized(output)
    scales, points, _ = quantization_of(weights)
    if not scales or any(points):
        raise _UnknownError
    x, filters = _of(data, known), _constant(weights).astype(np.int64)
    low, high = x.least - point_in, x.most - point_in
    if operator.name != "FULLY_CONNECTED" and int(operator.option("padding") or 0) == _SAME:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    if operator.name == "DEPTHWISE_CONV_2D":
        low, high = (np.repeat(each, int(operator.option("depthMultiplier"))) for each in (low, high))
        filters = np.moveaxis(filters, -1, 0)
        low, high = (each.reshape(-1, 1, 1, 1) for each in (low, high))
    elif filters.shape[-1] != low.size:
        raise _UnknownError  # in groups
    up, down, outputs = np.maximum(filters, 0), np.minimum(filters, 0), filters.shape[0]
    least, most = ((up * a + down * b).reshape(outputs, -1).sum(1) for a, b in ((low, high), (high, low)))
    if len(operator.inputs) > 2 and operator.inputs[2] is not None:
        bias = _constant(operator.inputs[2]).ravel()
        least, most = least + bias, most + bias
    if least.min() < -_ONE_BIT_MORE or most.max() >= _ONE_BIT_MORE:
        raise _UnknownError  # the accumulator wraps
    least, most = _rescaled(least, most, [scale_in * each / scale_out for each in scales])
    return _clamped(operator, least + point_out, most + point_out)


def _requantized(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """QUANTIZE, RELU, and MEAN over other axes than the last, whose sum is divided by what it has of elements."""
    (scale_in, point_in), (scale_out, point_out) = _quantized(operator.inputs[0]), _quantized(operator.outputs[0])
    x = _of(operator.inputs[0], known)
    if operator.name == "MEAN":
        axes, rank = _constant(operator.inputs[1]).ravel(), len(operator.required(0).shape)
        if any(int(axis) in (-1, rank - 1) for axis in axes):
            raise _UnknownError
    least, most = _rescaled(x.least - point_in, x.most - point_in, scale_in / scale_out, _MOST_SHIFT)
    if operator.name == "MEAN" and scale_in != scale_out:
        least, most = np.minimum(least, -1) - 1, np.maximum(most, 1) + 1
    return _clamped(operator, least + point_out, most + point_out, 1 if operator.name == "RELU" else None)


def _selected(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """MAX_POOL_2D, AVERAGE_POOL_2D, RELU6: integers between those of the input, clamped; TFLM rescales none of them."""
    if _quantized(operator.inputs[0]) != _quantized(operator.outputs[0]):
        raise _UnknownError
    x = _of(operator.inputs[0], known)
    return _clamped(operator, x.least, x.most, 3 if operator.name == "RELU6" else None)


def _sum_of_two(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """ADD: both sides at twice the larger scale and 20 bits more, then their sum at the output's."""
    sides, output = operator.inputs[:2], operator.outputs[0]
    (one, _), (other, _), (scale_out, point_out) = map(_quantized, (*sides, output))
    if any(side is None or side.shape != output.shape for side in sides):
        raise _UnknownError
    if (one + other) / scale_out * (_MOST - _LEAST + 1) >= _WIDEST_SUM:
        raise _UnknownError
    twice, ends = 2 * max(one, other), []
    for side, scale in zip(sides, (one, other), strict=True):
        x, point = _of(side, known), _quantized(side)[1]
        least, most = ((end - point) << _LEFT_SHIFT_OF_ADD for end in (x.least, x.most))
        ends.append(_rescaled(least, most, scale / twice))
    least, most = (a + b for a, b in zip(*ends, strict=True))
    least, most = _rescaled(least, most, twice / (scale_out * (1 << _LEFT_SHIFT_OF_ADD)))
    return _clamped(operator, least + point_out, most + point_out)


def _padded(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """PAD: the zero point of the output stands around, which the contract makes that of the input."""
    x, point = _of(operator.inputs[0], known), _point(operator.outputs[0])
    if _constant(operator.inputs[1]).ravel()[-2:].any():
        raise _UnknownError
    return Stored(np.minimum(x.least, point), np.maximum(x.most, point))


def _copied(operator: Operator, known: Mapping[Tensor, Stored]) -> Stored:
    """RESHAPE: bytes in their order; along a last axis that is as long, or a multiple, channels repeat."""
    x, output = _of(operator.inputs[0], known), operator.outputs[0]
    _quantized(output)
    times, rest = divmod(output.shape[-1], x.least.size)
    if rest:
        raise _UnknownError
    return Stored(np.tile(x.least, times), np.tile(x.most, times))


RULES: Mapping[str, Callable[[Operator, Mapping[Tensor, Stored]], Stored]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _products),
    **dict.fromkeys(("MEAN", "QUANTIZE", "RELU"), _requantized),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "RELU6"), _selected),
    "ADD": _sum_of_two,
    "PAD": _padded,
    "RESHAPE": _copied,
}
"""By kind: the interval of the output, from those of the inputs."""
