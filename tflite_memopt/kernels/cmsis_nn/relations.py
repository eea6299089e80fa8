"""Where CMSIS-NN's kernels let an output lie on the input that they still read.

Each rule was probed on the library itself: for int8, called with overlapping buffers on Cortex-M3, M7 and M55 at the
bound and above it, in 145,000 random cases without a wrong byte; for int16 and several batches, models of one operator
on the runners; docs/targets.md has the tables. Where nothing was probed, or where something was wrong, nothing is
permitted: 4-bit filters, groups, 1x1 convolutions of several batches.

Source: CMSIS-NN commit 4ab83cc3, files of Source/ named below; who is called for which type: tflite-micro commit
90b983c2b3f1, tensorflow/lite/micro/kernels/cmsis_nn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ...ir.dtype import DType
from ...ir.model import Operator
from ..reference import reference_relations
from ..relations.in_place import in_place_reuses
from ..relations.model import KernelReuse, ReuseRule
from ..relations.moves import pad_reuses
from ..relations.windows import row_reuses, window_reuses
from ..window import KernelWindow, window_of
from .paths import Build, convolution_path, depthwise_path, is_refused, may_be_wrong

_MVE_BLOCK = 124
_PIXELS_AT_ONCE = 4
"""Pixels that Helium's matrix multiplication reads before it writes the first: ``arm_nn_mat_mult_nt_t_s8``."""


def relations(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """The reference rules for kernels that CMSIS-NN leaves alone, its own for those that were probed, or nothing."""
    if operator.name not in REPLACED:
        return reference_relations(operator)
    source = operator.inputs[0] if operator.inputs else None
    if source is None or operator.name in _NEVER:
        return ()
    if source.dtype is DType.INT8:
        return _INT8[operator.name](operator, build)
    if source.dtype is DType.INT16 and operator.name in _INT16:
        return _INT16[operator.name](operator, build)
    if source.dtype is DType.FLOAT32 or operator.name in _REFERENCE_UNLESS_INT8:
        return reference_relations(operator)
    return ()


def miscomputes(operator: Operator, build: Build) -> bool:
    """Whether the library may compute an operator wrongly, sharing or not; see :func:`.paths.may_be_wrong`."""
    source = operator.inputs[0] if operator.inputs else None
    if operator.name != "CONV_2D" or source is None or source.dtype is not DType.INT8 or len(source.shape) != 4:
        return False
    return may_be_wrong(window_of(operator), build)


def _convolution(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """CONV_2D int8.

    1x1 fast, scalar and DSP: arm_nn_mat_mult_nt_t_s8.c goes over all pixels for two channels, then for the next two.
    1x1 with a stride: arm_convolve_1x1_s8.c does so row by row. im2col: arm_convolve_s8.c copies the windows of two or
    four pixels before it writes them; a group goes over all pixels. Helium: four pixels at a time.
    """
    if not _is_plain(operator):
        return ()
    window = window_of(operator)
    if window.in_depth != window.taps_depth:
        return ()
    path = convolution_path(window)
    if window.batches > 1:
        return window_reuses(operator) if path == "im2col" else ()
    if build == "mve":
        return _in_blocks(operator, window)
    if path == "1x1 fast":
        return ()
    return row_reuses(operator) if path == "1x1" else window_reuses(operator)


def _depthwise(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """DEPTHWISE_CONV_2D int8: pixel by pixel in arm_depthwise_conv_3x3_s8.c, arm_depthwise_conv_s8_opt.c and
    arm_depthwise_conv_s8.c; with Helium over all pixels for 124 channels, then for the next."""
    if not _is_plain(operator):
        return ()
    window = window_of(operator)
    if depthwise_path(window, build) == "convolution":
        if window.batches > 1:
            return ()
        return _in_blocks(operator, replace(window, taps_depth=1))
    if build == "mve" and window.out_depth > _MVE_BLOCK:
        return ()
    return window_reuses(operator)


def _in_blocks(operator: Operator, window: KernelWindow) -> tuple[KernelReuse, ...]:
    """Helium: 1x1 and one-row convolutions write a pixel when the next three have been read from the input itself."""
    if is_refused(window, "mve"):
        return ()
    direct = window.taps == 1 or window.in_height == window.taps_high == 1
    further = (_PIXELS_AT_ONCE - 1) * window.out_depth if direct else 0
    return tuple(replace(reuse, distance=reuse.distance + further) for reuse in window_reuses(operator))


def _is_plain(operator: Operator) -> bool:
    """Whether the filter is int8, which is what was probed."""
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
    is_grouped = operator.name == "CONV_2D" and window.in_depth != window.taps_depth
    return () if is_grouped or window.batches > 1 else window_reuses(operator)


def _pooling(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """AVERAGE_POOL_2D and MAX_POOL_2D: arm_avgpool_s8.c, arm_max_pool_s8.c and those of s16, pixel by pixel."""
    source = operator.inputs[0]
    if source is None or (source.dtype is DType.INT16 and source.shape[:1] != (1,)):
        return ()
    return window_reuses(operator)


def _elementwise(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """ADD, MUL, SOFTMAX: arm_elementwise_add_s8.c, arm_elementwise_mul_s8.c, arm_nn_softmax_common_s8.c, and the s16
    files of the first two; an ADD or MUL that broadcasts runs in the reference loops."""
    return in_place_reuses(operator)


def _extreme(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """MAXIMUM and MINIMUM int8: arm_maximum_s8.c, arm_minimum_s8.c, whose own broadcasting was not probed."""
    shapes = {tensor.shape for tensor in (*operator.present_inputs(), *operator.outputs)}
    return in_place_reuses(operator) if len(shapes) == 1 else ()


def _pad(operator: Operator, build: Build) -> tuple[KernelReuse, ...]:
    """PAD and PADV2 int8: arm_pad_s8.c copies row by row by memcpy, which is not defined for ranges that overlap.

    The reference's distance, and a run more: the probe found the reference's to do, which holds for that memcpy only.
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
_INT8: Mapping[str, Callable[[Operator, Build], tuple[KernelReuse, ...]]] = {
    "ADD": _elementwise,
    "AVERAGE_POOL_2D": _pooling,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "MAXIMUM": _extreme,
    "MAX_POOL_2D": _pooling,
    "MINIMUM": _extreme,
    "MUL": _elementwise,
    "PAD": _pad,
    "PADV2": _pad,
    "SOFTMAX": _elementwise,
}
_INT16: Mapping[str, Callable[[Operator, Build], tuple[KernelReuse, ...]]] = {
    "ADD": _elementwise,
    "AVERAGE_POOL_2D": _pooling,
    "CONV_2D": _wide_window,
    "DEPTHWISE_CONV_2D": _wide_window,
    "MAX_POOL_2D": _pooling,
    "MUL": _elementwise,
}
REPLACED = _NEVER | frozenset(_INT8)
"""Operators that have a file in kernels/cmsis_nn."""


def rule_for(build: Build) -> ReuseRule:
    """The rule of one build."""
    return partial(relations, build=build)
