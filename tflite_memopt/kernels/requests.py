"""Requests of each operator's reference kernel to TFLM's arena, one row per operator.

``table.py`` is the index; the other files hold the rules by family. Source of every figure: tflite-micro
commit 90b983c2b3f1 (2026-08-20), reference kernels, without tensor compression.

The requests of a kernel to TFLM's arena: the types that the tables of this folder use.

Names for an operator's tensors, so that rows can list the tensors that Prepare looks at.

The rule of most operators: fixed structures and a fixed list of temporaries, so that a row is data.

Operators whose requests do not depend on types, shapes or options.

In a row's comment: the parser's structure (builtin_op_data.h), then the structure that Init allocates and the
kernel file, in tensorflow/lite/micro/kernels, where its name does not follow from the operator's.
Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/core/api/flatbuffer_conversions.cc and the kernels.

Operators whose buffers depend on an element type: ADD_N, CUMSUM, LOG_SOFTMAX, SOFTMAX.

Source: tflite-micro commit 90b983c2b3f1, kernels add_n.cc, cumsum.cc, log_softmax.cc, softmax_common.cc.

MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL.

All ask for an index per input dimension and for the resolved axes. Their common helper looks at the tensors a
second time, and at the output only when the input is int8.
Source: tflite-micro commit 90b983c2b3f1, kernels reduce.cc, reduce_common.cc.

Operators that move data: CONCATENATION, MIRROR_PAD, RESHAPE, EMBEDDING_LOOKUP.

Source: tflite-micro commit 90b983c2b3f1, kernels concatenation.cc, mirror_pad.cc, reshape_common.cc,
embedding_lookup.cc.

FULLY_CONNECTED and BATCH_MATMUL.

Source: tflite-micro commit 90b983c2b3f1, kernels fully_connected.cc, fully_connected_common.cc,
batch_matmul.cc, batch_matmul_common.cc.

CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV.

Each keeps a multiplier and a shift per output channel, for float models too. The helper that computes them
looks at the tensors again, so most temporaries are held twice.
Source: tflite-micro commit 90b983c2b3f1, kernels conv_common.cc, depthwise_conv_common.cc, transpose_conv.cc.

UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF.

Source: tflite-micro commit 90b983c2b3f1, kernels unidirectional_sequence_lstm.cc, lstm_eval.cc,
lstm_eval_common.cc, svdf_common.cc.

Control flow and variables: CALL_ONCE, IF, WHILE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE.

Source: tflite-micro commit 90b983c2b3f1, kernels call_once.cc, if.cc, while.cc, var_handle.cc,
read_variable.cc, assign_variable.cc, and micro_resource_variable.cc.

Reads the FlexBuffer map in which a custom operator keeps its options.

Custom operators outside the signal library: CIRCULAR_BUFFER, TFLM_DECODE, TFLite_Detection_PostProcess, ethos-u.

Source: tflite-micro commit 90b983c2b3f1, kernels circular_buffer.cc, decode.cc, decode_state*.cc and .h,
detection_postprocess.cc.

The signal library's custom operators.

They keep their state between calls in persistent buffers, not in variable tensors. The name
of a structure follows its size; it is in signal/micro/kernels/<operator>.cc of tflite-micro 90b983c2b3f1.
Further sources: signal/src/circular_buffer.cc, rfft_*.cc, irfft_*.cc, and kissfft v130.

The index: one row per operator that tflite-micro's PythonOpsResolver registers.

Source: tflite-micro commit 90b983c2b3f1, python/tflite_micro/python_ops_resolver.cc and
tensorflow/lite/micro/micro_mutable_op_resolver.h. The Ethos-U operator has no reference kernel, hence no row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from flatbuffers import flexbuffers

from ..errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..model.ir.check import misfit
from ..model.ir.model import DType, Model, Operator, Tensor

Word = Literal[32, 64]
"""Pointer width of the target in bits."""


@dataclass(frozen=True)
class Abi:
    """The layout of C++ structures by the firmware's compiler, where TFLM's sizes depend on it.

    ``word``: pointer width in bits. ``short_enums``: an enum takes as few bytes as its values need, not 4, which is
    GCC's and Arm Compiler's default for bare-metal Arm (AAPCS). ``in_wheel``: built like the tflite-micro wheel
    0.dev20261023, which has tensor compression, so that some structures are larger. ``records``: it has the recording
    allocator (micro/recording_micro_allocator.h), as the wheel's Python interpreter does. ``is_static``: compiled with
    TF_LITE_STATIC_MEMORY, without which nodes and tensors are larger.
    """

    name: str
    word: Word
    short_enums: bool = False
    in_wheel: bool = False
    records: bool = False
    is_static: bool = True


ILP32 = Abi("32 bits, enums of 4 bytes", 32)
ILP32_SHORT_ENUMS = Abi("32 bits, short enums", 32, short_enums=True)
LP64 = Abi("64 bits", 64)
WHEEL = Abi("64 bits, as the tflite-micro wheel in Python", 64, in_wheel=True, records=True)
WHEEL_IN_CPP = Abi("64 bits, as the tflite-micro wheel in C++", 64, in_wheel=True)


class Size(NamedTuple):
    """sizeof one C++ structure in bytes: on 32 bits with enums of 4 bytes, and in the 64-bit wheel.

    ``short`` and ``lp64`` are for a build with short enums, and for a plain 64-bit one, where they differ from these.
    """

    w32: int
    w64: int
    short: int | None = None
    lp64: int | None = None

    def on(self, abi: Abi) -> int:
        """Return the bytes on a target with this layout."""
        if abi.word == 32:
            return self.short if abi.short_enums and self.short is not None else self.w32
        return self.lp64 if not abi.in_wheel and self.lp64 is not None else self.w64


NOTHING = Size(0, 0)
_WORD_BYTES = 4


def alignment_of(size: int) -> int:
    """C++ alignment of a parameter structure of this many bytes: of ints, or of nothing but bools and short enums."""
    return 1 if size % _WORD_BYTES else _WORD_BYTES


@dataclass(frozen=True)
class Requests:
    """Everything that one operator takes from the arena, in bytes, in the order of TFLM's calls.

    ``params``: the builtin parameter structure that the flatbuffer parser allocates; ``params_alignment`` is
    its C++ alignment, as the parser requests it, not a whole word.
    ``init``, ``prepare``: AllocatePersistentBuffer calls in Init and in Prepare (each aligned to 16).
    ``scratch``: RequestScratchBufferInArena calls; alive in the head during the operator's step.
    ``temporaries``: tensors whose TfLiteTensor Prepare holds at the same time in the temporary area.
    ``known``: False when no table row exists for the operator, so that the figures are a guess.
    """

    params: int = 0
    init: tuple[int, ...] = ()
    prepare: tuple[int, ...] = ()
    scratch: tuple[int, ...] = ()
    temporaries: tuple[Tensor, ...] = ()
    known: bool = True
    params_alignment: int = 4


RequestRule = Callable[[Operator, Abi], Requests]
"""One row of the table: an operator and a target's layout give the requests."""


class Slot(NamedTuple):
    """One input or output of an operator, by position."""

    side: Literal["input", "output"]
    position: int


IN0, IN1, IN2, IN3, IN4, IN5 = (Slot("input", position) for position in range(6))
OUT0, OUT1 = (Slot("output", position) for position in range(2))

UNARY = (IN0, OUT0)
BINARY = (IN0, IN1, OUT0)
TERNARY = (IN0, IN1, IN2, OUT0)


def inputs(count: int, start: int = 0) -> tuple[Slot, ...]:
    """Return the input slots ``start`` to ``count - 1``."""
    return tuple(Slot("input", position) for position in range(start, count))


def held(operator: Operator, slots: Iterable[Slot]) -> tuple[Tensor, ...]:
    """Return the tensors at these slots, in order; a slot that is beyond the end or left out holds none.

    Source: micro_context.cc, ``AllocateTempInputTensor``, which allocates nothing for those.
    """
    present = (_at(operator, slot) for slot in slots)
    return tuple(tensor for tensor in present if tensor is not None)


def needed(operator: Operator, slot: Slot) -> Tensor:
    """Return the tensor at a slot that the kernel cannot do without. Raises ModelFormatError when it is missing."""
    tensor = _at(operator, slot)
    if tensor is None:
        what = f"{operator.opcode.label} lacks its {slot.side} {slot.position}"
        raise ModelFormatError(f"{what}; convert the model again", ErrorKind.OPERAND)
    return tensor


def _at(operator: Operator, slot: Slot) -> Tensor | None:
    tensors = operator.inputs if slot.side == "input" else operator.outputs
    return tensors[slot.position] if slot.position < len(tensors) else None


_INT = 4


@dataclass(frozen=True)
class Plain:
    """A rule without conditions. Sizes in bytes.

    ``params``: the parser's structure. ``op_data``: allocated in Init.
    ``holds``: the AllocateTemp calls of Prepare, in order. ``moves_shape``: Prepare copies the first output's
    dimensions from the file into the arena (kernel_util.cc, ``CreateWritableTensorDimsWithCopy``).
    """

    params: Size = NOTHING
    op_data: Size = NOTHING
    holds: tuple[Slot, ...] = ()
    moves_shape: bool = False

    def __call__(self, operator: Operator, abi: Abi) -> Requests:
        """Return the requests of one operator; the same for every operator but for the copied shape."""
        params, op_data = self.params.on(abi), self.op_data.on(abi)
        return Requests(
            params=params,
            init=(op_data,) if op_data else (),
            prepare=(shape_bytes(needed(operator, OUT0)),) if self.moves_shape else (),
            temporaries=held(operator, self.holds),
            params_alignment=alignment_of(params),
        )


def shape_bytes(tensor: Tensor) -> int:
    """sizeof a TfLiteIntArray that holds the tensor's shape: a count and one int per dimension."""
    return _INT * (1 + len(tensor.shape))


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


_POINTER = Size(4, 8)
_ADD_N_DATA = Size(40, 40)  # OpData
_CUMSUM_PARAMS = Size(2, 2)  # TfLiteCumsumParams
_CUMSUM_DATA = Size(36, 36)  # OpData
_LOG_SOFTMAX_DATA = Size(28, 40)  # LogSoftmaxOpData
_SOFTMAX_PARAMS = Size(4, 4)  # TfLiteSoftmaxParams
_SOFTMAX_DATA = Size(56, 80)  # SoftmaxParams
_INT16_TABLE = 513 * 2  # lite/kernels/internal/common.h, LUTSize<int16_t>


def add_n(operator: Operator, abi: Abi) -> Requests:
    """ADD_N: scratch for one pointer per input. A structure in Prepare when int8."""
    count = len(operator.inputs)
    quantized = needed(operator, OUT0).dtype is DType.INT8
    return Requests(
        prepare=(_ADD_N_DATA.on(abi),) if quantized else (),
        scratch=(_POINTER.on(abi) * count,),
        temporaries=held(operator, (IN0, OUT0, *inputs(count, start=1))),
    )


def cumsum(operator: Operator, abi: Abi) -> Requests:
    """CUMSUM: a structure in Prepare when int8."""
    quantized = needed(operator, OUT0).dtype is DType.INT8
    return Requests(
        params=_CUMSUM_PARAMS.on(abi),
        prepare=(_CUMSUM_DATA.on(abi),) if quantized else (),
        temporaries=held(operator, BINARY),
        params_alignment=1,
    )


def log_softmax(operator: Operator, abi: Abi) -> Requests:
    """LOG_SOFTMAX: a structure in Prepare when int8."""
    quantized = needed(operator, IN0).dtype is DType.INT8
    return Requests(
        prepare=(_LOG_SOFTMAX_DATA.on(abi),) if quantized else (),
        temporaries=held(operator, UNARY),
    )


def softmax(operator: Operator, abi: Abi) -> Requests:
    """SOFTMAX: two look-up tables in Prepare when int16."""
    tables = 2 if needed(operator, IN0).dtype is DType.INT16 else 0
    return Requests(
        params=_SOFTMAX_PARAMS.on(abi),
        init=(_SOFTMAX_DATA.on(abi),),
        prepare=(_INT16_TABLE,) * tables,
        temporaries=held(operator, UNARY),
    )


_PARAMS = Size(1, 1)  # TfLiteReducerParams
_DATA = Size(44, 44)  # OpDataReduce
_OWN_LOOK = (IN0, OUT0, IN1)


def mean_or_sum(operator: Operator, abi: Abi) -> Requests:
    """MEAN and SUM: integer models also need an int32 accumulator per output element."""
    quantized = needed(operator, IN0).dtype in (DType.INT8, DType.INT16)
    accumulator = (needed(operator, OUT0).elements * _INT,) if quantized else ()
    return _requests(operator, abi, accumulator, (*_OWN_LOOK, *_helper_look(operator)))


def minimum_or_maximum(operator: Operator, abi: Abi) -> Requests:
    """REDUCE_MIN and REDUCE_MAX, whose helper comes first."""
    return _requests(operator, abi, (), (*_helper_look(operator), *_OWN_LOOK))


def reduce_all(operator: Operator, abi: Abi) -> Requests:
    """REDUCE_ALL."""
    return _requests(operator, abi, (), (*_OWN_LOOK, *_helper_look(operator)))


def _requests(operator: Operator, abi: Abi, accumulator: tuple[int, ...], looks: tuple[Slot, ...]) -> Requests:
    rank, axes = len(needed(operator, IN0).shape), needed(operator, IN1).elements
    return Requests(
        params=_PARAMS.on(abi),
        init=(_DATA.on(abi),),
        scratch=(*accumulator, rank * _INT, axes * _INT),
        temporaries=held(operator, looks),
        params_alignment=1,
    )


def _helper_look(operator: Operator) -> tuple[Slot, ...]:
    return (IN0, IN1, OUT0) if needed(operator, IN0).dtype is DType.INT8 else (IN0, IN1)


_CONCATENATION_PARAMS = Size(8, 8)  # TfLiteConcatenationParams
_CONCATENATION_DATA = Size(24, 80, lp64=40)  # OpData
_MIRROR_PAD_PARAMS = Size(4, 4, short=1)  # TfLiteMirrorPaddingParams
_MIRROR_PAD_DATA = Size(20, 20)  # OpDataMirrorPad
_RESHAPE_PARAMS = Size(36, 36)  # TfLiteReshapeParams
_EMBEDDING_DATA = Size(8, 16)  # OpData
_UNKNOWN_DIMENSION = -1


def concatenation(operator: Operator, abi: Abi) -> Requests:
    """CONCATENATION: holds the first input, the output, then every input."""
    return Requests(
        params=_CONCATENATION_PARAMS.on(abi),
        init=(_CONCATENATION_DATA.on(abi),),
        temporaries=held(operator, (IN0, OUT0, *inputs(len(operator.inputs)))),
    )


def mirror_pad(operator: Operator, abi: Abi) -> Requests:
    """MIRROR_PAD: scratch for an element count per dimension of the output and of the input."""
    counts = len(needed(operator, IN0).shape) * _INT
    return Requests(
        params=_MIRROR_PAD_PARAMS.on(abi),
        init=(_MIRROR_PAD_DATA.on(abi),),
        scratch=(counts, counts),
        temporaries=held(operator, BINARY),
    )


def reshape(operator: Operator, abi: Abi) -> Requests:
    """RESHAPE: moves the output's shape to the arena when it has to fill in a dimension."""
    output = needed(operator, OUT0)
    return Requests(
        params=_RESHAPE_PARAMS.on(abi),
        prepare=(shape_bytes(output),) if _UNKNOWN_DIMENSION in output.shape else (),
        temporaries=held(operator, UNARY),
    )


def embedding_lookup(operator: Operator, abi: Abi) -> Requests:
    """EMBEDDING_LOOKUP: the output's shape and a structure, both in Prepare."""
    return Requests(
        prepare=(shape_bytes(needed(operator, OUT0)), _EMBEDDING_DATA.on(abi)),
        temporaries=held(operator, BINARY),
    )


_DENSE_PARAMS = Size(16, 32, short=5, lp64=16)  # TfLiteFullyConnectedParams
# In the wheel the structure is aligned to 8 bytes: measured, as its size is, between SOFTMAX operators of 4 bytes each.
_WHEEL_ALIGNMENT = 8
_DENSE_DATA = Size(48, 72, lp64=64)  # OpDataFullyConnected
_MATMUL_PARAMS = Size(3, 3)  # TfLiteBatchMatMulParams
_MATMUL_DATA = Size(16, 32)  # OpDataBatchMatmul
_MATMUL_QUANTIZATION = Size(28, 28)  # QuantizationOpDataBatchMatmul
_EVAL_TENSOR = Size(12, 24)  # TfLiteEvalTensor


def fully_connected(operator: Operator, abi: Abi) -> Requests:
    """FULLY_CONNECTED: a multiplier and a shift per channel when an integer filter has several scales."""
    activation, filter_ = needed(operator, IN0), needed(operator, IN1)
    channels = 0 if activation.dtype is DType.FLOAT32 else _scales(filter_)
    return Requests(
        params=_DENSE_PARAMS.on(abi),
        params_alignment=_WHEEL_ALIGNMENT if abi.in_wheel else alignment_of(_DENSE_PARAMS.on(abi)),
        init=(_DENSE_DATA.on(abi),),
        prepare=(channels * _INT, channels * _INT) if channels > 1 else (),
        scratch=unpacked_filter(filter_),
        temporaries=held(operator, TERNARY),
    )


def batch_matmul(operator: Operator, abi: Abi) -> Requests:
    """BATCH_MATMUL: a transposed copy of the left side with ``adjX``, of the right one without ``adjY``."""
    left, right = needed(operator, IN0), needed(operator, IN1)
    prepare: tuple[int, ...] = ()
    if left.dtype in (DType.INT8, DType.INT16):
        prepare += (_MATMUL_QUANTIZATION.on(abi),)
    if operator.option("adjX", False):
        prepare += _transposed_copy(left, abi)
    if not operator.option("adjY", False):
        prepare += _transposed_copy(right, abi)
    return Requests(
        params=_MATMUL_PARAMS.on(abi),
        init=(_MATMUL_DATA.on(abi),),
        prepare=(*prepare, shape_bytes(needed(operator, OUT0))),
        temporaries=held(operator, BINARY),
        params_alignment=1,
    )


def _transposed_copy(tensor: Tensor, abi: Abi) -> tuple[int, ...]:
    return (_EVAL_TENSOR.on(abi), shape_bytes(tensor), tensor.nbytes)


def _scales(filter_: Tensor) -> int:
    """Scales that TFLM sees: it ignores a quantization that lacks its zero points."""
    quantization = filter_.quantization
    if quantization is None or not quantization.zero_point.size:
        return 0
    return quantization.scale.size


_CONV_PARAMS = Size(28, 28)  # TfLiteConvParams, and TfLiteDepthwiseConvParams
_CONV_DATA = Size(56, 80, lp64=72)  # OpDataConv
_TRANSPOSE_PARAMS = Size(20, 20, short=16)  # TfLiteTransposeConvParams
_TRANSPOSE_DATA = Size(72, 88, lp64=80)  # OpData
_ACCUMULATOR_BYTES = {DType.INT8: 4, DType.INT16: 8}


def conv_2d(operator: Operator, abi: Abi) -> Requests:
    """CONV_2D: channels along dimension 0 of the filter."""
    return _convolution(operator, abi, channel_axis=0)


def depthwise_conv_2d(operator: Operator, abi: Abi) -> Requests:
    """DEPTHWISE_CONV_2D: channels along dimension 3 of the filter."""
    return _convolution(operator, abi, channel_axis=3)


def transpose_conv(operator: Operator, abi: Abi) -> Requests:
    """TRANSPOSE_CONV: input 0 is the output's shape, 1 the filter, 2 the activation, 3 the bias."""
    activation, filter_, output = needed(operator, IN2), needed(operator, IN1), needed(operator, OUT0)
    scratch: tuple[int, ...] = ()
    if activation.dtype in _ACCUMULATOR_BYTES:
        scratch = (output.elements * _ACCUMULATOR_BYTES[activation.dtype],)
    for bias in held(operator, (IN3,)):
        if activation.dtype is DType.INT16 and bias.dtype is DType.INT16:
            scratch += (bias.elements * 8,)  # the kernel wants 64-bit biases
    temporaries = held(operator, (OUT0, IN2, IN1))
    if activation.dtype is not DType.FLOAT32:
        temporaries += held(operator, (IN2, IN1, IN3, OUT0))
    return Requests(
        params=_TRANSPOSE_PARAMS.on(abi),
        init=(_TRANSPOSE_DATA.on(abi),),
        prepare=_per_channel(filter_.shape[0]),
        scratch=scratch,
        temporaries=temporaries,
    )


def _convolution(operator: Operator, abi: Abi, channel_axis: int) -> Requests:
    filter_ = needed(operator, IN1)
    return Requests(
        params=_CONV_PARAMS.on(abi),
        init=(_CONV_DATA.on(abi),),
        prepare=_per_channel(filter_.shape[channel_axis]),
        scratch=unpacked_filter(filter_),
        temporaries=held(operator, (OUT0, IN0, IN1, IN0, IN1, IN2, OUT0)),
    )


def _per_channel(channels: int) -> tuple[int, ...]:
    return (channels * _INT, channels * _INT)


def unpacked_filter(filter_: Tensor) -> tuple[int, ...]:
    """Scratch in which the kernel unpacks a 4-bit filter to one byte per weight; none for other types."""
    return (filter_.elements,) if filter_.dtype is DType.INT4 else ()


_LSTM_PARAMS = Size(16, 16)  # TfLiteUnidirectionalSequenceLSTMParams
_LSTM_DATA = Size(688, 688)  # OpDataLSTM
_LSTM_INPUTS = 24
_LSTM_BUFFERS = 4
_HIDDEN_STATE = Slot("input", 18)
_CELL_STATE = Slot("input", 19)
_SVDF_PARAMS = Size(12, 12, short=8)  # TfLiteSVDFParams
_SVDF_DATA = Size(36, 36)  # OpDataSvdf
_SVDF_INPUTS = 5


def unidirectional_sequence_lstm(operator: Operator, abi: Abi) -> Requests:
    """Return the LSTM: four scratch buffers of the cell state's type, one per gate, of batch x state elements."""
    activation = needed(operator, IN0)
    batch = activation.shape[1 if operator.option("timeMajor", False) else 0]
    state = needed(operator, _HIDDEN_STATE).shape[1]
    gate = batch * state * needed(operator, _CELL_STATE).dtype.arena_bytes
    return Requests(
        params=_LSTM_PARAMS.on(abi),
        init=(_LSTM_DATA.on(abi),),
        scratch=(gate,) * _LSTM_BUFFERS,
        temporaries=held(operator, (*inputs(_LSTM_INPUTS), OUT0)),
    )


def svdf(operator: Operator, abi: Abi) -> Requests:
    """SVDF: scratch for the filters' dot products and, in integer models, for the units' sums."""
    activation = needed(operator, IN0)
    batch, filters = activation.shape[0], needed(operator, IN1).shape[0]
    scratch: tuple[int, ...] = (batch * filters * _INT,)
    if activation.dtype is DType.INT8:
        units = filters // int(operator.option("rank", 1))
        scratch += (batch * units * _INT,)
    return Requests(
        params=_SVDF_PARAMS.on(abi),
        init=(_SVDF_DATA.on(abi),),
        scratch=scratch,
        temporaries=held(operator, (*inputs(_SVDF_INPUTS), OUT0)),
    )


_VAR_HANDLE_PARAMS = Size(8, 16)  # TfLiteVarHandleParams
_VAR_HANDLE_DATA = Size(4, 4)  # OpData
_ASSIGN_DATA = Size(0, 4, lp64=0)  # OpData, which only builds with tensor compression have

CONTROL: Mapping[str, RequestRule] = {
    "CALL_ONCE": Plain(Size(4, 4), Size(8, 8)),  # TfLiteCallOnceParams; OpData
    "IF": Plain(Size(8, 8), Size(8, 8), (IN0,)),  # TfLiteIfParams; OpData
    "READ_VARIABLE": Plain(holds=(IN0,)),
    "WHILE": Plain(Size(8, 8), Size(8, 8)),  # TfLiteWhileParams; OpData
}
"""Rows by the builtin's schema name."""


def var_handle(operator: Operator, abi: Abi) -> Requests:
    """VAR_HANDLE: its parameters are two pointers."""
    return Requests(
        params=_VAR_HANDLE_PARAMS.on(abi),
        init=(_VAR_HANDLE_DATA.on(abi),),
        params_alignment=_POINTER.on(abi),
    )


def assign_variable(operator: Operator, abi: Abi) -> Requests:
    """ASSIGN_VARIABLE: the variable's bytes, in Prepare.

    Only the first assignment to a variable takes them, see ``repeated_assignments``. A handle that is not made
    in the same subgraph is not known yet in Prepare, and then nothing is taken.
    """
    value = needed(operator, IN1)
    return Requests(
        init=(_ASSIGN_DATA.on(abi),) if _ASSIGN_DATA.on(abi) else (),
        prepare=() if _variable_of(operator) is None else (value.nbytes,),
        temporaries=held(operator, (IN1,)),
    )


def repeated_assignments(model: Model) -> Iterator[Operator]:
    """Yield the ASSIGN_VARIABLE operators whose variable an earlier one, in file order, has allocated."""
    allocated: set[tuple[Any, Any]] = set()
    for operator in (operator for graph in model.graphs for operator in graph.operators):
        variable = _variable_of(operator) if operator.name == "ASSIGN_VARIABLE" else None
        if variable in allocated:
            yield operator
        elif variable is not None:
            allocated.add(variable)


def _variable_of(operator: Operator) -> tuple[Any, Any] | None:
    """Container and name of the variable of the first input; None when this subgraph does not make the handle."""
    handle = needed(operator, IN0).producer
    if handle is None or handle.name != "VAR_HANDLE":
        return None
    return handle.option("container"), handle.option("sharedName")


# Exceptions of the flatbuffers runtime for a damaged offset.
_DAMAGE = (IndexError, ValueError, TypeError, struct.error, UnicodeDecodeError)


def custom_options(operator: Operator) -> Mapping[str, Any]:
    """Return the options by name; empty when there are none. Raises ModelFormatError when they are not a map."""
    if operator.custom_options is None or not operator.custom_options.size:
        return {}
    try:
        options = flexbuffers.Loads(operator.custom_options.tobytes())
    except _DAMAGE as error:
        raise _malformed(operator, "are damaged") from error
    if not isinstance(options, dict):
        raise _malformed(operator, "are not a FlexBuffer map")
    return options


def whole_number(operator: Operator, name: str) -> int:
    """One option as an integer. Raises ModelFormatError when it is missing or not a number."""
    value = custom_options(operator).get(name)
    if not isinstance(value, (int, float)):
        raise _malformed(operator, f"lack the number '{name}'")
    return int(value)


def _malformed(operator: Operator, what: str) -> ModelFormatError:
    return ModelFormatError(
        f"custom options of {operator.opcode.label} {what}; convert the model again", ErrorKind.OPERAND
    )


_ADDRESS = 8
_ETHOS_U_DATA = Size(12, 12)  # OpData
_DETECTION_DATA = Size(112, 112)  # OpData
_BOX_COORDINATES = 4

_PRUNE = 2
_DECODERS = {  # by the first byte of the ancillary tensor
    0: Size(36, 72),  # DecodeStateLut
    1: Size(28, 56),  # DecodeStateHuffman
    _PRUNE: Size(40, 80),  # DecodeStatePrune
}

circular_buffer = Plain(op_data=Size(8, 8), holds=UNARY)  # OpDataCircularBuffer
"""CIRCULAR_BUFFER."""


def detection_postprocess(operator: Operator, abi: Abi) -> Requests:
    """TFLite_Detection_PostProcess: eleven scratch buffers, most of them detections x boxes."""
    options = custom_options(operator)
    detections, classes = int(options.get("max_detections", 0)), int(options.get("num_classes", 0))
    boxes, scores = needed(operator, IN0).shape[1], needed(operator, IN1).shape
    per_box, per_detection = boxes * _INT, detections * boxes * _INT
    return Requests(
        init=(_DETECTION_DATA.on(abi),),
        scratch=(
            boxes,  # which candidates are active
            per_box * _BOX_COORDINATES,  # decoded boxes
            scores[1] * scores[2] * _INT,  # dequantized scores
            per_box,  # scores of one class
            per_box,  # scores kept
            per_detection,  # scores after suppression
            per_detection,  # sorted values
            boxes * _INT,  # indices kept
            per_detection,  # sorted indices
            max(classes, detections) * boxes * _INT,  # work buffer
            min(boxes, detections) * boxes * _INT,  # selected
        ),
        temporaries=held(operator, TERNARY[:-1]),
    )


def ethos_u(operator: Operator, abi: Abi) -> Requests:
    """ethos-u: two arrays of the addresses and sizes of its tensors (micro/kernels/ethos_u/ethosu.cc)."""
    count = len(list(operator.present_inputs())) + len(operator.outputs)
    return Requests(
        init=(_ETHOS_U_DATA.on(abi),),
        scratch=(count * _ADDRESS, count * _POINTER.on(abi)),
        temporaries=held(operator, (IN0,)),
    )


def decode(operator: Operator, abi: Abi) -> Requests:
    """TFLM_DECODE: pairs of an encoded and an ancillary input, each with a decoder for one output."""
    prepare = [len(operator.outputs) * _POINTER.on(abi)]
    temporaries: list[Tensor] = []
    for output, encoded, ancillary in _triples(operator):
        kind = _decoder_kind(operator, needed(operator, ancillary))
        prepare.append(_DECODERS[kind].on(abi))
        if kind == _PRUNE:
            prepare.extend(_zero_points(needed(operator, output)))
        temporaries.extend(held(operator, (encoded, ancillary, output)))
    return Requests(prepare=tuple(prepare), temporaries=tuple(temporaries))


def _triples(operator: Operator) -> Iterator[tuple[Slot, Slot, Slot]]:
    for pair in range(len(operator.inputs) // 2):
        yield Slot("output", pair), Slot("input", 2 * pair), Slot("input", 2 * pair + 1)


def _decoder_kind(operator: Operator, ancillary: Tensor) -> int:
    data = ancillary.buffer.data
    kind = None if data is None or not data.size else int(data[0])
    if kind not in _DECODERS:
        raise UnsupportedModelError(f"TFLM_DECODE: tensor '{ancillary.name}' names no known decoder")
    return kind


def _zero_points(output: Tensor) -> tuple[int, ...]:
    """One byte per channel, when there are several channels and a zero point other than 0."""
    quantization = output.quantization
    if quantization is None or not quantization.zero_point.any() or quantization.scale.size < 2:
        return ()
    return (quantization.scale.size,)


_CIRCULAR_BUFFER = Size(24, 40)  # CircularBuffer
_DELAY = Size(20, 32)  # TFLMSignalFrontendDelayParams
_FRAMER = Size(28, 40)  # TFLMSignalFramerParams
_STACKER = Size(36, 56)  # TFLMSignalStackerParams
_FILTER_BANK = Size(36, 64)  # TFLMSignalFilterBankParams
_SPECTRAL_SUBTRACTION = Size(44, 56)  # TFLMSignalSpectralSubtractionParams
_RFFT = Size(32, 48)  # TfLiteAudioFrontendRfftParams
_IRFFT = Size(24, 32)  # TfLiteAudioFrontendIrfftParams
_IRFFT_FLOAT_STATE = Size(8, 16)  # IrfftFloatState
_OVERLAP_ADD = Size(24, 32)  # TFLMSignalOverlapAddParams
_KISS_REAL_STATE = Size(12, 24)  # kiss_fftr_state
_KISS_STATE_HEADER = 264  # kiss_fft_state without its first twiddle factor

_SAMPLE = 2
_WITH_VALID = (IN0, OUT0, OUT1)


class _Element(NamedTuple):
    """The element type that the option ``T`` selects: bytes, and whether it is floating point."""

    nbytes: int
    is_float: bool


# TensorType of schema.fbs: FLOAT32, INT32, INT16.
_ELEMENTS = {0: _Element(4, True), 2: _Element(4, False), 7: _Element(2, False)}

SIGNAL: Mapping[str, RequestRule] = {
    "SignalEnergy": Plain(op_data=Size(8, 8), holds=UNARY),  # TFLMSignalEnergyParams
    "SignalFftAutoScale": Plain(holds=(IN0, OUT0, OUT1)),
    "SignalFilterBankLog": Plain(op_data=Size(8, 8), holds=UNARY),  # TFLMSignalLogParams
    "SignalFilterBankSquareRoot": Plain(holds=BINARY),
    "SignalPCAN": Plain(op_data=Size(4, 4), holds=TERNARY),  # TfLitePcanParams
    "SignalWindow": Plain(op_data=Size(8, 8), holds=BINARY),  # TFLMSignalWindowParams
}
"""Rows by custom code."""


def delay(operator: Operator, abi: Abi) -> Requests:
    """SignalDelay: a circular buffer per channel, for a frame and the delay."""
    frame, channels = _innermost_and_outer(needed(operator, IN0))
    return Requests(
        init=(_DELAY.on(abi),),
        prepare=_channel_buffers(channels, frame + whole_number(operator, "delay_length"), abi),
        temporaries=held(operator, UNARY),
    )


def framer(operator: Operator, abi: Abi) -> Requests:
    """SignalFramer: a circular buffer per channel, for a frame rounded up to whole steps."""
    size, step = whole_number(operator, "frame_size"), whole_number(operator, "frame_step")
    _, channels = _innermost_and_outer(needed(operator, IN0))
    return Requests(
        init=(_FRAMER.on(abi),),
        prepare=_channel_buffers(channels, -(-size // step) * step, abi),
        temporaries=held(operator, _WITH_VALID),
    )


def stacker(operator: Operator, abi: Abi) -> Requests:
    """SignalStacker: one circular buffer in Init, for the frames on both sides and the current one."""
    left, right = (whole_number(operator, f"stacker_{side}_context") for side in ("left", "right"))
    capacity = whole_number(operator, "num_channels") * (left + 1 + right)
    return Requests(
        init=(_STACKER.on(abi), _circular_buffer(capacity, abi)),
        temporaries=held(operator, _WITH_VALID),
    )


def filter_bank(operator: Operator, abi: Abi) -> Requests:
    """SignalFilterBank: a uint64 per channel and one more, in Init."""
    return Requests(
        init=(_FILTER_BANK.on(abi), (whole_number(operator, "num_channels") + 1) * 8),
        temporaries=held(operator, (IN0, IN1, IN2, IN3, IN4, IN5, OUT0)),
    )


def spectral_subtraction(operator: Operator, abi: Abi) -> Requests:
    """SignalFilterBankSpectralSubtraction: a uint32 noise estimate per channel, in Init."""
    return Requests(
        init=(_SPECTRAL_SUBTRACTION.on(abi), whole_number(operator, "num_channels") * 4),
        temporaries=held(operator, _WITH_VALID),
    )


def rfft(operator: Operator, abi: Abi) -> Requests:
    """SignalRfft: the transform's tables in Init, and scratch for the zero-padded input."""
    length, element = whole_number(operator, "fft_length"), _element(operator)
    return Requests(
        init=(_RFFT.on(abi), _transform_tables(length, element, abi)),
        scratch=(length * element.nbytes,),
        temporaries=held(operator, UNARY),
    )


def irfft(operator: Operator, abi: Abi) -> Requests:
    """SignalIrfft: the transform's tables in Init; the float kernel puts a header before them."""
    element = _element(operator)
    tables = _transform_tables(whole_number(operator, "fft_length"), element, abi)
    header = _IRFFT_FLOAT_STATE.on(abi) if element.is_float else 0
    return Requests(init=(_IRFFT.on(abi), header + tables), temporaries=held(operator, UNARY))


def overlap_add(operator: Operator, abi: Abi) -> Requests:
    """SignalOverlapAdd: a frame per channel and a pointer to each."""
    shape = needed(operator, IN0).shape
    frame, frames = shape[-1], shape[-2]
    channels = needed(operator, IN0).elements // (frame * frames)
    return Requests(
        init=(_OVERLAP_ADD.on(abi),),
        prepare=(channels * _POINTER.on(abi), *((frame * _element(operator).nbytes,) * channels)),
        temporaries=held(operator, UNARY),
    )


def _channel_buffers(channels: int, capacity: int, abi: Abi) -> tuple[int, ...]:
    pointers = channels * _POINTER.on(abi)
    return (pointers, pointers, *((_circular_buffer(capacity, abi),) * channels))


def _circular_buffer(capacity: int, abi: Abi) -> int:
    """Return the buffer holds every sample twice, so that any window of it is contiguous."""
    return _CIRCULAR_BUFFER.on(abi) + 2 * capacity * _SAMPLE


def _innermost_and_outer(tensor: Tensor) -> tuple[int, int]:
    return tensor.shape[-1], tensor.elements // tensor.shape[-1]


def _transform_tables(length: int, element: _Element, abi: Abi) -> int:
    """kissfft's ``kiss_fftr_alloc``: a complex transform of half the length, and 1.5 times that."""
    half, complex_bytes = length // 2, 2 * element.nbytes
    twiddles = half * complex_bytes
    return _KISS_REAL_STATE.on(abi) + _KISS_STATE_HEADER + twiddles + half * 3 // 2 * complex_bytes


def _element(operator: Operator) -> _Element:
    code = whole_number(operator, "T")
    if code not in _ELEMENTS:
        raise UnsupportedModelError(f"{operator.opcode.label} has no kernel for element type {code}")
    return _ELEMENTS[code]


# For an operator without a row: as much as the largest structures of the tables, the LSTM's aside.
_GUESSED_PARAMS = Size(40, 40)
_GUESSED_DATA = Size(256, 256)

REFERENCE: Mapping[str, RequestRule] = {
    **SIMPLE,
    **CONTROL,
    **SIGNAL,
    "ADD_N": add_n,
    "ASSIGN_VARIABLE": assign_variable,
    "BATCH_MATMUL": batch_matmul,
    "CIRCULAR_BUFFER": circular_buffer,
    "CONCATENATION": concatenation,
    "CONV_2D": conv_2d,
    "CUMSUM": cumsum,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "FULLY_CONNECTED": fully_connected,
    "LOG_SOFTMAX": log_softmax,
    "MEAN": mean_or_sum,
    "MIRROR_PAD": mirror_pad,
    "REDUCE_ALL": reduce_all,
    "REDUCE_MAX": minimum_or_maximum,
    "REDUCE_MIN": minimum_or_maximum,
    "RESHAPE": reshape,
    "SOFTMAX": softmax,
    "SUM": mean_or_sum,
    "SVDF": svdf,
    "SignalDelay": delay,
    "SignalFilterBank": filter_bank,
    "SignalFilterBankSpectralSubtraction": spectral_subtraction,
    "SignalFramer": framer,
    "SignalIrfft": irfft,
    "SignalOverlapAdd": overlap_add,
    "SignalRfft": rfft,
    "SignalStacker": stacker,
    "TFLM_DECODE": decode,
    "TFLite_Detection_PostProcess": detection_postprocess,
    "ethos-u": ethos_u,
    "TRANSPOSE_CONV": transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": unidirectional_sequence_lstm,
    "VAR_HANDLE": var_handle,
}
"""Rules by the builtin's schema name, or by custom code."""


def requests_of(operator: Operator, abi: Abi) -> Requests:
    """Return the requests of an operator's reference kernel to the arena; a guess when it has no row."""
    rule = REFERENCE.get(operator.opcode.label)
    try:
        return _guess(operator, abi) if rule is None else rule(operator, abi)
    except IndexError as error:
        raise misfit(operator) from error


def requests_in(model: Model, abi: Abi, rule: RequestRule = requests_of) -> dict[Operator, Requests]:
    """Return the requests of every operator of a model, in the order in which TFLM prepares them.

    Differs from the rule in one point that a single operator cannot know: an ASSIGN_VARIABLE to a variable
    that an earlier one has allocated takes no buffer.
    """
    asked = {operator: rule(operator, abi) for graph in model.graphs for operator in graph.operators}
    for operator in repeated_assignments(model):
        asked[operator] = replace(asked[operator], prepare=())
    return asked


def _guess(operator: Operator, abi: Abi) -> Requests:
    return Requests(
        params=_GUESSED_PARAMS.on(abi),
        init=(_GUESSED_DATA.on(abi),),
        temporaries=(*operator.present_inputs(), *operator.outputs),
        known=False,
    )
