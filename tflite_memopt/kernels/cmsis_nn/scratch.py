"""The sizes that CMSIS-NN's ``arm_*_get_buffer_size`` functions return, in bytes.

Source: CMSIS-NN commit 4ab83cc3, Source/ConvolutionFunctions/arm_convolve_get_buffer_sizes_s8.c, _s16.c,
arm_depthwise_conv_get_buffer_sizes_s8.c, _s4.c, arm_transpose_conv_get_buffer_sizes_s8.c; compiled with GCC. Arm
Compiler 6 asks for ``4 * depth`` more in a 1x1 convolution of the DSP build.
"""

from __future__ import annotations

from dataclasses import replace
from math import fmod

from ...graph.alignment import aligned
from ..window import KernelWindow
from .paths import Build, convolution_path, depthwise_path

_MVE_BLOCK = 124
"""``CH_IN_BLOCK_MVE``: channels that a depthwise convolution with Helium takes at once."""
_REVERSED_ABOVE = 16
"""``REVERSE_TCOL_EFFICIENT_THRESHOLD``: with more input channels a transposed convolution is run as a convolution."""


def convolution_s8(window: KernelWindow, build: Build) -> int:
    """``arm_convolve_wrapper_s8_get_buffer_size``, which TFLM asks for 4-bit filters as well."""
    path = convolution_path(window)
    if path in ("1x1 fast", "1x1"):
        return 0
    if path == "1xn" and build == "mve":
        return _one_row_mve(window)
    return _im2col_s8(window.taps * window.in_depth, build)


def convolution_s16(window: KernelWindow, build: Build) -> int:
    """``arm_convolve_s16_get_buffer_size``."""
    column = window.taps * window.in_depth
    return 4 * aligned(column, 8) * 2 if build == "mve" else 2 * column * 2


def depthwise_s8(window: KernelWindow, build: Build) -> int:
    """``arm_depthwise_conv_wrapper_s8_get_buffer_size``."""
    path = depthwise_path(window, build)
    if path == "convolution":
        return _as_convolution_mve(window)
    if path == "opt" and build != "scalar":
        return _depthwise_opt(window, build)
    return 0


def depthwise_s4(window: KernelWindow, build: Build) -> int:
    """``arm_depthwise_conv_wrapper_s4_get_buffer_size``, in which the scalar build asks for what DSP needs."""
    if window.in_depth != window.out_depth or window.batches != 1 or window.is_dilated:
        return 0
    return _depthwise_opt(window, build)


def transpose_s8(window: KernelWindow, build: Build) -> tuple[int, int]:
    """``arm_transpose_conv_s8_get_buffer_size`` and ``..._get_reverse_conv_buffer_size``; TFLM asks for both, 0 or not.

    ``window`` is in TRANSPOSE_CONV's own terms: ``in`` is the activation.
    """
    if max(window.stride_high, window.stride_wide) <= 2 and window.in_depth > _REVERSED_ABOVE:
        column = window.taps * window.in_depth
        return _im2col_s8(column, build), column * window.out_depth
    # The library takes the vertical stride for both directions.
    wide = (window.in_width - 1) * window.stride_wide + max(window.taps_wide, window.stride_high)
    return wide * window.out_depth * max(window.taps_high, window.stride_high) * 4, 0


def _depthwise_opt(window: KernelWindow, build: Build) -> int:
    return 4 * _MVE_BLOCK * window.taps if build == "mve" else 2 * window.in_depth * window.taps


def _im2col_s8(column: int, build: Build) -> int:
    return 4 * aligned(column, 16) if build == "mve" else 4 * aligned(column, 4)


def _as_convolution_mve(window: KernelWindow) -> int:
    """A convolution over the transposed filter, and room for that.

    TFLM does not set the stride that decides whether the 1xn path is taken (cmsis_nn/depthwise_conv.cc, Prepare); the
    larger of both is taken here.
    """
    as_convolution = replace(window, taps_depth=1)
    found = convolution_s8(as_convolution, "mve")
    if found and window.in_height == window.taps_high == 1:
        found = max(found, _im2col_s8(window.taps, "mve"))
    return found + window.out_depth * window.taps


def _one_row_mve(window: KernelWindow) -> int:
    """``arm_convolve_1_x_n_s8_get_buffer_size_mve``."""
    stride, pad, depth = window.stride_wide, window.pad_wide, window.in_depth
    # The remainder of C, which has the sign of the dividend.
    uneven = int(fmod((window.out_width - 1) * stride + window.taps_wide - window.in_width, 2))
    right = max(1, int((pad + uneven + stride - 1) / stride)) if pad + uneven else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    if right + max(window.out_width - right - left, 0) + left != window.out_width:
        return _im2col_s8(window.taps * depth, "mve")
    first = window.taps_wide * depth + pad * depth
    last = (window.taps_wide - 1) * depth + (right if uneven else pad) * depth
    return max(first, last)
