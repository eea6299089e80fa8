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

from ...ir.channels import channels_of, is_per_channel, quantization_of_channels
from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Tensor
from ...ir.origin import piece_of
from ..channelwise import Part, parts_of, reads_once, reason_against_parts, run_on_parts
from ..concatenation import CONCATENATION
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_WEIGHT_TYPES = {DType.FLOAT32: DType.FLOAT32, DType.INT8: DType.INT8, DType.INT16: DType.INT8}
"""Of the input's type. Float inputs with int8 weights are quantised by the largest value of all channels together."""


def _refuse(match: Match) -> str | None:
    return (
        reason_against_parts(match, _multiplier(match.anchor))
        or _reason_against_types(match)
        or _reason_against_shapes(match)
    )


def _reason_against_types(match: Match) -> str | None:
    source, weights, bias = _operands(match.anchor)
    if not reads_once(match) or source is None or weights is None:
        return "it reads the concatenation as weights"
    if any(tensor is not None and not _is_plain(tensor) for tensor in (weights, bias)):
        return "its weights or bias are computed, sparse, of a packed type, or quantised in a custom way"
    if _WEIGHT_TYPES.get(source.dtype) is not weights.dtype or source.dtype is not match.anchor.outputs[0].dtype:
        return f"its types do not fit together: {source.dtype.label} with weights of {weights.dtype.label}"
    return None


def _reason_against_shapes(match: Match) -> str | None:
    source, weights, bias = _operands(match.anchor)
    output = match.anchor.outputs[0]
    if source is None or weights is None or not len(source.shape) == len(weights.shape) == len(output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    channels = output.shape[3]
    if weights.shape[0] != 1 or weights.shape[3] != channels or (bias is not None and bias.shape != (channels,)):
        return "its weights or bias do not have one value for each channel"
    if not _is_cut_along_channels(weights) or (bias is not None and not _is_cut_along_channels(bias)):
        return "its weights or bias are quantised along another axis than the channels"
    return None


def _is_plain(tensor: Tensor) -> bool:
    found = tensor.quantization
    is_custom = found is not None and found.extras.get("details") is not None
    return values(tensor) is not None and tensor.extras.get("sparsity") is None and not is_custom


def _is_cut_along_channels(tensor: Tensor) -> bool:
    found = tensor.quantization
    if found is None or not is_per_channel(found):
        return True
    return found.axis == len(tensor.shape) - 1 and found.scale.size == tensor.shape[-1]


def _rewrite(match: Match, edit: Editor) -> None:
    multiplier, parts = _multiplier(match.anchor), parts_of(match)
    cut = [[_cut(tensor, part, multiplier, edit) for part in parts] for tensor in match.anchor.inputs[1:]]
    run_on_parts(match, edit, [[part.tensor for part in parts], *cut])


def _cut(tensor: Tensor | None, part: Part, multiplier: int, edit: Editor) -> Tensor | None:
    found = None if tensor is None else values(tensor)
    if tensor is None or found is None:
        return None
    start, count = part.start * multiplier, part.channels * multiplier
    quantization = quantization_of_channels(tensor.quantization, len(tensor.shape) - 1, start, count)
    name, cut = f"{tensor.name}/part{part.index}", channels_of(found, start, count)
    return edit.constant(name, cut, quantization, piece_of(tensor, -1, start))


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
