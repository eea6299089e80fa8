"""Rules about channels: concatenations, and operators that run on some channels at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernels.support import MAX_PARTS
from ...model.ir.editor import Array
from ...model.ir.model import DType, Operator, Quantization, Tensor
from ...model.ir.tensors import (
    channels_of,
    integers,
    is_per_channel,
    nibbles,
    quantization_of_channels,
    quantized_alike,
    values,
)
from ...operators.boxes import RESHAPES, axis_of
from ...operators.editor import Editor
from ...operators.kind import BYTES, NIBBLES
from ...operators.reduce import REDUCTIONS
from ...operators.table import BY_CHANNEL, OPERATORS, views_of
from ...operators.window import ALL_POOLS, CONVOLUTION, CONVOLUTIONS, DEPTHWISE, RESIZES
from .engine import Answer, Match, Pattern, Proposal, Rule

ROLE = "concatenation"
CONCATENATION = Pattern(ROLE, ("CONCATENATION",))
"""The concatenation of a rule's pattern, and the role under which a match has it."""


@dataclass(frozen=True)
class ChannelPart:
    """Input ``index`` of a channel concatenation; ``start`` is its first channel in the output."""

    index: int
    tensor: Tensor
    start: int

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self.tensor.shape[-1]


def channel_parts(concatenation: Operator) -> tuple[ChannelPart, ...] | str:
    """The tensors that a concatenation joins along their last axis, or the reason to leave it whole.

    All have the type and the quantization of the whole: the kernels copy bytes and never requantize
    (TFLM concatenation.cc), so that a reader of a part may read it as it would read those channels of the whole.
    """
    parts = tuple(concatenation.present_inputs())
    reason = _against(concatenation, parts) or _against_parts(concatenation.outputs[0], parts)
    if reason is None and _is_free(concatenation):
        reason = "the concatenation is free: its inputs are views of it"
    if reason is not None:
        return reason
    starts = accumulate((part.shape[-1] for part in parts), initial=0)
    return tuple(
        ChannelPart(index, part, start) for index, (part, start) in enumerate(zip(parts, starts, strict=False))
    )


def joined_axis(concatenation: Operator) -> int | None:
    """The axis along which it joins, counted from the front; None when the output has no such axis."""
    return axis_of(int(concatenation.option("axis", 0)), len(concatenation.outputs[0].shape))


def _is_free(operator: Operator) -> bool:
    """Tell whether every input may lie inside the output from the start, under every kernel profile.

    Not where a tensor is joined twice: it cannot be in two places.
    """
    inputs = {id(tensor) for tensor in operator.present_inputs() if not tensor.is_constant}
    return len(inputs) == len(operator.inputs) == len(views_of(operator))


def _against(operator: Operator, parts: Sequence[Tensor]) -> str | None:
    if len(parts) < 2 or len(parts) != len(operator.inputs):
        return "the concatenation has fewer than two inputs, or a missing one"
    if operator.option("fusedActivationFunction", 0):
        return "the concatenation has a fused activation"
    if joined_axis(operator) != len(operator.outputs[0].shape) - 1:
        return "the concatenation is not along the channels"
    return None


def _against_parts(whole: Tensor, parts: Sequence[Tensor]) -> str | None:
    rows = whole.shape[:-1]
    if any(part.shape[:-1] != rows for part in parts) or sum(part.shape[-1] for part in parts) != whole.shape[-1]:
        return "the shapes of the concatenation's inputs do not make up its output"
    for part in parts:
        if part.is_constant or part.is_variable:
            return f"the concatenation's input '{part.name}' is a constant or a variable"
        if part.nbytes == 0:
            return f"the concatenation's input '{part.name}' is empty"
        if part.dtype is not whole.dtype or not quantized_alike(part.quantization, whole.quantization):
            return f"the concatenation's input '{part.name}' has another type or quantization than its output"
    return None


ConstantPiece = tuple[str, Array, Quantization | None]
"""Name, values and quantization: what an editor writes a constant from."""


def constant_piece(constant: Tensor, whole: Array, axis: int, start: int, count: int, index: int) -> ConstantPiece:
    """Piece ``index`` of a constant with the values ``whole``: ``count`` channels from ``start`` on, along ``axis``.

    ``axis`` may count from the back. One value for all channels stays as it is.
    """
    dimension = axis % max(1, len(constant.shape))
    quantization = quantization_of_channels(constant.quantization, dimension, start, count)
    values = channels_of(whole, start, count, axis)
    return f"{constant.name}/part{index}", values, quantization


def is_cuttable(constant: Tensor, axis: int, channels: int) -> bool:
    """Tell whether a dimension of the constant is that of the channels, and its scales are for all or one for each."""
    if constant.extras.get("sparsity") is not None or len(constant.shape) <= axis or constant.shape[axis] != channels:
        return False
    quantization = constant.quantization
    if quantization is None:
        return True
    if quantization.extras.get("details"):
        return False
    return not is_per_channel(quantization) or (quantization.axis == axis and quantization.scale.size == channels)


_CHANNEL_AXES: Mapping[str, Mapping[int, int]] = {
    **{name: {1: OPERATORS[name].channel_axis or 0, 2: 0} for name in (*CONVOLUTIONS, "FULLY_CONNECTED")},
    "GATHER": {0: 1},
}
"""For each operator, which dimension of which constant input is that of the output channels."""


PartOperand = Callable[[Editor], Sequence[Tensor | None]]
"""Writes what is needed, and returns the tensors that the operators of all parts read in place of one input."""


def reason_against_groups(operator: Operator) -> str | None:
    """Return the reason why the output channels cannot be computed in groups; None where they can."""
    axes = _CHANNEL_AXES.get(operator.name)
    if axes is None or len(operator.outputs) != 1 or not operator.outputs[0].shape or operator.options is None:
        return "it does not make its output channels from weights of their own"
    if len(operator.inputs) > 3:
        return "it has more inputs than data, weights and bias"
    output, constants = operator.outputs[0], {slot: operator.operand(slot) for slot in axes}
    weights = constants[min(constants)]
    if weights is None or weights.dtype not in NIBBLES.get(output.dtype, ()) or is_per_channel(output.quantization):
        return "its types are not those of the kernels"
    for slot, constant in constants.items():
        if constant is None:
            continue
        if _values(constant) is None or not is_cuttable(constant, axes[slot], output.shape[-1]):
            return "its weights or its bias are computed, packed, or quantized in another way than by output channel"
    return _reason_against_channels(operator, weights)


def _values(constant: Tensor) -> Array | None:
    return nibbles(constant) if constant.dtype is DType.INT4 else values(constant)


def _write_groups(operator: Operator, channels: Sequence[int], edit: Editor) -> Sequence[Tensor]:
    """Write one operator for each group of so many output channels, in their order; what they make."""
    made, output, axes = [], operator.outputs[0], _CHANNEL_AXES[operator.name]
    for index, (start, count) in enumerate(zip(accumulate(channels, initial=0), channels, strict=False)):
        shape = (*output.shape[:-1], count)
        made.append(edit.activation(f"{output.name}/part{index}", shape, output, is_piece=True))
        inputs = list(operator.inputs)
        for slot, constant in enumerate(operator.inputs):
            whole = None if constant is None or slot not in axes else _values(constant)
            if constant is not None and whole is not None:
                piece = constant_piece(constant, whole, axes[slot], start, count, index)
                inputs[slot] = edit.nibbles(*piece) if constant.dtype is DType.INT4 else edit.constant(*piece)
        fields = {"depthMultiplier": count} if operator.name == DEPTHWISE else {}
        edit.twin(operator, inputs, made[-1:], **fields)
    return made


def _reason_against_channels(operator: Operator, weights: Tensor) -> str | None:
    """Return the reason why a channel does not depend on the whole input and on one piece of the weights."""
    x = operator.inputs[0]
    name, depth = operator.name, None if x is None or not x.shape else x.shape[-1]
    if name == CONVOLUTION and weights.shape[-1] != depth:
        return "it is grouped: its channels depend on some of the input's"
    if name == DEPTHWISE and depth != 1:
        return "its channels depend on one of the input's each"
    if name == "FULLY_CONNECTED" and operator.option("weightsFormat", 0):
        return "its weights are shuffled"
    if name == "GATHER" and (operator.option("axis", 0) or operator.option("batchDims", 0) or len(weights.shape) != 2):
        return "it does not take whole rows of a table"
    return None


def _constants(pieces: Sequence[ConstantPiece]) -> PartOperand:
    """New constants, one for each part."""
    return lambda edit: [edit.constant(*each) for each in pieces]


def _split(tensor: Tensor, parts: Sequence[ChannelPart]) -> PartOperand:
    """The outputs of a SPLIT_V that takes a computed tensor apart along its channels, one for each part."""

    def write(edit: Editor) -> Sequence[Tensor]:
        shape = tensor.shape
        made = [
            edit.activation(f"{tensor.name}/part{part.index}", (*shape[:-1], part.channels), tensor, is_piece=True)
            for part in parts
        ]
        sizes = edit.constant(f"{tensor.name}/sizes", np.asarray([part.channels for part in parts], np.int32))
        axis = edit.constant(f"{tensor.name}/axis", np.asarray(len(shape) - 1, np.int32))
        edit.operator("SPLIT_V", (tensor, sizes, axis), made, "SplitVOptions", numSplits=len(made))
        return made

    return write


@dataclass(frozen=True)
class ChannelReader:
    """An operator with one output that reads a concatenation along the channels: ``whole``, made of ``parts``.

    ``is_returned`` says whether a tensor is an output of the graph.
    """

    operator: Operator
    whole: Tensor
    parts: Sequence[ChannelPart]
    is_returned: Callable[[Tensor], bool]

    @property
    def output(self) -> Tensor:
        """The operator's output."""
        return self.operator.outputs[0]

    @property
    def reads_once(self) -> bool:
        """Tell whether the concatenation is the operator's first input and no other."""
        return [slot for slot, tensor in enumerate(self.operator.inputs) if tensor is self.whole] == [0]

    def output_channels(self, part: ChannelPart) -> tuple[int, int]:
        """The first of the output's channels that come from a part, and how many they are."""
        made, read = self.output.shape[-1], self.whole.shape[-1]
        return part.start * made // read, part.channels * made // read

    def data(self) -> PartOperand:
        """The parts themselves."""
        return lambda _: [part.tensor for part in self.parts]

    def shared(self, tensor: Tensor | None) -> PartOperand:
        """A tensor that the operators of all parts read."""
        return lambda _: [tensor] * len(self.parts)

    def cut(self, constant: Tensor | None) -> PartOperand | None:
        """A constant with the output's channels along its last axis, cut with them; None without plain values.

        A missing constant stays missing.
        """
        if constant is None:
            return self.shared(None)
        whole = values(constant)
        if whole is None:
            return None
        return _constants(
            [constant_piece(constant, whole, -1, *self.output_channels(part), part.index) for part in self.parts]
        )

    def split(self, *operands: PartOperand, **fields: Any) -> Proposal:
        """Propose the output as the concatenation of the operator on each part.

        ``operands``: what it reads, by input slot; ``fields``: those of its options that are others.
        """

        def write(edit: Editor) -> None:
            output, made = self.output, list[Tensor]()
            written = [operand(edit) for operand in operands]
            for part in self.parts:
                shape = (*output.shape[:-1], self.output_channels(part)[1])
                made.append(edit.activation(f"{output.name}/part{part.index}", shape, output, is_piece=True))
                edit.twin(self.operator, [operand[part.index] for operand in written], made[-1:], **fields)
            edit.join(made, output, len(output.shape) - 1)

        return Proposal(write)

    def split_data(self) -> Proposal:
        """Propose the operator on every part, which it reads in place of the whole, and all else as it does now."""
        inputs = self.operator.inputs
        return self.split(*(self.data() if tensor is self.whole else self.shared(tensor) for tensor in inputs))


def channel_reader(match: Match, multiplier: int = 1) -> ChannelReader | str:
    """The match's anchor, or why it cannot run part by part whatever operator it is.

    ``multiplier``: output channels for one input channel.
    """
    parts, anchor = channel_parts(match[ROLE]), match.anchor
    if isinstance(parts, str):
        return parts
    if len(parts) > MAX_PARTS:
        return f"the concatenation has {len(parts)} inputs, and TFLM joins at most {MAX_PARTS}"
    whole, outputs = match[ROLE].outputs[0], anchor.outputs
    if len(outputs) != 1 or outputs[0].shape[-1:] != (whole.shape[-1] * multiplier,):
        return "its output has other channels than the concatenation"
    if any(is_per_channel(tensor.quantization) for tensor in (whole, outputs[0])):
        return "an activation is quantized per channel"
    reason = None if outputs[0].dtype is whole.dtype else _reason_against_joining(outputs[0])
    return reason or ChannelReader(anchor, whole, parts, match.is_returned)


def _reason_against_joining(output: Tensor) -> str | None:
    """Return the reason why TFLM cannot join parts of the output's type, where it is not the concatenation's."""
    if not OPERATORS["CONCATENATION"].tflm.takes(output.dtype):
        return f"TFLM does not join tensors of type {output.dtype.label}"
    quantization = output.quantization
    if output.dtype is DType.INT16 and quantization is not None and quantization.zero_point.any():
        return "TFLM joins int16 tensors only if their zero point is 0"
    return None


def _legal_concatenation(match: Match) -> Answer:
    operator = match.anchor
    if len(operator.inputs) <= MAX_PARTS:
        return None
    if operator.option("fusedActivationFunction", 0):
        return "it has a fused activation, which TFLM does not take either"
    axis, rank = joined_axis(operator), len(operator.outputs[0].shape)
    if axis is None or any(tensor is None or len(tensor.shape) != rank for tensor in operator.inputs):
        return "its inputs do not make up its output"

    def write(edit: Editor) -> None:
        parts = list(operator.present_inputs())
        while len(parts) > MAX_PARTS:
            parts = _round(operator, axis, edit, parts)
        edit.twin(operator, parts, operator.outputs)

    return Proposal(write)


def _round(operator: Operator, axis: int, edit: Editor, parts: Sequence[Tensor]) -> list[Tensor]:
    """Join runs of ten from the front on, as long as more than ten inputs are left, but none twice."""
    joined, rest, whole = list[Tensor](), list(parts), operator.outputs[0]
    while len(rest) > 1 and len(joined) + len(rest) > MAX_PARTS:
        size = min(MAX_PARTS, len(joined) + len(rest) - MAX_PARTS + 1, len(rest))
        shape = list(whole.shape)
        shape[axis] = sum(part.shape[axis] for part in rest[:size])
        joined.append(edit.activation(f"{whole.name}/joined", shape, whole, is_piece=True))
        edit.twin(operator, rest[:size], joined[-1:])
        rest = rest[size:]
    return joined + rest


LEGAL_CONCATENATION = Rule("legal_concatenation", CONCATENATION, _legal_concatenation)
r"""Nest a CONCATENATION of more than ten inputs, the most that TFLM accepts.

    a1 ---\                       a1  ... a10 -- CONCATENATION --\
    ...    CONCATENATION -- y =>  a11 ... a17 -- CONCATENATION --- CONCATENATION -- y
    a25 --/                       a18 ... a25 ------------------/

Exact: on one axis, joining runs of neighbors first gives the same whole, and no kernel changes a value. A model with
such an operator does not load in TFLM at all: ``kMaxInputNum`` of micro/kernels/concatenation.cc.

Inputs are joined in runs of up to ten until ten are left, in as many rounds as it takes. That makes the fewest
operators, and copies the fewest bytes twice.
"""


def _nested_concatenation(match: Match) -> Answer:
    outer = match.anchor
    reasons = {inner: _reason_against_nested_concatenation(match, inner) for inner in _inner_ones(outer)}
    free = [inner for inner, reason in reasons.items() if reason is None]
    if not free:
        return next(reason for reason in reasons.values() if reason is not None)
    merged = _as_many_as_fit(outer, free)
    if not merged:
        return f"together they have more inputs than TFLM joins, {MAX_PARTS}"
    inputs = _inputs(outer, merged)
    return Proposal(lambda edit: edit.twin(outer, inputs, outer.outputs))


def _reason_against_nested_concatenation(match: Match, inner: Operator) -> str | None:
    outer, between = match.anchor, inner.outputs[0]
    if any(use.operator is not outer for use in between.uses) or match.is_returned(between):
        return f"'{between.name}' is needed by others too"
    if any(each.option("fusedActivationFunction", 0) for each in (outer, inner)):
        return "one of the two has a fused activation"
    if joined_axis(outer) is None or joined_axis(outer) != joined_axis(inner):
        return "the two are not along one axis"
    if not all(_is_like(tensor, between) for tensor in (*inner.inputs, *outer.outputs)):
        return "types or quantizations differ"
    return None


def _as_many_as_fit(outer: Operator, inner_ones: Sequence[Operator]) -> list[Operator]:
    """The inner concatenations to merge, in order, as long as the inputs are not too many."""
    chosen: list[Operator] = []
    for inner in inner_ones:
        if len(_inputs(outer, [*chosen, inner])) <= MAX_PARTS:
            chosen.append(inner)
    return chosen


def _inner_ones(outer: Operator) -> list[Operator]:
    writers = (tensor.producer for tensor in outer.present_inputs())
    return list(dict.fromkeys(each for each in writers if each is not None and each.name == "CONCATENATION"))


def _inputs(outer: Operator, merged: list[Operator]) -> list[Tensor | None]:
    """The inputs in order; those of a merged concatenation wherever its output was joined."""
    of_inner = {inner.outputs[0]: inner.inputs for inner in merged}
    pieces = ((tensor,) if tensor is None else of_inner.get(tensor, (tensor,)) for tensor in outer.inputs)
    return [tensor for piece in pieces for tensor in piece]


def _is_like(tensor: Tensor | None, other: Tensor) -> bool:
    if tensor is None or tensor.is_variable:
        return False
    return tensor.dtype is other.dtype and quantized_alike(tensor.quantization, other.quantization)


NESTED_CONCATENATION = Rule(
    "nested_concatenation",
    Pattern("outer", CONCATENATION.names, any_input=CONCATENATION),
    _nested_concatenation,
)
r"""Merge a CONCATENATION into the one on the same axis that reads it.

    a --\                                    a --\
    b -- CONCATENATION --\              =>   b -- CONCATENATION -- y
    c ------------------- CONCATENATION -- y  c --/

Exact: joining is associative, and no kernel changes a value. Up to the ten inputs that TFLM takes.

The inputs take the place of what they were joined into, so that nearly always memory falls. Not always: each of them is
rounded up to 16 bytes, and the rules that take a concatenation apart would lose the choice to keep the inner one whole.
That is why the search decides.
"""


def _split_depthwise(match: Match) -> Answer:
    reader = channel_reader(match, int(match.anchor.option("depthMultiplier", 0)))
    if isinstance(reader, str):
        return reader
    constants = match.anchor.inputs[1:]
    weights, bias = (*constants, None, None)[:2]
    if not reader.reads_once or weights is None:
        return "it reads the concatenation as weights"
    if len(constants) > 2:
        return "it has more inputs than data, weights and bias"
    cut = [found for tensor in constants if (found := reader.cut(tensor)) is not None]
    if len(cut) < len(constants) or not all(tensor is None or _is_plain(tensor) for tensor in constants):
        return "its weights or bias are computed, sparse, of a packed type, or quantized in a custom way"
    return _reason_against_shapes(reader, weights, bias) or reader.split(reader.data(), *cut)


def _reason_against_shapes(reader: ChannelReader, weights: Tensor, bias: Tensor | None) -> str | None:
    source, output = reader.whole, reader.output
    # Not float with int8: such inputs are quantized by the largest of all channels.
    if weights.dtype not in BYTES.get(source.dtype, ()) or source.dtype is not output.dtype:
        return f"its types do not fit together: {source.dtype.label} with weights of {weights.dtype.label}"
    if not len(source.shape) == len(weights.shape) == len(output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    channels = output.shape[3]
    if weights.shape[0] != 1 or weights.shape[3] != channels or (bias is not None and bias.shape != (channels,)):
        return "its weights or bias do not have one value for each channel"
    if not is_cuttable(weights, 3, channels) or (bias is not None and not is_cuttable(bias, 0, channels)):
        return "its weights or bias are quantized along another axis than the channels"
    return None


def _is_plain(tensor: Tensor) -> bool:
    found = tensor.quantization
    is_custom = found is not None and found.extras.get("details") is not None
    return tensor.extras.get("sparsity") is None and not is_custom


SPLIT_DEPTHWISE = Rule("split_depthwise", Pattern("depthwise", (DEPTHWISE,), {0: CONCATENATION}), _split_depthwise)
"""Replace a depthwise convolution of a concatenation along channels by one convolution for each part.

    a --+                                       a -- DEPTHWISE[Wa, Ba] --+
        +-- CONCATENATION -- DEPTHWISE[W, B] =>                          +-- CONCATENATION
    b --+                                       b -- DEPTHWISE[Wb, Bb] --+

Exact: an output channel is the sum of products of one input channel with one channel of the weights, with a bias, a
multiplier and a shift of its own (TFLM reference/depthwiseconv_float.h, reference/integer_ops/depthwise_conv.h). So
weights, bias, scales and zero points are cut along the channels; with a depth multiplier ``m``, the channels
``[start, end)`` of the input make the channels ``[start * m, end * m)`` of the output.

This is the kernel-wise partitioning of SERENITY (Ahn et al., MLSys 2020, section 3.3).
"""


_PADS = ("PAD", "PADV2", "MIRROR_PAD")
_REDUCTIONS = (*REDUCTIONS, "REDUCE_PROD")
_SLICES = ("SLICE", "STRIDED_SLICE")

_SLICE_MASKS = ("shrinkAxisMask", "ellipsisMask", "newAxisMask", "offset")
"""With one of these, input and output dimensions are not the same ones."""


def _elementwise(reader: ChannelReader) -> Answer:
    """An elementwise operator.

        a --+                               a -- MUL[Ka] --+
            +-- CONCATENATION -- MUL[K]  =>                +-- CONCATENATION
        b --+                               b -- MUL[Kb] --+

    Exact: an output value depends on the input values at its place, by arithmetic whose parameters are those of whole
    tensors (TFLM micro/kernels: activations.cc, elementwise.cc, add.cc and so on).
    """
    operands = []
    for tensor in reader.operator.inputs:
        operand = _elementwise_operand(reader, tensor)
        if operand is None:
            name = "" if tensor is None else tensor.name
            return f"its operand '{name}' can neither be cut along the channels nor shared"
        operands.append(operand)
    return reader.split(*operands)


def _elementwise_operand(reader: ChannelReader, tensor: Tensor | None) -> PartOperand | None:
    """Return the access of the operators on the parts to one input, by its kind:

    - one that does not change along the channels (a scalar, ``[..., 1]``): read by all;
    - a constant with channels (``[C]``, ``[1, 1, 1, C]``, full size): cut;
    - another concatenation whose parts have the same channels: its parts;
    - a computed vector of one value a channel, as in squeeze-and-excitation: taken apart by SPLIT_V, which only has to
      copy ``C`` values, or nothing where the parts are ranges of its bytes;
    - an image of full size that a convolution writes for this operator alone: the convolution makes the channels of
      each part, from weights of its own (``reason_against_groups``).
    """
    if tensor is None or not tensor.shape or tensor.shape[-1] == 1:
        return reader.shared(tensor)
    if tensor is reader.whole:
        return reader.data()
    if is_per_channel(tensor.quantization) or tensor.shape[-1] != reader.whole.shape[-1]:
        return None
    if tensor.is_constant:
        return reader.cut(tensor)
    if tensor.producer is not None and tensor.producer.name in CONCATENATION.names:
        others = channel_parts(tensor.producer)
        if not isinstance(others, str) and [part.start for part in others] == [part.start for part in reader.parts]:
            return lambda _: [part.tensor for part in others]
    if OPERATORS["SPLIT_V"].tflm.takes(tensor.dtype) and prod(tensor.shape[:-1]) == 1 and not tensor.is_variable:
        return _split(tensor, reader.parts)
    return _made_in_parts(reader, tensor)


def _made_in_parts(reader: ChannelReader, tensor: Tensor) -> PartOperand | None:
    if tensor.producer is None or len(tensor.uses) > 1 or reader.is_returned(tensor):
        return None
    if reason_against_groups(tensor.producer) is not None:
        return None
    return partial(_write_groups, tensor.producer, [part.channels for part in reader.parts])


def _pool(reader: ChannelReader) -> Answer:
    """A pool.

        a --+                           a -- POOL --+
            +-- CONCATENATION -- POOL =>            +-- CONCATENATION
        b --+                           b -- POOL --+

    Exact: a window holds values of one channel. Sources: TFLM reference/pooling.h (AveragePool, MaxPool, L2Pool) and
    reference/integer_ops/pooling.h, which loop over channels around the window.
    """
    if not reader.reads_once or not len(reader.whole.shape) == len(reader.output.shape) == 4:
        return "its tensors are not of 4 dimensions"
    return reader.split_data()


def _pad(reader: ChannelReader) -> Answer:
    """A padding that adds no channels; the paddings are one constant for all parts.

        a --+                          a -- PAD --+
            +-- CONCATENATION -- PAD =>           +-- CONCATENATION
        b --+                          b -- PAD --+

    Exact: PAD and PADV2 write one value all over the border, MIRROR_PAD values of the same channel. Sources: TFLM
    reference/pad.h and micro/kernels/mirror_pad.cc.
    """
    inputs = reader.operator.inputs
    if not reader.reads_once or any(tensor is None or tensor.elements != 1 for tensor in inputs[2:]):
        return "its value is not one for all channels"
    amounts = integers(inputs[1]) if len(inputs) > 1 else None
    if amounts is None or amounts.size != 2 * len(reader.whole.shape):
        return "its paddings are not constant, or not two for each dimension"
    return "it pads the channels" if amounts[-2:].any() else reader.split_data()


def _resize_or_reduction(reader: ChannelReader) -> Answer:
    """A resize, or a reduction over other dimensions than the channels.

        a --+                             a -- RESIZE --+
            +-- CONCATENATION -- RESIZE =>              +-- CONCATENATION
        b --+                             b -- RESIZE --+

    Exact: sums go through the pixels in the same order. Sources: TFLM reference/resize_bilinear.h,
    reference/resize_nearest_neighbor.h, reference/reduce.h (Mean, ReduceGeneric, QuantizedMeanOrSumExtraArgs). Which
    loop they take depends on the rank and the axes, and on no size.
    """
    inputs, rank = reader.operator.inputs, len(reader.whole.shape)
    if not reader.reads_once or len(inputs) != 2:
        return "it does not have one input and one operand"
    if reader.operator.name in _REDUCTIONS:
        axes = integers(inputs[1])
        if axes is None:
            return "its axes are not constant"
        if (axes % rank == rank - 1).any():
            return "it reduces the channels"
    return reader.split_data()


def _reshape(reader: ChannelReader) -> Answer:
    """A reshape that leaves the channels alone.

        a --+                              a -- RESHAPE --+
            +-- CONCATENATION -- RESHAPE =>               +-- CONCATENATION
        b --+                              b -- RESHAPE --+

    Exact: the elements stay in their order, so that a last dimension of the same size is the same dimension. The new
    operators are views and cost nothing. Convolutions along one axis are made of these: EXPAND_DIMS or RESHAPE to an
    image of one row, CONV_2D, and RESHAPE or SQUEEZE back.
    """
    operator, output = reader.operator, reader.output
    if not reader.reads_once:
        return "it reads the concatenation as a shape"
    if operator.name == "SQUEEZE" and not np.size(operator.option("squeezeDims", ())):
        return "it drops all dimensions of 1, and so might drop the channels of a part"
    if operator.name != "RESHAPE":
        return reader.split_data()
    shapes = [
        (f"{output.name}/part{part.index}/shape", np.asarray((*output.shape[:-1], part.channels), np.int32), None)
        for part in reader.parts
    ]
    # The operand says the shape; the field that may say it too would say that of the whole.
    fields = {} if operator.options is None else {"newShape": None}
    return reader.split(reader.data(), _constants(shapes), **fields)


def _slice(reader: ChannelReader) -> Answer:
    """A slice that keeps all channels.

        a --+                            a -- SLICE --+
            +-- CONCATENATION -- SLICE =>             +-- CONCATENATION
        b --+                            b -- SLICE --+

    Exact: elements are copied. Crops and steps of STRIDED_SLICE along height and width do not touch the channels.
    Sources: TFLM reference/slice.h, micro/kernels/strided_slice_common.cc.
    """
    operator, rank = reader.operator, len(reader.whole.shape)
    limits = _slice_limits(operator)
    if not reader.reads_once or limits is None or any(values.size != rank for _, values in limits):
        return "its operands are not constant, or not one for each dimension"
    if operator.name == "STRIDED_SLICE" and any(operator.option(name, 0) for name in _SLICE_MASKS):
        return "it adds or drops dimensions"
    if operator.name == "STRIDED_SLICE" and limits[2][1][-1] != 1:
        return "it steps through the channels"
    (begin, _), (extent, kept), *strides = limits
    dtype = np.int32 if extent.dtype is DType.INT32 else np.int64
    extents = [
        (f"{extent.name}/part{part.index}", np.asarray([*kept[:-1].tolist(), part.channels], dtype), None)
        for part in reader.parts
    ]
    shared = [reader.shared(tensor) for tensor, _ in strides]
    return reader.split(reader.data(), reader.shared(begin), _constants(extents), *shared)


def _slice_limits(operator: Operator) -> list[tuple[Tensor, npt.NDArray[np.int64]]] | None:
    """Begin and size, or begin, end and strides: the tensors, and their values."""
    wanted = 2 if operator.name == "SLICE" else 3
    pairs = [(tensor, integers(tensor)) for tensor in operator.inputs[1:]]
    found = [(tensor, values) for tensor, values in pairs if tensor is not None and values is not None]
    return found if len(found) == len(pairs) == wanted else None


def _rule_split_channelwise(
    name: str, operators: Collection[str], split: Callable[[ChannelReader], Answer], at_any_input: bool = False
) -> Rule:
    """Return the rule for kinds that read the concatenation as their first input, or at any."""

    def check(match: Match) -> Answer:
        reader = channel_reader(match)
        return reader if isinstance(reader, str) else split(reader)

    inputs = {} if at_any_input else {0: CONCATENATION}
    return Rule(name, Pattern("channelwise", operators, inputs, CONCATENATION if at_any_input else None), check)


SPLIT_CHANNELWISE = (
    _rule_split_channelwise("split_pooling", ALL_POOLS, _pool),
    _rule_split_channelwise("split_elementwise", BY_CHANNEL, _elementwise, at_any_input=True),
    _rule_split_channelwise("split_pad", _PADS, _pad),
    _rule_split_channelwise("split_spatial", (*RESIZES, *_REDUCTIONS), _resize_or_reduction),
    _rule_split_channelwise("split_reshape", RESHAPES, _reshape),
    _rule_split_channelwise("split_slice", _SLICES, _slice),
)
"""Replace an operator that does not mix channels, behind a concatenation along channels, by one for each part.

    a --+                           a -- op --+
        +-- CONCATENATION -- op =>            +-- CONCATENATION
    b --+                           b -- op --+

Exact: an output value depends on input values of its own channel, and all channels are computed alike. One row of a
table for each kind of operator says what the operator on a part reads, or why it cannot be run on parts.

One rule for each row of the table, under the name that reports show.
"""


_LANES = 4
"""Channels per tile are a multiple of this, if there are enough: kernels with vector instructions take four."""


def tile_sizes(channels: int, count: int) -> tuple[int, ...]:
    """``count`` numbers that add up to ``channels``, as equal as whole vectors allow, or as single channels do.

    >>> tile_sizes(40, 3)
    (16, 12, 12)
    >>> tile_sizes(10, 3)
    (4, 3, 3)
    """
    unit = _LANES if channels % _LANES == 0 and channels >= _LANES * count else 1
    share, more = divmod(channels // unit, count)
    return tuple(unit * (share + (number < more)) for number in range(count))


@cache
def channel_tiles(count: int) -> Rule:
    """Compute some output channels at a time, of a convolution, FULLY_CONNECTED, or GATHER of a table.

    Returns the rule that makes ``count`` tiles.
    """

    def check(match: Match) -> Answer:
        readers = [use.operator.name for output in match.anchor.outputs for use in output.uses]
        if readers and set(readers) == {"CONCATENATION"}:
            return None  # It is a tile, or a branch: joined in tiles it would be joined twice.
        reason = reason_against_groups(match.anchor)
        if reason is not None:
            return reason
        output = match.anchor.outputs[0]
        if match.is_returned(output) or not output.uses:
            return f"'{output.name}' is returned as a whole, or not read"
        if not 2 <= count <= min(MAX_PARTS, output.shape[-1]):
            return f"it cannot be made in {count} tiles: it has {output.shape[-1]} channels, and TFLM joins {MAX_PARTS}"
        sizes = tile_sizes(output.shape[-1], count)
        if 1 in sizes and match.anchor.name == "FULLY_CONNECTED" and rescales_in_double(match.anchor):
            return f"'{output.name}' has a scale for each channel, and one alone is rounded in another way"
        return Proposal(lambda edit: edit.join(_write_groups(match.anchor, sizes, edit), output, len(output.shape) - 1))

    return Rule(f"{count} channel_tiles", Pattern("fan-out", tuple(_CHANNEL_AXES)), check)


def rescales_in_double(dense: Operator) -> bool:
    """Return whether TFLM computes the rescaling of a dense layer in float64; that of one scale is in float32.

    Source: tensorflow/lite/micro/kernels/fully_connected_common.cc, and ``GetQuantizedConvolutionMultipler``.
    """
    weights = dense.inputs[1]
    return weights is not None and is_per_channel(weights.quantization)
