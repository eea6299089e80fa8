"""Operators that TFLM executes as a copy of a contiguous range of bytes: source and destination may be the same bytes.

Every kernel below writes each byte with the value that it reads there, or skips the copy. Sources, tflite-micro commit
90b983c2b3f1 (kernels/):

    RESHAPE                reshape.cc: skips the copy when the pointers are equal
    SQUEEZE, EXPAND_DIMS   squeeze.cc: memcpy of the whole; expand_dims.cc: element loop
    CONCATENATION          reference/concatenation.h: memcpy input by input into consecutive ranges
    PACK, UNPACK           pack.cc, unpack.cc: element loops
    SPLIT, SPLIT_V         split.cc, split_v.cc: element loops
    SLICE, STRIDED_SLICE   reference/slice.h, strided_slice.h: element loops and memcpy of runs, in order

A memcpy of a range onto itself is the compilers' own way to copy a struct onto itself, and does nothing. Neither
CMSIS-NN nor esp-nn replaces any of these kernels (kernels/cmsis_nn has none of them), so that the rules hold for every
library. Where the view is not at the start, its distance must be a multiple of TFLM's 16-byte alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import prod

import numpy as np

from ...analysis.alignment import ARENA_ALIGNMENT
from ...ir.model import Operator, Tensor
from .constants import integers
from .model import Share

_WHOLE = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})


def view_shares(operator: Operator) -> tuple[Share, ...]:
    """The inputs and outputs that may be the same bytes; none where an operand is not a constant."""
    if operator.name in _WHOLE:
        pairs: Iterator[tuple[Tensor | None, Tensor, int]] = iter([(operator.inputs[0], operator.outputs[0], 0)])
    elif operator.name in _RULES:
        pairs = _RULES[operator.name](operator)
    else:
        return ()
    return tuple(
        Share(source, output, distance, "view")
        for source, output, distance in pairs
        if source is not None and _is_plain(source, output) and distance % ARENA_ALIGNMENT == 0
    )


Pairs = Iterator[tuple[Tensor | None, Tensor, int]]


def _is_plain(source: Tensor, output: Tensor) -> bool:
    """Both are in the arena, hold the same kind of element, and are quantised alike, so that bytes are copied."""
    if source.is_constant or source.is_variable or source is output or not source.nbytes or not output.nbytes:
        return False
    return source.dtype is output.dtype and _same_quantization(source, output)


def _same_quantization(a: Tensor, b: Tensor) -> bool:
    first, second = a.quantization, b.quantization
    if first is None or second is None:
        return first is second
    return np.array_equal(first.scale, second.scale) and np.array_equal(first.zero_point, second.zero_point)


def _is_outermost(shape: tuple[int, ...], axis: int) -> bool:
    """Whether all dimensions before ``axis`` are 1, so that parts along it are consecutive ranges."""
    return 0 <= axis < len(shape) and prod(shape[:axis]) == 1


def _ranges(whole: Tensor, axis: int, parts: tuple[Tensor | None, ...]) -> Iterator[tuple[Tensor | None, int]]:
    """Each part with its first byte in the whole, if they are consecutive ranges that make it up."""
    sizes = [0 if part is None else part.nbytes for part in parts]
    if _is_outermost(whole.shape, axis) and sum(sizes) == whole.nbytes:
        yield from zip(parts, accumulate(sizes, initial=0), strict=False)


def _concatenation(operator: Operator) -> Pairs:
    output = operator.outputs[0]
    axis = operator.option("axis", 0) % max(len(output.shape), 1)
    parts = operator.present_inputs()
    if operator.option("fusedActivationFunction", 0) or not all(_same_quantization(part, output) for part in parts):
        return
    for part, start in _ranges(output, axis, operator.inputs):
        yield part, output, start


def _pack(operator: Operator) -> Pairs:
    output = operator.outputs[0]
    axis = operator.option("axis", 0) % max(len(output.shape), 1)
    for part, start in _ranges(output, axis, operator.inputs):
        yield part, output, start


def _unpack(operator: Operator) -> Pairs:
    source = operator.inputs[0]
    if source is None:
        return
    axis = operator.option("axis", 0) % max(len(source.shape), 1)
    for part, start in _ranges(source, axis, operator.outputs):
        if part is not None:
            yield source, part, -start


def _split(operator: Operator) -> Pairs:
    """SPLIT has its axis first, SPLIT_V last."""
    source, chosen = (operator.inputs[slot] for slot in ((1, 0) if operator.name == "SPLIT" else (0, 2)))
    axis = integers(chosen)
    if source is None or axis is None or axis.size != 1 or not source.shape:
        return
    for part, start in _ranges(source, int(axis[0]) % len(source.shape), operator.outputs):
        if part is not None:
            yield source, part, -start


def _slice(operator: Operator) -> Pairs:
    source, output = operator.inputs[0], operator.outputs[0]
    begin = integers(operator.inputs[1])
    if source is None or begin is None or begin.size != len(source.shape) or len(output.shape) != begin.size:
        return
    yield from _cut(source, output, tuple(int(b) for b in begin), output.shape)


def _strided_slice(operator: Operator) -> Pairs:
    source, output = operator.inputs[0], operator.outputs[0]
    begin, strides = integers(operator.inputs[1]), integers(operator.inputs[3])
    if source is None or begin is None or strides is None or begin.size != len(source.shape):
        return
    masks = [operator.option(name, 0) for name in ("ellipsisMask", "newAxisMask", "shrinkAxisMask")]
    if any(masks) or operator.option("offset", False) or (strides != 1).any() or len(output.shape) != begin.size:
        return
    first = [
        0 if operator.option("beginMask", 0) >> axis & 1 else min(max(b + size if b < 0 else b, 0), size)
        for axis, (b, size) in enumerate(zip(begin.tolist(), source.shape, strict=True))
    ]
    yield from _cut(source, output, tuple(first), output.shape)


def _cut(source: Tensor, output: Tensor, begin: tuple[int, ...], size: tuple[int, ...]) -> Pairs:
    """The pair, if the box is one run of bytes: one element along the outer axes, whole along the inner ones."""
    inner = len(size)
    while inner and size[inner - 1] == source.shape[inner - 1]:
        inner -= 1
    if prod(size[: max(inner - 1, 0)]) != 1 or any(
        b < 0 or b + n > s for b, n, s in zip(begin, size, source.shape, strict=True)
    ):
        return
    strides = [prod(source.shape[axis + 1 :]) for axis in range(len(size))]
    start = sum(b * stride for b, stride in zip(begin, strides, strict=True)) * source.dtype.arena_bytes
    yield source, output, -start


_RULES = {
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "SLICE": _slice,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "STRIDED_SLICE": _strided_slice,
    "UNPACK": _unpack,
}
