"""TFLM's custom operators, by custom code: what their kernels ask of the arena.

Those of the signal library keep their state between calls in persistent buffers, not in variable tensors. The name of a
structure follows its size; it is in signal/micro/kernels/<operator>.cc. Sources: tflite-micro commit 90b983c2b3f1,
signal/src/circular_buffer.cc, rfft_*.cc, irfft_*.cc, and kissfft v130; kernels circular_buffer.cc, decode.cc,
decode_state*.cc and .h, detection_postprocess.cc, ethos_u/ethosu.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from flatbuffers import flexbuffers

from ..errors import ErrorKind, ModelFormatError, UnsupportedModelError
from ..model.ir.model import Operator, Tensor
from .kind import Arrival, OperatorKind
from .requests import BINARY, IN0, IN1, INT, OUT0, OUT1, POINTER, TERNARY, UNARY, Abi, Asks, Size, Slot, inputs, needed

# Exceptions of the flatbuffers runtime for a damaged offset.
_DAMAGE = (IndexError, ValueError, TypeError, struct.error, UnicodeDecodeError)


def _options(operator: Operator) -> Mapping[str, Any]:
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


def _number(operator: Operator, name: str) -> int:
    """One option as an integer. Raises ModelFormatError when it is missing or not a number."""
    value = _options(operator).get(name)
    if not isinstance(value, (int, float)):
        raise _malformed(operator, f"lack the number '{name}'")
    return int(value)


def _malformed(operator: Operator, what: str) -> ModelFormatError:
    return ModelFormatError(
        f"custom options of {operator.opcode.label} {what}; convert the model again", ErrorKind.OPERAND
    )


def _detections(operator: Operator, _: Abi) -> tuple[int, ...]:
    options = _options(operator)
    detections, classes = int(options.get("max_detections", 0)), int(options.get("num_classes", 0))
    boxes, scores = needed(operator, IN0).shape[1], needed(operator, IN1).shape
    per_box, per_detection = boxes * INT, detections * boxes * INT
    return (
        boxes,  # which candidates are active
        per_box * 4,  # decoded boxes
        scores[1] * scores[2] * INT,  # dequantized scores
        per_box,  # scores of one class
        per_box,  # scores kept
        per_detection,  # scores after suppression
        per_detection,  # sorted values
        per_box,  # indices kept
        per_detection,  # sorted indices
        max(classes, detections) * per_box,  # work buffer
        min(boxes, detections) * per_box,  # selected
    )


def _addresses(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for the addresses and sizes of the operator's tensors."""
    count = len(list(operator.present_inputs())) + len(operator.outputs)
    return count * 8, count * POINTER.on(abi)


_PRUNE = 2
_DECODERS = {  # by the first byte of the ancillary tensor
    0: Size(36, 72),  # DecodeStateLut
    1: Size(28, 56),  # DecodeStateHuffman
    _PRUNE: Size(40, 80),  # DecodeStatePrune
}


def _decoders(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for a decoder for each output, which is made of an encoded and an ancillary input."""
    prepare = [len(operator.outputs) * POINTER.on(abi)]
    for _, ancillary, output in _triples(operator):
        kind = _decoder_kind(needed(operator, ancillary))
        prepare.append(_DECODERS[kind].on(abi))
        if kind == _PRUNE:
            prepare.extend(_zero_points(needed(operator, output)))
    return tuple(prepare)


def _triples(operator: Operator) -> Iterator[tuple[Slot, Slot, Slot]]:
    for pair in range(len(operator.inputs) // 2):
        yield Slot("input", 2 * pair), Slot("input", 2 * pair + 1), Slot("output", pair)


def _decoder_kind(ancillary: Tensor) -> int:
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


class _Element(NamedTuple):
    """The element type that the option ``T`` selects: bytes, and whether it is floating point."""

    nbytes: int
    is_float: bool


# TensorType of schema.fbs: FLOAT32, INT32, INT16.
_ELEMENTS = {0: _Element(4, True), 2: _Element(4, False), 7: _Element(2, False)}


def _element(operator: Operator) -> _Element:
    code = _number(operator, "T")
    if code not in _ELEMENTS:
        raise UnsupportedModelError(f"{operator.opcode.label} has no kernel for element type {code}")
    return _ELEMENTS[code]


def _channel_buffers(operator: Operator, capacity: int, abi: Abi) -> tuple[int, ...]:
    """Ask for a circular buffer per channel, for so many samples."""
    tensor = needed(operator, IN0)
    channels = tensor.elements // tensor.shape[-1]
    pointers = channels * POINTER.on(abi)
    return (pointers, pointers, *((_circular_buffer(capacity, abi),) * channels))


def _circular_buffer(capacity: int, abi: Abi) -> int:
    """Return CircularBuffer, and every sample of two bytes twice, so that any window of it is contiguous."""
    return Size(24, 40).on(abi) + 2 * capacity * 2


def _delayed(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for a frame and the delay."""
    return _channel_buffers(operator, needed(operator, IN0).shape[-1] + _number(operator, "delay_length"), abi)


def _framed(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for a frame rounded up to whole steps."""
    size, step = _number(operator, "frame_size"), _number(operator, "frame_step")
    return _channel_buffers(operator, -(-size // step) * step, abi)


def _stacked(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for the frames on both sides and the current one."""
    left, right = (_number(operator, f"stacker_{side}_context") for side in ("left", "right"))
    return (_circular_buffer(_number(operator, "num_channels") * (left + 1 + right), abi),)


def _tables(operator: Operator, abi: Abi) -> int:
    """kissfft's ``kiss_fftr_alloc``: a complex transform of half the length, and 1.5 times that.

    kiss_fftr_state, then kiss_fft_state without its first twiddle factor.
    """
    half, complex_bytes = _number(operator, "fft_length") // 2, 2 * _element(operator).nbytes
    return Size(12, 24).on(abi) + 264 + half * complex_bytes + half * 3 // 2 * complex_bytes


def _padded_input(operator: Operator, _: Abi) -> tuple[int, ...]:
    return (_number(operator, "fft_length") * _element(operator).nbytes,)


def _tables_of_inverse(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """The float kernel puts IrfftFloatState before the tables."""
    return ((Size(8, 16).on(abi) if _element(operator).is_float else 0) + _tables(operator, abi),)


def _added(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for a frame per channel and a pointer to each."""
    shape = needed(operator, IN0).shape
    frame, frames = shape[-1], shape[-2]
    channels = needed(operator, IN0).elements // (frame * frames)
    return (channels * POINTER.on(abi), *((frame * _element(operator).nbytes,) * channels))


_WITH_VALID = (IN0, OUT0, OUT1)


def _since(came: str) -> Callable[..., OperatorKind]:
    """Make rows of what came to TFLM on a day; they take what :class:`Asks` takes."""
    arrived = (Arrival(came),)
    return lambda *sizes, **asks: OperatorKind(asks=Asks(*sizes, **asks), since=arrived)


_LIST = "give the recurrent layer's network a batch size (keras.Input(..., batch_size=1)), without SELECT_TF_OPS"
KINDS: Mapping[str, OperatorKind] = {
    "CIRCULAR_BUFFER": OperatorKind(asks=Asks(0, 8, UNARY)),  # OpDataCircularBuffer
    **dict.fromkeys(("FlexTensorListFromTensor", "FlexTensorListReserve"), OperatorKind(instead=_LIST)),
    "SignalDelay": _since("2023-07-12 7781c4979")(0, Size(20, 32), UNARY, _delayed),  # TFLMSignalFrontendDelayParams
    "SignalEnergy": _since("2023-07-13 8ee06dcba")(0, 8, UNARY),  # TFLMSignalEnergyParams
    "SignalFftAutoScale": _since("2023-07-19 70aed11c9")(holds=_WITH_VALID),
    # TFLMSignalFilterBankParams; a uint64 per channel and one more
    "SignalFilterBank": _since("2023-07-14 2548022e0")(
        0, Size(36, 64), (*inputs(6), OUT0), in_init=lambda operator, _: ((_number(operator, "num_channels") + 1) * 8,)
    ),
    "SignalFilterBankLog": _since("2023-07-14 2548022e0")(0, 8, UNARY),  # TFLMSignalLogParams
    # TFLMSignalSpectralSubtractionParams; a uint32 noise estimate per channel
    "SignalFilterBankSpectralSubtraction": _since("2023-07-14 2548022e0")(
        0, Size(44, 56), _WITH_VALID, in_init=lambda operator, _: (_number(operator, "num_channels") * 4,)
    ),
    "SignalFilterBankSquareRoot": _since("2023-07-14 2548022e0")(holds=BINARY),
    "SignalFramer": _since("2023-07-11 29d8dbfd4")(0, Size(28, 40), _WITH_VALID, _framed),  # TFLMSignalFramerParams
    # TfLiteAudioFrontendIrfftParams
    "SignalIrfft": _since("2023-07-20 55037d2d5")(0, Size(24, 32), UNARY, in_init=_tables_of_inverse),
    "SignalOverlapAdd": _since("2023-07-11 597ccf786")(0, Size(24, 32), UNARY, _added),  # TFLMSignalOverlapAddParams
    "SignalPCAN": _since("2023-08-23 e01fdf05a")(0, 4, TERNARY),  # TfLitePcanParams
    # TfLiteAudioFrontendRfftParams; scratch for the zero-padded input
    "SignalRfft": _since("2023-06-21 f22888af6")(
        0, Size(32, 48), UNARY, scratch=_padded_input, in_init=lambda operator, abi: (_tables(operator, abi),)
    ),
    # TFLMSignalStackerParams
    "SignalStacker": _since("2023-07-12 296b81858")(0, Size(36, 56), _WITH_VALID, in_init=_stacked),
    "SignalWindow": _since("2023-06-14 c306ff608")(0, 8, BINARY),  # TFLMSignalWindowParams
    "TFLM_DECODE": _since("2025-10-17 d96fe663d")(
        holds=lambda operator: tuple(slot for triple in _triples(operator) for slot in triple), prepare=_decoders
    ),
    "TFLite_Detection_PostProcess": OperatorKind(asks=Asks(0, 112, TERNARY[:-1], scratch=_detections)),  # OpData
    "ethos-u": OperatorKind(asks=Asks(0, 12, (IN0,), scratch=_addresses)),  # OpData
}
