"""Which kernel of CMSIS-NN a convolution runs in.

Source: CMSIS-NN commit 4ab83cc3, Include/arm_nnsupportfunctions.h (``arm_nn_is_convolve_1x1``,
``arm_nn_is_convolve_1x1_fast``, ``arm_nn_is_convolve_1_x_n``), Source/ConvolutionFunctions/arm_convolve_wrapper_s8.c,
arm_depthwise_conv_wrapper_s8.c.
"""

from __future__ import annotations

from math import fmod
from typing import Literal

from ..window import KernelWindow

Build = Literal["scalar", "dsp", "mve"]
ConvolutionPath = Literal["1x1 fast", "1x1", "1xn", "im2col"]
DepthwisePath = Literal["3x3", "opt", "generic", "convolution"]


def convolution_path(window: KernelWindow) -> ConvolutionPath:
    """The kernel of an int8 or int4 CONV_2D: by filter, stride, dilation, padding, groups and, for 1xn, the input."""
    grouped = window.in_depth != window.taps_depth
    unpadded = not (window.pad_high or window.pad_wide)
    if window.taps == 1 and unpadded and not window.is_dilated and not grouped:
        return "1x1 fast" if window.stride_high == window.stride_wide == 1 else "1x1"
    one_row = window.in_height == window.taps_high == window.dilation_wide == 1
    if one_row and window.stride_wide * window.in_depth % 4 == 0 and not grouped:
        return "1xn"
    return "im2col"


def is_refused(window: KernelWindow, build: Build) -> bool:
    """Whether Helium's one-row kernel refuses the operator, so that its output is never written.

    It does where the windows leave out two columns or more at the end; TFLM looks at its status in debug builds only.
    Source: Source/ConvolutionFunctions/arm_convolve_1_x_n_s8.c.
    """
    if build != "mve" or convolution_path(window) != "1xn":
        return False
    total = (window.out_width - 1) * window.stride_wide + window.taps_wide - window.in_width
    return 2 * window.pad_wide + int(fmod(total, 2)) != total


def may_be_wrong(window: KernelWindow, build: Build) -> bool:
    """Whether Helium's one-row kernel may compute a CONV_2D otherwise than every other kernel does.

    With a stride it takes left paddings of different widths for one, and reads beyond windows that leave out columns:
    129 of 310 shapes that were run on Cortex-M55 (QEMU) are wrong, by up to 84 steps, all of them with a stride and
    with padding or columns left out. Source: Source/ConvolutionFunctions/arm_convolve_1_x_n_s8.c.
    """
    return build == "mve" and convolution_path(window) == "1xn" and window.stride_wide > 1


def depthwise_path(window: KernelWindow, build: Build) -> DepthwisePath:
    """The kernel of an int8 DEPTHWISE_CONV_2D; with Helium one input channel is run as a convolution."""
    if build == "mve" and window.in_depth == 1 and window.out_depth > 1:
        return "convolution"
    if window.in_depth != window.out_depth or window.batches != 1 or window.is_dilated:
        return "generic"
    is_3x3 = window.taps_high == window.taps_wide == 3 and max(window.pad_high, window.pad_wide) <= 1
    return "3x3" if is_3x3 and build != "mve" else "opt"
