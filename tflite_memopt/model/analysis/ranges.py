"""Channels that hold the zero point for all inputs, by interval arithmetic in real numbers.

A sum of products needs none of them, so that a rewrite deletes them (``search/rewrite/dead_channels.py``). Of each
channel, the last axis, the least and greatest distance from the zero point, over all inputs in range:

    sum of products    weights of either sign times the ends of the data's range, or 0 for padding, and the bias
    rescaling          within two steps of the real product, whatever a kernel's rounding, and clamped by the activation
    what moves         the same range, between tensors of one quantization; joined with 0 by padding

So a ReLU whose sum is never positive by two steps gives the zero point, the activation's least value. Only integers of
8 bits, whose sums fit 32 bits, and scales below 1, which no kernel shifts to the left. What is not in here may be
anything.

The proof has a derivation of its own, in stored integers (``evidence/proof/ranges.py``), and takes a channel for
constant only where both agree. ``scripts/fuzz ranges`` tries both against the runtimes.

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/common.h, MultiplyByQuantizedMultiplier, and
kernels/kernel_util.cc, CalculateActivationRangeQuantized; CMSIS-NN 4ab83cc3, arm_nnsupportfunctions.h,
arm_nn_requantize; esp-nn d45b843c, src/common/common_functions.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..ir.model import DType, Graph, Operator, Tensor
from ..ir.tensors import Affine, affine_of, integers, quantized_alike, values

Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.float64]
_STEPS = 2.0
"""By which a kernel's rescaling may differ from the real product."""
_FITS = 2.0**31
_BELOW_ONE = 0.99
"""The largest scale of a sum: one that is rounded to 1 is shifted to the left."""
_LEAST_SCALE = 1e-30
"""Scales beyond, and those that are no numbers, are of damaged files."""
_MOST_ENLARGED = 2.0**5
"""The largest scale of one element, which fills 8 bits. Kernels overflow from 2**23 on; LiteRT's optimized ADD takes
sums of two for 16 bits."""
CLAMPS: Mapping[int, tuple[float, float]] = {0: (-np.inf, np.inf), 1: (0.0, np.inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""The numbers that a fused activation leaves: NONE, RELU, RELU_N1_TO_1, RELU6. The others have no kernels here."""


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
    return {tensor: each.is_zero for tensor, each in ranges_of(graph).items() if each.is_zero.any()}


def ranges_of(graph: Graph) -> dict[Tensor, Range]:
    """Return the range of each computed tensor of 8 bits that is followed; any other may hold anything."""
    known: dict[Tensor, Range] = {}
    for operator in graph.operators:
        rule = RULES.get(operator.name)
        if rule is None or len(operator.outputs) != 1 or _affine(operator.outputs[0]) is None:
            continue
        found = rule(operator, known)
        if found is not None:
            known[operator.outputs[0]] = found
    return known


def _affine(tensor: Tensor | None) -> Affine | None:
    """Return the quantization of an activation of 8 bits with one scale."""
    if tensor is None or tensor.dtype is not DType.INT8 or not tensor.shape or tensor.is_constant:
        return None
    found = affine_of(tensor)
    return found if found is not None and _LEAST_SCALE < found.scale < 1 / _LEAST_SCALE else None


def _range_of(tensor: Tensor | None, known: Mapping[Tensor, Range]) -> Range | None:
    affine = _affine(tensor)
    if tensor is None or affine is None:
        return None
    return known.get(tensor) or Range(
        np.full(tensor.shape[-1], -128.0 - affine.zero_point), np.full(tensor.shape[-1], 127.0 - affine.zero_point)
    )


def _left_by(operator: Operator, low: _Numbers, high: _Numbers, activation: int | None = None) -> Range | None:
    """Return what the activation, by default the fused one, and 8 bits leave of a range of distances."""
    output = _affine(operator.outputs[0])
    kind = int(operator.option("fusedActivationFunction", 0)) if activation is None else activation
    if output is None or kind not in CLAMPS:
        return None
    # A clamp between two steps is rounded, by some kernels to the even one: then its end is not known.
    ends = [end / np.float32(output.scale) for end in CLAMPS[kind]]
    if any(np.isfinite(end) and abs(abs(end) % 1 - 0.5) < 1e-3 for end in ends):
        return None
    least, most = (float(np.round(end)) for end in ends)
    within = max(-128.0 - output.zero_point, least), min(127.0 - output.zero_point, most)
    return Range(np.clip(low, *within), np.clip(high, *within))


def _rescaled(low: _Numbers, high: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return the steps that kernels may make of real numbers."""
    return np.floor(low) - _STEPS, np.ceil(high) + _STEPS


def _summed(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED."""
    source, weights = operator.inputs[0], operator.inputs[1]
    data, affine, output = _range_of(source, known), _affine(source), _affine(operator.outputs[0])
    array = None if weights is None or weights.dtype is not DType.INT8 else values(weights)
    quantization = None if weights is None else weights.quantization
    if data is None or affine is None or output is None or array is None or quantization is None:
        return None
    factors = _by_output(operator, array.astype(np.float64), data)
    factor = quantization.scale.astype(np.float64) * (affine.scale / output.scale)
    channels = operator.outputs[0].shape[-1]
    if factors is None or factors[0].shape[0] != channels or factor.size not in (1, channels):
        return None
    if quantization.zero_point.any() or factor.max() > _BELOW_ONE:
        return None
    filters, low, high = factors
    one, other = filters * low, filters * high
    least, most = (each.reshape(channels, -1).sum(1) for each in (np.minimum(one, other), np.maximum(one, other)))
    bias = operator.operand(2)
    if bias is not None:
        added = integers(bias)
        if bias.dtype is not DType.INT32 or added is None or added.size != channels:
            return None
        least, most = least + added, most + added
    if max(abs(least).max(), abs(most).max()) >= _FITS:
        return None
    return _left_by(operator, *_rescaled(least * factor, most * factor))


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


def _requantized(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """QUANTIZE, RELU, and MEAN over other axes: each channel from its own alone, at another scale."""
    source, affine, output = operator.inputs[0], _affine(operator.inputs[0]), _affine(operator.outputs[0])
    data = _range_of(source, known)
    if data is None or source is None or affine is None or output is None:
        return None
    if data.low.size != operator.outputs[0].shape[-1] or affine.scale / output.scale > _MOST_ENLARGED:
        return None
    if operator.name == "MEAN":
        axes = integers(operator.inputs[1])
        if axes is None or len(source.shape) - 1 in axes % len(source.shape):
            return None
    factor = affine.scale / output.scale
    low, high = _rescaled(data.low * factor, data.high * factor)
    # LiteRT's optimized MEAN rounds the zero point at the output's scale: a step aside, of zeros too.
    still = data.is_zero & (operator.name != "MEAN" or affine.scale == output.scale)
    return _left_by(operator, np.where(still, 0, low), np.where(still, 0, high), 1 if operator.name == "RELU" else None)


def _kept(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """MAX_POOL_2D, AVERAGE_POOL_2D, RELU6: of the same integers, and clamped. TFLM's RELU6 never rescales."""
    data = _moved(operator, known)
    if data is None or data.low.size != operator.outputs[0].shape[-1]:
        return None
    return _left_by(operator, data.low, data.high, 3 if operator.name == "RELU6" else None)


def _added(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """ADD of two activations of one shape."""
    one, other = (_range_of(tensor, known) for tensor in operator.inputs[:2])
    output, scale = operator.outputs[0], _affine(operator.outputs[0])
    tensors = [tensor for tensor in operator.inputs if tensor is not None and tensor.shape == output.shape]
    if one is None or other is None or scale is None or len(tensors) != 2:
        return None
    scales = [each.scale / scale.scale for each in map(_affine, tensors) if each is not None]
    if max(scales) > _MOST_ENLARGED:
        return None
    first, second = scales
    low, high = _rescaled(one.low * first + other.low * second, one.high * first + other.high * second)
    is_zero = one.is_zero & other.is_zero
    return _left_by(operator, np.where(is_zero, 0, low), np.where(is_zero, 0, high))


def _padded(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """PAD, with the zero point."""
    data, amounts = _moved(operator, known), integers(operator.inputs[1])
    if data is None or amounts is None or amounts.ravel()[-2:].any() or len(operator.inputs) != 2:
        return None
    return Range(np.minimum(data.low, 0), np.maximum(data.high, 0))


def _moved(operator: Operator, known: Mapping[Tensor, Range]) -> Range | None:
    """RESHAPE: bytes stay in their order, so that channels repeat along a longer last axis; of one quantization."""
    source, output = operator.inputs[0], operator.outputs[0]
    data, channels = _range_of(source, known), output.shape[-1]
    if source is None or data is None or channels % data.low.size:
        return None
    if not quantized_alike(source.quantization, output.quantization):
        return None
    return Range(np.tile(data.low, channels // data.low.size), np.tile(data.high, channels // data.low.size))


_Rule = Callable[[Operator, Mapping[Tensor, Range]], "Range | None"]
RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _summed),
    **dict.fromkeys(("MEAN", "QUANTIZE", "RELU"), _requantized),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "RELU6"), _kept),
    "ADD": _added,
    "PAD": _padded,
    "RESHAPE": _moved,
}
"""By kind: the range of the output, from those of the inputs."""
