"""PAD, SLICE, STRIDED_SLICE: copies that go forward through both tensors, so that one may run over the other.

Sources, tflite-micro commit 90b983c2b3f1, tensorflow/lite/kernels/internal/reference:
pad.h writes the output from its first element to its last and reads the input in the same order, one element for
each one copied; slice.h does so element by element; strided_slice.h by memcpy of runs along the last dimension when
its stride is 1. A memcpy between ranges that overlap is not defined, so that a run must be clear of its own source.
"""

from __future__ import annotations

import numpy as np

from ...ir.constants import integers
from ...ir.dtype import DType
from ...ir.model import Operator
from .model import KernelReuse
from .shapes import slice_box, strided_slice_box

_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


def pad_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """PAD and PADV2 with constant paddings: distance = max over writes of end(write) - next byte to be read."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or source.dtype not in _TYPES or source.dtype is not output.dtype or not source.elements:
        return ()
    paddings = integers(operator.inputs[1])
    if paddings is None or paddings.size != 2 * len(source.shape):
        return ()
    lows = paddings.reshape(-1, 2)[:, 0]
    last = lows + np.asarray(source.shape) - 1
    if (lows < 0).any() or (last >= output.shape).any():
        return ()
    # Writes run ahead of reads by the padding written so far: by most at the last element that is copied.
    distance = (int(np.ravel_multi_index(tuple(last), output.shape)) + 1 - source.elements) * source.dtype.arena_bytes
    return (KernelReuse(source, output, distance, "overlap"),)


def slice_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """SLICE and STRIDED_SLICE of a box: distance = max of end(write) - next read, and of a run's overlap."""
    source, output = operator.inputs[0], operator.outputs[0]
    box = slice_box(operator) if operator.name == "SLICE" else strided_slice_box(operator)
    if source is None or box is None or source.dtype not in _TYPES or source.dtype is not output.dtype:
        return ()
    if box.elements != output.elements:
        return ()
    # Reads are ahead of writes by what is left out: by least at the first element. A run must clear its source.
    ahead = int(np.ravel_multi_index(tuple(box.first), source.shape))
    run = box.count[-1] if operator.name == "STRIDED_SLICE" else 1
    distance = max(-ahead, run - ahead if run > 1 else 0)
    return (KernelReuse(source, output, distance * source.dtype.arena_bytes, "overlap"),)
