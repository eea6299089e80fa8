"""Views: every permission is imposed on TFLM, and compared with numpy; what is no range of bytes is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.imposed import F32, I8, I16, Case, constant, differing, ints, one, permitted, same_offset, x_of, y_of
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.model.ir.model import Buffer, DType, Operator, OperatorOptions, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators.boxes import strided_slice_box
from tflite_memopt.operators.table import SHARED_CODE, views_of


def whole(name: str, after: tuple[int, ...], dtype: DType = I8, **options: Any) -> Case:
    """RESHAPE, SQUEEZE or EXPAND_DIMS of a (1, 4, 16)."""

    def case(b: ModelBuilder) -> Operator:
        extra = {"RESHAPE": [ints(*after)], "EXPAND_DIMS": [ints(1)]}.get(name, [])
        inputs = (x_of(b, (1, 4, 16), dtype), *(constant(b, values) for values in extra))
        return b.operator(name, inputs, (y_of(b, after, dtype),), **options)

    return case


def join(
    name: str, shapes: Sequence[tuple[int, ...]], axis: int, dtype: DType = I8, twice: bool = False, **options: Any
) -> Case:
    """CONCATENATION or PACK of inputs of these shapes; ``twice`` repeats the first."""

    def case(b: ModelBuilder) -> Operator:
        inputs = [x_of(b, shape, dtype) for shape in shapes]
        inputs += inputs[:1] * twice
        stack = np.stack if name == "PACK" else np.concatenate
        after = stack([np.empty(tensor.shape) for tensor in inputs], axis).shape
        fields = options | ({"valuesCount": len(inputs)} if name == "PACK" else {})
        kind = "PackOptions" if name == "PACK" else "ConcatenationOptions"
        return b.operator(name, inputs, (y_of(b, after, dtype),), kind, axis=axis, **fields)

    return case


def cut(name: str, shape: tuple[int, ...], sizes: Sequence[int], axis: int, dtype: DType = I8) -> Case:
    """SPLIT, SPLIT_V or UNPACK into parts of these sizes along the axis."""

    def case(b: ModelBuilder) -> Operator:
        x = x_of(b, shape, dtype)
        at = axis % len(shape)
        tails = [() if name == "UNPACK" else (size,) for size in sizes]
        parts = [y_of(b, (*shape[:at], *tail, *shape[at + 1 :]), dtype) for tail in tails]
        if name == "UNPACK":
            return b.operator(name, (x,), parts, "UnpackOptions", num=len(parts), axis=axis)
        where = constant(b, ints(axis))
        if name == "SPLIT":
            return b.operator(name, (where, x), parts, "SplitOptions", numSplits=len(parts))
        return b.operator(name, (x, constant(b, ints(*sizes)), where), parts, "SplitVOptions", numSplits=len(parts))

    return case


def sliced(shape: tuple[int, ...], begin: tuple[int, ...], size: tuple[int, ...], dtype: DType = I8) -> Case:
    def case(b: ModelBuilder) -> Operator:
        count = [left - first if n == -1 else n for n, first, left in zip(size, begin, shape, strict=True)]
        inputs = (x_of(b, shape, dtype), constant(b, ints(*begin)), constant(b, ints(*size)))
        return b.operator("SLICE", inputs, (y_of(b, count, dtype),), "SliceOptions")

    return case


def strided(
    shape: tuple[int, ...],
    begin: tuple[int, ...],
    end: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType = I8,
    **masks: int,
) -> Case:
    def case(b: ModelBuilder) -> Operator:
        after = np.empty(shape)[subscript(begin, end, strides, masks)].shape
        inputs = (x_of(b, shape, dtype), *(constant(b, ints(*values)) for values in (begin, end, strides)))
        return b.operator("STRIDED_SLICE", inputs, (y_of(b, after, dtype),), "StridedSliceOptions", **masks)

    return case


def subscript(
    begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Mapping[str, int]
) -> tuple[slice | int, ...]:
    """What numpy calls the same."""

    def masked(name: str, axis: int) -> bool:
        return bool(masks.get(name, 0) >> axis & 1)

    return tuple(
        first
        if masked("shrinkAxisMask", axis)
        else slice(None if masked("beginMask", axis) else first, None if masked("endMask", axis) else last, step)
        for axis, (first, last, step) in enumerate(zip(begin, end, strides, strict=True))
    )


WHOLE_ROWS = ((1, 2, 4, 16), (1, 1, 4, 16), (1, 5, 4, 16))
CUBE = (1, 6, 4, 16)
VIEWS: Mapping[str, tuple[Case, list[int]]] = {
    "reshape": (whole("RESHAPE", (4, 16)), [0]),
    "reshape float": (whole("RESHAPE", (64,), F32), [0]),
    "squeeze": (whole("SQUEEZE", (4, 16), kind="SqueezeOptions", squeezeDims=ints(0)), [0]),
    "expand dims": (whole("EXPAND_DIMS", (1, 1, 4, 16)), [0]),
    "concatenation": (join("CONCATENATION", WHOLE_ROWS, 1), [0, 128, 192]),
    "concatenation int16 from behind": (join("CONCATENATION", WHOLE_ROWS, -3, I16), [0, 256, 384]),
    "concatenation of a tensor with itself": (join("CONCATENATION", WHOLE_ROWS[:2], 1, twice=True), [0, 128, 192]),
    "concatenation, a part between multiples of 16": (
        join("CONCATENATION", [(1, 8), (1, 8), (1, 32)], 1, twice=True),
        [0, 16, 48],
    ),
    "concatenation with an empty part": (join("CONCATENATION", [(16,), (0,), (16,)], 0), [0, 16]),
    "pack": (join("PACK", [(4, 16)] * 3, 0), [0, 64, 128]),
    "pack float behind ones": (join("PACK", [(1, 8)] * 2, 1, F32), [0, 32]),
    "split": (cut("SPLIT", CUBE, (2, 2, 2), 1), [0, -128, -256]),
    "split float from behind": (cut("SPLIT", CUBE, (3, 3), -3, F32), [0, -768]),
    "split_v": (cut("SPLIT_V", CUBE, (1, 4, 1), 1), [0, -64, -320]),
    "unpack": (cut("UNPACK", (3, 4, 16), (1, 1, 1), 0), [0, -64, -128]),
    "unpack behind ones": (cut("UNPACK", (1, 3, 16), (1, 1, 1), -2, I16), [0, -32, -64]),
    "slice of rows": (sliced(CUBE, (0, 2, 0, 0), (1, 3, -1, 16)), [-128]),
    "slice within a row": (sliced(CUBE, (0, 2, 1, 0), (1, 1, 2, 16), F32), [-576]),
    "slice of everything": (sliced(CUBE, (0, 0, 0, 0), (-1, -1, -1, -1)), [0]),
    "strided slice of rows": (strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1)), [-64]),
    "strided slice with masks": (
        strided(CUBE, (9, -4, 3, 0), (0, -1, 0, 99), (1, 1, 1, 1), I16, beginMask=5, endMask=5),
        [-256],
    ),
    "strided slice that drops an axis": (
        strided(CUBE, (0, 3, 0, 0), (1, 0, 4, 16), (1, 1, 1, 1), shrinkAxisMask=2),
        [-192],
    ),
    "strided slice that takes one with a stride": (strided(CUBE, (0, 4, 0, 0), (1, 6, 4, 16), (1, 2, 1, 1)), [-256]),
}


def all_views(operator: Operator) -> Mapping[Tensor, int]:
    """All parts in the whole at once."""
    offsets: dict[Tensor, int] = {}
    for reuse in views_of(operator):
        if reuse.distance > 0 or reuse.output in offsets:
            offsets.setdefault(reuse.input, offsets.setdefault(reuse.output, 0) + reuse.distance)
        else:
            offsets.setdefault(reuse.output, offsets.setdefault(reuse.input, 0) - reuse.distance)
    return offsets


@pytest.mark.parametrize("label", VIEWS)
def test_views_are_where_the_bytes_are(label: str) -> None:
    case, distances = VIEWS[label]
    reuses = views_of(one(case))
    assert all(reuse.kind == "view" and reuse.exact for reuse in reuses)
    assert [reuse.distance for reuse in reuses] == distances


def test_tflm_computes_the_same_with_views_in_force() -> None:
    cases = {label: case for label, (case, _) in VIEWS.items()}
    assert not differing(cases, all_views, *(permitted(views_of, number) for number in range(3)))


def test_every_operator_of_shared_code_has_a_case() -> None:
    assert {one(case).name for case, _ in VIEWS.values()} == SHARED_CODE


def test_a_copy_that_is_refused_breaks_on_tflm() -> None:
    """The control of the test above: an input that is overwritten too early is seen."""
    cases = {
        "concatenation of columns": join("CONCATENATION", [(4, 16), (4, 16)], 1),
        "unpacked columns": cut("UNPACK", (4, 3, 16), (1, 1, 1), 1),
    }
    assert all(views_of(one(case)) == () for case in cases.values())
    assert differing(cases, same_offset) == set(cases)


NOT_VIEWS: Mapping[str, Case] = {
    "concatenation of channels": join("CONCATENATION", [CUBE, CUBE], 3),
    "concatenation with an activation": join("CONCATENATION", WHOLE_ROWS, 1, fusedActivationFunction=1),
    "concatenation along no axis": lambda b: _changed(join("CONCATENATION", WHOLE_ROWS, 1)(b), axis=4),
    "pack of columns": join("PACK", [(4, 16)] * 2, 1),
    "split of channels": cut("SPLIT", CUBE, (8, 8), -1),
    "split_v of columns": cut("SPLIT_V", CUBE, (1, 3), 2),
    "unpack of channels": cut("UNPACK", CUBE, (1,) * 16, 3),
    "slice of columns": sliced(CUBE, (0, 0, 1, 0), (1, 6, 2, 16)),
    "slice of channels": sliced(CUBE, (0, 2, 1, 4), (1, 1, 2, 8)),
    "slice from a negative row": sliced(CUBE, (0, -2, 0, 0), (1, 2, 4, 16)),
    "slice between multiples of 16": sliced((64,), (8,), (32,)),
    "strided slice of every other row": strided(CUBE, (0, 0, 0, 0), (1, 6, 4, 16), (1, 2, 1, 1)),
    "strided slice backwards": strided(CUBE, (0, 3, 0, 0), (1, 1, 4, 16), (1, -1, 1, 1)),
    "strided slice with an ellipsis": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), ellipsisMask=4),
    "strided slice with a new axis": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), newAxisMask=1),
    "strided slice by offset": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), offset=1),
    "strided slice of nothing": strided(CUBE, (0, 4, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1)),
    "transpose": lambda b: b.operator("TRANSPOSE", (x_of(b), constant(b, ints(1, 0, 2, 3))), (y_of(b),)),
}


def _changed(operator: Operator, **options: Any) -> Operator:
    operator.options = OperatorOptions("any", {**(operator.options.fields if operator.options else {}), **options})
    return operator


@pytest.mark.parametrize("label", NOT_VIEWS)
def test_what_is_no_range_of_bytes_is_no_view(label: str) -> None:
    assert views_of(one(NOT_VIEWS[label])) == ()


@pytest.mark.parametrize("label", VIEWS)
def test_views_of_spoilt_operators_are_refused(label: str) -> None:
    """Constants, variables, another type or size, and inputs that are not there."""
    spoilt = one(VIEWS[label][0])
    data = [tensor for tensor in spoilt.present_inputs() if not tensor.is_constant]
    for name, value in (("is_variable", True), ("buffer", Buffer(np.ones(1, np.uint8))), ("dtype", DType.UINT8)):
        kept = [getattr(tensor, name) for tensor in data]
        for tensor in data:
            setattr(tensor, name, value)
        assert views_of(spoilt) == (), name
        for tensor, old in zip(data, kept, strict=True):
            setattr(tensor, name, old)
    for output in spoilt.outputs:
        output.shape = (*output.shape, 3)
    assert views_of(spoilt) == ()
    spoilt.inputs = (None,) * len(spoilt.inputs)
    assert views_of(spoilt) == ()
    spoilt.inputs = ()
    assert views_of(spoilt) == ()
    spoilt.outputs = ()
    assert views_of(spoilt) == ()


@pytest.mark.parametrize("label", [label for label in VIEWS if "slice" in label or "split" in label])
def test_operands_must_be_constants(label: str) -> None:
    for slot, operand in enumerate(one(VIEWS[label][0]).inputs):
        if operand is not None and operand.is_constant and (label, slot) != ("split_v", 1):
            operator = one(VIEWS[label][0])
            replaced = operator.inputs[slot]
            assert replaced is not None
            replaced.buffer = Buffer()
            assert views_of(operator) == (), slot


@pytest.mark.parametrize("label", VIEWS)
def test_a_variable_is_no_view(label: str) -> None:
    operator = one(VIEWS[label][0])
    for output in operator.outputs:
        output.is_variable = True
    assert views_of(operator) == ()


def test_limits_of_64_bits() -> None:
    """TFLM's SLICE reads them as such; its STRIDED_SLICE would read the halves of the first ones."""
    for label, expected in (("slice of rows", [-128]), ("strided slice of rows", [])):
        operator = one(VIEWS[label][0])
        for tensor in operator.inputs[1:]:
            assert tensor is not None
            tensor.dtype = DType.INT64
            tensor.buffer = Buffer(tensor.buffer.data.view(np.int32).astype(np.int64).view(np.uint8))  # type: ignore[union-attr]
        assert [reuse.distance for reuse in views_of(operator)] == expected


def test_no_box_without_elements_or_with_a_stride_of_zero() -> None:
    assert strided_slice_box(one(strided(CUBE, (0, 4, 3, 0), (1, 3, 2, 16), (1, 1, 1, 1)))) is None
    operator = one(VIEWS["strided slice of rows"][0])
    strides = operator.inputs[3]
    assert strides is not None
    strides.buffer = Buffer(np.zeros(16, np.uint8))
    assert strided_slice_box(operator) is None


def test_concatenated_parts_are_quantized_like_the_whole() -> None:
    operator = one(join("CONCATENATION", WHOLE_ROWS, 1, I16))
    tensors = (*operator.present_inputs(), *operator.outputs)
    for other in (per_tensor(0.07, 0), per_tensor(0.05, 1), None):
        tensors[1].quantization = other
        assert views_of(operator) == ()
    for tensor in tensors[:2]:
        tensor.quantization = Quantization(np.empty(0, np.float32), np.empty(0, np.int64))
    for tensor in tensors[2:]:
        tensor.quantization = None
    assert len(views_of(operator)) == 3


dimensions = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
bound = st.integers(-6, 6)


@st.composite
def strided_slices(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int, int]], dict[str, int]]:
    shape = draw(dimensions)
    limits = [(draw(bound), draw(bound), draw(st.sampled_from([1, 1, 1, 2, 3, -1]))) for _ in shape]
    masks = {name: draw(st.integers(0, 15)) for name in ("beginMask", "endMask")}
    shrunk = [axis for axis, (first, _, _) in enumerate(limits) if -shape[axis] <= first < shape[axis]]
    chosen = draw(st.sets(st.sampled_from(shrunk), max_size=1)) if shrunk else set()
    masks["shrinkAxisMask"] = sum(1 << axis for axis in chosen)
    masks["beginMask"] &= ~masks["shrinkAxisMask"]
    return shape, limits, masks


@given(strided_slices())
@examples(400)
def test_strided_slice_agrees_with_numpy(
    drawn: tuple[tuple[int, ...], list[tuple[int, int, int]], dict[str, int]],
) -> None:
    """In elements of 16 bytes, so that no run starts between multiples of 16."""
    shape, limits, masks = drawn
    begin, end, strides = zip(*limits, strict=True)
    taken = np.arange(prod(shape)).reshape(shape)[subscript(begin, end, strides, masks)].reshape(-1)
    operator = one(strided(shape, begin, end, strides, DType.COMPLEX128, **masks))
    is_run = taken.size > 0 and bool((np.diff(taken) == 1).all()) and min(strides) > 0
    assert [reuse.distance for reuse in views_of(operator)] == ([-16 * int(taken[0])] if is_run else [])


@given(dimensions, st.data())
@examples(200)
def test_parts_agree_with_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    """SPLIT_V and CONCATENATION along any axis are views exactly where each part is a run of elements."""
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = data.draw(st.lists(st.integers(0, shape[axis]), max_size=3).map(sorted))
    parts = np.split(np.arange(prod(shape)).reshape(shape), cuts, axis)
    starts = [16 * int(part.flat[0]) for part in parts if part.size]
    is_outermost = prod(shape[: axis % len(shape)]) == 1
    split = views_of(one(cut("SPLIT_V", shape, [part.shape[axis] for part in parts], axis, DType.COMPLEX128)))
    joined = views_of(one(join("CONCATENATION", [part.shape for part in parts], axis, DType.COMPLEX128)))
    assert [-reuse.distance for reuse in split] == [reuse.distance for reuse in joined]
    assert [reuse.distance for reuse in joined] == (starts if is_outermost else [])
    assert all((np.diff(part.reshape(-1)) == 1).all() for part in parts) or not is_outermost
