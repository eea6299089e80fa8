"""A convolution of a concatenation becomes one convolution for each part, and their sum.

    a   b   c                    a       b       c
     \\  |  /                     |       |       |
    CONCATENATION              CONV    CONV    CONV      weights: the input channels of the part
        |              =>         \\    /       /
      CONV                         ADD       /           bias in the first CONV only
        |                            \\     /
        y                              ADD               activation in the last ADD only
                                        |
                                        y

CONV is CONV_2D, FULLY_CONNECTED or TRANSPOSE_CONV. Each part can be used up and freed on its own: the whole never
exists. This is the channel-wise partitioning of SERENITY (Ahn et al., MLSys 2020, section 3.3, equations 3 to 6).

Exactness. float32 *reassociates*: the same products are summed in another order; see ``FLOAT_ERROR``. Integers
*approximate*: each partial sum and each running sum is rounded once more; partial_scales.py says to which scale.

Kernels. TFLM (conv.cc, fully_connected.cc, transpose_conv.cc) accepts a missing bias. LiteRT's CONV_2D does not
(conv.cc: "has_bias was not true"), and for int16 the type of the bias chooses the width of the accumulator. So the
other parts get a bias of zeros, one tensor for all of them, where there is a bias at all. ADD (add.cc) clamps to the
same activations, and rescales each of its inputs from its own scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf

import numpy as np

from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.making import Array
from ...ir.model import Operator, Quantization, Tensor
from ..concatenation import CONCATENATION, ROLE, channel_parts
from ..pattern import Match, Pattern
from ..rule import Exactness, Rule
from .partial_scales import Floats, Output, Values, sums_of

FLOAT_ERROR = 1e-5
"""How far outputs of float32 may be off, as a share of the largest magnitude in the output."""

_READER = "convolution"
_WEIGHTS = 1
_TYPES = (
    (DType.FLOAT32, DType.FLOAT32),
    (DType.INT8, DType.INT8),
    (DType.INT16, DType.INT8),
)
"""Activations and weights that TFLM's three kernels take. int4 weights are packed, and not cut here."""
_CLAMPS = {0: (-inf, inf), 1: (0.0, inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""NONE, RELU, RELU_N1_TO_1, RELU6: the activations that TFLM's ADD has, and what they clamp to."""


@dataclass(frozen=True)
class _Slots:
    """Where an operator's inputs are."""

    data: int
    bias: int


_SLOTS = {
    "CONV_2D": _Slots(0, 2),
    "FULLY_CONNECTED": _Slots(0, 2),
    "TRANSPOSE_CONV": _Slots(2, 3),
}


def _refuse(match: Match) -> str | None:
    parts = channel_parts(match)
    if isinstance(parts, str):
        return parts
    reader = match[_READER]
    return _against_operator(reader) or _against_weights(reader) or _against_bias(reader)


def _against_operator(reader: Operator) -> str | None:
    needed = reader.inputs[: _SLOTS[reader.name].bias]
    if len(needed) < _SLOTS[reader.name].bias or None in needed:
        return "it lacks an input"
    x, weights, output = _input(reader, _SLOTS[reader.name].data), _input(reader, _WEIGHTS), reader.outputs[0]
    if reader.options is None or len(reader.outputs) != 1:
        return "it has no options, or more than one output"
    if (x.dtype, weights.dtype) not in _TYPES or output.dtype is not x.dtype:
        return f"its types are {x.dtype.label}, {weights.dtype.label} (weights) and {output.dtype.label} (output)"
    if reader.option("fusedActivationFunction", 0) not in _CLAMPS:
        return "its fused activation is one that ADD does not have"
    if reader.option("weightsFormat", 0):
        return "its weights are shuffled"
    return None


def _against_weights(reader: Operator) -> str | None:
    x, weights = _input(reader, _SLOTS[reader.name].data), _input(reader, _WEIGHTS)
    if values(weights) is None or weights.extras.get("sparsity") is not None:
        return "its weights are not a dense constant"
    if weights.shape[-1] != x.shape[-1]:
        return "it is grouped, or flattens its input: it does not sum over all channels"
    if x.dtype is DType.FLOAT32:
        return None
    if not all(_is_per_tensor(tensor.quantization) for tensor in (x, reader.outputs[0])):
        return "its input or output has no single scale"
    return _against_scales(weights)


def _against_scales(weights: Tensor) -> str | None:
    quantization = weights.quantization
    if quantization is None or quantization.extras.get("details") is not None:
        return "its weights are not quantised, or in a custom way"
    if quantization.scale.size != 1 and (quantization.axis != 0 or quantization.scale.size != weights.shape[0]):
        return "its weights are not quantised by tensor or by output channel"
    if quantization.zero_point.any() or not (quantization.scale > 0).all():
        return "its weights have zero points, or scales of zero"
    return None


def _against_bias(reader: Operator) -> str | None:
    bias = _bias(reader)
    return "its bias is not a constant" if bias is not None and values(bias) is None else None


def _exactness(match: Match) -> Exactness:
    return "reassociates" if match[_READER].outputs[0].dtype is DType.FLOAT32 else "approximates"


def _rewrite(match: Match, edit: Editor) -> None:
    reader = match[_READER]
    parts = tuple(match[ROLE].present_inputs())
    output, activation = reader.outputs[0], reader.option("fusedActivationFunction", 0)
    weights = _cut(_input(reader, _WEIGHTS), [part.shape[-1] for part in parts])
    of_parts, of_sums = _quantizations(reader, weights)
    total = _partial(reader, edit, 0, parts[0], weights[0], of_parts[0])
    for number in range(1, len(parts)):
        term = _partial(reader, edit, number, parts[number], weights[number], of_parts[number])
        is_last = number == len(parts) - 1
        fields = {"fusedActivationFunction": activation if is_last else 0}
        if output.dtype is DType.INT16:
            fields["potScaleInt16"] = False  # scales are no powers of two: LiteRT would take another kernel
        result = (
            output
            if is_last
            else edit.activation(f"{output.name}/sum{number}", output.shape, output, of_sums[number - 1])
        )
        edit.operator("ADD", (total, term), (result,), "AddOptions", **fields)
        total = result


def _partial(
    reader: Operator, edit: Editor, number: int, part: Tensor, weights: Array, quantization: Quantization | None
) -> Tensor:
    """Write the convolution of one part; its output."""
    slots, whole, output = _SLOTS[reader.name], _input(reader, _WEIGHTS), reader.outputs[0]
    name = f"{output.name}/part{number}"
    result = edit.activation(name, output.shape, output, quantization)
    inputs = list(reader.inputs[: slots.bias])
    inputs[slots.data] = part
    inputs[_WEIGHTS] = edit.constant(f"{whole.name}/part{number}", weights, _without_range(whole.quantization))
    bias = _bias(reader) if number == 0 else _other_bias(reader, edit)
    if len(reader.inputs) > slots.bias:
        inputs.append(bias)
    edit.twin(reader, inputs, (result,), fusedActivationFunction=0)
    return result


def _other_bias(reader: Operator, edit: Editor) -> Tensor | None:
    """The bias of all parts but the first."""
    bias = _bias(reader)
    found = None if bias is None else values(bias)
    return None if bias is None or found is None else edit.constant(f"{bias.name}/none", found * 0, bias.quantization)


def _cut(weights: Tensor, depths: Sequence[int]) -> list[Array]:
    """The weights of each part: its channels of the last axis."""
    found = values(weights)
    assert found is not None, "_refuse has seen the values"
    return [found[..., start:end] for start, end in pairwise(accumulate(depths, initial=0))]


def _quantizations(
    reader: Operator, weights: Sequence[Array]
) -> tuple[list[Quantization | None], list[Quantization | None]]:
    """For the parts, and for the running sums but the last; none for float32."""
    if reader.outputs[0].dtype is DType.FLOAT32:
        return [None] * len(weights), [None] * len(weights)
    x, scales = _held(_input(reader, _SLOTS[reader.name].data)), _scales(_input(reader, _WEIGHTS))
    bias = _bias(reader)
    integers = None if bias is None else values(bias)
    constant: Floats = np.zeros(len(scales)) if integers is None else integers.ravel() * scales * x.scale
    reals = [part.reshape(len(part), -1) * scales[:, None] for part in weights]
    parts = [sums_of(x, real, constant * (number == 0)) for number, real in enumerate(reals)]
    *running, total = accumulate(parts)
    clamp = _CLAMPS[reader.option("fusedActivationFunction", 0)]
    output = Output(_held(reader.outputs[0]), clamp, total, x.scale * float(scales.min()))
    return [output.quantization(each) for each in parts], [output.quantization(each) for each in running[1:]]


def _scales(weights: Tensor) -> Floats:
    """One scale an output channel."""
    assert weights.quantization is not None, "_refuse has seen it"
    return np.broadcast_to(weights.quantization.scale.astype(np.float64), weights.shape[:1])


def _held(tensor: Tensor) -> Values:
    assert tensor.quantization is not None, "_refuse has seen it"
    scale, zero_point = float(tensor.quantization.scale[0]), int(tensor.quantization.zero_point[0])
    limits = np.iinfo(tensor.dtype.label)
    return Values(scale, zero_point, int(limits.min), int(limits.max))


def _is_per_tensor(quantization: Quantization | None) -> bool:
    if quantization is None or not quantization.scale.size == quantization.zero_point.size == 1:
        return False
    return bool(quantization.scale[0] > 0)


def _without_range(quantization: Quantization | None) -> Quantization | None:
    """Scales stay those of the output channels; the smallest and largest weight may be in another part."""
    if quantization is None:
        return None
    extras = {key: None if key in ("min", "max") else value for key, value in quantization.extras.items()}
    return Quantization(quantization.scale, quantization.zero_point, quantization.axis, extras)


def _input(reader: Operator, slot: int) -> Tensor:
    tensor = reader.inputs[slot]
    assert tensor is not None, "a convolution has data and weights"
    return tensor


def _bias(reader: Operator) -> Tensor | None:
    slot = _SLOTS[reader.name].bias
    return reader.inputs[slot] if slot < len(reader.inputs) else None


def _rule(readers: Sequence[str], slot: int) -> Rule:
    pattern = Pattern(_READER, readers, {slot: CONCATENATION})
    return Rule("partial_convolution", pattern, _refuse, _exactness, _rewrite)


PARTIAL_CONVOLUTION = _rule(("CONV_2D", "FULLY_CONNECTED"), 0)
PARTIAL_TRANSPOSED_CONVOLUTION = _rule(("TRANSPOSE_CONV",), 2)
