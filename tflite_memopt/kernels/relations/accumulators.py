"""Kernels that add up in scratch and write their output only when all of the input has been read."""

from __future__ import annotations

from ...ir.dtype import DType
from ...ir.model import Operator
from .model import KernelReuse


def transpose_conv_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """TRANSPOSE_CONV of int8 and int16: the output may lie anywhere on the input. The float kernel adds up in the
    output itself, and nothing is reused.

    Source: tflite-micro commit 90b983c2b3f1, reference/integer_ops/transpose_conv.h: the output is written from
    ``scratch_buffer`` after the loops over the input.
    """
    if len(operator.inputs) < 3:
        return ()
    source, output = operator.inputs[2], operator.outputs[0]
    if source is None or source.is_constant or source.dtype not in (DType.INT8, DType.INT16):
        return ()
    return (KernelReuse(source, output, -source.nbytes, "overlap"),) if source.dtype is output.dtype else ()
