"""FULLY_CONNECTED and BATCH_MATMUL.

Source: tflite-micro commit 90b983c2b3f1, kernels fully_connected.cc, fully_connected_common.cc,
batch_matmul.cc, batch_matmul_common.cc.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from .convolution import unpacked_filter
from .model import Abi, Requests, Size, alignment_of
from .plain import shape_bytes
from .slots import BINARY, IN0, IN1, OUT0, TERNARY, held, needed

_INT32 = 4
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
        prepare=(channels * _INT32, channels * _INT32) if channels > 1 else (),
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
