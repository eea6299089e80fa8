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

Exactness. float32 *reassociates*: the same products are summed in another order; see FLOAT_ERROR. Integers
*approximate*: each partial sum and each running sum is rounded once more; partial_scales.py says to which scale.

A grouped convolution does not sum over all channels: see split_grouped_convolution.py.

Kernels. TFLM (conv.cc, fully_connected.cc, transpose_conv.cc) accepts a missing bias. LiteRT's CONV_2D does not
(conv.cc: "has_bias was not true"), and for int16 the type of the bias chooses the width of the accumulator. So the
other parts get a bias of zeros, one tensor for all of them, where there is a bias at all. ADD (add.cc) clamps to the
same activations, and rescales each of its inputs from its own scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf

import numpy as np

from ...ir.change import Exactness
from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.making import Array
from ...ir.model import Operator, Quantization, Tensor
from ...ir.origin import piece_of
from ...ir.quantization import affine_of
from ..concatenation import CONCATENATION, ROLE, ChannelPart, channel_parts
from ..pattern import Match, Pattern
from ..rule import Rule
from .partial_scales import Floats, Output, Values, sums_of

FLOAT_ERROR = 1e-4
"""How far an output of float32 may be off, as a share of the largest magnitude in that output.

Two orders of n products differ by at most 2 n u sum|w x|, u = 2**-24 (Higham, Accuracy and Stability of Numerical
Algorithms, 3.1). Roundings are as often up as down, so that sqrt(n) takes the place of n: about 4e-6 of the largest
output for n = 4608 (3x3 windows, 512 channels). This leaves room for what 25 such layers add up to. A bound relative to
each single value would be none: sums that cancel have no correct digit in either order.
"""

_WEIGHTS = 1
_TYPES = (
    (DType.FLOAT32, DType.FLOAT32),
    (DType.INT8, DType.INT8),
    (DType.INT16, DType.INT8),
)
"""Activations and weights that TFLM's three kernels take. int4 weights are packed, and not cut here."""
_CLAMPS = {0: (-inf, inf), 1: (0.0, inf), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""NONE, RELU, RELU_N1_TO_1, RELU6: the activations that TFLM's ADD has, and what they clamp to."""
_DATA_SLOTS = {"CONV_2D": 0, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 2}


@dataclass(frozen=True)
class _Operands:
    """What a convolution reads and writes. The bias may be missing; it comes after data and weights."""

    operator: Operator
    data_slot: int
    x: Tensor
    weights: Tensor
    bias: Tensor | None

    @property
    def bias_slot(self) -> int:
        return max(self.data_slot, _WEIGHTS) + 1

    @property
    def output(self) -> Tensor:
        return self.operator.outputs[0]

    @property
    def activation(self) -> int:
        return int(self.operator.option("fusedActivationFunction", 0))


@dataclass(frozen=True)
class _Integers:
    """What the integers of input and output stand for, and one scale of the weights for each output channel."""

    x: Values
    y: Values
    weights: Floats


@dataclass(frozen=True)
class PartialSums:
    """A convolution to run on each part of a concatenation: its operands and the values of its constants.

    ``weights`` has the output channels first and the input channels last. ``integers`` is None for float32.
    """

    reader: _Operands
    parts: Sequence[ChannelPart]
    weights: Array
    bias: Array | None
    integers: _Integers | None


def _check(match: Match) -> PartialSums | str:
    parts = channel_parts(match[ROLE])
    if isinstance(parts, str):
        return parts
    reader = _operands(match.anchor)
    if isinstance(reader, str):
        return reader
    weights, bias = values(reader.weights), None if reader.bias is None else values(reader.bias)
    if weights is None or reader.weights.extras.get("sparsity") is not None:
        return "its weights are not a dense constant"
    if weights.shape[-1] != reader.x.shape[-1]:
        return "it is grouped, or flattens its input: it does not sum over all channels"
    if reader.bias is not None and (bias is None or bias.size != weights.shape[0]):
        return "its bias is not one constant for each output channel"
    integers = None if reader.x.dtype is DType.FLOAT32 else _integers(reader)
    return integers if isinstance(integers, str) else PartialSums(reader, parts, weights, bias, integers)


def _operands(operator: Operator) -> _Operands | str:
    """The operator's tensors, or what is wrong with them whatever their values."""
    slot = _DATA_SLOTS[operator.name]
    bias_slot = max(slot, _WEIGHTS) + 1
    x, weights, bias = (
        operator.inputs[each] if each < len(operator.inputs) else None for each in (slot, _WEIGHTS, bias_slot)
    )
    is_complete = None not in operator.inputs[:bias_slot] and len(operator.outputs) == 1
    if x is None or weights is None or operator.options is None or not is_complete:
        return "it lacks an input or its options, or has more than one output"
    reader = _Operands(operator, slot, x, weights, bias)
    types = x.dtype, weights.dtype, reader.output.dtype
    if types[:2] not in _TYPES or reader.output.dtype is not x.dtype:
        return "its types are {}, {} (weights) and {} (output)".format(*(dtype.label for dtype in types))
    if reader.activation not in _CLAMPS:
        return "its fused activation is one that ADD does not have"
    return "its weights are shuffled" if operator.option("weightsFormat", 0) else reader


def _integers(reader: _Operands) -> _Integers | str:
    """What its integers stand for, or why they cannot be summed in parts."""
    x, y = _values_of(reader.x), _values_of(reader.output)
    if x is None or y is None:
        return "its input or output has no single scale"
    weights, quantization = reader.weights, reader.weights.quantization
    if quantization is None or quantization.extras.get("details") is not None:
        return "its weights are not quantized, or in a custom way"
    scale = quantization.scale
    if scale.size != 1 and (quantization.axis != 0 or scale.size != weights.shape[0]):
        return "its weights are not quantized by tensor or by output channel"
    if quantization.zero_point.any() or not (scale > 0).all():
        return "its weights have zero points, or scales of zero"
    return _Integers(x, y, np.broadcast_to(scale.astype(np.float64), weights.shape[:1]))


def _values_of(tensor: Tensor) -> Values | None:
    """What its integers stand for; None without one positive scale for all of them."""
    found = affine_of(tensor)
    if found is None or not found.scale > 0:
        return None
    limits = np.iinfo(tensor.dtype.label)
    return Values(found.scale, found.zero_point, int(limits.min), int(limits.max))


def _exactness(found: PartialSums) -> Exactness:
    return "reassociates" if found.integers is None else "approximates"


def _rewrite(found: PartialSums, edit: Editor) -> None:
    reader = found.reader
    weights = [found.weights[..., part.start : part.start + part.channels] for part in found.parts]
    of_parts, of_sums = _quantizations(found, weights)
    total = _partial(found, edit, found.parts[0], weights[0], of_parts[0])
    for part in found.parts[1:]:
        term = _partial(found, edit, part, weights[part.index], of_parts[part.index])
        is_last = part is found.parts[-1]
        name = f"sum{part.index}"
        result = reader.output if is_last else _activation(reader, edit, name, of_sums[part.index - 1])
        _add(edit, (total, term), result, reader.activation if is_last else 0)
        total = result


def _partial(
    found: PartialSums, edit: Editor, part: ChannelPart, cut: Array, quantization: Quantization | None
) -> Tensor:
    """Write the operator for one part; its output."""
    reader = found.reader
    result = _activation(reader, edit, f"part{part.index}", quantization)
    inputs = list(reader.operator.inputs)
    inputs[reader.data_slot] = part.tensor
    weights = reader.weights
    origin = piece_of(weights, -1, part.start)
    scales = _without_range(weights.quantization)
    inputs[_WEIGHTS] = edit.constant(f"{weights.name}/part{part.index}", cut, scales, origin)
    if part.index and reader.bias is not None and found.bias is not None:
        no_bias = edit.constant(f"{reader.bias.name}/none", found.bias * 0, reader.bias.quantization)
        inputs[reader.bias_slot] = no_bias
    edit.twin(reader.operator, inputs, (result,), fusedActivationFunction=0)
    return result


def _add(edit: Editor, terms: Sequence[Tensor], result: Tensor, activation: int) -> None:
    fields = {"fusedActivationFunction": activation}
    if result.dtype is DType.INT16:
        # By default LiteRT takes a kernel of its own, with other rounding, where all scales are powers of two (add.cc).
        fields["potScaleInt16"] = False
    edit.operator("ADD", terms, (result,), "AddOptions", **fields)


def _activation(reader: _Operands, edit: Editor, name: str, quantization: Quantization | None) -> Tensor:
    output = reader.output
    return edit.activation(f"{output.name}/{name}", output.shape, output, quantization)


def _without_range(quantization: Quantization | None) -> Quantization | None:
    """Scales stay those of the output channels; the smallest and largest weight may be in another part."""
    if quantization is None:
        return None
    extras = {key: None if key in ("min", "max") else value for key, value in quantization.extras.items()}
    return replace(quantization, extras=extras)


def _quantizations(
    found: PartialSums, weights: Sequence[Array]
) -> tuple[Sequence[Quantization | None], Sequence[Quantization | None]]:
    """Quantizations of the parts, and of the running sums but the last; None each for float32."""
    integers = found.integers
    if integers is None:
        return [None] * len(weights), [None] * len(weights)
    x, scales = integers.x, integers.weights
    constant: Floats = np.zeros(len(scales)) if found.bias is None else found.bias.ravel() * scales * x.scale
    reals = [cut.reshape(len(cut), -1) * scales[:, None] for cut in weights]
    parts = [sums_of(x, real, constant * (number == 0)) for number, real in enumerate(reals)]
    *running, total = accumulate(parts)
    output = Output(integers.y, _CLAMPS[found.reader.activation], total, x.scale * float(scales.min()))
    return [output.quantization(each) for each in parts], [output.quantization(each) for each in running[1:]]


def _rule(readers: Sequence[str], slot: int) -> Rule[PartialSums]:
    pattern = Pattern("convolution", readers, {slot: CONCATENATION})
    return Rule("partial_convolution", pattern, _check, _rewrite, _exactness)


PARTIAL_CONVOLUTION = _rule(("CONV_2D", "FULLY_CONNECTED"), _DATA_SLOTS["CONV_2D"])
PARTIAL_TRANSPOSED_CONVOLUTION = _rule(("TRANSPOSE_CONV",), _DATA_SLOTS["TRANSPOSE_CONV"])
