"""A depthwise convolution of a channel concatenation: one convolution for each part.

    a --+                                    a -- DEPTHWISE[Wa, Ba] --+
        +-- CONCATENATION -- DEPTHWISE[W, B]  =>                      +-- CONCATENATION
    b --+                                    b -- DEPTHWISE[Wb, Bb] --+

Exact: an output channel is the sum of products of one input channel with one channel of the weights, with a bias, a
multiplier and a shift of its own (TFLM reference/depthwiseconv_float.h, reference/integer_ops/depthwise_conv.h). So
weights, bias, scales and zero points are cut along the channels; with a depth multiplier ``m``, the channels
``[start, end)`` of the input make the channels ``[start * m, end * m)`` of the output.

This is the kernel-wise partitioning of SERENITY (Ahn et al., MLSys 2020, section 3.3).
"""

from __future__ import annotations

from ...ir.channels import channels_of, is_per_channel, quantization_of_channels
from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ..channelwise import Part, data_slots, reason_against_parts, run_on_parts
from ..concatenation import CONCATENATION
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_WEIGHT_TYPES = {DType.FLOAT32: DType.FLOAT32, DType.INT8: DType.INT8, DType.INT16: DType.INT8}
"""Of the input's type. Float inputs with int8 weights are quantised by the largest value of all channels together."""


def _refuse(match: Match) -> str | None:
    return reason_against_parts(match) or _reason_against_operands(match) or _reason_against_shapes(match)


def _reason_against_operands(match: Match) -> str | None:
    source, weights, bias = _operands(match.anchor)
    if data_slots(match) != (0,) or source is None or weights is None:
        return "it reads the concatenation as weights"
    if any(tensor is not None and values(tensor) is None for tensor in (weights, bias)):
        return "its weights or bias are computed, sparse, or of a packed type"
    if _WEIGHT_TYPES.get(source.dtype) is not weights.dtype:
        return f"its weights are {weights.dtype.label} and its input is {source.dtype.label}"
    if source.dtype is not match.anchor.outputs[0].dtype:
        return "its output is of another type than its input"
    return None


def _reason_against_shapes(match: Match) -> str | None:
    source, weights, bias = _operands(match.anchor)
    output = match.anchor.outputs[0]
    if source is None or weights is None or not len(source.shape) == len(weights.shape) == len(output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    channels = source.shape[3] * _multiplier(match.anchor)
    if not channels or any(tensor.shape[3] != channels for tensor in (weights, output)) or weights.shape[0] != 1:
        return "its channels do not fit its depth multiplier"
    if bias is not None and bias.shape != (channels,):
        return "its bias is not one value for each channel"
    if not _is_cut_along_channels(weights, 3) or (bias is not None and not _is_cut_along_channels(bias, 0)):
        return "its weights or bias are quantised along another axis than the channels"
    return None


def _is_cut_along_channels(tensor: Tensor, axis: int) -> bool:
    found = tensor.quantization
    if found is None or not is_per_channel(found):
        return True
    return found.axis == axis and found.scale.size == tensor.shape[axis]


def _rewrite(match: Match, edit: Editor) -> None:
    anchor = match.anchor
    multiplier = _multiplier(anchor)

    def operands(part: Part, edit: Editor) -> list[Tensor | None]:
        rest = (_cut(tensor, part, multiplier, edit) for tensor in anchor.inputs[1:])
        return [part.tensor, *rest]

    run_on_parts(match, edit, operands, multiplier)


def _cut(tensor: Tensor | None, part: Part, multiplier: int, edit: Editor) -> Tensor | None:
    found = None if tensor is None else values(tensor)
    if tensor is None or found is None:
        return None
    start, count = part.start * multiplier, part.channels * multiplier
    quantization = quantization_of_channels(tensor.quantization, len(tensor.shape) - 1, start, count)
    return edit.constant(f"{tensor.name}/part{part.index}", channels_of(found, start, count), quantization)


def _multiplier(operator: Operator) -> int:
    return int(operator.option("depthMultiplier", 0))


def _operands(operator: Operator) -> tuple[Tensor | None, ...]:
    return (*operator.inputs, None, None, None)[:3]


SPLIT_DEPTHWISE = Rule(
    "split_depthwise",
    Pattern("depthwise", ("DEPTHWISE_CONV_2D",), {0: CONCATENATION}),
    _refuse,
    always_exact,
    _rewrite,
)
