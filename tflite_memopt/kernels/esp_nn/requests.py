"""What esp-nn's kernels take from TFLM's arena.

Source: esp-tflite-micro commit 99f49e14, tensorflow/lite/micro/kernels/esp_nn, whose wrappers add an index to the
OpData of three operators and ask for scratch when the data is int8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from ...ir.check import misfit
from ...ir.dtype import DType
from ...ir.model import Operator
from ..requests.model import Abi, Requests, Size
from ..requests.slots import IN0, OUT0, needed
from ..requests.table import requests_of
from ..window import window_of
from . import p4_scratch, s3_scratch

Chip = Literal["generic", "s3", "p4"]
"""The code that esp-nn has for each kind of chip."""

# NodeData of each wrapper; sizeof as compiled by GCC 12.2 for 32-bit Arm with enums of 4 bytes, and for x86-64.
_NODE_DATA: Mapping[str, Size] = {
    "CONV_2D": Size(60, 80),
    "DEPTHWISE_CONV_2D": Size(60, 80),
    "SOFTMAX": Size(64, 88),
}
_INT32 = 4


def requests(operator: Operator, abi: Abi, chip: Chip) -> Requests:
    """The reference kernel's requests, with what esp-nn's wrapper asks for beside them. Raises ModelFormatError."""
    found = requests_of(operator, abi)
    if operator.name not in _NODE_DATA or not found.known:
        return found
    found = replace(found, init=(_NODE_DATA[operator.name].on(abi),))
    if needed(operator, IN0).dtype is not DType.INT8 or needed(operator, OUT0).dtype is not DType.INT8:
        return found
    try:
        size = _softmax(operator) if operator.name == "SOFTMAX" else _window(operator, chip)
    except IndexError as error:
        raise misfit(operator) from error
    return replace(found, scratch=(*found.scratch, size)) if size else found


def _softmax(operator: Operator) -> int:
    """``esp_nn_get_softmax_scratch_size``: four bytes for each of what the wrapper takes for the width, dimension 1.

    The wrapper reads past a shape of one dimension. Source: src/softmax/esp_nn_softmax_opt.c,
    kernels/esp_nn/softmax.cc.
    """
    return _INT32 * needed(operator, IN0).shape[1]


def _window(operator: Operator, chip: Chip) -> int:
    window = window_of(operator)
    if chip == "generic" or (chip == "p4" and operator.name == "DEPTHWISE_CONV_2D"):
        return 0
    if chip == "p4":
        return p4_scratch.convolution(window)
    return s3_scratch.convolution(window) if operator.name == "CONV_2D" else s3_scratch.depthwise(window)
