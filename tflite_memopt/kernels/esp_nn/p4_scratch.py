"""Scratch of esp-nn 1.2.3 on the ESP32-P4, in bytes. Read from the source; never run.

Source: esp-nn commit d45b843c, src/convolution/esp_nn_conv_esp32p4.c, ``esp_nn_get_conv_scratch_size_esp32p4``. A
depthwise convolution asks for none (esp_nn_depthwise_conv_esp32p4.c).
"""

from __future__ import annotations

from ...graph.alignment import aligned
from ..window import KernelWindow

_ALIGNMENT_ROOM = 32
_CACHE = 32_768
"""``L1D_BUDGET``."""
_LANES = 16


def convolution(w: KernelWindow) -> int:
    """Scratch of an int8 CONV_2D."""
    padded = bool(w.pad_high or w.pad_wide)
    if w.taps == 1 and w.stride_high == w.stride_wide == 1 and not padded:
        return _pointwise(w)
    sums = 4 * w.out_depth + _ALIGNMENT_ROOM
    if not padded and w.taps_wide * w.in_depth >= _LANES:
        return sums + w.taps * aligned(w.in_depth, 16) * w.out_depth
    if w.taps * w.in_depth >= _LANES:
        return sums + w.taps * w.in_depth
    if not padded:
        depth = _padded_depth(w)
        return sums + w.taps * depth * w.out_depth + w.in_width * w.in_height * depth
    return sums + _padded_input(w)


def _pointwise(w: KernelWindow) -> int:
    if w.in_depth < _LANES:
        return 4 * w.out_depth + 16 * w.out_depth + 32 + _ALIGNMENT_ROOM
    depth, pixels = aligned(w.in_depth, 8), w.in_width * w.in_height
    copied = pixels * depth if w.in_depth % 8 else 0
    turned = 16 * depth if pixels >= 8 else 0
    return copied + depth * w.out_depth + turned + _ALIGNMENT_ROOM


def _padded_input(w: KernelWindow) -> int:
    """A copy of the padded input and the filter; in tiles where the copy is larger than the cache."""
    wide = w.in_width + 2 * w.pad_wide
    whole = wide * (w.in_height + 2 * w.pad_high) * w.in_depth
    if whole + 4 * w.out_depth <= _CACHE:
        return whole + w.taps * aligned(w.in_depth, 16) * w.out_depth
    # The window has fewer than 16 elements here, so that a row of it has, too.
    depth = _padded_depth(w)
    filters = w.taps * depth * w.out_depth
    row = wide * depth
    budget = _CACHE - 4 * w.out_depth - filters
    tall = 1
    if budget > 0 and w.taps_high * row <= budget:
        tall = min((budget - w.taps_high * row) // (w.stride_high * row) + 1, w.out_height)
    return ((tall - 1) * w.stride_high + w.taps_high + 2 * w.pad_high) * row + filters


def _padded_depth(w: KernelWindow) -> int:
    return aligned((_LANES + w.taps_wide - 1) // w.taps_wide, 16)
