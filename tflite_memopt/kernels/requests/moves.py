"""Operators that move data: CONCATENATION, MIRROR_PAD, RESHAPE, EMBEDDING_LOOKUP.

Source: tflite-micro commit 90b983c2b3f1, kernels concatenation.cc, mirror_pad.cc, reshape_common.cc,
embedding_lookup.cc.
"""

from __future__ import annotations

from ...ir.model import Operator
from .model import Abi, Requests, Size
from .plain import shape_bytes
from .slots import BINARY, IN0, OUT0, UNARY, held, inputs, needed

_INT = 4
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
