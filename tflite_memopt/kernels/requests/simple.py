"""Operators whose requests do not depend on types, shapes or options.

In a row's comment: the parser's structure (builtin_op_data.h), then the structure that Init allocates and the
kernel file, in tensorflow/lite/micro/kernels, where its name does not follow from the operator's.
Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/core/api/flatbuffer_conversions.cc and the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from .model import RequestRule, Size
from .plain import Plain
from .slots import BINARY, IN0, IN1, IN2, IN3, OUT0, TERNARY, UNARY

_TANH = (IN0, IN0, OUT0)  # Prepare and its helper each hold the input
_COMPARISON = Plain(op_data=Size(32, 32), holds=(IN0, IN1))  # OpData, comparisons.cc
_ABS_RSQRT = Plain(op_data=Size(28, 28), holds=UNARY)  # OpDataAbsRsqrt, elementwise.cc
_POOL = Plain(Size(40, 40), Size(32, 32), UNARY)  # TfLitePoolParams; OpDataPooling
_PAD = Plain(op_data=Size(56, 56), holds=TERNARY)  # OpData, pad_common.cc; PADV2 has a third input

SIMPLE: Mapping[str, RequestRule] = {
    "ABS": _ABS_RSQRT,
    "ADD": Plain(Size(8, 8, short=2), Size(60, 60), BINARY),  # TfLiteAddParams; OpDataAdd
    "ARG_MAX": Plain(Size(4, 4, short=1)),  # TfLiteArgMaxParams
    "ARG_MIN": Plain(Size(4, 4, short=1)),  # TfLiteArgMinParams
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_TO_SPACE_ND": Plain(holds=UNARY),
    "BROADCAST_ARGS": Plain(holds=BINARY),
    "BROADCAST_TO": Plain(holds=BINARY),
    "CAST": Plain(Size(8, 8, short=2), holds=UNARY),  # TfLiteCastParams
    "CEIL": Plain(holds=UNARY),
    "COS": Plain(holds=UNARY),
    "DEPTH_TO_SPACE": Plain(Size(4, 4), holds=UNARY, moves_shape=True),  # TfLiteDepthToSpaceParams
    "DEQUANTIZE": Plain(op_data=Size(32, 32), holds=UNARY),  # DequantizeOpData
    "DIV": Plain(Size(4, 4, short=1), Size(28, 28), BINARY),  # TfLiteDivParams; OpDataDiv
    "DYNAMIC_UPDATE_SLICE": Plain(holds=TERNARY),
    "ELU": Plain(op_data=Size(256, 256), holds=UNARY),  # OpData: a look-up table for int8
    "EQUAL": _COMPARISON,
    "EXP": Plain(holds=UNARY),
    "EXPAND_DIMS": Plain(holds=BINARY),
    "FILL": Plain(holds=BINARY),
    "FLOOR": Plain(),
    "FLOOR_DIV": Plain(holds=BINARY),
    "FLOOR_MOD": Plain(holds=BINARY),
    "GATHER": Plain(Size(8, 8), holds=BINARY, moves_shape=True),  # TfLiteGatherParams
    "GATHER_ND": Plain(holds=BINARY, moves_shape=True),
    "GREATER": _COMPARISON,
    "GREATER_EQUAL": _COMPARISON,
    "HARD_SWISH": Plain(op_data=Size(20, 20), holds=UNARY),  # HardSwishParams
    "L2_NORMALIZATION": Plain(Size(4, 4, short=1), Size(4, 4), UNARY),  # TfLiteL2NormParams; L2NormalizationParams
    "L2_POOL_2D": Plain(Size(40, 40), holds=(OUT0, IN0), moves_shape=True),  # TfLitePoolParams
    "LEAKY_RELU": Plain(Size(4, 4), Size(24, 24), UNARY),  # TfLiteLeakyReluParams; LeakyReluOpData
    "LESS": _COMPARISON,
    "LESS_EQUAL": _COMPARISON,
    "LOG": Plain(holds=UNARY),
    "LOGICAL_AND": Plain(),
    "LOGICAL_NOT": Plain(holds=UNARY),
    "LOGICAL_OR": Plain(),
    "LOGISTIC": Plain(op_data=Size(16, 16), holds=UNARY),  # OpDataLogistic
    "MAXIMUM": Plain(),
    "MAX_POOL_2D": _POOL,
    "MINIMUM": Plain(),
    "MUL": Plain(Size(4, 4, short=1), Size(36, 36), BINARY),  # TfLiteMulParams; OpDataMul
    "NEG": Plain(),
    "NOT_EQUAL": _COMPARISON,
    "PACK": Plain(Size(8, 8)),  # TfLitePackParams
    "PAD": _PAD,
    "PADV2": _PAD,
    "PRELU": Plain(op_data=Size(28, 28), holds=BINARY),  # PreluParams
    "QUANTIZE": Plain(op_data=Size(32, 32), holds=UNARY),  # OpDataQuantizeReference
    "RELU": Plain(op_data=Size(28, 28), holds=UNARY),  # ReluOpData, activations.cc
    "RELU6": Plain(op_data=Size(8, 8), holds=(IN0,)),  # Relu6OpData, activations.cc
    "RESIZE_BILINEAR": Plain(Size(2, 2), holds=BINARY),  # TfLiteResizeBilinearParams
    "RESIZE_NEAREST_NEIGHBOR": Plain(Size(2, 2), holds=BINARY),
    "REVERSE_V2": Plain(holds=BINARY),
    "ROUND": Plain(holds=UNARY),
    "RSQRT": _ABS_RSQRT,
    "SELECT_V2": Plain(op_data=Size(1, 1), holds=TERNARY),  # OpData
    "SHAPE": Plain(Size(4, 4, short=1)),  # TfLiteShapeParams
    "SIN": Plain(holds=UNARY),
    "SLICE": Plain(holds=TERNARY),
    "SPACE_TO_BATCH_ND": Plain(op_data=Size(4, 4), holds=UNARY),  # SpaceToBatchParams
    "SPACE_TO_DEPTH": Plain(Size(4, 4), holds=UNARY, moves_shape=True),  # TfLiteSpaceToDepthParams
    "SPLIT": Plain(Size(4, 4), holds=(IN0,)),  # TfLiteSplitParams
    "SPLIT_V": Plain(Size(4, 4), holds=(IN2,)),  # TfLiteSplitVParams
    "SQRT": Plain(holds=UNARY),
    "SQUARE": Plain(holds=UNARY),
    "SQUARED_DIFFERENCE": Plain(op_data=Size(112, 112), holds=BINARY),  # OpData
    "SQUEEZE": Plain(Size(36, 36), holds=UNARY),  # TfLiteSqueezeParams
    # TfLiteStridedSliceParams; StridedSliceParams
    "STRIDED_SLICE": Plain(Size(24, 24), Size(84, 84), (IN0, IN1, IN2, IN3, OUT0)),
    "SUB": Plain(Size(8, 8, short=2), Size(52, 52), BINARY),  # TfLiteSubParams; OpDataSub
    "TANH": Plain(op_data=Size(16, 16), holds=_TANH),  # OpData
    "TRANSPOSE": Plain(holds=BINARY),
    "UNPACK": Plain(Size(8, 8)),  # TfLiteUnpackParams
    "ZEROS_LIKE": Plain(holds=UNARY),
}
"""Rows by the builtin's schema name."""
