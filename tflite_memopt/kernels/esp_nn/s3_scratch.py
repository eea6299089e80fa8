"""Scratch of esp-nn 1.2.3 on the ESP32-S3, in bytes. Read from the source; never run.

The kernels copy filters and padded inputs, so that their scratch can be larger than the activations, and its size
changed between versions: it holds for this one.

Source: esp-nn commit d45b843c, src/convolution/esp_nn_conv_esp32s3.c, esp_nn_depthwise_conv_s8_esp32s3.c,
include/esp_nn_esp32s3.h.
"""

from __future__ import annotations

from ...graph.alignment import aligned
from ..window import KernelWindow

_FULL_INPUT = 40 * 1024
_FULL_COPY = 48 * 1024


def convolution(w: KernelWindow) -> int:
    """``esp_nn_get_conv_scratch_size_esp32s3``."""
    margin = 64
    if w.taps_high == w.taps_wide == w.stride_high == w.stride_wide == 1 and not (w.pad_high or w.pad_wide):
        depth = aligned(w.in_depth, 8)
        padded = w.in_width * w.in_height * depth if w.in_depth % 8 else 0
        turned = 16 * depth if w.in_width * w.in_height >= 8 else 0
        return padded + depth * w.out_depth + turned + margin
    line, window = w.taps_wide * w.in_depth, w.taps_wide * w.taps_high * w.in_depth
    if line < 16 <= window:
        return w.out_depth * 4 + 16 + w.out_depth * aligned(window, 16) + 16 + aligned(window, 16) + margin
    padded = 0
    if w.pad_high or w.pad_wide:
        padded = (w.in_width + 2 * w.pad_wide) * (w.in_height + 2 * w.pad_high) * w.in_depth
    filters = w.taps_wide * w.taps_high * aligned(w.in_depth, 16) * w.out_depth
    lines = aligned(line, 16) * w.taps_high * w.out_depth
    right, below = max(0, w.missing_wide), max(0, w.missing_high)
    border = (w.in_width + right) * (w.in_height + below) * w.in_depth if right or below else 0
    return padded + filters + lines + border + margin + 4 * w.out_depth


def depthwise(w: KernelWindow) -> int:
    """``esp_nn_get_depthwise_conv_scratch_size_esp32s3``."""
    multiplier, filters = w.out_depth // w.in_depth, w.taps_wide * w.taps_high * w.out_depth
    copied = w.in_width * w.in_height * w.in_depth
    if multiplier == 1 and w.in_depth % 8 == 0:
        if w.taps_wide == w.taps_high == 3:
            return _depthwise_3x3(w, filters, copied)
        if 2 * (filters + copied) <= _FULL_COPY:
            return 2 * (filters + copied) + 32
        return 2 * filters + 2 * w.in_width * w.taps_high * w.in_depth + 32
    if multiplier == 1 and w.in_depth > 3:
        depth = aligned(w.in_depth, 8)
        end = aligned(2 * w.taps_wide * w.taps_high * depth, 16)
        end = aligned(end + 2 * w.in_width * w.in_height * depth, 16)
        end = aligned(end + w.out_width * w.out_height * depth, 16)
        return end + 12 * depth + 16
    return 2 * (filters + copied) + 32 if multiplier % 4 == 0 else 32


def _depthwise_3x3(w: KernelWindow, filters: int, copied: int) -> int:
    if w.in_depth % 16 == 0:
        wide, high = (2 * w.pad_wide, 2 * w.pad_high) if w.pad_wide or w.pad_high else (w.missing_wide, w.missing_high)
        if not (wide or high):
            return filters + 16
        full = (w.in_width + wide) * (w.in_height + high) * w.in_depth
        return filters + 16 + (full if full <= _FULL_INPUT else (w.in_width + wide) * w.taps_high * w.in_depth)
    if w.in_depth >= 12:
        depth = aligned(w.in_depth, 16)
        wide, high = 2 * w.pad_wide + max(0, w.missing_wide), 2 * w.pad_high + max(0, w.missing_high)
        padded = (w.in_width + wide) * (w.in_height + high) * depth
        return 9 * depth + padded + w.out_width * w.out_height * depth + 64
    return 2 * (filters + copied) + 32
