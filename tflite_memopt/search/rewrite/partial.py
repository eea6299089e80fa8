"""Convolutions of a concatenation in parts, and their sum; the scales of partial sums of integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ...model.analysis.ranges import CLAMPS
from ...model.ir.editor import Array
from ...model.ir.model import DType, Operator, Quantization, Tensor
from ...model.ir.tensors import affine_of, per_tensor, values
from ...operators.boxes import operands
from ...operators.editor import Editor
from ...operators.kind import BYTES
from ...operators.table import SUMS_OF_CHANNELS
from .channels import CONCATENATION, ROLE, ChannelPart, channel_parts
from .engine import Answer, Match, Pattern, Proposal, Rule

Floats = npt.NDArray[np.float64]


DEVIATIONS = 5.0
"""Standard deviations on either side of the mean that a scale covers."""


MARGIN = 1.75
"""Room for inputs that the output's range does not show. On the networks above 1.5 cuts off sums that matter: the
largest difference is 21; 2 adds an eighth to the root mean square and gains nothing."""


_COARSEST = 4096.0
"""In output scales. ADD needs less than 2**14 for int16 and 2**19 for int8 (TFLM add_common.cc: a multiplier < 1)."""


@dataclass(frozen=True)
class Values:
    """The integers that a tensor can hold, and their values: ``scale * (q - zero_point)``."""

    scale: float
    zero_point: int
    lowest: int
    highest: int

    @property
    def low(self) -> float:
        """The lowest real value."""
        return self.scale * (self.lowest - self.zero_point)

    @property
    def high(self) -> float:
        """The highest real value."""
        return self.scale * (self.highest - self.zero_point)


@dataclass(frozen=True)
class Sums:
    """Statistics of sums by output channel, as real numbers: their constant part, mean and variance of the rest
    for inputs that use their whole range, and the bounds that no sum can pass."""

    constant: Floats
    mean: Floats
    variance: Floats
    low: Floats
    high: Floats

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.constant + other.constant,
            self.mean + other.mean,
            self.variance + other.variance,
            self.low + other.low,
            self.high + other.high,
        )


def sums_of(x: Values, weights: Floats, constant: Floats) -> Sums:
    """Of ``weights``, real numbers [output channels, products], times inputs, plus ``constant`` by channel."""
    ends = np.stack([weights * x.low, weights * x.high])
    return Sums(
        constant,
        (x.low + x.high) / 2 * weights.sum(axis=1),
        (x.high - x.low) ** 2 / 12 * (weights**2).sum(axis=1),
        constant + ends.min(axis=0).sum(axis=1),
        constant + ends.max(axis=0).sum(axis=1),
    )


@dataclass(frozen=True)
class Output:
    """The rounded sum of all parts, and the bounds that its activation clamps to (infinite without one)."""

    values: Values
    clamp: tuple[float, float]
    total: Sums
    step: float
    """The smallest difference between two accumulators, as a real number."""

    def usage(self) -> float:
        """The share of their range that the inputs use, as seen in the output; 1 if it shows nothing."""
        total, deviation, y = self.total, DEVIATIONS * np.sqrt(self.total.variance), self.values
        shares = [0.0]
        if y.high < self.clamp[1] - y.scale:
            shares.append(_share(y.high - total.constant, total.mean + deviation))
        if y.low > self.clamp[0] + y.scale:
            shares.append(_share(total.constant - y.low, deviation - total.mean))
        return min(1.0, MARGIN * max(shares)) if len(shares) > 1 else 1.0

    def quantization(self, sums: Sums) -> Quantization:
        """Return the quantization for ``sums``, which are some terms of the total; type and range are the output's."""
        y, total, usage = self.values, self.total, self.usage()
        mean, deviation = sums.constant + usage * sums.mean, usage * DEVIATIONS * np.sqrt(sums.variance)
        low = np.maximum(mean - deviation, np.maximum(sums.low, y.low - (total.high - sums.high)))
        high = np.minimum(mean + deviation, np.minimum(sums.high, y.high - (total.low - sums.low)))
        return self._covering(min(0.0, float(low.min())), max(0.0, float(high.max())))

    def _covering(self, low: float, high: float) -> Quantization:
        y = self.values
        if y.highest > 127:  # int16 has no zero point (quantization specification of TFLite)
            return per_tensor(self._allowed(max(-low, high) / y.highest), 0)
        scale = self._allowed((high - low) / (y.highest - y.lowest))
        return per_tensor(scale, min(max(round(y.lowest - low / scale), y.lowest), y.highest))

    def _allowed(self, scale: float) -> float:
        return min(max(scale, self.step), self.values.scale * _COARSEST)


def _share(room: Floats, needed: Floats) -> float:
    """Return the largest share of the need that fits into the room in every channel."""
    shares = np.divide(room, needed, out=np.full_like(room, np.inf), where=needed > 0)
    return max(float(shares.min()), 0.0)


_WEIGHTS, _BIAS = 1, 2


@dataclass(frozen=True)
class _Operands:
    """The tensors that a convolution reads and writes. The bias may be missing."""

    operator: Operator
    x: Tensor
    weights: Tensor
    bias: Tensor | None

    @property
    def output(self) -> Tensor:
        return self.operator.outputs[0]

    @property
    def activation(self) -> int:
        return int(self.operator.option("fusedActivationFunction", 0))


@dataclass(frozen=True)
class _Integers:
    """The quantization of input and output, and one scale of the weights for each output channel."""

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


def _partial_convolution(match: Match) -> Answer:
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
    if isinstance(integers, str):
        return integers
    found = PartialSums(reader, parts, weights, bias, integers)
    return Proposal(partial(_write_sums, found), "reassociates" if integers is None else "approximates")


def _operands(operator: Operator) -> _Operands | str:
    """Return the operator's tensors, or the fault in them, independent of their values."""
    x, weights, bias = operands(operator, 3)
    if x is None or weights is None or operator.options is None or len(operator.outputs) != 1:
        return "it lacks an input or its options, or has more than one output"
    reader = _Operands(operator, x, weights, bias)
    types = x.dtype, weights.dtype, reader.output.dtype
    if weights.dtype not in BYTES.get(x.dtype, ()) or reader.output.dtype is not x.dtype:
        return "its types are {}, {} (weights) and {} (output)".format(*(dtype.label for dtype in types))
    if reader.activation not in CLAMPS:
        return "its fused activation is one that ADD does not have"
    return "its weights are shuffled" if operator.option("weightsFormat", 0) else reader


def _integers(reader: _Operands) -> _Integers | str:
    """Return its scales, or the reason why its integers cannot be summed in parts."""
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
    """Return its scale and zero point; None without one positive scale for all values."""
    found = affine_of(tensor)
    if found is None or not found.scale > 0:
        return None
    limits = np.iinfo(tensor.dtype.label)
    return Values(found.scale, found.zero_point, int(limits.min), int(limits.max))


def _write_sums(found: PartialSums, edit: Editor) -> None:
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
    inputs[0] = part.tensor
    weights = reader.weights
    scales = _without_range(weights.quantization)
    inputs[_WEIGHTS] = edit.constant(f"{weights.name}/part{part.index}", cut, scales)
    if part.index and reader.bias is not None and found.bias is not None:
        no_bias = edit.constant(f"{reader.bias.name}/none", found.bias * 0, reader.bias.quantization)
        inputs[_BIAS] = no_bias
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
    output = Output(integers.y, CLAMPS[found.reader.activation], total, x.scale * float(scales.min()))
    return [output.quantization(each) for each in parts], [output.quantization(each) for each in running[1:]]


PARTIAL_CONVOLUTION = Rule(
    "partial_convolution", Pattern("convolution", SUMS_OF_CHANNELS, {0: CONCATENATION}), _partial_convolution
)
"""Replace a convolution or FULLY_CONNECTED of a concatenation by one for each part, and ADDs of their results."""
