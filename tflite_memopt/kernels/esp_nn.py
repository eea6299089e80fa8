"""esp-nn 1.2.3 on the ESP32-S3: its scratch, and sharing only where the kernel is still TFLM's own.

The S3 kernels copy filters and padded inputs, so that their scratch can be larger than the activations, and its size
changed between versions: the profile holds for this one. No loop of esp-nn is taken to allow an overlap.

Source: esp-nn commit d45b843 (2026-04-27, version 1.2.3), src/convolution/esp_nn_conv_esp32s3.c,
esp_nn_depthwise_conv_s8_esp32s3.c, src/softmax/esp_nn_softmax_s8_esp32s3.c, include/esp_nn_esp32s3.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ir.dtype import DType
from ..ir.model import Operator
from .profile import KernelProfile
from .reference import reference_relations
from .relations.model import KernelReuse
from .requests.model import Requests, Word
from .requests.table import requests_of

REPLACED = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "HARD_SWISH",
        "LOGISTIC",
        "MAX_POOL_2D",
        "MEAN",
        "MUL",
        "RELU6",
        "SOFTMAX",
    }
)
_GUESSED = frozenset({"HARD_SWISH", "LOGISTIC", "MEAN"})
"""Replaced in some versions of the firmware's port; what they then ask for is not known here."""
_VALID = 1
_FULL_INPUT = 40 * 1024
_FULL_COPY = 48 * 1024


@dataclass(frozen=True)
class _ConvolutionShape:
    """The library's own terms; ``pad`` is what goes before the first row and column."""

    in_height: int
    in_width: int
    in_depth: int
    out_height: int
    out_width: int
    out_depth: int
    taps_high: int
    taps_wide: int
    stride_high: int
    stride_wide: int
    pad_high: int
    pad_wide: int

    @property
    def missing_high(self) -> int:
        """Rows that the windows reach below the input."""
        return self.out_height * self.stride_high + self.taps_high - 1 - self.in_height

    @property
    def missing_wide(self) -> int:
        """Columns that the windows reach beyond the input."""
        return self.out_width * self.stride_wide + self.taps_wide - 1 - self.in_width


def relations(operator: Operator) -> tuple[KernelReuse, ...]:
    """The reference rules for kernels that esp-nn leaves alone; nothing for its own."""
    return () if operator.name in REPLACED else reference_relations(operator)


def requests(operator: Operator, word: Word) -> Requests:
    """The reference kernel's requests with esp-nn's scratch for int8; a guess where the size is not known."""
    found = requests_of(operator, word)
    data = next((tensor for tensor in operator.present_inputs() if not tensor.is_constant), None)
    if operator.name not in REPLACED or data is None or data.dtype is not DType.INT8:
        return found
    if operator.name in _GUESSED:
        return replace(found, known=False)
    if operator.name not in _SCRATCH:
        return found
    size = _SCRATCH[operator.name](operator)
    return replace(found, scratch=(size,) if size else ())


def _window(operator: Operator) -> _ConvolutionShape:
    source, filters, output = operator.inputs[0], operator.inputs[1], operator.outputs[0]
    assert source is not None  # the structure check has counted the inputs
    assert filters is not None
    pads = []
    for axis, letter in ((1, "H"), (2, "W")):
        taps, stride = filters.shape[axis], operator.option(f"stride{letter}", 1)
        reach = (taps - 1) * operator.option(f"dilation{letter}Factor", 1) + 1
        total = max(0, (output.shape[axis] - 1) * stride + reach - source.shape[axis])
        pads.append(0 if operator.option("padding", 0) == _VALID else total // 2)
    return _ConvolutionShape(
        in_height=source.shape[1],
        in_width=source.shape[2],
        in_depth=source.shape[3],
        out_height=output.shape[1],
        out_width=output.shape[2],
        out_depth=output.shape[3],
        taps_high=filters.shape[1],
        taps_wide=filters.shape[2],
        stride_high=operator.option("strideH", 1),
        stride_wide=operator.option("strideW", 1),
        pad_high=pads[0],
        pad_wide=pads[1],
    )


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _convolution(operator: Operator) -> int:
    """``esp_nn_get_conv_scratch_size_esp32s3``."""
    w, margin = _window(operator), 64
    if w.taps_high == w.taps_wide == w.stride_high == w.stride_wide == 1 and not (w.pad_high or w.pad_wide):
        depth = _up(w.in_depth, 8)
        padded = w.in_width * w.in_height * depth if w.in_depth % 8 else 0
        turned = 16 * depth if w.in_width * w.in_height >= 8 else 0
        return padded + depth * w.out_depth + turned + margin
    line, window = w.taps_wide * w.in_depth, w.taps_wide * w.taps_high * w.in_depth
    if line < 16 <= window:
        return w.out_depth * 4 + 16 + w.out_depth * _up(window, 16) + 16 + _up(window, 16) + margin
    padded = 0
    if w.pad_high or w.pad_wide:
        padded = (w.in_width + 2 * w.pad_wide) * (w.in_height + 2 * w.pad_high) * w.in_depth
    filters = w.taps_wide * w.taps_high * _up(w.in_depth, 16) * w.out_depth
    lines = _up(line, 16) * w.taps_high * w.out_depth
    right, below = max(0, w.missing_wide), max(0, w.missing_high)
    border = (w.in_width + right) * (w.in_height + below) * w.in_depth if right or below else 0
    return padded + filters + lines + border + margin + 4 * w.out_depth


def _depthwise(operator: Operator) -> int:
    """``esp_nn_get_depthwise_conv_scratch_size_esp32s3``."""
    w = _window(operator)
    multiplier, filters = w.out_depth // w.in_depth, w.taps_wide * w.taps_high * w.out_depth
    copied = w.in_width * w.in_height * w.in_depth
    if multiplier == 1 and w.in_depth % 8 == 0:
        if w.taps_wide == w.taps_high == 3:
            return _depthwise_3x3(w, filters, copied)
        if 2 * (filters + copied) <= _FULL_COPY:
            return 2 * (filters + copied) + 32
        return 2 * filters + 2 * w.in_width * w.taps_high * w.in_depth + 32
    if multiplier == 1 and w.in_depth > 3:
        depth = _up(w.in_depth, 8)
        end = _up(2 * w.taps_wide * w.taps_high * depth, 16)
        end = _up(end + 2 * w.in_width * w.in_height * depth, 16)
        end = _up(end + w.out_width * w.out_height * depth, 16)
        return end + 12 * depth + 16
    return 2 * (filters + copied) + 32 if multiplier % 4 == 0 else 32


def _depthwise_3x3(w: _ConvolutionShape, filters: int, copied: int) -> int:
    if w.in_depth % 16 == 0:
        wide, high = (2 * w.pad_wide, 2 * w.pad_high) if w.pad_wide or w.pad_high else (w.missing_wide, w.missing_high)
        if not (wide or high):
            return filters + 16
        full = (w.in_width + wide) * (w.in_height + high) * w.in_depth
        return filters + 16 + (full if full <= _FULL_INPUT else (w.in_width + wide) * w.taps_high * w.in_depth)
    if w.in_depth >= 12:
        depth = _up(w.in_depth, 16)
        wide, high = 2 * w.pad_wide + max(0, w.missing_wide), 2 * w.pad_high + max(0, w.missing_high)
        padded = (w.in_width + wide) * (w.in_height + high) * depth
        return 9 * depth + padded + w.out_width * w.out_height * depth + 64
    return 2 * (filters + copied) + 32


def _softmax(operator: Operator) -> int:
    """``esp_nn_get_softmax_scratch_size_esp32s3``: four bytes an element of a row."""
    return 4 * operator.outputs[0].shape[-1] if operator.outputs[0].shape else 0


_SCRATCH: dict[str, Callable[[Operator], int]] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "SOFTMAX": _softmax,
}

ESP_NN = KernelProfile(
    name="esp-nn",
    description="esp-nn 1.2.3 (d45b843, 2026-04-27) on the ESP32-S3",
    requests=requests,
    relations=relations,
    is_portable=False,
    in_wheel=False,
)
