"""CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV.

Each keeps a multiplier and a shift per output channel, for float models too. The helper that computes them
looks at the tensors anew, so most temporaries are held twice.
Source: tflite-micro commit 90b983c2b3f1, kernels conv_common.cc, depthwise_conv_common.cc, transpose_conv.cc.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator, Tensor
from .model import Abi, Requests, Size
from .slots import IN0, IN1, IN2, IN3, OUT0, held, needed

_INT32 = 4
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
    return (channels * _INT32, channels * _INT32)


def unpacked_filter(filter_: Tensor) -> tuple[int, ...]:
    """Scratch in which the kernel unpacks a 4-bit filter to one byte per weight; none for other types."""
    return (filter_.elements,) if filter_.dtype is DType.INT4 else ()
