"""Kinds whose output element depends on the elements at its place, or on the channels there.

The reference loops read element i of an input and then write element i of the output, and read it never again, so that
the output may take over its dying input's bytes. Those that go over a row more than once write it in the last pass that
reads the input. Sources, tflite-micro commit 90b983c2b3f1, tensorflow/lite/micro/kernels/ and the loops of
tensorflow/lite/kernels/internal/reference/ they call:

    one input        activations.cc, logistic.cc, tanh.cc, hard_swish.cc, leaky_relu.cc, elu.cc, elementwise.cc, exp.cc,
                     floor.cc, ceil.cc, round.cc, neg.cc; zeros_like.cc reads nothing; cumsum.cc adds up as it goes,
                     but with ``exclusive`` writes an element before it reads it
    by rows          softmax.cc, log_softmax.cc, l2norm.cc: maximum or sum of a row first; float and int16 softmax
                     keeps its exponentials in the output, and then reads only that
    conversions      quantize_common.cc, dequantize.cc, cast.cc
    several inputs   add_common.cc, sub_common.cc, mul_common.cc, div.cc, maximum_minimum.cc, squared_difference.cc,
                     floor_div.cc, floor_mod.cc, comparisons.cc, logical_common.cc, prelu_common.cc, add_n.cc, select.cc

With broadcasting reference/broadcast_loop.h and select.h go over the output forwards, and read an input of the output's
own shape at the very index that is written. A smaller one is read again and again: it never qualifies.

A comment on a row names the structures of its requests: the parser's (builtin_op_data.h), then the one that Init
allocates, where these are not TfLite<Kind>Params and OpData.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model.ir.model import DType, Operator, Tensor
from .kind import F32, FLOAT, I8, I16, I32, I64, TO_8, TO_16, TO_32, TO_64, AlongH, Arrival, ByPhase, OperatorKind, Tflm
from .overrides import Sequences
from .requests import BINARY, IN0, IN1, OUT0, POINTER, TERNARY, UNARY, Abi, Asks, Size, if_int8, inputs, needed
from .reuse import KernelReuse, in_place
from .rows import Axis, RowMap, is_image


def elementwise_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: no constant that differs between rows."""
    output = operator.outputs[0]
    height = output.shape[1]
    sliced = []
    for slot, tensor in enumerate(operator.inputs):
        if tensor is None:
            continue
        rows = tensor.shape[-3] if len(tensor.shape) >= 3 else 1
        if rows == 1 and (height > 1 or tensor.is_constant):
            continue  # broadcast over the rows: the same for each of them
        if tensor.is_constant or not is_image(tensor) or rows != height:
            return "an operand is a constant that differs from row to row, or has another shape"
        sliced.append(slot)
    if not sliced:
        return "it reads no tensor of its output's height"
    return RowMap(Axis(height, height), Axis(output.shape[2], output.shape[2]), tuple(sliced))


def is_same_in_every_phase(operator: Operator, _: int) -> bool:
    """Tell whether an element depends on those at the same place, and on constants of channels."""
    return all(_is_alike(each, operator.outputs[0]) for each in operator.present_inputs())


def _is_alike(tensor: Tensor, output: Tensor) -> bool:
    """Tell whether it has a value for each of the output, or is a constant of channels."""
    return tensor.shape == output.shape or (tensor.is_constant and tensor.elements in (1, *tensor.shape[-1:]))


def has_sequences_alone(operator: Operator, sequences: Sequences) -> bool:
    """Other operands are the same for every element of the sequence."""
    return all(tensor in sequences or set(tensor.shape[:-1]) <= {1} for tensor in operator.present_inputs())


def _sum_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    return () if operator.option("exclusive", False) else in_place(operator, "first input")


def _converted_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    return in_place(operator, "first input", converts=True)


def _tables_of_softmax(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for two look-up tables when int16 (lite/kernels/internal/common.h, LUTSize<int16_t>)."""
    return (513 * 2,) * 2 if needed(operator, IN0).dtype is DType.INT16 else ()


_PIXELS = OperatorKind(rows=elementwise_rows, is_elementwise=True, along_h=AlongH(has_sequences_alone))
_ROW = replace(_PIXELS, overwrites="first input")
_UNARY = replace(_ROW, is_by_channel=True, by_phase=ByPhase(is_same_in_every_phase))
_BINARY = replace(_UNARY, overwrites="any input")
_CHOICE = replace(_PIXELS, overwrites="any input", price="chosen")


def _unary(types: frozenset[DType], asks: Asks = Asks(holds=UNARY), **fields: Any) -> OperatorKind:
    return replace(_UNARY, tflm=Tflm(types), asks=asks, **fields)


def _binary(types: frozenset[DType], asks: Asks = Asks(), **fields: Any) -> OperatorKind:
    return replace(_BINARY, tflm=Tflm(types), asks=asks, **fields)


_NUMBERS_OR_TRUTH = frozenset({F32, I8, I32, I64, DType.BOOL})
_CAST = TO_32 | {DType.BOOL, DType.UINT32}
_QUANTIZED: Mapping[DType, frozenset[DType]] = {
    F32: frozenset({I8, I16}),
    I8: frozenset({I8, I16, I32, DType.UINT8}),
    DType.UINT8: frozenset({I8}),
    I16: frozenset({I8, I16, I32}),
    I32: frozenset({I8, I16}),
}
"""What QUANTIZE makes of a type."""
_COMPARISON = Asks(0, 32, (IN0, IN1))  # OpData, comparisons.cc
_ABS_RSQRT = Asks(0, 28, UNARY)  # OpDataAbsRsqrt, elementwise.cc
_CONVERSION = Asks(0, 32, UNARY)  # DequantizeOpData, OpDataQuantizeReference

_EXTREME = _binary(TO_64, keeps_scale=True, since=(Arrival("2024-09-09 19aaea85e", I16),), versions={I8: 2, I16: 4})
_PLAIN = "use ReLU or hard swish (keras.activations.hard_silu, torch.nn.Hardswish)"

KINDS: Mapping[str, OperatorKind] = {
    **dict.fromkeys(("CEIL", "COS", "EXP", "LOG", "ROUND", "SIN", "SQRT", "SQUARE"), _unary(FLOAT)),
    "ABS": _unary(TO_16, _ABS_RSQRT),
    "ADD": _binary(
        TO_32,
        Asks(Size(8, short=2), 60, BINARY),
        flash=6217,
        since=(Arrival("2023-03-30 e87b788f2", I32),),
        versions={I8: 2, I16: 3, I64: 4},
    ),
    "ADD_N": _binary(
        TO_8,
        Asks(
            holds=lambda operator: (IN0, OUT0, *inputs(len(operator.inputs), start=1)),
            prepare=if_int8(OUT0, Size(40)),
            scratch=lambda operator, abi: (POINTER.on(abi) * len(operator.inputs),),
        ),
    ),
    "CAST": replace(
        _UNARY,
        tflm=Tflm(_CAST, outputs=dict.fromkeys(_CAST, _CAST)),
        asks=Asks(Size(8, short=2), holds=UNARY),
        reuses=_converted_reuses,
        flash=1715,
        since=(Arrival("2023-10-02 13564c778", DType.UINT32), Arrival("2024-01-22 324ae1eab", DType.BOOL)),
    ),
    **dict.fromkeys(("GELU", "RELU_0_TO_1"), OperatorKind(is_by_channel=True, instead=_PLAIN)),
    "CUMSUM": OperatorKind(
        overwrites="first input",
        tflm=Tflm(TO_8),
        asks=Asks(2, holds=BINARY, prepare=if_int8(OUT0, Size(36))),
        reuses=_sum_reuses,
    ),
    "DEQUANTIZE": _unary(
        frozenset({I8, I16, DType.UINT8}), _CONVERSION, reuses=_converted_reuses, price="converted", flash=1050
    ),
    "DIV": _binary(TO_8 | {I32}, Asks(Size(4, short=1), 28, BINARY), since=(Arrival("2023-10-02 6da4e7575", I32),)),
    "ELU": _unary(TO_8, Asks(0, 256, UNARY)),  # a look-up table for int8
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), _binary(_NUMBERS_OR_TRUTH, _COMPARISON)),
    "FLOOR": _unary(FLOAT, Asks()),
    **dict.fromkeys(("FLOOR_DIV", "FLOOR_MOD"), _binary(FLOAT, Asks(holds=BINARY))),
    "GREATER": _binary(TO_64, _COMPARISON, since=(Arrival("2025-03-17 39209b412", I16),)),
    "HARD_SWISH": _unary(TO_8, Asks(0, 20, UNARY)),  # HardSwishParams
    # TfLiteL2NormParams; L2NormalizationParams
    "L2_NORMALIZATION": replace(
        _ROW, tflm=Tflm(TO_8, rank=(0, 4, TO_8)), asks=Asks(Size(4, short=1), 4, UNARY), scale=(1 / 128, 0)
    ),
    "LEAKY_RELU": _unary(TO_16, Asks(4, 24, UNARY)),  # LeakyReluOpData
    "LESS": _binary(TO_8 | {I64, I32}, _COMPARISON, flash=4516),
    **dict.fromkeys(("GREATER_EQUAL", "LESS_EQUAL"), _binary(TO_8 | {I64, I32}, _COMPARISON)),
    **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR"), replace(_BINARY, asks=Asks())),
    "LOGICAL_NOT": replace(_UNARY, asks=Asks(holds=UNARY)),
    "LOGISTIC": _unary(TO_16, Asks(0, 16, UNARY), price="curve", scale=(1 / 256, -128)),
    # LogSoftmaxOpData
    "LOG_SOFTMAX": replace(
        _ROW, tflm=Tflm(TO_8), asks=Asks(holds=UNARY, prepare=if_int8(IN0, Size(28, 40))), scale=(1 / 16, 127)
    ),
    "MAXIMUM": _EXTREME,
    "MINIMUM": replace(_EXTREME, flash=4840),
    "MUL": _binary(TO_32, Asks(Size(4, short=1), 36, BINARY), price="product", flash=6145),
    "NEG": _unary(FLOAT, Asks()),
    "POW": OperatorKind(instead="write a product (x * x), or sqrt and exp"),
    "PRELU": replace(
        _BINARY,
        tflm=Tflm(TO_16, weights=1, of_weights={I16: frozenset({I8})}, rank=(0, 4, FLOAT)),
        asks=Asks(0, 28, BINARY),  # PreluParams
        since=(Arrival("2025-09-09 aa6e62517", I16),),
    ),
    "QUANTIZE": replace(
        _UNARY,
        tflm=Tflm(frozenset(_QUANTIZED), outputs=_QUANTIZED),
        asks=_CONVERSION,
        reuses=_converted_reuses,
        price="converted",
        flash=2426,
    ),
    # activations.cc: ReluOpData, Relu6OpData
    "RELU": _unary(TO_16, Asks(0, 28, UNARY), since=(Arrival("2025-03-21 b78bb7e31", I16),)),
    "RELU6": _unary(TO_16, Asks(0, 8, (IN0,)), since=(Arrival("2024-09-26 ef2179ce0", I16),)),
    "RELU_N1_TO_1": replace(_UNARY, overwrites=None, instead=_PLAIN),
    "RSQRT": _unary(TO_16, _ABS_RSQRT, since=(Arrival("2023-03-02 cf34a2a60", I16),)),
    "SELECT": OperatorKind(
        price="chosen",
        keeps_scale=True,
        instead="give keras.ops.where (torch.where) operands of one shape, or multiply by a mask",
    ),
    "SELECT_V2": replace(
        _CHOICE, tflm=Tflm(TO_16, activation=1), asks=Asks(0, 1, TERNARY), is_same_code=True, flash=5494
    ),
    "SIGN": OperatorKind(is_by_channel=True),  # without a kernel
    "SOFTMAX": replace(
        _ROW,
        tflm=Tflm(TO_16),
        asks=Asks(4, Size(56, 80), UNARY, _tables_of_softmax),  # SoftmaxParams
        price="softmax",
        scale=(1 / 256, -128),
    ),
    "SQUARED_DIFFERENCE": _binary(TO_32, Asks(0, 112, BINARY), since=(Arrival("2023-03-06 a4dc63912", I16),)),
    "SUB": _binary(
        TO_32,
        Asks(Size(8, short=2), 52, BINARY),
        price="plain element",
        flash=6400,
        since=(Arrival("2025-06-04 686df2db9", I32),),
    ),
    # its helper holds the input again
    "TANH": _unary(TO_16, Asks(0, 16, (IN0, IN0, OUT0)), price="curve", scale=(1 / 128, 0)),
    "ZEROS_LIKE": OperatorKind(overwrites="first input", tflm=Tflm(TO_8 | {I64, I32}), asks=Asks(holds=UNARY)),
}
