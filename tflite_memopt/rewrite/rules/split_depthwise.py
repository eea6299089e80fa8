"""A depthwise convolution of a channel concatenation: one convolution for each part.

    a --+                                       a -- DEPTHWISE[Wa, Ba] --+
        +-- CONCATENATION -- DEPTHWISE[W, B] =>                          +-- CONCATENATION
    b --+                                       b -- DEPTHWISE[Wb, Bb] --+

Exact: an output channel is the sum of products of one input channel with one channel of the weights, with a bias, a
multiplier and a shift of its own (TFLM reference/depthwiseconv_float.h, reference/integer_ops/depthwise_conv.h). So
weights, bias, scales and zero points are cut along the channels; with a depth multiplier ``m``, the channels
``[start, end)`` of the input make the channels ``[start * m, end * m)`` of the output.

This is the kernel-wise partitioning of SERENITY (Ahn et al., MLSys 2020, section 3.3).
"""

from __future__ import annotations

from ...ir.channels import is_per_channel
from ...ir.dtype import DType
from ...ir.model import Tensor
from ..channelwise import ChannelReader, ChannelSplit, channel_reader, run_on_parts
from ..concatenation import CONCATENATION
from ..pattern import Match, Pattern
from ..rule import Rule

_WEIGHT_TYPES = {DType.FLOAT32: DType.FLOAT32, DType.INT8: DType.INT8, DType.INT16: DType.INT8}
"""The weights' type by the input's. Not float with int8: such inputs are quantized by the largest of all channels."""


def _check(match: Match) -> ChannelSplit | str:
    reader = channel_reader(match, int(match.anchor.option("depthMultiplier", 0)))
    if isinstance(reader, str):
        return reader
    constants = match.anchor.inputs[1:]
    weights, bias = (*constants, None, None)[:2]
    if not reader.reads_once or weights is None:
        return "it reads the concatenation as weights"
    if len(constants) > 2:
        return "it has more inputs than data, weights and bias"
    cut = [found for tensor in constants if (found := reader.cut(tensor)) is not None]
    if len(cut) < len(constants) or not all(tensor is None or _is_plain(tensor) for tensor in constants):
        return "its weights or bias are computed, sparse, of a packed type, or quantized in a custom way"
    return _reason_against_shapes(reader, weights, bias) or reader.split(reader.data(), *cut)


def _reason_against_shapes(reader: ChannelReader, weights: Tensor, bias: Tensor | None) -> str | None:
    source, output = reader.whole, reader.output
    if _WEIGHT_TYPES.get(source.dtype) is not weights.dtype or source.dtype is not output.dtype:
        return f"its types do not fit together: {source.dtype.label} with weights of {weights.dtype.label}"
    if not len(source.shape) == len(weights.shape) == len(output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    channels = output.shape[3]
    if weights.shape[0] != 1 or weights.shape[3] != channels or (bias is not None and bias.shape != (channels,)):
        return "its weights or bias do not have one value for each channel"
    if not _is_cut_along_channels(weights) or (bias is not None and not _is_cut_along_channels(bias)):
        return "its weights or bias are quantized along another axis than the channels"
    return None


def _is_plain(tensor: Tensor) -> bool:
    found = tensor.quantization
    is_custom = found is not None and found.extras.get("details") is not None
    return tensor.extras.get("sparsity") is None and not is_custom


def _is_cut_along_channels(tensor: Tensor) -> bool:
    found = tensor.quantization
    if found is None or not is_per_channel(found):
        return True
    return found.axis == len(tensor.shape) - 1 and found.scale.size == tensor.shape[-1]


SPLIT_DEPTHWISE = Rule(
    "split_depthwise", Pattern("depthwise", ("DEPTHWISE_CONV_2D",), {0: CONCATENATION}), _check, run_on_parts
)
