"""What CMSIS-NN's kernels take from TFLM's arena: scratch, and buffers and structures that stay.

Source: tflite-micro commit 90b983c2b3f1, tensorflow/lite/micro/kernels/cmsis_nn, built with its makefile's default
KERNELS_OPTIMIZED_FOR_SPEED: with Helium FULLY_CONNECTED and SVDF then keep the sums of their weights in the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...ir.check import misfit
from ...ir.dtype import DType
from ...ir.model import Operator
from ..requests.model import Abi, Requests, Size
from ..requests.slots import IN0, IN1, IN2, OUT0, UNARY, Slot, held, needed
from ..requests.table import requests_of
from ..window import window_between, window_of
from . import scratch
from .paths import Build

# OpData of each wrapper; sizeof as compiled by GCC 12.2 for Cortex-M7 with short enums and without, and for x86-64.
_OP_DATA: Mapping[str, Size] = {
    "AVERAGE_POOL_2D": Size(36, 36),
    "BATCH_MATMUL": Size(36, 56),
    "CONV_2D": Size(60, 80),
    "DEPTHWISE_CONV_2D": Size(60, 80),
    "FULLY_CONNECTED": Size(72, 96),
    "MAX_POOL_2D": Size(36, 36),
    "SOFTMAX": Size(64, 88),
    "SVDF": Size(40, 48),
    "TRANSPOSE_CONV": Size(76, 88),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Size(912, 1008),
}
_INT32 = 4
_QUANTIZED = (DType.INT8, DType.INT16)
_CELL_STATE, _HIDDEN_STATE = Slot("input", 19), Slot("input", 18)
_LSTM_SUMS = 8
_LSTM_BUFFERS = 3
_BIAS_BYTES = {DType.INT8: 4, DType.INT16: 8}


def requests(operator: Operator, abi: Abi, build: Build) -> Requests:
    """The reference kernel's requests, with what CMSIS-NN's wrapper asks for instead. Raises ModelFormatError."""
    found = requests_of(operator, abi)
    if operator.name not in _OP_DATA or not found.known:
        return found
    found = replace(found, init=(_OP_DATA[operator.name].on(abi),))
    rule = _RULES.get(operator.name)
    try:
        return found if rule is None else rule(operator, found, build)
    except IndexError as error:
        raise misfit(operator) from error


def _some(*sizes: int) -> tuple[int, ...]:
    """The requests that are made: a wrapper leaves out one of 0 bytes."""
    return tuple(size for size in sizes if size > 0)


def _convolution(operator: Operator, found: Requests, build: Build) -> Requests:
    """CONV_2D: multipliers only when quantized; int16 asks for scratch unless its bias is int32."""
    data, bias = needed(operator, IN0).dtype, held(operator, (IN2,))
    if data not in _QUANTIZED:
        return replace(found, prepare=(), scratch=())
    if data is DType.INT8:
        return replace(found, scratch=_some(scratch.convolution_s8(window_of(operator), build)))
    if bias and bias[0].dtype is not DType.INT64:
        return replace(found, scratch=())
    return replace(found, scratch=_some(scratch.convolution_s16(window_of(operator), build)))


def _depthwise(operator: Operator, found: Requests, build: Build) -> Requests:
    """DEPTHWISE_CONV_2D: multipliers only when quantized, scratch only for int8."""
    data = needed(operator, IN0).dtype
    if data not in _QUANTIZED:
        return replace(found, prepare=(), scratch=())
    if data is not DType.INT8:
        return replace(found, scratch=())
    size = scratch.depthwise_s4 if needed(operator, IN1).dtype is DType.INT4 else scratch.depthwise_s8
    return replace(found, scratch=_some(size(window_of(operator), build)))


def _average_pool(operator: Operator, found: Requests, build: Build) -> Requests:
    """AVERAGE_POOL_2D looks at its tensors twice; ``arm_avgpool_s8_get_buffer_size`` and ``_s16``."""
    quantized = needed(operator, IN0).dtype in _QUANTIZED
    sums = _INT32 * needed(operator, OUT0).shape[3] if build == "dsp" and quantized else 0
    return replace(found, scratch=_some(sums), temporaries=held(operator, (*UNARY, *UNARY)))


def _dense(operator: Operator, found: Requests, build: Build) -> Requests:
    """FULLY_CONNECTED: as a 1x1 convolution when its output has more than two dimensions, else by sums of weights."""
    filters, output = needed(operator, IN1), needed(operator, OUT0)
    if needed(operator, IN0).dtype is not DType.INT8 or filters.dtype is DType.INT4:
        return replace(found, scratch=())
    if len(output.shape) > 2 and filters.shape[-1] % 4 == 0:
        per_channel = len(found.prepare) > 0
        return replace(found, scratch=() if per_channel else (2 * _INT32 * output.shape[-1],))
    sums = _some(_INT32 * output.shape[-1] if build == "mve" else 0)
    if all(tensor.is_constant for tensor in (filters, *held(operator, (IN2,)))):
        return replace(found, scratch=(), prepare=found.prepare + sums)
    return replace(found, scratch=sums)


def _batch_matmul(operator: Operator, found: Requests, build: Build) -> Requests:
    """BATCH_MATMUL: ``arm_fully_connected_s8_get_buffer_size`` of the output's last dimension."""
    used = build == "mve" and needed(operator, IN0).dtype is DType.INT8
    return replace(found, scratch=_some(_INT32 * needed(operator, OUT0).shape[-1] if used else 0))


def _svdf(operator: Operator, found: Requests, build: Build) -> Requests:
    """SVDF: the sums of the feature weights stay, with Helium."""
    if build != "mve" or needed(operator, IN0).dtype is not DType.INT8:
        return found
    return replace(found, prepare=(*found.prepare, _INT32 * needed(operator, IN1).shape[0]))


def _transpose_convolution(operator: Operator, found: Requests, build: Build) -> Requests:
    """TRANSPOSE_CONV: two requests when int8, of which the second may be of 0 bytes; int16 as in the reference."""
    activation, filters, output = needed(operator, IN2), needed(operator, IN1), needed(operator, OUT0)
    if activation.dtype is not DType.INT8:
        return found
    strides = [int(operator.option(f"stride{letter}", 1)) for letter in "HW"]
    window = window_between(activation, filters, output, strides=strides)
    return replace(found, scratch=scratch.transpose_s8(window, build))


def _lstm(operator: Operator, found: Requests, build: Build) -> Requests:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: eight sums of weights stay, and one scratch buffer less, when quantized."""
    bias = _BIAS_BYTES.get(needed(operator, IN0).dtype)
    if bias is None or needed(operator, _CELL_STATE).dtype is not DType.INT16:
        return found
    sums = (needed(operator, _HIDDEN_STATE).shape[1] * bias,) * _LSTM_SUMS
    return replace(found, prepare=(*found.prepare, *sums), scratch=found.scratch[:_LSTM_BUFFERS])


_RULES: Mapping[str, Callable[[Operator, Requests, Build], Requests]] = {
    "AVERAGE_POOL_2D": _average_pool,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transpose_convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
