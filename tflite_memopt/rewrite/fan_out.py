"""An operator that can compute some of its output channels at a time, each from the whole of its input.

    x -- CONV_2D[W, B] -- y        =>        x --+-- CONV_2D[Wa, Ba] -- a        y: a's channels, then b's
                                                 +-- CONV_2D[Wb, Bb] -- b

Exact: an output channel has weights, a bias, a multiplier and a shift of its own (TFLM reference/conv.h,
reference/fully_connected.h, reference/depthwiseconv_float.h, and those of reference/integer_ops). GATHER copies columns
of a table. The constants are split and not copied, and no product is computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..ir.channels import is_per_channel
from ..ir.constants import values
from ..ir.dtype import DType
from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..ir.origin import piece_of
from ..kernels.relations import operands
from .constant_pieces import constant_piece, is_cuttable

_CHANNEL_AXES: Mapping[str, Mapping[int, int]] = {
    "CONV_2D": {1: 0, 2: 0},
    "DEPTHWISE_CONV_2D": {1: 3, 2: 0},
    "FULLY_CONNECTED": {1: 0, 2: 0},
    "GATHER": {0: 1},
}
"""For each operator, which dimension of which constant input is that of the output channels."""
FAN_OUTS = tuple(_CHANNEL_AXES)
_TYPES = ((DType.FLOAT32, DType.FLOAT32), (DType.INT8, DType.INT8), (DType.INT16, DType.INT8))
"""Output and weights. Packed weights (int4) are not cut here."""


@dataclass(frozen=True)
class FanOut:
    """An operator whose output channels can be computed in groups."""

    operator: Operator

    @property
    def output(self) -> Tensor:
        """The operator's output, channels last."""
        return self.operator.outputs[0]

    def write(self, channels: Sequence[int], edit: Editor) -> list[Tensor]:
        """Write one operator for each group of so many channels, in their order; what they make."""
        made = []
        for index, (start, count) in enumerate(zip(accumulate(channels, initial=0), channels, strict=False)):
            output = self.output
            shape, origin = (*output.shape[:-1], count), piece_of(output, -1, start)
            made.append(edit.activation(f"{output.name}/part{index}", shape, output, origin=origin))
            inputs = list(self.operator.inputs)
            for slot, axis in self._cut():
                constant = inputs[slot]
                whole = None if constant is None else values(constant)
                if constant is not None and whole is not None:
                    inputs[slot] = edit.constant(*constant_piece(constant, whole, axis, start, count, index))
            is_depthwise = self.operator.name == "DEPTHWISE_CONV_2D"
            fields = {"depthMultiplier": count} if is_depthwise else {}
            edit.twin(self.operator, inputs, made[-1:], **fields)
        return made

    def _cut(self) -> list[tuple[int, int]]:
        return [each for each in _CHANNEL_AXES[self.operator.name].items() if each[0] < len(self.operator.inputs)]


@dataclass(frozen=True)
class FanOutOperand:
    """What an operator makes that is not needed as a whole: it makes the ``channels`` of each part instead."""

    whole: FanOut
    channels: Sequence[int]

    def write(self, edit: Editor) -> Sequence[Tensor]:
        """One operator for each part; what they make."""
        return self.whole.write(self.channels, edit)


def fan_out(operator: Operator) -> FanOut | str:
    """The operator as one whose channels can be computed in groups, or why they cannot."""
    axes = _CHANNEL_AXES.get(operator.name)
    if axes is None or len(operator.outputs) != 1 or not operator.outputs[0].shape or operator.options is None:
        return "it does not make its output channels from weights of their own"
    if len(operator.inputs) > 3:
        return "it has more inputs than data, weights and bias"
    output, constants = operator.outputs[0], {slot: operands(operator, slot + 1)[slot] for slot in axes}
    weights = constants[min(constants)]
    if weights is None or (output.dtype, weights.dtype) not in _TYPES or is_per_channel(output.quantization):
        return "its types are not those of the kernels"
    for slot, constant in constants.items():
        if constant is None:
            continue
        if values(constant) is None or not is_cuttable(constant, axes[slot], output.shape[-1]):
            return "its weights or its bias are computed, packed, or quantized in another way than by output channel"
    return _reason_against(operator, weights) or FanOut(operator)


def _reason_against(operator: Operator, weights: Tensor) -> str | None:
    """Why the channels do not each depend on the whole input and on one piece of the weights."""
    x = operator.inputs[0]
    name, depth = operator.name, None if x is None or not x.shape else x.shape[-1]
    if name == "CONV_2D" and weights.shape[-1] != depth:
        return "it is grouped: its channels depend on some of the input's"
    if name == "DEPTHWISE_CONV_2D" and depth != 1:
        return "its channels depend on one of the input's each"
    if name == "FULLY_CONNECTED" and operator.option("weightsFormat", 0):
        return "its weights are shuffled"
    if name == "GATHER" and (operator.option("axis", 0) or operator.option("batchDims", 0) or len(weights.shape) != 2):
        return "it does not take whole rows of a table"
    return None
