"""Kinds that make one value of many: reductions, and the position of the largest or smallest.

The kernels of reductions ask for an index per input dimension and for the resolved axes. Their common helper looks at
the tensors a second time, and at the output only when the input is int8. Source: tflite-micro commit 90b983c2b3f1,
kernels reduce.cc, reduce_common.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ..model.ir.editor import GraphWriter
from ..model.ir.model import DType, Operator
from ..model.ir.tensors import QUANTIZED, integers
from .kind import TO_8, TO_16, AlongH, Arrival, OperatorKind, Tflm
from .overrides import Overrides, Sequences
from .requests import IN0, IN1, INT, OUT0, Abi, Asks, Size, Slot, needed
from .rows import RowMap, image_of, same_rows

REDUCTIONS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM")


def reduction_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: over columns and channels, with ``keep_dims``."""
    axes = integers(operator.inputs[1])
    if image_of(operator) is None or axes is None:
        return "its input is not an NHWC tensor with batch 1, or its axes are computed"
    if not operator.option("keepDims", False) or not {int(axis) % 4 for axis in axes} <= {2, 3}:
        return "it takes rows together"
    return same_rows(operator.outputs[0])


def argument_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: over channels, which the result lacks, so that a region ends here."""
    axis = integers(operator.inputs[1])
    if image_of(operator) is None or axis is None:
        return "its input is not an NHWC tensor with batch 1, or its axis is computed"
    if axis.size != 1 or int(axis.flat[0]) % 4 != 3:
        return "it compares rows or columns"
    return same_rows(operator.outputs[0])


def reduces_channels(operator: Operator, sequences: Sequences) -> bool:
    """Return a reduction of the channels alone, which stay as a dimension of 1."""
    source, axes = operator.inputs[0], integers(operator.inputs[1])
    if source is None or source not in sequences or axes is None or not operator.option("keepDims", False):
        return False
    rank = len(source.shape)
    return {int(axis) % rank for axis in axes} == {rank - 1}


def axis_of_channels(edit: GraphWriter, operator: Operator) -> Overrides:
    """Channels are the last of four dimensions."""
    return Overrides({1: edit.constant(f"{operator.outputs[0].name}/axis", np.asarray([3], np.int32))})


def _indices(operator: Operator, _: Abi) -> tuple[int, ...]:
    return len(needed(operator, IN0).shape) * INT, needed(operator, IN1).elements * INT


def _sums_and_indices(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for an int32 per output element in integer models, too."""
    sums = (needed(operator, OUT0).elements * INT,) if needed(operator, IN0).dtype in QUANTIZED else ()
    return (*sums, *_indices(operator, abi))


def _holds(is_helper_first: bool) -> Callable[[Operator], tuple[Slot, ...]]:
    def slots(operator: Operator) -> tuple[Slot, ...]:
        of_helper = (IN0, IN1, OUT0) if needed(operator, IN0).dtype is DType.INT8 else (IN0, IN1)
        own = (IN0, OUT0, IN1)
        return (*of_helper, *own) if is_helper_first else (*own, *of_helper)

    return slots


# TfLiteReducerParams; OpDataReduce
_SUM = Asks(1, 44, _holds(is_helper_first=False), scratch=_sums_and_indices)
_ALONG_H = AlongH(reduces_channels, axis_of_channels)
_REDUCTION = OperatorKind(Tflm(TO_16), _SUM, "reduced", rows=reduction_rows, along_h=_ALONG_H)
_EXTREME = replace(
    _REDUCTION,
    tflm=Tflm(TO_8),
    asks=Asks(1, 44, _holds(is_helper_first=True), scratch=_indices),
    keeps_scale=True,
    versions={DType.INT8: 2, DType.INT16: 3},
)
_ARGUMENT = OperatorKind(Tflm(TO_8), Asks(Size(4, short=1)), rows=argument_rows, drops_channels=True)

KINDS: Mapping[str, OperatorKind] = {
    "ARG_MAX": _ARGUMENT,
    "ARG_MIN": _ARGUMENT,
    "MEAN": replace(_REDUCTION, flash=4179),
    "REDUCE_ALL": OperatorKind(
        asks=Asks(1, 44, _holds(is_helper_first=False), scratch=_indices), since=(Arrival("2026-01-08 ef382bdaa"),)
    ),
    "REDUCE_ANY": OperatorKind(
        instead="leave the mask out (keras.layers.Masking, mask_zero=True): train on sequences of one length"
    ),
    "REDUCE_MAX": _EXTREME,
    "REDUCE_MIN": replace(_EXTREME, since=(Arrival("2025-08-05 3d4cdc19f"),)),
    "SUM": replace(_REDUCTION, flash=4094),
}
