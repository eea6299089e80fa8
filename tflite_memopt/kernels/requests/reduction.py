"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL.

All ask for an index per input dimension and for the resolved axes. Their common helper looks at the tensors a
second time, and at the output only when the input is int8.
Source: tflite-micro commit 90b983c2b3f1, kernels reduce.cc, reduce_common.cc.
"""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator
from .model import Abi, Requests, Size
from .slots import IN0, IN1, OUT0, Slot, held, needed

_INT = 4
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
