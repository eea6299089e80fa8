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
from itertools import accumulate, pairwise
from math import inf

import numpy as np

from ...ir.change import Exactness
from ...ir.constants import values
from ...ir.dtype import DType
from ...ir.editor import Editor
from ...ir.making import Array
from ...ir.model import Operator, Quantization, Tensor
from ...ir.origin import piece_of
from ..concatenation import CONCATENATION, ROLE, channel_parts
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
_DATA_SLOTS = {"CONV_2D": 0, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 2}


@dataclass(frozen=True)
class _Reader:
    """The operator that reads the concatenation."""

    operator: Operator

    @property
    def data_slot(self) -> int:
        return _DATA_SLOTS[self.operator.name]

    @property
    def bias_slot(self) -> int:
        """The last slot, after data and weights, and may be left out."""
        return max(self.data_slot, _WEIGHTS) + 1

    @property
    def x(self) -> Tensor:
        return self._present(self.data_slot)

    @property
    def weights(self) -> Tensor:
        return self._present(_WEIGHTS)

    @property
    def bias(self) -> Tensor | None:
        inputs = self.operator.inputs
        return inputs[self.bias_slot] if self.bias_slot < len(inputs) else None

    @property
    def output(self) -> Tensor:
        return self.operator.outputs[0]

    @property
    def activation(self) -> int:
        return int(self.operator.option("fusedActivationFunction", 0))

    def _present(self, slot: int) -> Tensor:
        tensor = self.operator.inputs[slot]
        assert tensor is not None, "_against_operator has seen it"
        return tensor


def _refuse(match: Match) -> str | None:
    parts = channel_parts(match)
    if isinstance(parts, str):
        return parts
    reader = _Reader(match[_READER])
    reason = _against_operator(reader) or _against_constants(reader)
    if reason is None and reader.x.dtype is not DType.FLOAT32:
        reason = _against_quantization(reader)
    return reason


def _against_operator(reader: _Reader) -> str | None:
    operator = reader.operator
    needed = operator.inputs[: reader.bias_slot]
    if len(needed) < reader.bias_slot or None in needed or operator.options is None or len(operator.outputs) != 1:
        return "it lacks an input or its options, or has more than one output"
    x, weights, output = reader.x.dtype, reader.weights.dtype, reader.output.dtype
    if (x, weights) not in _TYPES or output is not x:
        return f"its types are {x.label}, {weights.label} (weights) and {output.label} (output)"
    if reader.activation not in _CLAMPS:
        return "its fused activation is one that ADD does not have"
    if operator.option("weightsFormat", 0):
        return "its weights are shuffled"
    return None


def _against_constants(reader: _Reader) -> str | None:
    weights, bias = reader.weights, reader.bias
    if values(weights) is None or weights.extras.get("sparsity") is not None:
        return "its weights are not a dense constant"
    if weights.shape[-1] != reader.x.shape[-1]:
        return "it is grouped, or flattens its input: it does not sum over all channels"
    if bias is not None and (values(bias) is None or bias.elements != weights.shape[0]):
        return "its bias is not one constant for each output channel"
    return None


def _against_quantization(reader: _Reader) -> str | None:
    if not all(_is_per_tensor(tensor.quantization) for tensor in (reader.x, reader.output)):
        return "its input or output has no single scale"
    weights, quantization = reader.weights, reader.weights.quantization
    if quantization is None or quantization.extras.get("details") is not None:
        return "its weights are not quantised, or in a custom way"
    scale = quantization.scale
    if scale.size != 1 and (quantization.axis != 0 or scale.size != weights.shape[0]):
        return "its weights are not quantised by tensor or by output channel"
    if quantization.zero_point.any() or not (scale > 0).all():
        return "its weights have zero points, or scales of zero"
    return None


def _exactness(match: Match) -> Exactness:
    return "reassociates" if match[_READER].outputs[0].dtype is DType.FLOAT32 else "approximates"


def _rewrite(match: Match, edit: Editor) -> None:
    reader, parts = _Reader(match[_READER]), tuple(match[ROLE].present_inputs())
    weights = _cut(reader.weights, [part.shape[-1] for part in parts])
    of_parts, of_sums = _quantizations(reader, weights)
    total = _partial(reader, edit, parts, 0, weights[0], of_parts[0])
    for number in range(1, len(parts)):
        term = _partial(reader, edit, parts, number, weights[number], of_parts[number])
        is_last = number == len(parts) - 1
        result = reader.output if is_last else _activation(reader, edit, f"sum{number}", of_sums[number - 1])
        _add(edit, (total, term), result, reader.activation if is_last else 0)
        total = result


def _partial(
    reader: _Reader,
    edit: Editor,
    parts: Sequence[Tensor],
    number: int,
    cut: Array,
    quantization: Quantization | None,
) -> Tensor:
    """Write the operator for one of the parts; its output."""
    result = _activation(reader, edit, f"part{number}", quantization)
    inputs = list(reader.operator.inputs)
    inputs[reader.data_slot] = parts[number]
    weights, start = reader.weights, sum(part.shape[-1] for part in parts[:number])
    inputs[_WEIGHTS] = edit.constant(
        f"{weights.name}/part{number}", cut, _without_range(weights.quantization), piece_of(weights, -1, start)
    )
    if number and reader.bias is not None:
        inputs[reader.bias_slot] = _no_bias(reader.bias, edit)
    edit.twin(reader.operator, inputs, (result,), fusedActivationFunction=0)
    return result


def _add(edit: Editor, terms: Sequence[Tensor], result: Tensor, activation: int) -> None:
    fields = {"fusedActivationFunction": activation}
    if result.dtype is DType.INT16:
        # By default LiteRT takes a kernel of its own, with other rounding, where all scales are powers of two (add.cc).
        fields["potScaleInt16"] = False
    edit.operator("ADD", terms, (result,), "AddOptions", **fields)


def _activation(reader: _Reader, edit: Editor, name: str, quantization: Quantization | None) -> Tensor:
    output = reader.output
    return edit.activation(f"{output.name}/{name}", output.shape, output, quantization)


def _no_bias(bias: Tensor, edit: Editor) -> Tensor:
    return edit.constant(f"{bias.name}/none", _read(bias) * 0, bias.quantization)


def _cut(weights: Tensor, depths: Sequence[int]) -> list[Array]:
    """The weights of each part: its channels of the last axis."""
    return [_read(weights)[..., start:end] for start, end in pairwise(accumulate(depths, initial=0))]


def _without_range(quantization: Quantization | None) -> Quantization | None:
    """Scales stay those of the output channels; the smallest and largest weight may be in another part."""
    if quantization is None:
        return None
    extras = {key: None if key in ("min", "max") else value for key, value in quantization.extras.items()}
    return replace(quantization, extras=extras)


def _quantizations(
    reader: _Reader, weights: Sequence[Array]
) -> tuple[list[Quantization | None], list[Quantization | None]]:
    """For the parts, and for the running sums but the last; none for float32."""
    if reader.output.dtype is DType.FLOAT32:
        return [None] * len(weights), [None] * len(weights)
    x, scales = _held(reader.x), _scales(reader.weights)
    constant: Floats = np.zeros(len(scales)) if reader.bias is None else _read(reader.bias).ravel() * scales * x.scale
    reals = [cut.reshape(len(cut), -1) * scales[:, None] for cut in weights]
    parts = [sums_of(x, real, constant * (number == 0)) for number, real in enumerate(reals)]
    *running, total = accumulate(parts)
    output = Output(_held(reader.output), _CLAMPS[reader.activation], total, x.scale * float(scales.min()))
    return [output.quantization(each) for each in parts], [output.quantization(each) for each in running[1:]]


def _scales(weights: Tensor) -> Floats:
    """One scale an output channel."""
    assert weights.quantization is not None, "_against_quantization has seen it"
    return np.broadcast_to(weights.quantization.scale.astype(np.float64), weights.shape[:1])


def _held(tensor: Tensor) -> Values:
    assert tensor.quantization is not None, "_against_quantization has seen it"
    scale, zero_point = float(tensor.quantization.scale[0]), int(tensor.quantization.zero_point[0])
    limits = np.iinfo(tensor.dtype.label)
    return Values(scale, zero_point, int(limits.min), int(limits.max))


def _read(constant: Tensor) -> Array:
    found = values(constant)
    assert found is not None, "_against_constants has seen the values"
    return found


def _is_per_tensor(quantization: Quantization | None) -> bool:
    if quantization is None or not quantization.scale.size == quantization.zero_point.size == 1:
        return False
    return bool(quantization.scale[0] > 0)


def _rule(readers: Sequence[str], slot: int) -> Rule:
    pattern = Pattern(_READER, readers, {slot: CONCATENATION})
    return Rule("partial_convolution", pattern, _refuse, _exactness, _rewrite)


PARTIAL_CONVOLUTION = _rule(("CONV_2D", "FULLY_CONNECTED"), _DATA_SLOTS["CONV_2D"])
PARTIAL_TRANSPOSED_CONVOLUTION = _rule(("TRANSPOSE_CONV",), _DATA_SLOTS["TRANSPOSE_CONV"])
