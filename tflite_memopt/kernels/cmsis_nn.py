"""CMSIS-NN on Cortex-M: its scratch, and sharing only where the kernel is still TFLM's own.

Three builds: ``cmsis-nn`` without SIMD (Cortex-M0, M3), ``-dsp`` (M4, M7, M33), ``-mve`` (Helium: M55, M85).
No loop of CMSIS-NN is taken to allow an overlap: the 1x1 s8 convolution of the DSP and scalar builds runs over all
pixels for each output channel, and other kernels read ahead in blocks. Kernels that it does not replace are the
reference ones, so that those rules hold.

Sources: CMSIS-NN commit 99f736a6 (2026-07-15), Source/*/arm_*_get_buffer_sizes_s8.c; which kernels are replaced:
tflite-micro commit 90b983c2b3f1, kernels/cmsis_nn. Where a size depends on the compiler the larger one is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from ..ir.dtype import DType
from ..ir.model import Operator, Tensor
from .profile import KernelProfile
from .reference import reference_relations
from .relations.model import KernelReuse
from .requests.model import Requests, Word
from .requests.table import requests_of

Build = Literal["scalar", "dsp", "mve"]

REPLACED = frozenset(
    {
        "ADD",
        "AVERAGE_POOL_2D",
        "BATCH_MATMUL",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "MAXIMUM",
        "MAX_POOL_2D",
        "MINIMUM",
        "MUL",
        "PAD",
        "PADV2",
        "SOFTMAX",
        "SVDF",
        "TRANSPOSE",
        "TRANSPOSE_CONV",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
    }
)
_WITHOUT_SCRATCH = frozenset({"ADD", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "MUL", "PAD", "PADV2", "TRANSPOSE"})
_MVE_BLOCK = 124
"""``CH_IN_BLOCK_MVE``."""


def relations(operator: Operator) -> tuple[KernelReuse, ...]:
    """The reference rules for kernels that CMSIS-NN leaves alone; nothing for its own."""
    return () if operator.name in REPLACED else reference_relations(operator)


def requests(operator: Operator, word: Word, build: Build) -> Requests:
    """The reference kernel's requests with CMSIS-NN's scratch; a guess for kernels other than int8."""
    found = requests_of(operator, word)
    data = next((tensor for tensor in operator.present_inputs() if not tensor.is_constant), None)
    if operator.name not in REPLACED or data is None or data.dtype is DType.FLOAT32:
        return found
    if operator.name in _WITHOUT_SCRATCH:
        return found
    if operator.name not in _SCRATCH or data.dtype is not DType.INT8 or not _is_int8(operator):
        return replace(found, known=False)
    size = _SCRATCH[operator.name](operator, build)
    return replace(found, scratch=(size,) if size else ())


def _is_int8(operator: Operator) -> bool:
    """Whether the filter, if there is one, is int8 and, of a dense layer, has one scale."""
    filters = operator.inputs[1] if len(operator.inputs) > 1 else None
    if filters is None:
        return True
    per_channel = filters.quantization is not None and filters.quantization.scale.size > 1
    return filters.dtype is DType.INT8 and not (operator.name == "FULLY_CONNECTED" and per_channel)


def _shapes(operator: Operator) -> tuple[Tensor, tuple[int, ...]]:
    source, filters = operator.inputs[0], operator.inputs[1]
    assert source is not None  # the structure check has counted the inputs
    assert filters is not None
    return source, filters.shape


def _convolution(operator: Operator, build: Build) -> int:
    """``arm_convolve_wrapper_s8_get_buffer_size``; the 1 x n case is taken as the general one, which is no smaller
    but for MVE, where both are compared."""
    source, (_, rows, columns, _) = _shapes(operator)
    depth = source.shape[3]
    unit = all(operator.option(name, 1) == 1 for name in ("dilationHFactor", "dilationWFactor"))
    if rows == columns == 1 and unit:
        fast = operator.option("strideH", 1) == operator.option("strideW", 1) == 1
        return 4 * depth if fast and build == "dsp" else 0
    window = rows * columns * depth
    if build != "mve":
        return 4 * -(-window // 4) * 4
    general = 64 * -(-window // 16)
    return general if rows > 1 else max(general, columns * depth + columns * depth)


def _depthwise(operator: Operator, build: Build) -> int:
    """``arm_depthwise_conv_wrapper_s8_get_buffer_size``."""
    source, (_, rows, columns, channels) = _shapes(operator)
    if build == "mve" and source.shape[3] == 1 and channels > 1:
        return 64 * -(-rows * columns // 16) + rows * columns * channels
    unit = all(operator.option(name, 1) == 1 for name in ("dilationHFactor", "dilationWFactor"))
    if source.shape[3] != channels or source.shape[0] != 1 or not unit or build == "scalar":
        return 0
    if build == "mve":
        return 4 * _MVE_BLOCK * rows * columns
    return 0 if rows == columns == 3 else 2 * channels * rows * columns


def _dense(operator: Operator, build: Build) -> int:
    """``arm_fully_connected_s8_get_buffer_size``."""
    return 4 * operator.outputs[0].shape[-1] if build == "mve" and operator.outputs[0].shape else 0


def _average_pool(operator: Operator, build: Build) -> int:
    """``arm_avgpool_s8_get_buffer_size``."""
    return 4 * operator.outputs[0].shape[-1] if build == "dsp" else 0


def _none(operator: Operator, build: Build) -> int:
    """``arm_softmax_s8`` takes no buffer."""
    return 0


_SCRATCH: dict[str, Callable[[Operator, Build], int]] = {
    "AVERAGE_POOL_2D": _average_pool,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "SOFTMAX": _none,
}


def _profile(name: str, build: Build, cores: str) -> KernelProfile:
    return KernelProfile(
        name=name,
        description=f"CMSIS-NN 99f736a6 (2026-07-15), {cores}",
        requests=partial(requests, build=build),
        relations=relations,
        is_portable=False,
        in_wheel=False,
    )


SCALAR = _profile("cmsis-nn", "scalar", "no SIMD: Cortex-M0, M3")
DSP = _profile("cmsis-nn-dsp", "dsp", "DSP extension: Cortex-M4, M7, M33")
MVE = _profile("cmsis-nn-mve", "mve", "Helium: Cortex-M55, M85")
