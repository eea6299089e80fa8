"""Runs an operator on every part of a channel concatenation, and joins what comes out.

    a --+                             a -- op --+
        +-- CONCATENATION -- op  =>             +-- CONCATENATION
    b --+                             b -- op --+

This holds for operators whose output channels depend each on input channels of their own. Channels are the last
dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.channels import is_per_channel
from ..ir.constants import values
from ..ir.dtype import DType
from ..ir.editor import Editor
from ..ir.model import Operator, Tensor
from ..ir.origin import piece_of
from .concatenation import MAX_PARTS, ROLE, ChannelPart, channel_parts
from .constant_pieces import ConstantPiece, constant_piece
from .fan_out import FanOutOperand
from .pattern import Match

_JOINED_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL)


@dataclass(frozen=True)
class GivenOperand:
    """Tensors that are there already, one for each part; None where an optional input is missing."""

    tensors: Sequence[Tensor | None]

    def write(self, _: Editor) -> Sequence[Tensor | None]:
        """The tensors, one for each part."""
        return self.tensors


@dataclass(frozen=True)
class ConstantOperand:
    """New constants, one for each part."""

    constants: Sequence[ConstantPiece]

    def write(self, edit: Editor) -> Sequence[Tensor]:
        """The new tensors, one for each part."""
        return [edit.constant(*each) for each in self.constants]


@dataclass(frozen=True)
class SplitOperand:
    """A computed tensor that SPLIT_V takes apart along its channels."""

    tensor: Tensor
    parts: Sequence[ChannelPart]

    def write(self, edit: Editor) -> Sequence[Tensor]:
        """The outputs of the SPLIT_V, one for each part."""
        tensor, shape = self.tensor, self.tensor.shape
        made = [
            edit.activation(
                f"{tensor.name}/part{part.index}",
                (*shape[:-1], part.channels),
                tensor,
                origin=piece_of(tensor, -1, part.start),
            )
            for part in self.parts
        ]
        sizes = edit.constant(f"{tensor.name}/sizes", np.asarray([part.channels for part in self.parts], np.int32))
        axis = edit.constant(f"{tensor.name}/axis", np.asarray(len(shape) - 1, np.int32))
        edit.operator("SPLIT_V", (tensor, sizes, axis), made, "SplitVOptions", numSplits=len(made))
        return made


PartOperand = GivenOperand | ConstantOperand | SplitOperand | FanOutOperand
"""What the operators of all parts read in place of one input."""


@dataclass(frozen=True)
class ChannelReader:
    """An operator with one output that reads a concatenation along the channels: ``whole``, made of ``parts``.

    ``must_stay`` says of a tensor that it is returned or pinned.
    """

    operator: Operator
    whole: Tensor
    parts: Sequence[ChannelPart]
    must_stay: Callable[[Tensor], bool]

    @property
    def output(self) -> Tensor:
        """The operator's output."""
        return self.operator.outputs[0]

    @property
    def reads_once(self) -> bool:
        """Whether the concatenation is the operator's first input and no other."""
        return [slot for slot, tensor in enumerate(self.operator.inputs) if tensor is self.whole] == [0]

    def output_channels(self, part: ChannelPart) -> tuple[int, int]:
        """The first of the output's channels that come from a part, and how many they are."""
        made, read = self.output.shape[-1], self.whole.shape[-1]
        return part.start * made // read, part.channels * made // read

    def data(self) -> GivenOperand:
        """The parts themselves."""
        return GivenOperand([part.tensor for part in self.parts])

    def shared(self, tensor: Tensor | None) -> GivenOperand:
        """A tensor that the operators of all parts read."""
        return GivenOperand([tensor] * len(self.parts))

    def cut(self, constant: Tensor | None, axis: int = -1) -> PartOperand | None:
        """A constant with the output's channels along an axis, cut with them; None when it has no plain values.

        A missing constant stays missing.
        """
        if constant is None:
            return self.shared(None)
        whole = values(constant)
        if whole is None:
            return None
        return ConstantOperand(
            [constant_piece(constant, whole, axis, *self.output_channels(part), part.index) for part in self.parts]
        )

    def split(self, *operands: PartOperand, **fields: Any) -> ChannelSplit:
        """The operator on every part, reading ``operands``, with these fields of its options changed."""
        return ChannelSplit(self, operands, fields)

    def split_data(self) -> ChannelSplit:
        """The operator on every part, which it reads in place of the whole, and all else as it does now."""
        inputs = self.operator.inputs
        return self.split(*(self.data() if tensor is self.whole else self.shared(tensor) for tensor in inputs))


@dataclass(frozen=True)
class ChannelSplit:
    """An operator to run on every part; ``operands`` by input slot. What a rule's check has found."""

    reader: ChannelReader
    operands: Sequence[PartOperand]
    fields: Mapping[str, Any] = field(default_factory=dict)


def channel_reader(match: Match, multiplier: int | None = 1) -> ChannelReader | str:
    """The match's anchor, or why it cannot run part by part whatever operator it is.

    ``multiplier``: output channels for one input channel; None where the caller checks the channels itself.
    """
    parts, anchor = channel_parts(match[ROLE]), match.anchor
    if isinstance(parts, str):
        return parts
    if len(parts) > MAX_PARTS:
        return f"the concatenation has {len(parts)} inputs, and TFLM joins at most {MAX_PARTS}"
    whole, outputs = match[ROLE].outputs[0], anchor.outputs
    if len(outputs) != 1 or not outputs[0].shape:
        return "its output has other channels than the concatenation"
    if multiplier is not None and outputs[0].shape[-1] != whole.shape[-1] * multiplier:
        return "its output has other channels than the concatenation"
    if any(is_per_channel(tensor.quantization) for tensor in (whole, outputs[0])):
        return "an activation is quantized per channel"
    reason = None if outputs[0].dtype is whole.dtype else _reason_against_joining(outputs[0])
    return reason or ChannelReader(anchor, whole, parts, match.must_stay)


def run_on_parts(split: ChannelSplit, edit: Editor) -> None:
    """Write the operator's output as the concatenation of the operator run on each part."""
    reader, output = split.reader, split.reader.output
    operands = [operand.write(edit) for operand in split.operands]
    made = []
    for part in reader.parts:
        start, count = reader.output_channels(part)
        shape, origin = (*output.shape[:-1], count), piece_of(output, -1, start)
        made.append(edit.activation(f"{output.name}/part{part.index}", shape, output, origin=origin))
        edit.twin(reader.operator, [operand[part.index] for operand in operands], made[-1:], **split.fields)
    edit.join(made, output, len(output.shape) - 1)


def _reason_against_joining(output: Tensor) -> str | None:
    """Why TFLM cannot join parts of the output's type, which is not that of the concatenation."""
    if output.dtype not in _JOINED_TYPES:
        return f"TFLM does not join tensors of type {output.dtype.label}"
    quantization = output.quantization
    if output.dtype is DType.INT16 and quantization is not None and quantization.zero_point.any():
        return "TFLM joins int16 tensors only if their zero point is 0"
    return None
