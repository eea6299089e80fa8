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

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.model import Operator, Quantization, Tensor
from ...ir.origin import piece_of
from ..concatenation import CONCATENATION, ROLE, channel_parts
from ..pattern import Match, Pattern
from ..rule import Rule, always_exact

_READER = "convolution"
_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


def _is_grouped(match: Match) -> bool:
    """Whether its filters see some of the input channels only; one that sees all of them sums over all parts."""
    x, weights = (*match[_READER].inputs, None)[:2]
    return x is not None and weights is not None and weights.shape[-1:] != x.shape[-1:]


def _refuse(match: Match) -> str | None:
    parts = channel_parts(match)
    if isinstance(parts, str):
        return parts
    operator = match[_READER]
    if len(operator.inputs) not in (2, 3) or len(operator.outputs) != 1 or operator.outputs[0].dtype not in _TYPES:
        return "its inputs, its outputs or its type are not those of the kernels"
    if any(not _is_cuttable(tensor, operator) for tensor in operator.inputs[1:]):
        return "its weights or its bias are no constants, or are quantised in another way than by output channel"
    return _against_groups(operator, parts)


def _is_cuttable(tensor: Tensor | None, operator: Operator) -> bool:
    """Whether it can be cut along its first axis, that of the output channels; a missing bias can."""
    if tensor is None:
        return tensor is not operator.inputs[1]
    if values(tensor) is None or tensor.extras.get("sparsity") is not None or not tensor.shape:
        return False
    quantization, channels = tensor.quantization, operator.outputs[0].shape[-1]
    if tensor.shape[0] != channels or quantization is None or quantization.scale.size <= 1:
        return tensor.shape[0] == channels
    return quantization.axis == 0 and quantization.scale.size == channels and not quantization.extras.get("details")


def _against_groups(operator: Operator, parts: tuple[Tensor, ...]) -> str | None:
    x, weights = operator.inputs[:2]
    assert x is not None, "its pattern has the concatenation there"
    assert weights is not None, "_is_cuttable has seen it"
    depth = weights.shape[-1]
    if x.shape[-1] % depth or weights.shape[0] % (x.shape[-1] // depth):
        return "its channels are not whole groups"
    if any(part.shape[-1] % depth for part in parts):
        return "the concatenation's inputs are not whole groups"
    return None


def _rewrite(match: Match, edit: Editor) -> None:
    operator, output = match[_READER], match[_READER].outputs[0]
    results = []
    for number, (part, start, end) in enumerate(_shares(match)):
        name = f"part{number}"
        shape, origin = (*output.shape[:-1], end - start), piece_of(output, -1, start)
        y = edit.activation(f"{output.name}/{name}", shape, output, origin=origin)
        constants = [None if each is None else _cut(each, start, end, name, edit) for each in operator.inputs[1:]]
        edit.twin(operator, (part, *constants), (y,))
        results.append(y)
    edit.operator("CONCATENATION", results, (output,), "ConcatenationOptions", axis=len(output.shape) - 1)


def _shares(match: Match) -> Iterator[tuple[Tensor, int, int]]:
    """Each part with the first of its output channels and the one after the last."""
    parts = tuple(match[ROLE].present_inputs())
    depth, channels = match[ROLE].outputs[0].shape[-1], match[_READER].outputs[0].shape[-1]
    ends = accumulate((part.shape[-1] * channels // depth for part in parts), initial=0)
    for part, (start, end) in zip(parts, pairwise(ends), strict=True):
        yield part, start, end


def _cut(constant: Tensor, start: int, end: int, name: str, edit: Editor) -> Tensor:
    found = values(constant)
    assert found is not None, "_is_cuttable has seen the values"
    scales = _cut_scales(constant.quantization, start, end)
    return edit.constant(f"{constant.name}/{name}", found[start:end], scales, piece_of(constant, 0, start))


def _cut_scales(quantization: Quantization | None, start: int, end: int) -> Quantization | None:
    """The scales of these channels; the smallest and largest weight may be in others."""
    if quantization is None:
        return None
    extras = {key: None if key in ("min", "max") else value for key, value in quantization.extras.items()}
    if quantization.scale.size <= 1:
        return replace(quantization, extras=extras)
    zero_point = quantization.zero_point
    cut = zero_point if zero_point.size <= 1 else zero_point[start:end]
    return Quantization(quantization.scale[start:end], cut, quantization.axis, extras)


SPLIT_GROUPED_CONVOLUTION = Rule(
    "split_grouped_convolution",
    Pattern(_READER, ("CONV_2D",), {0: CONCATENATION}, where=_is_grouped),
    _refuse,
    always_exact,
    _rewrite,
)
