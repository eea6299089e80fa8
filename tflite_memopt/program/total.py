"""The mean of all rows at the end of a front, as a sum that each call adds its rows to: exact, or not at all.

    rows --CAST--SUM------------+
    sum --SELECT_V2(is it on?)--ADD--> sum' --QUANTIZE--CAST--QUANTIZE--RESHAPE--> the mean of the rows so far
             else: where it starts

The sum restarts in the first call that makes rows of the image. It is float32, since TFLM sums no wider integers,
and exact: floats are integers up to 2**24. The following steps must give the kernel's result for the sum:

- MEAN (TFLM, reference/reduce.h, ``QuantizedMeanOrSum``) multiplies the sum by a fixed-point number, rounds to an
  integer, divides by a power of two, and rounds again: the first QUANTIZE, to int16, and the second.
- AVERAGE_POOL_2D (integer_ops/pooling.h, and CMSIS-NN's) divides by the number of pixels: one QUANTIZE.

float32 has 24 bits and the fixed-point number 31. So every possible sum is tested to lead to the same
integer, and where one does not, the mean is not computed so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, frexp

import numpy as np
import numpy.typing as npt

from ..cascade.loop import IterationGraph
from ..ir.editor import NO_ACTIVATION, label
from ..ir.model import DType, Graph, Operator, Tensor
from ..ir.tensors import Affine, affine_of, integers, per_tensor
from ..kernels.relations import RESHAPES
from ..operators.rows import is_image

_EXACT_FLOATS = 1 << 24
_NEIGHBORS = 8
"""Floats on both sides of the best divisor that are tried."""
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rounding:
    """How a sum that started with ``start`` becomes the mean: by ``divisor``, rounded, then in steps of ``step``.

    ``divisor``: None for a sum that is not rounded before. ``zero``: added to the steps.
    """

    start: int
    divisor: np.float32 | None
    step: float
    zero: int

    def of(self, sums: Integers) -> Integers:
        """Compute QUANTIZE, CAST and QUANTIZE of sums."""
        inner = sums if self.divisor is None else _quantized(sums, self.divisor, 0, DType.INT16)
        return _quantized(inner, np.float32(self.step), self.zero, DType.INT8)


@dataclass(frozen=True)
class Total:
    """A mean over rows and columns of ``rows``, made by the last ``operators`` of a front: its sum and its rounding."""

    rows: Tensor
    operators: tuple[Operator, ...]
    rounding: Rounding

    @property
    def output(self) -> Tensor:
        return self.operators[-1].outputs[0]

    def write(self, turn: IterationGraph, made: Tensor, early: int, count: int) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Add ``made``, the rows of a turn, of which the first ``early`` ones are none; returns mean and sum tied."""
        edit, rounding, shape = turn.edit, self.rounding, (1, 1, 1, made.shape[3])

        def floats(name: str, shape: tuple[int, ...] = shape) -> Tensor:
            return edit.integers(name, shape, DType.FLOAT32)

        wide, of_rows, before = floats("rows/wide", made.shape), floats("rows/sum"), floats("sum")
        edit.operator("CAST", (made,), (wide,))
        axes = edit.constant("rows/axes", np.asarray([1, 2], np.int32))
        edit.operator("SUM", (wide, axes), (of_rows,), "ReducerOptions", keepDims=True)
        start = edit.constant("sum/start", np.full((1, 1, 1, 1), rounding.start, np.float32))
        so_far, after = floats("sum/so_far"), floats("sum/and_these")
        is_on = turn.flag(tuple(at > early for at in range(count)))
        edit.operator("SELECT_V2", (is_on, before, start), (so_far,), "SelectV2Options")
        edit.operator("ADD", (so_far, of_rows), (after,), "AddOptions")
        value = after
        if rounding.divisor is not None:
            quotient, value = edit.integers("mean/quotient", shape, DType.INT16), floats("mean/rounded")
            quotient.quantization = per_tensor(float(rounding.divisor), 0)
            edit.operator("QUANTIZE", (after,), (quotient,), "QuantizeOptions")
            edit.operator("CAST", (quotient,), (value,))
        mean = edit.activation("mean/steps", shape, self.output, per_tensor(rounding.step, rounding.zero))
        edit.operator("QUANTIZE", (value,), (mean,), "QuantizeOptions")
        output = edit.activation(self.output.name, self.output.shape, self.output)  # the same bytes, with their scale
        edit.reshape(mean, output)
        return output, (after, before)


def total_of(graph: Graph) -> Total | str | None:
    """Return the mean at the end of a front, or why it cannot be summed up row by row; None where it ends otherwise."""
    last = graph.operators[-1]
    source, output = last.inputs[0], last.outputs[0]
    if source is None or last.name not in ("MEAN", "AVERAGE_POOL_2D"):
        return None
    rows, operators = source, tuple[Operator, ...]((last,))
    if source.producer is not None and source.producer.name in RESHAPES and len(source.uses) == 1:
        before = source.producer.inputs[0]
        if before is not None and before.shape[-1] == source.shape[-1]:
            rows, operators = before, (source.producer, last)
    if not is_image(rows) or rows.shape[1] == 1 or not _is_of_all_pixels(last, source):
        return None
    count, found, made = rows.shape[1] * rows.shape[2], affine_of(source), affine_of(output)
    if found is None or made is None or {source.dtype, output.dtype} != {DType.INT8}:
        return f"{label(last)}: only the mean of int8 is summed up row by row"
    rounding = _rounding(last, count, found, made)
    if rounding is None:
        return f"{label(last)}: sums of {count} values are not rounded by other operators exactly as it rounds them"
    return Total(rows, operators, rounding)


def _is_of_all_pixels(operator: Operator, source: Tensor) -> bool:
    """Return whether it makes one pixel of all of them, and does nothing else."""
    rank = len(source.shape)
    if operator.name == "MEAN":
        axes = integers(operator.inputs[1])
        taken = set() if axes is None else {int(axis) % rank for axis in axes.ravel()}
        return rank - 1 not in taken and all(size == 1 for at, size in enumerate(source.shape[:-1]) if at not in taken)
    is_plain = operator.option("fusedActivationFunction", 0) == NO_ACTIVATION
    return (
        is_plain
        and operator.outputs[0].shape[1:3] == (1, 1)
        and source.shape[1:3] == tuple(operator.option(name, 0) for name in ("filterHeight", "filterWidth"))
    )


def _rounding(operator: Operator, count: int, source: Affine, output: Affine) -> Rounding | None:
    """Return parameters that give the kernel's own result for every sum; None without any."""
    if operator.name == "AVERAGE_POOL_2D":
        pooled = Rounding(0, None, float(count), 0)
        return pooled if _is_exact(pooled, lambda sums: _divided(sums, count), count) else None
    fixed, shift = _fixed_point(source.scale / output.scale, count)
    if not -31 <= shift <= 7 or not fixed:
        return None  # beyond the kernel's 32 bits

    def kernel(sums: Integers) -> Integers:
        return _within(_scaled(sums, fixed, shift) + output.zero_point, DType.INT8)

    nearest = np.float32(2.0 ** (31 - max(0, shift)) / fixed).view(np.int32)
    for away in sorted(range(-_NEIGHBORS, _NEIGHBORS + 1), key=abs):
        divisor = np.int32(nearest + away).view(np.float32)
        found = Rounding(-source.zero_point * count, divisor, 2.0 ** max(0, -shift), output.zero_point)
        if _is_exact(found, kernel, count):
            return found
    return None


def _is_exact(rounding: Rounding, kernel: Callable[[Integers], Integers], count: int) -> bool:
    """Return whether all sums of ``count`` values lead to the kernel's result, and are exact as floats.

    Neither ever falls as the sum grows. So it is enough to look at both sides of where the kernel's result grows.
    """
    least, most = (each * count + rounding.start for each in (-128, 127))
    if max(abs(least), abs(most), 128 * count) >= _EXACT_FLOATS:
        return False
    wanted = np.arange(-128, 128)
    below, above = np.full(wanted.shape, least - 1), np.full(wanted.shape, most + 1)
    while (above - below > 1).any():
        middle = (below + above) // 2
        is_reached = kernel(middle) >= wanted
        below, above = np.where(is_reached, below, middle), np.where(is_reached, middle, above)
    sums = np.concatenate([below, above]).clip(least, most)
    return bool(np.array_equal(kernel(sums), rounding.of(sums)))


def _quantized(values: Integers, scale: np.float32, zero: int, dtype: DType) -> Integers:
    """QUANTIZE of float32 (TFLM, reference/quantize.h): a float32 quotient, rounded half away from zero, clamped."""
    quotients = (values.astype(np.float32) / scale).astype(np.float64)
    return _within(np.trunc(quotients + np.copysign(0.5, quotients)).astype(np.int64) + zero, dtype)


def _divided(sums: Integers, count: int) -> Integers:
    """AVERAGE_POOL_2D: the nearest integer, away from 0 in the middle."""
    found: Integers = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    return found


def _fixed_point(scale: float, count: int) -> tuple[int, int]:
    """The multiplier of MEAN, in units of 2**-31, and the power of two beside it (``QuantizeMultiplier``, reduce.h)."""
    fraction, shift = frexp(scale)
    fixed = floor(fraction * (1 << 31) + 0.5)
    if fixed == 1 << 31:
        fixed, shift = fixed // 2, shift + 1
    by = min(count.bit_length() - 1, 32, 31 + shift)
    return (fixed << by) // count, shift - by


def _scaled(sums: Integers, fixed: int, shift: int) -> Integers:
    """``MultiplyByQuantizedMultiplier``, which rounds twice (TFLM, kernels/internal/common.cc)."""
    products = (sums << max(0, shift)) * fixed
    nudged = products + np.where(products >= 0, 1 << 30, 1 - (1 << 30))
    highs = np.sign(nudged) * (np.abs(nudged) >> 31)
    bits = max(0, -shift)
    halves = (1 << bits >> 1) - (highs < 0) if bits else 0
    found: Integers = (highs + halves) >> bits
    return found


def _within(values: Integers, dtype: DType) -> Integers:
    limits = np.iinfo(dtype.label)
    found: Integers = np.clip(values, limits.min, limits.max)
    return found
