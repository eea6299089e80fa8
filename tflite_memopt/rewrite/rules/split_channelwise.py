"""Operators that do not mix channels: of a channel concatenation, one operator for each part.

    a --+                           a -- op --+
        +-- CONCATENATION -- op =>            +-- CONCATENATION
    b --+                           b -- op --+

Exact: an output value depends on input values of its own channel, and all channels are computed alike. One row of a
table for each kind of operator says what the operator on a part reads, or why it cannot be run on parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ...ir.channels import is_per_channel
from ...ir.constants import integers
from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from ...kernels.relations import RESHAPES
from ..channelwise import (
    ChannelReader,
    ChannelSplit,
    ConstantOperand,
    GivenOperand,
    PartOperand,
    SplitOperand,
    channel_reader,
    run_on_parts,
)
from ..concatenation import CONCATENATION, channel_parts
from ..fan_out import FanOut, FanOutOperand, fan_out
from ..pattern import Match, Pattern
from ..rule import Rule

_UNARY = frozenset(
    {"ABS", "CAST", "CEIL", "COS", "DEQUANTIZE", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG"}
    | {"LOGICAL_NOT", "LOGISTIC", "NEG", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT"}
    | {"SIGN", "SIN", "SQRT", "SQUARE", "TANH"}
)
_WITH_OPERANDS = frozenset(
    {"ADD", "ADD_N", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "MUL", "PRELU", "SQUARED_DIFFERENCE"}
    | {"SUB", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "NOT_EQUAL"}
)
_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_PADS = ("PAD", "PADV2", "MIRROR_PAD")
_RESIZES = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
_SLICES = ("SLICE", "STRIDED_SLICE")

_SPLIT_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32)
"""Types that TFLM's SPLIT_V takes (micro/kernels/split_v.cc)."""
_SLICE_MASKS = ("shrinkAxisMask", "ellipsisMask", "newAxisMask", "offset")
"""With one of these, input and output dimensions are not the same ones."""


def _elementwise(reader: ChannelReader) -> ChannelSplit | str:
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
    """How the operators on the parts get at one input, by its kind:

    - one that does not change along the channels (a scalar, ``[..., 1]``): read by all;
    - a constant with channels (``[C]``, ``[1, 1, 1, C]``, full size): cut;
    - another concatenation whose parts have the same channels: its parts;
    - a computed vector of one value a channel, as in squeeze-and-excitation: taken apart by SPLIT_V, which only has to
      copy ``C`` values, or nothing where the parts are ranges of its bytes;
    - an image of full size that a convolution writes for this operator alone: the convolution makes the channels of
      each part, from weights of its own (``fan_out.py``).
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
            return GivenOperand([part.tensor for part in others])
    if tensor.dtype in _SPLIT_TYPES and prod(tensor.shape[:-1]) == 1 and not tensor.is_variable:
        return SplitOperand(tensor, reader.parts)
    return _made_in_parts(reader, tensor)


def _made_in_parts(reader: ChannelReader, tensor: Tensor) -> PartOperand | None:
    made = None if tensor.producer is None else fan_out(tensor.producer)
    if not isinstance(made, FanOut) or len(tensor.uses) > 1 or reader.must_stay(tensor):
        return None
    return FanOutOperand(made, [part.channels for part in reader.parts])


def _pool(reader: ChannelReader) -> ChannelSplit | str:
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


def _pad(reader: ChannelReader) -> ChannelSplit | str:
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


def _resize_or_reduction(reader: ChannelReader) -> ChannelSplit | str:
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


def _reshape(reader: ChannelReader) -> ChannelSplit | str:
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
        (f"{output.name}/part{part.index}/shape", np.asarray((*output.shape[:-1], part.channels), np.int32), None, None)
        for part in reader.parts
    ]
    # The operand says the shape; the field that may say it too would say that of the whole.
    fields = {} if operator.options is None else {"newShape": None}
    return reader.split(reader.data(), ConstantOperand(shapes), **fields)


def _slice(reader: ChannelReader) -> ChannelSplit | str:
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
        (f"{extent.name}/part{part.index}", np.asarray([*kept[:-1].tolist(), part.channels], dtype), None, None)
        for part in reader.parts
    ]
    shared = [reader.shared(tensor) for tensor, _ in strides]
    return reader.split(reader.data(), reader.shared(begin), ConstantOperand(extents), *shared)


def _slice_limits(operator: Operator) -> list[tuple[Tensor, npt.NDArray[np.int64]]] | None:
    """Begin and size, or begin, end and strides: the tensors, and their values."""
    wanted = 2 if operator.name == "SLICE" else 3
    pairs = [(tensor, integers(tensor)) for tensor in operator.inputs[1:]]
    found = [(tensor, values) for tensor, values in pairs if tensor is not None and values is not None]
    return found if len(found) == len(pairs) == wanted else None


@dataclass(frozen=True)
class _Row:
    """One kind of operator; it may read the concatenation at any input, or as its first alone."""

    name: str
    operators: Collection[str]
    split: Callable[[ChannelReader], ChannelSplit | str]
    at_any_input: bool = False


_TABLE = (
    _Row("split_pooling", _POOLS, _pool),
    _Row("split_elementwise", _UNARY | _WITH_OPERANDS, _elementwise, at_any_input=True),
    _Row("split_pad", _PADS, _pad),
    _Row("split_spatial", (*_RESIZES, *_REDUCTIONS), _resize_or_reduction),
    _Row("split_reshape", RESHAPES, _reshape),
    _Row("split_slice", _SLICES, _slice),
)


def _rule(row: _Row) -> Rule[ChannelSplit]:
    def check(match: Match) -> ChannelSplit | str:
        reader = channel_reader(match)
        return reader if isinstance(reader, str) else row.split(reader)

    if row.at_any_input:
        pattern = Pattern("channelwise", row.operators, any_input=CONCATENATION)
    else:
        pattern = Pattern("channelwise", row.operators, {0: CONCATENATION})
    return Rule(row.name, pattern, check, run_on_parts)


SPLIT_CHANNELWISE: Sequence[Rule[ChannelSplit]] = tuple(map(_rule, _TABLE))
"""One rule for each row of the table, under the name that reports show."""
