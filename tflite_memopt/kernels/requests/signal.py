"""The signal library's custom operators.

They keep what they carry from one call to the next in persistent buffers, not in variable tensors. The name
of a structure follows its size; it is in signal/micro/kernels/<operator>.cc of tflite-micro 90b983c2b3f1.
Further sources: signal/src/circular_buffer.cc, rfft_*.cc, irfft_*.cc, and kissfft v130.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import UnsupportedModelError
from ...ir.model import Operator, Tensor
from .custom_options import whole_number
from .model import Abi, RequestRule, Requests, Size
from .plain import Plain
from .slots import BINARY, IN0, IN1, IN2, IN3, IN4, IN5, OUT0, OUT1, TERNARY, UNARY, held, needed

_POINTER = Size(4, 8)
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
    """The buffer holds every sample twice, so that any window of it is contiguous."""
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
