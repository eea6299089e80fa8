"""Custom operators outside the signal library: CIRCULAR_BUFFER, TFLM_DECODE, TFLite_Detection_PostProcess, ethos-u.

Source: tflite-micro commit 90b983c2b3f1, kernels circular_buffer.cc, decode.cc, decode_state*.cc and .h,
detection_postprocess.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import UnsupportedModelError
from ...ir.model import Operator, Tensor
from .custom_options import custom_options
from .model import Abi, Requests, Size
from .plain import Plain
from .slots import IN0, IN1, TERNARY, UNARY, Slot, held, needed

_INT = _FLOAT = 4
_POINTER = Size(4, 8)
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
    per_box, per_detection = boxes * _FLOAT, detections * boxes * _FLOAT
    return Requests(
        init=(_DETECTION_DATA.on(abi),),
        scratch=(
            boxes,  # which candidates are active
            per_box * _BOX_COORDINATES,  # decoded boxes
            scores[1] * scores[2] * _FLOAT,  # dequantized scores
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
