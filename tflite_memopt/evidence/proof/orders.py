"""In which order kernels read and write, by library: facts of the proof's own, none of them taken from a planner.

Of an operator's kernel an order tells the step in which each element of an input is read for the last time, and the
step in which each element of an output is written. In one step reads come before writes. So an output may lie over an
input wherever no byte is written in an earlier step than the one in which it is read:

    input     |---read at 5---|---read at 9---|
    output              |---written at 7--- ... the byte that is still to be read at 9 is lost

A kernel that is not here is taken to write all of its outputs before it has read anything.

Found on the kernels: tests/proof/test_orders.py runs single operators of TFLM's reference kernels with overlapping
buffers at every distance (tflite-micro commit 90b983c2b3f1). CMSIS-NN (4ab83cc3, on Cortex-M3, M7 and M55 in QEMU) and
esp-nn's generic C (d45b843c) were probed the same way, with 145,000 random shapes of int8 at the bounds that follow
from these orders and above: docs/kernels.md. Of vector code for the ESP32-S3 and P4 nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...model.ir.model import DType, Operator, Tensor
from .moves import by_place_in_block, nearest_positions, strided_places
from .sums import bilinear_positions, side

Steps = Any
"""An array of integers: a step for each element of a tensor, flat; -1 where a kernel never reads it."""
NEVER = np.int64(np.iinfo(np.int64).max)
"""Later than any step."""
WRITTEN, KEPT, UNKNOWN = np.uint8(0), np.uint8(1), np.uint8(2)
"""What a kernel does to an element or byte of its output: it writes the value, leaves what was there before, or fills
it with what nobody knows."""


@dataclass(frozen=True)
class Order:
    """``reads``: by slot; an input that is not here is read until the end. ``writes``: of the first output.

    ``is_final``: each byte is written once, with the value that stays; then a byte may be written over itself.
    ``is_in_place``: an input of the output's type and shape may lie exactly where the output does.
    ``mask``: what the kernel does to each element of that output, ``WRITTEN``, ``KEPT`` or ``UNKNOWN``; None: it writes
    all of them.
    """

    reads: Mapping[int, Steps]
    writes: Steps
    is_final: bool = False
    is_in_place: bool = False
    mask: Any = None


Fact = Callable[[Operator, "Known"], Order | None]
Known = Mapping[int, Sequence[int]]
"""The values of operands that steer, by slot, as far as they are known."""


def _elements(tensor: Tensor) -> Steps:
    return np.arange(tensor.elements, dtype=np.int64)


def only_copies(operator: Operator, known: Known) -> Order | None:
    """Kinds that put elements elsewhere, in an order that is not said: bytes may be written over themselves only.

    RESHAPE, SQUEEZE, EXPAND_DIMS, CONCATENATION, PACK, UNPACK, SPLIT, SPLIT_V: memcpy, or loops over elements.
    """
    return Order({}, np.zeros(operator.outputs[0].elements, np.int64), is_final=True)


def element_by_element(operator: Operator, known: Known) -> Order | None:
    """Element i of every input of the output's shape is read, and then element i of the output is written.

    reference/integer_ops, reference/*.h; those that go over a row more than once write it in their last pass. An input
    that is broadcast is read again and again.
    """
    output = operator.outputs[0]
    steps = _elements(output)
    alike = (slot for slot, each in enumerate(operator.inputs) if each is not None and each.shape == output.shape)
    return Order(dict.fromkeys(alike, steps), steps)


def first_input_by_element(operator: Operator, known: Known) -> Order | None:
    """The same of the first input alone."""
    found = element_by_element(operator, known)
    return None if found is None else Order({0: found.reads[0]} if 0 in found.reads else {}, found.writes)


def in_place(operator: Operator, known: Known) -> Order | None:
    """Element by element in an order that is not known, such as that of vector code in blocks."""
    return Order({}, np.zeros(operator.outputs[0].elements, np.int64), is_in_place=True)


def sliced(operator: Operator, known: Known) -> Order | None:
    """SLICE: element by element, both forwards (reference/slice.h)."""
    source, output, begin = operator.inputs[0], operator.outputs[0], known.get(1)
    if source is None or begin is None:
        return None
    box = tuple(slice(at, at + count) for at, count in zip(begin, output.shape, strict=True))
    return _picked(source, output, np.arange(source.elements).reshape(source.shape)[box])


def strided(operator: Operator, known: Known) -> Order | None:
    """STRIDED_SLICE: runs along the last dimension by memcpy if its stride is 1 (reference/strided_slice.h)."""
    source, output = operator.required(0), operator.outputs[0]
    if not known.keys() >= {1, 2, 3}:
        return None
    places = strided_places(operator, source.shape, [known[slot] for slot in (1, 2, 3)])
    picked = np.arange(source.elements).reshape(source.shape)[places]
    is_run = isinstance(places[-1], slice) and places[-1].step == 1
    return _picked(source, output, picked, picked.shape[-1] if is_run else 1)


def _picked(source: Tensor, output: Tensor, picked: Any, run: int = 1) -> Order:
    """Elements ``picked`` of a source, one after the other; ``run`` of them at a time, none of which may be lost."""
    reads, steps = np.full(source.elements, -1, np.int64), _elements(output)
    blocks = steps // max(1, run)
    reads[picked.ravel()] = 2 * blocks + (run > 1)
    return Order({0: reads}, 2 * blocks, is_final=True)


def padded(operator: Operator, known: Known, by_rows: bool = False) -> Order | None:
    """PAD, PADV2: the output from its first element to its last, the input as far as it is copied (reference/pad.h).

    ``by_rows``: by memcpy along the last dimension, or the last two where the last is not padded (arm_pad_s8.c).
    """
    source, output = operator.inputs[0], operator.outputs[0]
    amounts = known.get(1)
    if source is None or amounts is None:
        return None
    before = np.asarray(amounts).reshape(-1, 2)[:, 0]
    box = tuple(slice(low, low + size) for low, size in zip(before, source.shape, strict=True))
    steps = _elements(output)
    places = steps.reshape(output.shape)[box].ravel()
    if not by_rows or not source.shape:
        return Order({0: places}, steps, is_final=True)
    run = source.shape[-1]
    if len(source.shape) > 1 and run == output.shape[-1]:
        run *= source.shape[-2]
    writes, starts = steps.copy(), places[:: max(1, run)]
    writes[places] = np.repeat(starts, run)[: places.size]
    return Order({0: np.repeat(starts + run, run)[: places.size]}, writes, is_final=True)


def updated(operator: Operator, known: Known) -> Order | None:
    """DYNAMIC_UPDATE_SLICE at another place than its operand: it copies all of that, and then the update.

    See :func:`updated_in_place` for one at the place of its operand.
    """
    return Order({}, np.zeros(operator.outputs[0].elements, np.int64))


def updated_in_place(operator: Operator, known: Known) -> Order | None:
    """DYNAMIC_UPDATE_SLICE at the place of its operand: it writes the box of the update alone, run by run.

    Where the box begins at a place that is not known, any element may be written before the update is read.
    """
    update, output, begin = operator.required(1), operator.outputs[0], known.get(2)
    if begin is None:
        start = np.zeros(output.elements, np.int64)
        return Order({0: start}, start)
    box = tuple(slice(at, at + count) for at, count in zip(begin, update.shape, strict=True))
    places = np.arange(output.elements).reshape(output.shape)[box].ravel()
    runs = _elements(update) // max(1, update.shape[-1] if update.shape else 1)
    writes, mask = np.full(output.elements, NEVER), np.full(output.elements, KEPT)
    writes[places], mask[places] = 2 * runs, WRITTEN
    operand = np.full(output.elements, -1, np.int64)
    return Order({0: operand, 1: 2 * runs + 1}, writes, is_final=True, mask=mask)


def space_to_batch(operator: Operator, known: Known) -> Order | None:
    """SPACE_TO_BATCH_ND: what is padded gets a byte that TFLM's kernel never set (space_to_batch_nd.cc, Prepare)."""
    source, output = operator.inputs[0], operator.outputs[0]
    blocks, amounts = known.get(1), known.get(2)
    if source is None or blocks is None or amounts is None or not any(amounts):
        return None
    pairs = [(0, 0), *np.asarray(amounts).reshape(-1, 2).tolist(), *[(0, 0)] * (len(source.shape) - 1 - len(blocks))]
    is_padding = np.pad(np.zeros(source.shape, bool), pairs, constant_values=True)
    moved = by_place_in_block(is_padding, blocks)
    return Order({}, np.zeros(output.elements, np.int64), mask=np.where(moved.ravel(), UNKNOWN, WRITTEN))


# ---------------------------------------------------------------------------------------------------------- windows


def by_pixels(operator: Operator, known: Known, at_once: int = 1, by_rows: bool = False) -> Order | None:
    """Convolutions and pools: a pixel of the output is finished before the next, its window read until then.

    ``at_once``: the kernel reads the windows of this many pixels, and then writes these pixels. ``by_rows``: it does
    so with all pixels of a row.
    reference/conv.h, depthwiseconv_float.h, pooling.h, those of integer_ops.
    """
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or len(source.shape) != 4 or len(output.shape) != 4:
        return None
    if _computes_weights(operator):
        return None
    filters, sides = operator.operand(1), ("filterHeight", "filterWidth")
    taps = [int(operator.option(name, 0)) for name in sides] if filters is None else filters.shape[1:3]
    rows, columns = (_last_readers(operator, source, output, axis, taps[axis - 1]) for axis in (1, 2))
    return _of_pixels(source, output, rows, columns, at_once, by_rows)


def _computes_weights(operator: Operator) -> bool:
    return any(each is not None and not each.is_constant for each in operator.inputs[1:])


def _last_readers(operator: Operator, source: Tensor, output: Tensor, axis: int, taps: int) -> Steps:
    """For each row or column of an image, the last one of the output that reads it; -1: none."""
    letter = "HW"[axis - 1]
    stride, dilation = int(operator.option(f"stride{letter}", 1)), int(operator.option(f"dilation{letter}Factor", 1))
    size, count = source.shape[axis], output.shape[axis]
    before = side(size, count, taps, stride, dilation, int(operator.option("padding", 0)) == 0).before
    found = np.full(size, -1, np.int64)
    for tap in range(taps):
        at = np.arange(count) * stride - before + tap * dilation
        inside = (at >= 0) & (at < size)
        np.maximum.at(found, at[inside], np.flatnonzero(inside))
    return found


def _of_pixels(
    source: Tensor, output: Tensor, rows: Steps, columns: Steps, at_once: int = 1, by_rows: bool = False
) -> Order:
    batches, height, width, depth = output.shape
    own = np.repeat(np.arange(batches * height * width, dtype=np.int64), depth)
    batch = np.arange(source.shape[0], dtype=np.int64)[:, None, None]
    last = (batch * height + rows[:, None]) * width + (width - 1 if by_rows else columns)
    last = np.where((rows[:, None] < 0) | (columns < 0), -1, last)
    block = width if by_rows else at_once
    reads = np.where(last < 0, -1, 2 * (last // block) + 1)
    return Order({0: np.repeat(reads.ravel(), source.shape[3])}, 2 * (own // block))


def by_rows_of_data(operator: Operator, known: Known) -> Order | None:
    """FULLY_CONNECTED: a row of the output is finished before the next (reference/fully_connected.h)."""
    source, weights, output = operator.inputs[0], operator.inputs[1], operator.outputs[0]
    if source is None or weights is None or _computes_weights(operator):
        return None
    units, depth = weights.shape
    return Order({0: 2 * (_elements(source) // max(1, depth)) + 1}, 2 * (_elements(output) // max(1, units)))


def resized(operator: Operator, known: Known) -> Order | None:
    """RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR: pixel by pixel (reference/resize_*.h)."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or 1 not in known:
        return None
    found = []
    for axis in (1, 2):
        size, count = source.shape[axis], output.shape[axis]
        is_nearest = operator.name == "RESIZE_NEAREST_NEIGHBOR"
        sources: Sequence[Any] = [nearest_positions(operator, size, count)] if is_nearest else ()
        sources = sources or bilinear_positions(operator, source.dtype, size, count)
        last = np.full(size, -1, np.int64)
        for positions in sources:
            np.maximum.at(last, positions, np.arange(count))
        found.append(last)
    return _of_pixels(source, output, found[0], found[1])


def all_before(operator: Operator, known: Known) -> Order | None:
    """TRANSPOSE_CONV of integers: it adds up in scratch, and writes when all is read (integer_ops/transpose_conv.h)."""
    source, output = operator.inputs[2], operator.outputs[0]
    if source is None or source.dtype not in (DType.INT8, DType.INT16):
        return None
    return Order({2: np.zeros(source.elements, np.int64)}, np.ones(output.elements, np.int64))


# -------------------------------------------------------------------------------------------------------- libraries


def _rows(fact: Fact, names: str) -> dict[str, Fact]:
    return dict.fromkeys(names.split(), fact)


_SHARED: Mapping[str, Fact] = {
    **_rows(only_copies, "CONCATENATION EXPAND_DIMS PACK RESHAPE SPLIT SPLIT_V SQUEEZE UNPACK"),
    "STRIDED_SLICE": only_copies,
    "DYNAMIC_UPDATE_SLICE": updated,
    "SELECT_V2": element_by_element,
    "SLICE": sliced,
    "SPACE_TO_BATCH_ND": space_to_batch,
}
"""Kernels that no library has replaced, in any firmware. Of STRIDED_SLICE one has (Cadence's): it copies, too."""
_REFERENCE: Mapping[str, Fact] = {
    **_SHARED,
    **_rows(
        element_by_element,
        "ADD ADD_N DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM "
        "MINIMUM MUL NOT_EQUAL PRELU SQUARED_DIFFERENCE SUB",
    ),
    **_rows(
        first_input_by_element,
        "ABS CAST CEIL COS DEQUANTIZE ELU EXP FLOOR HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOG LOGICAL_NOT LOGISTIC "
        "LOG_SOFTMAX NEG QUANTIZE RELU RELU6 ROUND RSQRT SIN SOFTMAX SQRT SQUARE TANH ZEROS_LIKE",
    ),
    **_rows(by_pixels, "AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D MAX_POOL_2D"),
    **_rows(padded, "PAD PADV2"),
    **_rows(resized, "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR"),
    "CUMSUM": lambda operator, known: None if operator.option("exclusive", False) else in_place(operator, known),
    "FULLY_CONNECTED": by_rows_of_data,
    "STRIDED_SLICE": strided,
    "TRANSPOSE_CONV": all_before,
}
_PIXELS_OF_HELIUM = 4
_CHANNELS_OF_HELIUM = 124
"""That a depthwise convolution goes over all pixels for, before it goes on to the next."""


def _cmsis(operator: Operator, known: Known, own: Mapping[str, Fact]) -> Order | None:
    """CMSIS-NN for int8 and int16; floats and other kinds run in the reference kernels."""
    name, source = operator.name, operator.inputs[0] if operator.inputs else None
    if name in _CMSIS_UNKNOWN or source is None:
        return None
    if name not in own or source.dtype is DType.FLOAT32:
        return _in(_REFERENCE, operator, known)
    if source.dtype is DType.INT8:
        return own[name](operator, known)
    if name in ("MAXIMUM", "MINIMUM", "PAD", "PADV2"):
        return _in(_REFERENCE, operator, known)
    is_one_image = source.shape[:1] == (1,)
    if source.dtype is not DType.INT16 or name == "SOFTMAX":
        return None
    if name in ("ADD", "MUL"):
        return in_place(operator, known)
    return by_pixels(operator, known) if is_one_image and not _is_grouped(operator) and _is_of_bytes(operator) else None


def _is_grouped(operator: Operator) -> bool:
    x, w = operator.inputs[0], operator.operand(1)
    return operator.name == "CONV_2D" and x is not None and w is not None and x.shape[-1] != w.shape[-1]


def _is_of_bytes(operator: Operator) -> bool:
    """Return whether filters, if there are any, are int8."""
    w = operator.operand(1)
    return operator.name.endswith("POOL_2D") or (w is not None and w.dtype is DType.INT8)


def _cmsis_convolution(operator: Operator, known: Known, build: str) -> Order | None:
    """1x1, 1xN and im2col; docs/kernels.md has what was measured of each.

    1x1 of stride 1 goes over all pixels for two channels at a time, with another stride row by row
    (arm_nn_mat_mult_nt_t_s8.c, arm_convolve_1x1_s8.c); Helium reads four pixels before it writes the first.
    """
    x, w = operator.inputs[0], operator.inputs[1]
    if x is None or w is None or not _is_of_bytes(operator) or _is_grouped(operator) or len(x.shape) != 4:
        return None
    strides = [int(operator.option(f"stride{letter}", 1)) for letter in "HW"]
    dilations = [int(operator.option(f"dilation{letter}Factor", 1)) for letter in "HW"]
    is_pixel = w.shape[1:3] == (1, 1) and dilations == [1, 1]
    is_line = x.shape[1] == w.shape[1] == 1 and dilations[1] == 1 and strides[1] * x.shape[3] % 4 == 0
    if x.shape[0] > 1 and (is_pixel or is_line):
        return None
    if build == "mve":
        is_direct = w.shape[1:3] == (1, 1) or x.shape[1] == w.shape[1] == 1
        if not is_pixel and is_line and _is_refused(operator):
            return None
        return by_pixels(operator, known, _PIXELS_OF_HELIUM if is_direct else 1)
    if is_pixel:
        return None if strides == [1, 1] else by_pixels(operator, known, by_rows=True)
    return by_pixels(operator, known)


def _is_refused(operator: Operator) -> bool:
    """Return whether Helium's kernel for one row writes nothing (arm_convolve_1_x_n_s8.c)."""
    x, w, y = operator.required(0), operator.required(1), operator.outputs[0]
    stride = int(operator.option("strideW", 1))
    total = (y.shape[2] - 1) * stride + w.shape[2] - x.shape[2]
    is_same = int(operator.option("padding", 0)) == 0
    pad = side(x.shape[2], y.shape[2], w.shape[2], stride, 1, is_same).before
    return 2 * pad + int(np.fmod(total, 2)) != total


def _cmsis_depthwise(operator: Operator, known: Known, build: str) -> Order | None:
    """Pixel by pixel; Helium runs one channel as a convolution, and many in blocks of 124 over all pixels."""
    x, y = operator.inputs[0], operator.outputs[0]
    if x is None or not _is_of_bytes(operator) or len(x.shape) != 4:
        return None
    if build != "mve":
        return by_pixels(operator, known)
    w = operator.inputs[1]
    if w is not None and x.shape[3] == 1 and y.shape[3] > 1:
        is_direct = w.shape[1:3] == (1, 1) or x.shape[1] == w.shape[1] == 1
        at_once = _PIXELS_OF_HELIUM if is_direct else 1
        is_unknown = x.shape[0] > 1 or (is_direct and _is_refused(operator))
        return None if is_unknown else by_pixels(operator, known, at_once)
    return None if y.shape[3] > _CHANNELS_OF_HELIUM else by_pixels(operator, known)


def _cmsis_extreme(operator: Operator, known: Known) -> Order | None:
    """MAXIMUM, MINIMUM: their own broadcasting is not known."""
    shapes = {tensor.shape for tensor in (*operator.present_inputs(), *operator.outputs)}
    return in_place(operator, known) if len(shapes) == 1 else None


_CMSIS_UNKNOWN = frozenset(
    {"BATCH_MATMUL", "FULLY_CONNECTED", "SVDF", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
)


def _of_cmsis(build: str) -> Mapping[str, Fact]:
    """Kinds that have a file in tflite-micro's kernels/cmsis_nn, for int8."""
    return {
        **_rows(in_place, "ADD MUL SOFTMAX"),
        **_rows(by_pixels, "AVERAGE_POOL_2D MAX_POOL_2D"),
        **_rows(_cmsis_extreme, "MAXIMUM MINIMUM"),
        **_rows(partial(padded, by_rows=True), "PAD PADV2"),
        "CONV_2D": partial(_cmsis_convolution, build=build),
        "DEPTHWISE_CONV_2D": partial(_cmsis_depthwise, build=build),
    }


_ESP_WINDOWS = frozenset({"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"})
_ESP = _ESP_WINDOWS | {"ADD", "FULLY_CONNECTED", "MUL", "SOFTMAX"}
_ESP_ELSEWHERE = frozenset({"HARD_SWISH", "LOGISTIC", "MEAN", "RELU6"})
"""Kinds that other versions of the wrappers replace."""


def _esp(operator: Operator, known: Known) -> Order | None:
    """esp-nn's generic C: as the reference kernels for one image of int8, without groups; nothing of dense layers."""
    source = operator.inputs[0] if operator.inputs else None
    if operator.name == "FULLY_CONNECTED" or source is None:
        return None
    if operator.name in _ESP_WINDOWS and source.dtype is DType.INT8:
        is_probed = source.shape[:1] == (1,) and not _is_grouped(operator) and _is_of_bytes(operator)
        return by_pixels(operator, known) if is_probed else None
    return _in(_REFERENCE, operator, known)


def _vector(operator: Operator, known: Known) -> Order | None:
    """Vector code of the ESP32-S3 and P4."""
    return None if operator.name in _ESP | _ESP_ELSEWHERE else _in(_REFERENCE, operator, known)


def _in(table: Mapping[str, Fact], operator: Operator, known: Known) -> Order | None:
    fact = table.get(operator.name)
    return None if fact is None else fact(operator, known)


LIBRARIES: Mapping[str, Fact] = {
    "portable": partial(_in, _SHARED),
    "reference": partial(_in, _REFERENCE),
    "cmsis-nn": partial(_cmsis, own=_of_cmsis("scalar")),
    "cmsis-nn-dsp": partial(_cmsis, own=_of_cmsis("dsp")),
    "cmsis-nn-mve": partial(_cmsis, own=_of_cmsis("mve")),
    "esp-nn": _esp,
    "esp-nn-s3": _vector,
    "esp-nn-p4": _vector,
}
"""By the names of kernel profiles. Of any other nothing is known: then no output lies over an input."""


def order_of(library: str, operator: Operator, known: Known, is_in_place: bool) -> Order | None:
    """Return the order of an operator's kernel; None where it is not known.

    ``is_in_place``: whether the output lies exactly at the first input.
    """
    if operator.name == "DYNAMIC_UPDATE_SLICE" and is_in_place and library in LIBRARIES:
        return updated_in_place(operator, known)
    fact = LIBRARIES.get(library)
    return None if fact is None else fact(operator, known)
