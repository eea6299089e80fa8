"""Kinds that move data: they join, cut, pad, reorder and reshape tensors, and compute nothing.

Views are operators that TFLM executes as a copy of contiguous bytes: source and destination may be the same bytes. Each
kernel below writes each byte with the value that is there already, or skips the copy: memory never changes, so that it
does not matter in which order a kernel reads and writes. Sources, tflite-micro commit 90b983c2b3f1,
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

A memcpy of a range onto itself does nothing: compilers emit it for a struct that is assigned to itself. None of these
files has a variant in micro/kernels/cmsis_nn, arc_mli, ceva or ethos_u, nor in kernels/esp_nn of
espressif/esp-tflite-micro (add, conv, depthwise_conv, fully_connected, mul, pooling, softmax). Cadence's xtensa has
two: reshape.cc, with the same test for equal pointers; and strided_slice.cc, which for int16 on HiFi cores calls
xa_nn_strided_slice_int16 (foss-xtensa/nnlib-hifi4 6a9ea45, nnlib-hifi5 02d9f1d), which copies run by run: where a view
makes both pointers equal, each byte is written with its own value. docs/kernels.md has the list.

PAD, SLICE and STRIDED_SLICE go forward through both tensors, so that one may run over the other: pad.h writes the
output from its first element to its last and reads the input in the same order, one element for each one copied;
slice.h does so element by element; strided_slice.h by memcpy of runs along the last dimension when its stride is 1. A
memcpy between ranges that overlap is not defined, so that a run must be clear of its own source.

dynamic_update_slice.cc skips the copy of its operand when the two pointers are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import prod

import numpy as np
import numpy.typing as npt

from ..model.ir.editor import GraphWriter, stem
from ..model.ir.model import DType, Operator, Tensor
from ..model.ir.tensors import integers, quantized_alike
from .boxes import Box, axis_of, slice_box, strided_slice_box
from .kind import BOOL, I8, I16, I32, TO_8, TO_16, TO_32, TO_64, U8, AlongH, Arrival, ByPhase, OperatorKind, Tflm
from .overrides import RANK, Overrides, PaddingsOperand, Sequences, ShapeOperand, laid_along_h
from .requests import BINARY, IN0, IN2, INT, OUT0, TERNARY, UNARY, Abi, Asks, Size, copied_shape, inputs, needed
from .reuse import KernelReuse, Pair
from .rows import FROM_STACK, NO_IMAGE, TO_STACK, Axis, RowMap, enlarged_rows, image_of, is_image, is_stack, same_rows

# Rows -----------------------------------------------------------------------------------------------------------------


def pad_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r - (rows padded above), if there is one: constant paddings, not negative, none of the batch."""
    source, output, amounts = image_of(operator), operator.outputs[0], integers(operator.inputs[1])
    if source is None or amounts is None or amounts.size != 2 * RANK:
        return "its input is not an NHWC tensor with batch 1, or its paddings are not constant"
    if amounts.min() < 0 or amounts[:2].any():
        return "it pads the batch, or by a negative number"
    if any(tensor is not None and not tensor.is_constant for tensor in operator.inputs[2:]):
        return "its padding value is computed"
    ends = amounts.reshape(-1, 2).tolist()
    rows, columns = (Axis(source.shape[axis], output.shape[axis], 1, 1, *ends[axis]) for axis in (1, 2))
    return RowMap(rows, columns)


def concatenation_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: along columns or channels, no constants."""
    if int(operator.option("axis", 0)) % 4 not in (2, 3):
        return "it joins tensors along their rows"
    parts = list(operator.present_inputs())
    if not all(map(is_image, parts)) or len(parts) != len(operator.inputs):
        return "it joins other things than images"
    return same_rows(operator.outputs[0], tuple(range(len(parts))))


def mirror_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: only columns and channels are mirrored."""
    source, output, amounts = image_of(operator), operator.outputs[0], integers(operator.inputs[1])
    if source is None or amounts is None or amounts.size != 2 * RANK or amounts[:4].any():
        return "it mirrors rows"
    rows, columns = (Axis(source.shape[axis], output.shape[axis]) for axis in (1, 2))
    return RowMap(rows, columns)


def slice_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: along columns and channels, by int32 constants."""
    source, output = image_of(operator), operator.outputs[0]
    if source is None or any(integers(tensor) is None for tensor in operator.inputs[1:3]):
        return "its input is not an NHWC tensor with batch 1, or what it cuts out is computed"
    if source.shape[1] != output.shape[1] or source.shape == output.shape:
        return "it cuts rows out, or nothing"
    if any(tensor is None or tensor.dtype is not DType.INT32 for tensor in operator.inputs[1:3]):
        return "it says in 64 bits what it cuts out"
    return same_rows(output)


def reshape_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: keeps rows, and is neither first nor last in a region."""
    source, output = image_of(operator), operator.outputs[0]
    if source is None or len(operator.inputs) != 2:
        return NO_IMAGE
    if source.shape[1] != output.shape[1] or integers(operator.inputs[1]) is None:
        return "it does not keep rows, or its shape is computed"
    return same_rows(output, passes_on=True)


def transpose_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r: columns and channels change places, or those of a stack become channels; by constants."""
    source, output, order = operator.inputs[0], operator.outputs[0], integers(operator.inputs[1])
    if source is None or order is None:
        return "its order is computed"
    ends = (source, output)
    if tuple(order.tolist()) in (FROM_STACK, TO_STACK) and any(map(is_image, ends)) and any(map(is_stack, ends)):
        return same_rows(output)
    if not all(map(is_image, ends)):
        return "its input is not an NHWC tensor with batch 1"
    if order.tolist() != [0, 1, 3, 2]:
        return "it moves rows, or nothing"
    return same_rows(output)


def space_to_depth_rows(operator: Operator) -> RowMap | str:
    """Row r reads rows r * block to (r + 1) * block."""
    source, output = image_of(operator), operator.outputs[0]
    if source is None:
        return NO_IMAGE
    block = int(operator.option("blockSize", 1))
    rows, columns = (Axis(source.shape[axis], output.shape[axis], block, block) for axis in (1, 2))
    return RowMap(rows, columns)


def depth_to_space_rows(operator: Operator) -> RowMap | str:
    """Row r reads row r / block."""
    return enlarged_rows(operator, 0, int(operator.option("blockSize", 1)))


# Phases, and sequences along H ----------------------------------------------------------------------------------------


def pads_whole_phases(operator: Operator, phases: int) -> bool:
    """Tell whether a PAD puts as many steps around every phase."""
    amounts = integers(operator.inputs[1])
    if amounts is None or amounts.size != 2 * RANK:
        return False
    return not (amounts[:2].any() or amounts[4:].any() or (amounts % phases).any())


def paddings_of_phase(edit: GraphWriter, operator: Operator, phases: int) -> Overrides:
    """Return a share of the steps for each phase."""
    paddings = (_amounts(operator) // phases).astype(np.int32)
    return Overrides({1: edit.constant(f"{stem(operator.outputs[0])}/paddings", paddings)})


def _amounts(operator: Operator) -> npt.NDArray[np.int64]:
    """Return the paddings before and behind each dimension."""
    amounts = integers(operator.inputs[1])
    assert amounts is not None
    return amounts.reshape(-1, 2)


def pads_along(operator: Operator, sequences: Sequences) -> bool:
    """Return a PAD of the sequence and of channels, by constants."""
    amounts = integers(operator.inputs[1])
    rank = len(operator.outputs[0].shape)
    if operator.inputs[0] not in sequences or amounts is None or amounts.size != 2 * rank:
        return False
    others = [tensor for tensor in operator.inputs[2:] if tensor is not None]
    return not amounts[: 2 * (rank - 2)].any() and all(tensor.is_constant for tensor in others)


def paddings_along_h(edit: GraphWriter, operator: Operator) -> Overrides:
    """Return the sequence is padded along H."""
    along, channels = _amounts(operator)[-2:]
    paddings = np.asarray([(0, 0), along, (0, 0), channels], np.int32)
    return Overrides({1: edit.constant(f"{operator.outputs[0].name}/paddings", paddings)})


def joins_channels(operator: Operator, sequences: Sequences) -> bool:
    """Return a CONCATENATION of channels."""
    rank = len(operator.outputs[0].shape)
    is_of_channels = int(operator.option("axis", 0)) % rank == rank - 1
    return is_of_channels and all(tensor in sequences for tensor in operator.inputs)


def cuts_channels(operator: Operator, sequences: Sequences) -> bool:
    """Some channels of the whole sequence."""
    source, output = operator.inputs[0], operator.outputs[0]
    is_said = all(tensor is not None and integers(tensor) is not None for tensor in operator.inputs[1:3])
    return is_said and source in sequences and source is not None and source.shape[:-1] == output.shape[:-1]


def channels_cut(edit: GraphWriter, operator: Operator) -> Overrides:
    """Return the same channels of four dimensions."""
    begin, output = integers(operator.inputs[1]), operator.outputs[0]
    assert begin is not None
    first, size = np.asarray((0, 0, 0, begin[-1]), np.int32), np.asarray(laid_along_h(output.shape), np.int32)
    return Overrides({1: edit.constant(f"{output.name}/begin", first), 2: edit.constant(f"{output.name}/size", size)})


# Bytes that may be shared ---------------------------------------------------------------------------------------------


def _whole(operator: Operator) -> Iterator[Pair]:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: all bytes stay where they are."""
    source, output = operator.operand(0), operator.outputs[0]
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
    yield from _cut(operator.operand(0), int(operator.option("axis", 0)), operator.outputs)


def _split(slot: int, axis_slot: int) -> Callable[[Operator], Iterator[Pair]]:
    """SPLIT, SPLIT_V: each output is a range of the input in ``slot``."""

    def pairs(operator: Operator) -> Iterator[Pair]:
        axis = integers(operator.operand(axis_slot))
        if axis is not None and axis.size == 1:
            yield from _cut(operator.operand(slot), int(axis[0]), operator.outputs)

    return pairs


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


BoxOf = Callable[[Operator], Box | None]


def _sliced(box_of: BoxOf) -> Callable[[Operator], Iterator[Pair]]:
    """SLICE, STRIDED_SLICE: the output is a range of the input."""

    def pairs(operator: Operator) -> Iterator[Pair]:
        source, output, box = operator.operand(0), operator.outputs[0], box_of(operator)
        start = None if source is None or box is None else box.run_start(source.shape)
        if source is not None and box is not None and start is not None and box.elements == output.elements:
            yield source, output, -start * source.dtype.arena_bytes

    return pairs


def pad_reuses(operator: Operator) -> tuple[KernelReuse, ...]:
    """PAD and PADV2 with constant paddings: distance = max over writes of end(write) - next byte to be read."""
    source, output = operator.inputs[0], operator.outputs[0]
    if source is None or source.dtype not in TO_16 or source.dtype is not output.dtype or not source.elements:
        return ()
    paddings = integers(operator.inputs[1])
    if paddings is None or paddings.size != 2 * len(source.shape) or len(output.shape) != len(source.shape):
        return ()
    lows = paddings.reshape(-1, 2)[:, 0]
    last = lows + np.asarray(source.shape) - 1
    if (lows < 0).any() or (last >= output.shape).any():
        return ()
    # Writes run ahead of reads by the padding written so far: by most at the last element that is copied.
    ahead = int(np.ravel_multi_index(tuple(last), output.shape)) + 1 - source.elements
    return (KernelReuse(source, output, ahead * source.dtype.arena_bytes, "overlap"),)


def _slice_reuses(box_of: BoxOf, by_runs: bool) -> Callable[[Operator], tuple[KernelReuse, ...]]:
    """SLICE and STRIDED_SLICE of a box: distance = max of end(write) - next read, and of a run's overlap."""

    def rule(operator: Operator) -> tuple[KernelReuse, ...]:
        source, output, box = operator.inputs[0], operator.outputs[0], box_of(operator)
        if source is None or box is None or source.dtype not in TO_16 or source.dtype is not output.dtype:
            return ()
        if box.elements != output.elements:
            return ()
        # Reads are ahead of writes by the omitted elements: by least at the first one. A run must clear its source.
        ahead = int(np.ravel_multi_index(tuple(box.first), source.shape))
        run = box.count[-1] if by_runs and box.count[-1] > 1 else 0
        return (KernelReuse(source, output, (run - ahead) * source.dtype.arena_bytes, "overlap"),)

    return rule


# Requests -------------------------------------------------------------------------------------------------------------


def _filled_shape(operator: Operator, abi: Abi) -> tuple[int, ...]:
    """Ask for the output's shape when a dimension of it has to be filled in."""
    return copied_shape(operator, abi) if -1 in needed(operator, OUT0).shape else ()


def _shape_and_data(operator: Operator, abi: Abi) -> tuple[int, ...]:
    return (*copied_shape(operator, abi), Size(8, 16).on(abi))


def _counts(operator: Operator, _: Abi) -> tuple[int, ...]:
    """Ask for an element count per dimension of the output and of the input."""
    return (len(needed(operator, IN0).shape) * INT,) * 2


_MIRROR_PAD = Asks(Size(4, short=1), 20, BINARY, scratch=_counts, alignment=Size(4))  # OpDataMirrorPad

# The rows of the table: TFLM's structures are TfLite<Kind>Params and OpData, or are named ----------------------------

_PAD = OperatorKind(
    Tflm(TO_32, constants=(1,), sizes=(1,)),
    Asks(0, 56, TERNARY),  # pad_common.cc; PADV2 has a third input
    "padded",
    rows=pad_rows,
    resized=PaddingsOperand(),
    along_h=AlongH(pads_along, paddings_along_h),
    reuses=pad_reuses,
    keeps_scale=True,
    versions={I8: 2, I16: 3, None: 4},
)
_TO_BATCHES = Tflm(TO_8, rank=(3, 4, TO_8))
_CUT = TO_32 | {BOOL}
_ONE, _TWO, _THREE = Asks(holds=UNARY), Asks(holds=BINARY), Asks(holds=TERNARY)
_WITH_SHAPE = Asks(4, holds=UNARY, prepare=copied_shape)

_moved = partial(OperatorKind, keeps_scale=True)
_POST = "leave postprocessing out of the model (in PyTorch out of forward), and compute it in the firmware"

KINDS: Mapping[str, OperatorKind] = {
    "BATCH_TO_SPACE_ND": _moved(_TO_BATCHES, _ONE, "joined"),
    "BITCAST": OperatorKind(
        instead="use tf.argmax(..., output_type=tf.int32) instead of keras.ops.argmax, or compute it in the firmware"
    ),
    "BROADCAST_ARGS": OperatorKind(asks=_TWO),
    "BROADCAST_TO": OperatorKind(Tflm(constants=(1,), sizes=(1,)), _TWO, versions=dict.fromkeys(DType, 2)),
    "CONCATENATION": _moved(
        Tflm(TO_64 | {BOOL}),
        Asks(8, Size(24, 80, lp64=40), lambda operator: (IN0, OUT0, *inputs(len(operator.inputs)))),
        *("joined", 4348, concatenation_rows),
        along_h=AlongH(joins_channels, lambda _, __: Overrides(fields={"axis": RANK - 1})),
        views=_joined,
        versions={I8: 2, I16: 3, DType.UINT32: 4},
    ),
    "DENSIFY": OperatorKind(instead="convert without sparsity (Optimize.EXPERIMENTAL_SPARSITY)"),
    "DEPTH_TO_SPACE": _moved(Tflm(TO_8), _WITH_SHAPE, rows=depth_to_space_rows),
    "DYNAMIC_UPDATE_SLICE": OperatorKind(
        Tflm(TO_32),
        *(_THREE, "updated", 2748),
        overwrites="first input",
        is_same_code=True,
        since=(Arrival("2025-11-10 62cbc8e3e"),),
    ),
    "EMBEDDING_LOOKUP": OperatorKind(
        Tflm(TO_8, activation=1), Asks(holds=BINARY, prepare=_shape_and_data), since=(Arrival("2023-07-26 aa945a0fc"),)
    ),
    "EXPAND_DIMS": _moved(
        Tflm(TO_16, constants=(1,)),
        *(_TWO, "copied", 1387),
        views=_whole,
        since=(Arrival("2024-05-24 be11bd79e", I16),),
    ),
    "FILL": OperatorKind(Tflm(TO_8 | {I32}, activation=1, constants=(0,), sizes=(0,)), _TWO),
    "GATHER": _moved(Tflm(TO_8), Asks(8, holds=BINARY, prepare=copied_shape), "moved", 1974),
    "GATHER_ND": OperatorKind(Tflm(TO_8), Asks(holds=BINARY, prepare=copied_shape)),
    "MIRROR_PAD": _moved(Tflm(TO_8), _MIRROR_PAD, "padded", rows=mirror_rows),
    **dict.fromkeys(("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "TOPK_V2"), OperatorKind(instead=_POST)),
    "ONE_HOT": OperatorKind(
        instead="leave CategoryEncoding (keras.ops.one_hot) out, and let the firmware give the vector"
    ),
    "PACK": _moved(
        *(Tflm(TO_64), Asks(8), "joined", 1124), views=_joined, since=(Arrival("2025-08-20 7a7a3de09", I16),)
    ),
    "PAD": replace(_PAD, beyond="zero point", by_phase=ByPhase(pads_whole_phases, paddings_of_phase), flash=3915),
    "PADV2": replace(_PAD, beyond="own value", flash=3927),
    "RESHAPE": _moved(
        Tflm(sizes=(1,)),
        Asks(36, holds=UNARY, prepare=_filled_shape),
        *("joined", 991, reshape_rows, ShapeOperand(1, option="newShape")),
        views=_whole,
    ),
    "REVERSE_V2": OperatorKind(Tflm(TO_64 | {BOOL, U8}), _TWO, since=(Arrival("2025-07-10 41a9c8a6c"),)),
    "RFFT2D": OperatorKind(instead="compute the spectrum before the model, with TFLM's signal library"),
    "SHAPE": OperatorKind(asks=Asks(Size(4, short=1))),
    "SLICE": _moved(
        Tflm(_CUT, sizes=(2,), rank=(0, 5, _CUT)),
        *(_THREE, "moved", 2101, slice_rows, ShapeOperand(2)),
        along_h=AlongH(cuts_channels, channels_cut),
        views=_sliced(slice_box),
        reuses=_slice_reuses(slice_box, by_runs=False),
        is_same_code=True,
        since=(Arrival("2023-03-22 69ada1118", BOOL),),
        versions={I8: 2, I16: 4, DType.UINT32: 6, None: 5},
    ),
    "SPACE_TO_BATCH_ND": _moved(_TO_BATCHES, Asks(0, 4, UNARY), "joined"),  # SpaceToBatchParams
    "SPACE_TO_DEPTH": _moved(Tflm(TO_8), _WITH_SHAPE, rows=space_to_depth_rows),
    "SPLIT": _moved(
        *(Tflm(TO_32, 1, constants=(0,)), Asks(4, holds=(IN0,)), "moved", 1411),
        views=_split(1, 0),
        versions={I8: 2, I32: 3, I16: 4},
    ),
    "SPLIT_V": _moved(
        *(Tflm(TO_32, constants=(2,)), Asks(4, holds=(IN2,)), "moved", 1687), views=_split(0, 2), versions={I8: 2}
    ),
    "SQUEEZE": _moved(Tflm(), Asks(36, holds=UNARY), "joined", views=_whole),
    "STRIDED_SLICE": _moved(
        Tflm(_CUT, constants=(1, 2, 3), rank=(0, 4, _CUT)),
        Asks(24, 84, (*inputs(4), OUT0)),  # StridedSliceParams
        *("moved", 5177),
        views=_sliced(strided_slice_box),
        reuses=_slice_reuses(strided_slice_box, by_runs=True),
        versions={I8: 2, BOOL: 3, DType.UINT32: 7, None: 4},
    ),
    "TILE": _moved(
        instead="use UpSampling2D(interpolation='bilinear') or Conv2DTranspose (torch.nn.ConvTranspose2d), or broadcast"
    ),
    "TRANSPOSE": _moved(
        Tflm(TO_16, constants=(1,), rank=(1, 5, TO_16)),
        *(_TWO, "moved"),
        rows=transpose_rows,
        since=(Arrival("2025-03-17 39209b412", I16),),
        versions={I8: 2, I16: 4},
    ),
    "UNPACK": _moved(
        *(Tflm(TO_32), Asks(8), "moved"),
        views=_unpacked,
        since=(Arrival("2025-03-17 39209b412", I16),),
        versions={I8: 2, I16: 4},
    ),
}
