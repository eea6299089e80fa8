"""CMSIS-NN on Cortex-M, as TFLM calls it: requests, sharing and the three profiles.

Three builds of one library: ``scalar`` C without SIMD (Cortex-M0, M3), ``dsp`` (M4, M7, M33), ``mve`` (Helium: M55,
M85). Requests and results were measured with the commits below, GCC 12.2 and QEMU 7.2 on Cortex-M3, M7 and M55.

TFLM calls CMSIS-NN from ``tensorflow/lite/micro/kernels/cmsis_nn``; an operator that is not there, and most that are
when their type is float, run in the reference kernels. Sources: CMSIS-NN commit 4ab83cc3; tflite-micro commit
90b983c2b3f1, built with its makefile's default KERNELS_OPTIMIZED_FOR_SPEED: with Helium FULLY_CONNECTED and SVDF then
keep the sums of their weights in the tail.

Where an output may lie on the input that is still read was probed on the library itself: for int8, called with
overlapping buffers on Cortex-M3, M7 and M55 at the bound and above it, in 145,000 random cases without a wrong byte;
for int16 and several batches, models of one operator on the runners; docs/kernels.md has the table. Where nothing was
probed, or where something was wrong, nothing is permitted: 4-bit filters, groups, 1x1 convolutions of several batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import fmod
from typing import Literal

import numpy as np

from ..model.ir.check import misfit
from ..model.ir.model import DType, Operator
from ..model.ir.tensors import QUANTIZED
from ..operators.move import pad_reuses
from ..operators.recurrent import CELL_STATE, HIDDEN_STATE
from ..operators.requests import IN0, IN1, IN2, INT, OUT0, UNARY, Abi, Requests, Size, held, needed
from ..operators.reuse import KernelReuse
from ..operators.table import relations_of
from ..operators.window import (
    CONVOLUTION,
    CONVOLUTIONS,
    DEPTHWISE,
    POOLS,
    KernelWindow,
    pool_reuses,
    transposed_window_of,
    window_of,
    window_reuses,
)
from ..solvers.graph.alignment import aligned
from .prices import DSP_PRICES, MVE_PRICES, SCALAR_PRICES, Prices
from .profile import KernelProfile
from .requests import requests_of

Build = Literal["scalar", "dsp", "mve"]
ConvolutionPath = Literal["1x1 fast", "1x1", "1xn", "im2col"]
DepthwisePath = Literal["3x3", "opt", "generic", "convolution"]


# The kernel that a convolution runs in: Include/arm_nnsupportfunctions.h (``arm_nn_is_convolve_1x1``,
# ``arm_nn_is_convolve_1x1_fast``, ``arm_nn_is_convolve_1_x_n``), Source/ConvolutionFunctions/
# arm_convolve_wrapper_s8.c, arm_depthwise_conv_wrapper_s8.c.


def convolution_path(window: KernelWindow) -> ConvolutionPath:
    """The kernel of an int8 or int4 CONV_2D: by filter, stride, dilation, padding, groups and, for 1xn, the input."""
    if window.is_grouped:
        return "im2col"
    if window.taps == 1 and window.padding == (0, 0) and not window.is_dilated:
        return "1x1 fast" if window.strides == (1, 1) else "1x1"
    one_row = window.rows.size == window.rows.taps == window.columns.dilation == 1
    if one_row and window.columns.stride * window.in_depth % 4 == 0:
        return "1xn"
    return "im2col"


def is_refused(window: KernelWindow) -> bool:
    """Tell whether Helium's one-row kernel refuses the operator, so that its output is never written.

    It does where the windows leave out two columns or more at the end; TFLM looks at its status in debug builds only.
    Source: Source/ConvolutionFunctions/arm_convolve_1_x_n_s8.c.
    """
    if convolution_path(window) != "1xn":
        return False
    total = (window.columns.outputs - 1) * window.columns.stride + window.columns.taps - window.columns.size
    return 2 * window.columns.before + int(fmod(total, 2)) != total


def depthwise_path(window: KernelWindow, build: Build) -> DepthwisePath:
    """The kernel of an int8 DEPTHWISE_CONV_2D; with Helium one input channel is run as a convolution."""
    if build == "mve" and window.in_depth == 1 and window.out_depth > 1:
        return "convolution"
    if window.in_depth != window.out_depth or window.batches != 1 or window.is_dilated:
        return "generic"
    return "3x3" if window.is_3x3 and max(window.padding) <= 1 and build != "mve" else "opt"


def is_reversed(window: KernelWindow) -> bool:
    """Tell whether a TRANSPOSE_CONV is run as a convolution (``REVERSE_TCOL_EFFICIENT_THRESHOLD``)."""
    return max(window.strides) <= 2 and window.in_depth > 16


_MVE_BLOCK = 124
"""``CH_IN_BLOCK_MVE``: channels that a depthwise convolution with Helium takes at once."""


# Scratch in bytes, as the ``arm_*_get_buffer_size`` functions return it: Source/ConvolutionFunctions/
# arm_convolve_get_buffer_sizes_s8.c, _s16.c, arm_depthwise_conv_get_buffer_sizes_s8.c, _s4.c,
# arm_transpose_conv_get_buffer_sizes_s8.c; compiled with GCC. Arm Compiler 6 asks for ``4 * depth`` more in a 1x1
# convolution of the DSP build.


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
    if is_reversed(window):
        column = window.taps * window.in_depth
        return _im2col_s8(column, build), column * window.out_depth
    # The library takes the vertical stride for both directions.
    wide = (window.columns.size - 1) * window.columns.stride + max(window.columns.taps, window.rows.stride)
    return wide * window.out_depth * max(window.rows.taps, window.rows.stride) * 4, 0


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
    if found and window.rows.size == window.rows.taps == 1:
        found = max(found, _im2col_s8(window.taps, "mve"))
    return found + window.out_depth * window.taps


def _one_row_mve(window: KernelWindow) -> int:
    """``arm_convolve_1_x_n_s8_get_buffer_size_mve``."""
    stride, pad, depth = window.columns.stride, window.columns.before, window.in_depth
    # The remainder of C, which has the sign of the dividend.
    uneven = int(fmod((window.columns.outputs - 1) * stride + window.columns.taps - window.columns.size, 2))
    right = max(1, int((pad + uneven + stride - 1) / stride)) if pad + uneven else 0
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    if right + max(window.columns.outputs - right - left, 0) + left != window.columns.outputs:
        return _im2col_s8(window.taps * depth, "mve")
    first = window.columns.taps * depth + pad * depth
    last = (window.columns.taps - 1) * depth + (right if uneven else pad) * depth
    return max(first, last)


# OpData of each wrapper; sizeof as compiled by GCC 12.2 for Cortex-M7 with short enums and without, and for x86-64.
_OP_DATA = {
    **dict.fromkeys(POOLS, Size(36, 36)),
    **dict.fromkeys(CONVOLUTIONS, Size(60, 80)),
    "BATCH_MATMUL": Size(36, 56),
    "FULLY_CONNECTED": Size(72, 96),
    "TRANSPOSE_CONV": Size(76, 88),
    "SOFTMAX": Size(64, 88),
    "SVDF": Size(40, 48),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Size(912, 1008),
}
_LSTM_SUMS = 8
_LSTM_BUFFERS = 3
_BIAS_BYTES = {DType.INT8: 4, DType.INT16: 8}


def requests(operator: Operator, abi: Abi, build: Build) -> Requests:
    """The reference kernel's requests, with what CMSIS-NN's wrapper asks for instead. Raises ModelFormatError."""
    found = requests_of(operator, abi)
    if operator.name not in _OP_DATA or not found.known:
        return found
    found = replace(found, init=(_OP_DATA[operator.name].on(abi),))
    rule = _RULES.get(operator.name)
    try:
        return found if rule is None else rule(operator, found, build)
    except IndexError as error:
        raise misfit(operator) from error


def _some(*sizes: int) -> tuple[int, ...]:
    """The requests that are made: a wrapper leaves out one of 0 bytes."""
    return tuple(size for size in sizes if size > 0)


def _convolution(operator: Operator, found: Requests, build: Build) -> Requests:
    """CONV_2D: multipliers only when quantized. Prepare asks for int16's scratch whatever the bias; Eval may not."""
    data = needed(operator, IN0).dtype
    if data not in QUANTIZED:
        return replace(found, prepare=(), scratch=())
    size = convolution_s8 if data is DType.INT8 else convolution_s16
    return replace(found, scratch=_some(size(window_of(operator), build)))


def _depthwise(operator: Operator, found: Requests, build: Build) -> Requests:
    """DEPTHWISE_CONV_2D: multipliers only when quantized, scratch only for int8."""
    data = needed(operator, IN0).dtype
    if data not in QUANTIZED:
        return replace(found, prepare=(), scratch=())
    if data is not DType.INT8:
        return replace(found, scratch=())
    size = depthwise_s4 if needed(operator, IN1).dtype is DType.INT4 else depthwise_s8
    return replace(found, scratch=_some(size(window_of(operator), build)))


def _average_pool(operator: Operator, found: Requests, build: Build) -> Requests:
    """AVERAGE_POOL_2D looks at its tensors twice; ``arm_avgpool_s8_get_buffer_size`` and ``_s16``."""
    quantized = needed(operator, IN0).dtype in QUANTIZED
    sums = INT * needed(operator, OUT0).shape[3] if build == "dsp" and quantized else 0
    return replace(found, scratch=_some(sums), temporaries=held(operator, (*UNARY, *UNARY)))


def _dense(operator: Operator, found: Requests, build: Build) -> Requests:
    """FULLY_CONNECTED: as a 1x1 convolution when its output has more than two dimensions, else by sums of weights."""
    filters, output = needed(operator, IN1), needed(operator, OUT0)
    if needed(operator, IN0).dtype is not DType.INT8 or filters.dtype is DType.INT4:
        return replace(found, scratch=())
    if len(output.shape) > 2 and filters.shape[-1] % 4 == 0:
        per_channel = len(found.prepare) > 0
        return replace(found, scratch=() if per_channel else (2 * INT * output.shape[-1],))
    sums = _some(INT * output.shape[-1] if build == "mve" else 0)
    if all(tensor.is_constant for tensor in (filters, *held(operator, (IN2,)))):
        return replace(found, scratch=(), prepare=found.prepare + sums)
    return replace(found, scratch=sums)


def _batch_matmul(operator: Operator, found: Requests, build: Build) -> Requests:
    """BATCH_MATMUL: ``arm_fully_connected_s8_get_buffer_size`` of the output's last dimension."""
    used = build == "mve" and needed(operator, IN0).dtype is DType.INT8
    return replace(found, scratch=_some(INT * needed(operator, OUT0).shape[-1] if used else 0))


def _svdf(operator: Operator, found: Requests, build: Build) -> Requests:
    """SVDF: the sums of the feature weights stay, with Helium."""
    if build != "mve" or needed(operator, IN0).dtype is not DType.INT8:
        return found
    return replace(found, prepare=(*found.prepare, INT * needed(operator, IN1).shape[0]))


def _transpose_convolution(operator: Operator, found: Requests, build: Build) -> Requests:
    """TRANSPOSE_CONV: two requests when int8, of which the second may be of 0 bytes; int16 as in the reference."""
    if needed(operator, IN2).dtype is not DType.INT8:
        return found
    return replace(found, scratch=transpose_s8(transposed_window_of(operator), build))


def _lstm(operator: Operator, found: Requests, build: Build) -> Requests:
    """UNIDIRECTIONAL_SEQUENCE_LSTM: eight sums of weights stay, and one scratch buffer less, when quantized."""
    bias = _BIAS_BYTES.get(needed(operator, IN0).dtype)
    if bias is None or needed(operator, CELL_STATE).dtype is not DType.INT16:
        return found
    sums = (needed(operator, HIDDEN_STATE).shape[1] * bias,) * _LSTM_SUMS
    return replace(found, prepare=(*found.prepare, *sums), scratch=found.scratch[:_LSTM_BUFFERS])


_RULES: Mapping[str, Callable[[Operator, Requests, Build], Requests]] = {
    CONVOLUTION: _convolution,
    DEPTHWISE: _depthwise,
    "AVERAGE_POOL_2D": _average_pool,
    "BATCH_MATMUL": _batch_matmul,
    "FULLY_CONNECTED": _dense,
    "TRANSPOSE_CONV": _transpose_convolution,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}


_PIXELS_AT_ONCE = 4
"""Pixels that Helium's matrix multiplication reads before it writes the first: ``arm_nn_mat_mult_nt_t_s8``."""


def relations(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """The reference rules for kernels that CMSIS-NN leaves alone, its own for those that were probed, or nothing."""
    if operator.name not in REPLACED:
        return relations_of(operator)
    source = operator.inputs[0] if operator.inputs else None
    if source is None or operator.name in _NEVER:
        return ()
    if source.dtype is DType.INT8:
        return _INT8[operator.name](operator, build)
    if source.dtype is DType.INT16 and operator.name in _INT16:
        return _INT16[operator.name](operator, build)
    if source.dtype is DType.FLOAT32 or operator.name in _REFERENCE_UNLESS_INT8:
        return relations_of(operator)
    return ()


def _convolution_reuses(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """CONV_2D int8.

    1x1 fast, scalar and DSP: arm_nn_mat_mult_nt_t_s8.c goes over all pixels for two channels, then for the next two.
    1x1 with a stride: arm_convolve_1x1_s8.c does so row by row. im2col: arm_convolve_s8.c copies the windows of two or
    four pixels before it writes them; a group goes over all pixels. Helium: four pixels at a time.
    """
    if not _is_plain(operator):
        return ()
    window = window_of(operator)
    if window.is_grouped:
        return ()
    path = convolution_path(window)
    if window.batches > 1:
        return window_reuses(operator) if path == "im2col" else ()
    if build == "mve":
        return _in_blocks(operator, window)
    if path == "1x1 fast":
        return ()
    return window_reuses(operator, by_rows=path == "1x1")


def _depthwise_reuses(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """DEPTHWISE_CONV_2D int8: pixel by pixel in arm_depthwise_conv_3x3_s8.c, arm_depthwise_conv_s8_opt.c and
    arm_depthwise_conv_s8.c; with Helium over all pixels for 124 channels, then for the next."""
    if not _is_plain(operator):
        return ()
    window = window_of(operator)
    if depthwise_path(window, build) == "convolution":
        return () if window.batches > 1 else _in_blocks(operator, replace(window, taps_depth=1))
    if build == "mve" and window.out_depth > _MVE_BLOCK:
        return ()
    return window_reuses(operator)


def _in_blocks(operator: Operator, window: KernelWindow) -> tuple[KernelReuse, ...]:
    """Helium: 1x1 and one-row convolutions write a pixel when the next three have been read from the input itself."""
    if is_refused(window):
        return ()
    direct = window.taps == 1 or window.rows.size == window.rows.taps == 1
    further = (_PIXELS_AT_ONCE - 1) * window.out_depth if direct else 0
    return tuple(replace(reuse, distance=reuse.distance + further) for reuse in window_reuses(operator))


def _is_plain(operator: Operator) -> bool:
    """Tell whether the filter is int8, which is what was probed."""
    filters, source = operator.inputs[1], operator.inputs[0]
    if source is None or filters is None or len(source.shape) != 4 or len(filters.shape) != 4:
        return False
    return filters.dtype is DType.INT8


def _wide_window(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """CONV_2D and DEPTHWISE_CONV_2D int16, one batch, no groups.

    arm_convolve_s16.c copies the windows of two pixels (Helium: four) before it writes them, 1x1 included;
    arm_depthwise_conv_fast_s16.c those of one pixel (Helium: four). Biases of 32 bits run in TFLM's own loops.
    """
    if not _is_plain(operator):
        return ()
    window = window_of(operator)
    return () if (operator.name == CONVOLUTION and window.is_grouped) or window.batches > 1 else window_reuses(operator)


def _pooling(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """AVERAGE_POOL_2D and MAX_POOL_2D: arm_avgpool_s8.c, arm_max_pool_s8.c and those of s16, pixel by pixel."""
    source = operator.inputs[0]
    if source is None or (source.dtype is DType.INT16 and source.shape[:1] != (1,)):
        return ()
    return pool_reuses(operator)


def _elementwise(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """ADD, MUL, SOFTMAX: arm_elementwise_add_s8.c, arm_elementwise_mul_s8.c, arm_nn_softmax_common_s8.c, and the s16
    files of the first two; an ADD or MUL that broadcasts runs in the reference loops."""
    return relations_of(operator)


def _extreme(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """MAXIMUM and MINIMUM int8: arm_maximum_s8.c, arm_minimum_s8.c, whose own broadcasting was not probed."""
    shapes = {tensor.shape for tensor in (*operator.present_inputs(), *operator.outputs)}
    return relations_of(operator) if len(shapes) == 1 else ()


def _pad(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """PAD and PADV2 int8: arm_pad_s8.c copies row by row by memcpy, which is not defined for ranges that overlap.

    The reference's distance, and a run more: in the probe the reference's sufficed, which holds for that memcpy only.
    """
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or not source.shape:
        return ()
    whole_rows = source.shape[-1] == output.shape[-1]
    run = int(np.prod(source.shape[-2:])) if whole_rows else source.shape[-1]
    return tuple(replace(reuse, distance=reuse.distance + run) for reuse in pad_reuses(operator))


_NEVER = frozenset(
    {"BATCH_MATMUL", "FULLY_CONNECTED", "SVDF", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
)
_REFERENCE_UNLESS_INT8 = frozenset({"MAXIMUM", "MINIMUM", "PAD", "PADV2"})
_BOTH: Mapping[str, Callable[[Operator, Build], tuple[KernelReuse, ...]]] = {
    **dict.fromkeys(("ADD", "MUL"), _elementwise),
    **dict.fromkeys(POOLS, _pooling),
}
_INT16 = {**_BOTH, **dict.fromkeys(CONVOLUTIONS, _wide_window)}
_INT8 = {
    **_BOTH,
    CONVOLUTION: _convolution_reuses,
    DEPTHWISE: _depthwise_reuses,
    "SOFTMAX": _elementwise,
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), _extreme),
    **dict.fromkeys(("PAD", "PADV2"), _pad),
}
REPLACED = _NEVER | frozenset(_INT8)
"""Operators that have a file in kernels/cmsis_nn."""


_MEASURED_AT = "tflite-micro 90b983c2b3f1 with CMSIS-NN 4ab83cc3, GCC 12.2"


def _profile(name: str, build: Build, cores: str, machine: str, prices: Prices) -> KernelProfile:
    return KernelProfile(
        name=name,
        description=f"CMSIS-NN 4ab83cc3, {cores}",
        requests=partial(requests, build=build),
        relations=partial(relations, build=build),
        is_portable=False,
        in_wheel=False,
        measured_at=f"{_MEASURED_AT}, {machine} in QEMU 7.2",
        prices=prices,
    )


SCALAR = _profile("cmsis-nn", "scalar", "no SIMD: Cortex-M0, M3", "Cortex-M3", SCALAR_PRICES)
DSP = _profile("cmsis-nn-dsp", "dsp", "DSP extension: Cortex-M4, M7, M33", "Cortex-M7", DSP_PRICES)
MVE = _profile("cmsis-nn-mve", "mve", "Helium: Cortex-M55, M85", "Cortex-M55", MVE_PRICES)
