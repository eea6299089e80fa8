"""Views and in-place: every permission is imposed on TFLM, and what the rules refuse is refused or really breaks.

All cases are branches of one model, each with its own region of the arena, so that one process runs them all: once
with every tensor apart, then with the n-th permission of each case imposed. Outputs must agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_memopt.analysis.alignment import aligned
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import run_models
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder, per_tensor
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Buffer, Operator, Options, Quantization, Tensor
from tflite_memopt.kernels.relations.in_place import in_place_shares
from tflite_memopt.kernels.relations.model import Rule, Share
from tflite_memopt.kernels.relations.views import SHARED_CODE, view_shares

ARENA = 4 << 20
SAMPLES = 3
F32, I8, I16, I32, BOOL = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.BOOL
SHAPE = (2, 3, 5, 16)
Case = Callable[[ModelBuilder], Operator]
Ints = npt.NDArray[np.int32]


def ints(*values: int) -> Ints:
    return np.asarray(values, np.int32)


def x_of(b: ModelBuilder, shape: Sequence[int] = SHAPE, dtype: DType = I8, **quantization: Any) -> Tensor:
    return b.input(f"x{len(b.graph.tensors)}", shape, dtype, **quantization)


def y_of(b: ModelBuilder, shape: Sequence[int] = SHAPE, dtype: DType = I8, **quantization: Any) -> Tensor:
    return b.tensor(f"y{len(b.graph.tensors)}", shape, dtype, **quantization)


def constant(b: ModelBuilder, values: npt.NDArray[Any], scale: float | None = None) -> Tensor:
    return b.constant(f"c{len(b.graph.tensors)}", values, None if scale is None else per_tensor(scale, 0))


def whole(name: str, after: tuple[int, ...], dtype: DType = I8, **options: Any) -> Case:
    """RESHAPE and its like of a (1, 4, 16)."""

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


def unary(name: str, dtype: DType = I8, after: DType | None = None, kind: str | None = None, **options: Any) -> Case:
    """One input and an output of its shape; int8 outputs quantised as the operator wants it."""
    scales = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "LOG_SOFTMAX": (1 / 16, 127)}
    scales |= {"L2_NORMALIZATION": (1 / 128, 0), "SOFTMAX": (1 / 256, -128)}
    if dtype is I16:
        scales = dict.fromkeys(scales, (1 / 32768, 0))

    def case(b: ModelBuilder) -> Operator:
        x = x_of(b, SHAPE, dtype, zero_point=-128 if name == "RSQRT" else 0)
        scale, zero_point = scales.get(name, (0.03, 0))
        return b.operator(
            name, (x,), (y_of(b, SHAPE, after or dtype, scale=scale, zero_point=zero_point),), kind, **options
        )

    return case


def several(
    name: str,
    dtypes: Sequence[DType],
    after: DType,
    shapes: Sequence[tuple[int, ...]] = (SHAPE, SHAPE),
    kind: str | None = None,
    fixed: npt.NDArray[Any] | None = None,
) -> Case:
    """Several inputs, and at the end the constant ``fixed``, if any."""

    def case(b: ModelBuilder) -> Operator:
        inputs = [x_of(b, shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]
        if fixed is not None:
            inputs.append(constant(b, fixed, 0.05 if fixed.dtype == np.int8 else None))
        return b.operator(name, inputs, (y_of(b, SHAPE, after),), kind)

    return case


def cumulated(exclusive: bool, dtype: DType = I8) -> Case:
    def case(b: ModelBuilder) -> Operator:
        inputs = (x_of(b, SHAPE, dtype), constant(b, ints(2)))
        return b.operator("CUMSUM", inputs, (y_of(b, SHAPE, dtype),), "CumsumOptions", exclusive=exclusive)

    return case


def update_slice(b: ModelBuilder) -> Operator:
    inputs = (x_of(b, SHAPE), x_of(b, (1, 2, 3, 16)), constant(b, ints(1, 1, 1, 0)))
    return b.operator("DYNAMIC_UPDATE_SLICE", inputs, (y_of(b, SHAPE),))


CHANNELS, COLUMN, MIDDLE = (16,), (2, 3, 1, 1), (1, 3, 1, 16)
PER_CHANNEL = np.arange(1, 17).astype(np.int8)
FLOATS = ("SIN", "COS", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "FLOOR", "CEIL", "ROUND", "NEG", "ELU", "ABS")
FLOATS += ("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "SOFTMAX", "LOG_SOFTMAX")
FLOATS += ("L2_NORMALIZATION", "ZEROS_LIKE")
INT8S = ("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "ELU", "ABS", "RSQRT", "SOFTMAX")
INT8S += ("LOG_SOFTMAX", "L2_NORMALIZATION", "QUANTIZE")
KINDS = {"LEAKY_RELU": {"kind": "LeakyReluOptions", "alpha": 0.3}, "SOFTMAX": {"kind": "SoftmaxOptions", "beta": 1.0}}
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
ARITHMETIC = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "MAXIMUM": None, "MINIMUM": None}
ARITHMETIC |= {"SQUARED_DIFFERENCE": None}
BOTH, FIRST, SECOND = [(0, 0), (1, 0)], [(0, 0)], [(1, 0)]
"""Which inputs may be overwritten, and at which distance."""
IN_PLACE: Mapping[str, tuple[Case, list[tuple[int, int]]]] = {
    **{f"{name} float32": (unary(name, F32, **KINDS.get(name, {})), FIRST) for name in FLOATS},
    **{f"{name} int8": (unary(name, **KINDS.get(name, {})), FIRST) for name in INT8S},
    **{f"{name} int16": (unary(name, I16, **KINDS.get(name, {})), FIRST) for name in ("LOGISTIC", "TANH", "SOFTMAX")},
    "LOGICAL_NOT": (unary("LOGICAL_NOT", BOOL), FIRST),
    "QUANTIZE int8 -> uint8": (unary("QUANTIZE", I8, DType.UINT8), FIRST),
    "CAST int32 -> float32": (unary("CAST", I32, F32), FIRST),
    "QUANTIZE float32 -> int8": (unary("QUANTIZE", F32, I8), [(0, -3)]),
    "DEQUANTIZE int8 -> float32": (unary("DEQUANTIZE", I8, F32), [(0, 3 * (prod(SHAPE) - 1))]),
    "DEQUANTIZE int16 -> float32": (unary("DEQUANTIZE", I16, F32), [(0, 2 * (prod(SHAPE) - 1))]),
    "CUMSUM": (cumulated(exclusive=False), FIRST),
    "CUMSUM float32": (cumulated(exclusive=False, dtype=F32), FIRST),
    "DYNAMIC_UPDATE_SLICE": (update_slice, FIRST),
    **{
        f"{name} {dtype.label} {number}": (several(name, (dtype, dtype), dtype, shapes, kind), found)
        for name, kind in ARITHMETIC.items()
        for dtype in (I8, F32)
        for number, (shapes, found) in enumerate(
            [((SHAPE, SHAPE), BOTH), ((SHAPE, CHANNELS), FIRST), ((COLUMN, SHAPE), SECOND), ((SHAPE, MIDDLE), FIRST)]
        )
    },
    "ADD int16": (several("ADD", (I16, I16), I16, kind="AddOptions"), BOTH),
    "ADD int32": (several("ADD", (I32, I32), I32, kind="AddOptions"), BOTH),
    "DIV float32": (several("DIV", (F32, F32), F32, kind="DivOptions"), BOTH),
    "DIV float32 of a column": (several("DIV", (F32, F32), F32, (COLUMN, SHAPE), "DivOptions"), SECOND),
    "DIV int8 by constants": (several("DIV", (I8,), I8, kind="DivOptions", fixed=PER_CHANNEL), FIRST),
    "FLOOR_DIV": (several("FLOOR_DIV", (F32, F32), F32), BOTH),
    "FLOOR_MOD by a row": (several("FLOOR_MOD", (F32, F32), F32, (SHAPE, CHANNELS)), FIRST),
    "LOGICAL_AND": (several("LOGICAL_AND", (BOOL, BOOL), BOOL), BOTH),
    "LOGICAL_OR of a column": (several("LOGICAL_OR", (BOOL, BOOL), BOOL, (COLUMN, SHAPE)), SECOND),
    **{name: (several(name, (I8, I8), BOOL), BOTH) for name in COMPARISONS},
    "LESS than a row": (several("LESS", (I8, I8), BOOL, (SHAPE, CHANNELS)), FIRST),
    "GREATER float32": (several("GREATER", (F32, F32), BOOL), []),
    "PRELU int8": (several("PRELU", (I8,), I8, fixed=PER_CHANNEL), FIRST),
    "PRELU float32": (several("PRELU", (F32, F32), F32), BOTH),
    "ADD_N int8": (several("ADD_N", (I8,) * 3, I8, (SHAPE,) * 3), [*BOTH, (2, 0)]),
    "ADD_N float32": (several("ADD_N", (F32,) * 2, F32), BOTH),
    "SELECT_V2": (several("SELECT_V2", (BOOL, I8, I8), I8, (SHAPE,) * 3), [*BOTH, (2, 0)]),
    "SELECT_V2 by column": (several("SELECT_V2", (BOOL, I8, I8), I8, (COLUMN, SHAPE, SHAPE)), [(1, 0), (2, 0)]),
    "SELECT_V2 float32": (several("SELECT_V2", (BOOL, F32, F32), F32, (SHAPE, CHANNELS, SHAPE)), [(2, 0)]),
}


def one(case: Case) -> Operator:
    return case(ModelBuilder())


Choice = Callable[[Operator], Mapping[Tensor, int]]
"""Offsets of the tensors of an operator that are to share bytes."""


def permitted(rule: Rule, number: int) -> Choice:
    """The operator's n-th permission."""

    def choose(operator: Operator) -> Mapping[Tensor, int]:
        shares = rule(operator)[number : number + 1]
        return {key: value for share in shares for key, value in _pair(share, aligned(share.distance)).items()}

    return choose


def _pair(share: Share, distance: int) -> dict[Tensor, int]:
    return {share.input: max(0, distance), share.output: max(0, -distance)}


def all_views(operator: Operator) -> Mapping[Tensor, int]:
    """All parts in the whole at once."""
    offsets: dict[Tensor, int] = {}
    for share in view_shares(operator):
        if share.distance > 0 or share.output in offsets:
            offsets.setdefault(share.input, offsets.setdefault(share.output, 0) + share.distance)
        else:
            offsets.setdefault(share.output, offsets.setdefault(share.input, 0) - share.distance)
    return offsets


def same_offset(operator: Operator) -> Mapping[Tensor, int]:
    """The first input where the first output is, whatever the rules say."""
    return {tensor: 0 for tensor in (operator.inputs[0], operator.outputs[0]) if tensor is not None}


def planned(cases: Iterable[Case], choose: Choice) -> bytes:
    """A model of all cases, each operator's tensors apart but for those chosen."""
    b = ModelBuilder()
    operators = [case(b) for case in cases]
    b.finish(*(output for operator in operators for output in operator.outputs))
    offsets: dict[Tensor, int] = {}
    end = 0
    for operator in operators:
        chosen = choose(operator)
        offsets |= {tensor: end + offset for tensor, offset in chosen.items()}
        end = max([end, *(offsets[tensor] + aligned(tensor.nbytes) for tensor in chosen)])
        for tensor in dict.fromkeys((*operator.present_inputs(), *operator.outputs)):
            if tensor not in chosen and not tensor.is_constant:
                offsets[tensor] = end
                end += aligned(tensor.nbytes)
    offline_plan.attach(b.model, offsets)
    return write_model(b.model)


def differing(cases: Mapping[str, Case], *choices: Choice) -> set[str]:
    """The cases of which TFLM computes other bytes at one of the choices than with every tensor apart."""
    models = {"apart": planned(cases.values(), lambda _: {})}
    models |= {f"choice{n}": planned(cases.values(), choose) for n, choose in enumerate(choices)}
    runs = run_models("tflm", models, seeded_inputs(read_model(models["apart"]), SAMPLES, 7), ARENA)
    assert all(run.ran for run in runs.values()), [run.error for run in runs.values()]
    owners = [label for label, case in cases.items() for _ in one(case).outputs]
    apart = runs.pop("apart").arrays
    for number, owner in enumerate(owners):
        constant_bytes = np.ptp(apart[f"s0_o{number}"].reshape(-1).view(np.uint8)) == 0
        assert constant_bytes == owner.startswith("ZEROS_LIKE"), owner
    return {
        owners[int(name.rpartition("o")[2])]
        for run in runs.values()
        for name, array in run.arrays.items()
        if array.tobytes() != apart[name].tobytes()
    }


@pytest.mark.parametrize("label", VIEWS)
def test_views_are_where_the_bytes_are(label: str) -> None:
    case, distances = VIEWS[label]
    shares = view_shares(one(case))
    assert all(share.kind == "view" and share.exact for share in shares)
    assert [share.distance for share in shares] == distances


def test_tflm_computes_the_same_with_views_in_force() -> None:
    cases = {label: case for label, (case, _) in VIEWS.items()}
    assert not differing(cases, all_views, *(permitted(view_shares, number) for number in range(3)))


def test_every_operator_of_shared_code_has_a_case() -> None:
    assert {one(case).name for case, _ in VIEWS.values()} == SHARED_CODE


@pytest.mark.parametrize("label", IN_PLACE)
def test_inputs_that_may_be_overwritten(label: str) -> None:
    case, found = IN_PLACE[label]
    operator = one(case)
    shares = in_place_shares(operator)
    assert [(operator.inputs.index(share.input), share.distance) for share in shares] == found
    for share in shares:
        same_size = share.input.dtype.arena_bytes == share.output.dtype.arena_bytes
        assert share.kind == ("in-place" if same_size else "overlap")


def test_tflm_computes_the_same_in_place() -> None:
    cases = {label: case for label, (case, _) in IN_PLACE.items()}
    assert not differing(cases, *(permitted(in_place_shares, number) for number in range(3)))


def test_what_is_refused_breaks_on_tflm() -> None:
    """The control of the tests above: an input that is overwritten too early is seen."""
    cases = {
        "exclusive sum": cumulated(exclusive=True, dtype=F32),
        "larger elements": unary("DEQUANTIZE", I8, F32),
        "broadcast row": several("ADD", (I8, I8), I8, (CHANNELS, SHAPE), "AddOptions"),
        "broadcast column": several("SELECT_V2", (BOOL, I8, I8), I8, (COLUMN, SHAPE, SHAPE)),
        "concatenation of columns": join("CONCATENATION", [(4, 16), (4, 16)], 1),
        "unpacked columns": cut("UNPACK", (4, 3, 16), (1, 1, 1), 1),
    }
    for operator in map(one, cases.values()):
        at_once = [share for share in (*view_shares(operator), *in_place_shares(operator)) if share.distance == 0]
        assert operator.inputs[0] not in [share.input for share in at_once]
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
    "slice between multiples of 16": sliced((64,), (8,), (32,)),
    "strided slice of every other row": strided(CUBE, (0, 0, 0, 0), (1, 6, 4, 16), (1, 2, 1, 1)),
    "strided slice backwards": strided(CUBE, (0, -1, 0, 0), (1, -7, 4, 16), (1, -1, 1, 1)),
    "strided slice with an ellipsis": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), ellipsisMask=4),
    "strided slice with a new axis": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), newAxisMask=1),
    "strided slice by offset": strided(CUBE, (0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1), offset=1),
    "strided slice of nothing": strided(CUBE, (0, 4, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1)),
    "transpose": lambda b: b.operator("TRANSPOSE", (x_of(b), constant(b, ints(1, 0, 2, 3))), (y_of(b),)),
}


def _changed(operator: Operator, **options: Any) -> Operator:
    operator.options = Options("any", {**(operator.options.fields if operator.options else {}), **options})
    return operator


@pytest.mark.parametrize("label", NOT_VIEWS)
def test_what_is_no_range_of_bytes_is_no_view(label: str) -> None:
    assert view_shares(one(NOT_VIEWS[label])) == ()


@pytest.mark.parametrize("label", VIEWS)
def test_views_of_spoilt_operators_are_refused(label: str) -> None:
    """Constants, variables, another type or size, and inputs that are not there."""
    spoilt = one(VIEWS[label][0])
    data = [tensor for tensor in spoilt.present_inputs() if not tensor.is_constant]
    for name, value in (("is_variable", True), ("buffer", Buffer(np.ones(1, np.uint8))), ("dtype", DType.UINT8)):
        kept = [getattr(tensor, name) for tensor in data]
        for tensor in data:
            setattr(tensor, name, value)
        assert view_shares(spoilt) == (), name
        for tensor, old in zip(data, kept, strict=True):
            setattr(tensor, name, old)
    for output in spoilt.outputs:
        output.shape = (*output.shape, 3)
    assert view_shares(spoilt) == ()
    spoilt.inputs = (None,) * len(spoilt.inputs)
    assert view_shares(spoilt) == ()
    spoilt.inputs = ()
    assert view_shares(spoilt) == ()
    spoilt.outputs = ()
    assert view_shares(spoilt) == ()


@pytest.mark.parametrize("label", [label for label in VIEWS if "slice" in label or "split" in label])
def test_operands_must_be_constants(label: str) -> None:
    for slot, operand in enumerate(one(VIEWS[label][0]).inputs):
        if operand is not None and operand.is_constant and (label, slot) != ("split_v", 1):
            operator = one(VIEWS[label][0])
            replaced = operator.inputs[slot]
            assert replaced is not None
            replaced.buffer = Buffer()
            assert view_shares(operator) == (), slot


def test_concatenated_parts_are_quantised_like_the_whole() -> None:
    operator = one(join("CONCATENATION", WHOLE_ROWS, 1, I16))
    first, second, third = operator.present_inputs()
    second.quantization, third.quantization = per_tensor(0.07, 0), None
    assert [share.input for share in view_shares(operator)] == [first]
    for tensor in (first, second, operator.outputs[0]):
        tensor.quantization = Quantization(np.empty(0, np.float32), np.empty(0, np.int64))
    assert [share.input for share in view_shares(operator)] == [first, second, third]


def test_in_place_of_spoilt_operators_is_refused() -> None:
    for label, (case, _) in IN_PLACE.items():
        operator = one(case)
        for tensor in operator.present_inputs():
            tensor.is_variable = True
        assert in_place_shares(operator) == (), label
        operator = one(case)
        operator.outputs[0].shape = (2, 3, 5, 17)
        assert in_place_shares(operator) == (), label
        operator.outputs = ()
        assert in_place_shares(operator) == (), label
    assert in_place_shares(one(cumulated(exclusive=True))) == ()
    assert in_place_shares(one(lambda b: b.operator("CONV_2D", (x_of(b),), (y_of(b),)))) == ()
    assert in_place_shares(one(unary("SOFTMAX", I8, I16))) == ()
    assert in_place_shares(one(lambda b: b.operator("ADD", (x_of(b, (0, 4)),) * 2, (y_of(b, (0, 4)),)))) == ()


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
@settings(deadline=None, max_examples=400)
def test_strided_slice_agrees_with_numpy(
    drawn: tuple[tuple[int, ...], list[tuple[int, int, int]], dict[str, int]],
) -> None:
    """In elements of 16 bytes, so that no run starts between multiples of 16."""
    shape, limits, masks = drawn
    begin, end, strides = zip(*limits, strict=True)
    taken = np.arange(prod(shape)).reshape(shape)[subscript(begin, end, strides, masks)].reshape(-1)
    operator = one(strided(shape, begin, end, strides, DType.COMPLEX128, **masks))
    is_run = taken.size > 0 and bool((np.diff(taken) == 1).all()) and min(strides) > 0
    assert [share.distance for share in view_shares(operator)] == ([-16 * int(taken[0])] if is_run else [])


@given(dimensions, st.data())
@settings(deadline=None, max_examples=200)
def test_parts_agree_with_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    """SPLIT_V and CONCATENATION along any axis are views exactly where each part is a run of elements."""
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = data.draw(st.lists(st.integers(0, shape[axis]), max_size=3).map(sorted))
    parts = np.split(np.arange(prod(shape)).reshape(shape), cuts, axis)
    starts = [16 * int(part.flat[0]) for part in parts if part.size]
    is_run = all((np.diff(part.reshape(-1)) == 1).all() for part in parts)
    is_run &= prod(shape[: axis % len(shape)]) == 1 or len(starts) == 1
    split = view_shares(one(cut("SPLIT_V", shape, [part.shape[axis] for part in parts], axis, DType.COMPLEX128)))
    joined = view_shares(one(join("CONCATENATION", [part.shape for part in parts], axis, DType.COMPLEX128)))
    if prod(shape[: axis % len(shape)]) == 1:
        assert is_run
        assert [-share.distance for share in split] == [share.distance for share in joined] == starts
    else:
        assert split == joined == ()
