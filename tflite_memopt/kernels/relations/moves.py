"""PAD: copies forward, so that its output may run over the input as far as padding has not pushed it.

Source: tflite-micro commit 90b983c2b3f1, kernels/pad.cc and tensorflow/lite/kernels/internal/reference/pad.h, which
writes the output from its first element to its last and reads the input likewise, one element for one copied.
"""

from __future__ import annotations

import numpy as np

from ...ir.dtype import DType
from ...ir.model import Operator
from .constants import integers
from .model import Share

_TYPES = (DType.FLOAT32, DType.INT8, DType.INT16)


def pad_shares(operator: Operator) -> tuple[Share, ...]:
    """PAD and PADV2 with constant paddings: distance = max over writes of end(write) - next byte to be read."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or source.dtype not in _TYPES or source.dtype is not output.dtype or not source.elements:
        return ()
    paddings = integers(operator.inputs[1])
    if paddings is None or paddings.size != 2 * len(source.shape):
        return ()
    inside = np.zeros(output.shape, dtype=bool)
    pairs = paddings.reshape(-1, 2)
    corner = tuple(slice(int(low), int(low) + size) for (low, _), size in zip(pairs, source.shape, strict=True))
    inside[corner] = True
    copied = inside.reshape(-1)
    if int(copied.sum()) != source.elements:
        return ()
    # Elements read before and with each write; after the last of them the input is not needed.
    read = np.cumsum(copied)
    written = np.arange(1, copied.size + 1)
    needed = read < source.elements
    distance = int((written - read)[needed].max(initial=0)) * source.dtype.arena_bytes
    return (Share(source, output, distance, "overlap"),)
