"""Operators that TFLM executes as a copy of a contiguous range of bytes: source and destination may be the same bytes.

Every kernel below writes each byte with the value that is there already, or skips the copy: memory never changes, so
that it does not matter in which order a kernel reads and writes. Sources, tflite-micro commit 90b983c2b3f1,
tensorflow/lite/micro/kernels/ and tensorflow/lite/kernels/internal/reference/:

    RESHAPE         reshape.cc: skips the copy when the two pointers are equal
    SQUEEZE         squeeze.cc: one memcpy of the whole
    EXPAND_DIMS     expand_dims.cc: element loop
    CONCATENATION   concatenation.cc, reference/concatenation.h: memcpy input by input into consecutive ranges; it never
                    requantizes (int8 inputs that are quantized unlike the output are refused, int16 scales not read)
    PACK, UNPACK    pack.cc, unpack.cc: element loop for each part
    SPLIT, SPLIT_V  split.cc, split_v.cc: element loop for each part; sizes are those of the outputs
    SLICE           slice.cc, reference/slice.h: element by element, the input forwards
    STRIDED_SLICE   strided_slice.cc, reference/strided_slice.h: memcpy of runs of the last dimension if its stride is
                    1, else element by element

A memcpy of a range onto itself does nothing: it is what compilers make of a struct that is assigned to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod

from ...graph.alignment import ARENA_ALIGNMENT
from ...ir.constants import integers
from ...ir.model import Operator, Tensor
from ...ir.quantization import quantized_alike
from .model import KernelReuse
from .shapes import Box, axis_of, operands, slice_box, strided_slice_box

Pair = tuple[Tensor | None, Tensor, int]
"""An input, an output, and ``offset(input) - offset(output)`` in bytes."""


def view_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """The inputs and outputs that may be the same bytes; none where an operand that decides it is not a constant.

    Distances are multiples of TFLM's alignment of 16 bytes; a part that would start elsewhere gets none.
    """
    if operator.name not in SHARED_CODE or not operator.outputs:
        return ()
    return tuple(
        KernelReuse(source, output, distance, "view")
        for source, output, distance in _RULES[operator.name](operator)
        if source is not None and _are_in_arena(source, output) and distance % ARENA_ALIGNMENT == 0
    )


def _are_in_arena(source: Tensor, output: Tensor) -> bool:
    """Both have bytes of the same type in the arena's head."""
    if source.is_constant or source.is_variable or output.is_variable or source is output:
        return False
    return source.dtype is output.dtype and source.nbytes > 0 and output.nbytes > 0


def _whole(operator: Operator) -> Iterator[Pair]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: all bytes stay where they are."""
    (source,) = operands(operator, 1)
    output = operator.outputs[0]
    if source is not None and source.nbytes == output.nbytes:
        yield source, output, 0


def _joined(operator: Operator) -> Iterator[Pair]:
    """CONCATENATION, PACK: each input is a range of the output."""
    output = operator.outputs[0]
    alike = all(quantized_alike(part.quantization, output.quantization) for part in operator.present_inputs())
    if operator.option("fusedActivationFunction", 0) or not alike:
        return
    for part, start in _ranges(output, int(operator.option("axis", 0)), operator.inputs):
        if part is not None:
            yield part, output, start


def _unpacked(operator: Operator) -> Iterator[Pair]:
    """UNPACK: each output is a range of the input."""
    (source,) = operands(operator, 1)
    yield from _cut(source, int(operator.option("axis", 0)), operator.outputs)


def _split(operator: Operator) -> Iterator[Pair]:
    """SPLIT has its axis first, SPLIT_V last; each output is a range of the input."""
    if operator.name == "SPLIT":
        chosen, source = operands(operator, 2)
    else:
        source, _, chosen = operands(operator, 3)
    axis = integers(chosen)
    if axis is not None and axis.size == 1:
        yield from _cut(source, int(axis[0]), operator.outputs)


def _cut(source: Tensor | None, axis: int, parts: Sequence[Tensor]) -> Iterator[Pair]:
    if source is not None:
        yield from ((source, part, -start) for part, start in _ranges(source, axis, parts) if part is not None)


def _ranges(whole: Tensor, axis: int, parts: Sequence[Tensor | None]) -> Iterable[tuple[Tensor | None, int]]:
    """Each part with its first byte in the whole, if they are consecutive ranges that make it up."""
    outermost = axis_of(axis, len(whole.shape))
    sizes = [0 if part is None else part.nbytes for part in parts]
    # Along another axis a part is many short runs, one for each element of the dimensions before it.
    if outermost is None or prod(whole.shape[:outermost]) != 1 or sum(sizes) != whole.nbytes:
        return ()
    return zip(parts, accumulate(sizes, initial=0), strict=False)


def _sliced(box_of: Callable[[Operator], Box | None]) -> Callable[[Operator], Iterator[Pair]]:
    """SLICE, STRIDED_SLICE: the output is a range of the input."""

    def rule(operator: Operator) -> Iterator[Pair]:
        (source,) = operands(operator, 1)
        output, box = operator.outputs[0], box_of(operator)
        if source is None or box is None or box.elements != output.elements:
            return
        start = box.run_start(source.shape)
        if start is not None:
            yield source, output, -start * source.dtype.arena_bytes

    return rule


_RULES: Mapping[str, Callable[[Operator], Iterator[Pair]]] = {
    "CONCATENATION": _joined,
    "EXPAND_DIMS": _whole,
    "PACK": _joined,
    "RESHAPE": _whole,
    "SLICE": _sliced(slice_box),
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUEEZE": _whole,
    "STRIDED_SLICE": _sliced(strided_slice_box),
    "UNPACK": _unpacked,
}

SHARED_CODE = frozenset(_RULES)
"""Operators whose kernel is the same source file with every kernel library, so that the rules hold for all of them.

None of these files has a variant in micro/kernels/cmsis_nn, arc_mli, ceva or ethos_u, nor in kernels/esp_nn of
espressif/esp-tflite-micro (add, conv, depthwise_conv, fully_connected, mul, pooling, softmax). Cadence's xtensa has
two: reshape.cc, with the same test for equal pointers; and strided_slice.cc, which for int16 on HiFi cores calls
xa_nn_strided_slice_int16 (foss-xtensa/nnlib-hifi4 5fc5bd50b37a), a copy of nothing but those bytes as well.
"""
