"""A grouped convolution of a concatenation whose parts are whole groups becomes one convolution for each part.

    a --+                            a -- CONV_2D (its groups) --+
        +-- CONCATENATION -- CONV_2D  =>                         +-- CONCATENATION
    b --+                            b -- CONV_2D (its groups) --+

A filter of a grouped convolution has fewer channels than the input, and sees those of its group alone: output channels
belong to parts, as with a depthwise convolution, and nothing is summed (kernel-wise partitioning of SERENITY, section
3.3, equations 7 and 8).

Exact: each output value is the same sum in the same order, with the scales of its channel and of the whole output
(tensorflow/lite/kernels/internal/reference/conv.h and integer_ops/conv.h).
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Tensor
from ..channelwise import ChannelReader, ChannelSplit, channel_reader, run_on_parts
from ..concatenation import CONCATENATION
from ..constant_pieces import is_cuttable
from ..pattern import Match, Pattern
from ..rule import Rule

_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


def _check(match: Match) -> ChannelSplit | str | None:
    x, weights = (*match.anchor.inputs, None)[:2]
    if x is None or weights is None or weights.shape[-1:] == x.shape[-1:]:
        return None  # Its filters see all channels, so that it sums over all parts: partial_convolution.py.
    reader = channel_reader(match, multiplier=None)
    if isinstance(reader, str):
        return reader
    constants = match.anchor.inputs[1:]
    if len(constants) > 2 or reader.output.dtype not in _TYPES:
        return "its inputs, its outputs or its type are not those of the kernels"
    channels = reader.output.shape[-1]
    cut = [found for tensor in constants if (found := reader.cut(tensor, axis=0)) is not None]
    if len(cut) < len(constants) or not all(tensor is None or is_cuttable(tensor, 0, channels) for tensor in constants):
        return "its weights or its bias are no constants, or are quantized in another way than by output channel"
    return _reason_against_groups(reader, weights) or reader.split(reader.data(), *cut)


def _reason_against_groups(reader: ChannelReader, weights: Tensor) -> str | None:
    depth, channels = weights.shape[-1], reader.whole.shape[-1]
    if channels % depth or weights.shape[0] % (channels // depth):
        return "its channels are not whole groups"
    if any(part.channels % depth for part in reader.parts):
        return "the concatenation's inputs are not whole groups"
    return None


SPLIT_GROUPED_CONVOLUTION = Rule(
    "split_grouped_convolution", Pattern("convolution", ("CONV_2D",), {0: CONCATENATION}), _check, run_on_parts
)
