"""Operators whose buffers depend on an element type: ADD_N, CUMSUM, LOG_SOFTMAX, SOFTMAX.

Source: tflite-micro commit 90b983c2b3f1, kernels add_n.cc, cumsum.cc, log_softmax.cc, softmax_common.cc.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator
from .model import Abi, Requests, Size
from .slots import BINARY, IN0, OUT0, UNARY, held, inputs, needed

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
