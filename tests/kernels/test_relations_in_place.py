"""In-place: every permission is imposed on TFLM, and what the rules refuse is seen to break."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.kernels.imposed import (
    BOOL,
    F32,
    I8,
    I16,
    I32,
    SHAPE,
    Case,
    constant,
    differing,
    ints,
    one,
    permitted,
    same_offset,
    x_of,
    y_of,
)
from tests.kernels.one_operator import BINARY, COMPARED, UNARY
from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import Buffer, DType, Operator
from tflite_memopt.operators.table import OPERATORS, relations_of


def unary(name: str, dtype: DType = I8, after: DType | None = None) -> Case:
    """One input and an output of its shape, quantized as the operator wants it."""

    def case(b: ModelBuilder) -> Operator:
        x = x_of(b, SHAPE, dtype, zero_point=-128 if (name, dtype) == ("RSQRT", I8) else 0)
        scale, zero_point = (OPERATORS[name].scale or (0.03, 0)) if dtype is I8 else (1 / 32768, 0)
        y = y_of(b, SHAPE, after or dtype, scale=scale, zero_point=zero_point)
        kind, fields = OPTIONS.get(name, (None, {}))
        return b.operator(name, (x,), (y,), kind, **fields)

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
OPTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
    "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
}
ONE_INPUT = [name for name in UNARY if name != "CUMSUM" and OPERATORS[name].price != "converted"]
ARITHMETIC = [name for name in BINARY if name not in (*COMPARED, "ADD_N", "DIV", "FLOOR_DIV", "FLOOR_MOD", "PRELU")]
BOTH, FIRST, SECOND = [(0, 0), (1, 0)], [(0, 0)], [(1, 0)]
"""Which inputs may be overwritten, and at which distance."""
IN_PLACE: Mapping[str, tuple[Case, list[tuple[int, int]]]] = {
    **{
        f"{name} {dtype.label}": (unary(name, dtype), FIRST)
        for name in ONE_INPUT
        for dtype in (F32, I8, I16)
        if OPERATORS[name].tflm.takes(dtype) and (name, dtype) != ("RSQRT", I16)  # it takes no negative values
    },
    "LOGICAL_NOT": (unary("LOGICAL_NOT", BOOL), FIRST),
    "QUANTIZE int8 -> int8": (unary("QUANTIZE"), FIRST),
    "QUANTIZE int8 -> uint8": (unary("QUANTIZE", I8, DType.UINT8), FIRST),
    "CAST int32 -> float32": (unary("CAST", I32, F32), FIRST),
    "QUANTIZE float32 -> int8": (unary("QUANTIZE", F32, I8), [(0, -3)]),
    "DEQUANTIZE int8 -> float32": (unary("DEQUANTIZE", I8, F32), [(0, 3 * (prod(SHAPE) - 1))]),
    "DEQUANTIZE int16 -> float32": (unary("DEQUANTIZE", I16, F32), [(0, 2 * (prod(SHAPE) - 1))]),
    "CUMSUM": (cumulated(exclusive=False), FIRST),
    "CUMSUM float32": (cumulated(exclusive=False, dtype=F32), FIRST),
    "DYNAMIC_UPDATE_SLICE": (update_slice, FIRST),
    **{
        f"{name} {dtype.label} {number}": (several(name, (dtype, dtype), dtype, shapes), found)
        for name in ARITHMETIC
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
    **{name: (several(name, (I8, I8), BOOL), BOTH) for name in COMPARED},
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


@pytest.mark.parametrize("label", IN_PLACE)
def test_inputs_that_may_be_overwritten(label: str) -> None:
    case, found = IN_PLACE[label]
    operator = one(case)
    reuses = relations_of(operator)
    assert [(operator.inputs.index(reuse.input), reuse.distance) for reuse in reuses] == found
    for reuse in reuses:
        same_size = reuse.input.dtype.arena_bytes == reuse.output.dtype.arena_bytes
        assert reuse.kind == ("in-place" if same_size else "overlap")


def test_every_operator_of_the_rules_has_a_case() -> None:
    assert {one(case).name for case, _ in IN_PLACE.values()} == {
        name for name, kind in OPERATORS.items() if kind.overwrites is not None
    }


def test_tflm_computes_the_same_in_place() -> None:
    cases = {label: case for label, (case, _) in IN_PLACE.items()}
    assert not differing(cases, *(permitted(relations_of, number) for number in range(3)))


def test_what_is_refused_breaks_on_tflm() -> None:
    """The control of the tests above: an input that is overwritten too early is seen."""
    cases = {
        "exclusive sum": cumulated(exclusive=True, dtype=F32),
        "larger elements": unary("DEQUANTIZE", I8, F32),
        "broadcast row": several("ADD", (I8, I8), I8, (CHANNELS, SHAPE), "AddOptions"),
        "broadcast column": several("SELECT_V2", (BOOL, I8, I8), I8, (COLUMN, SHAPE, SHAPE)),
    }
    for operator in map(one, cases.values()):
        assert operator.inputs[0] not in [reuse.input for reuse in relations_of(operator) if reuse.distance <= 0]
    assert differing(cases, same_offset) == set(cases)


def test_in_place_of_spoilt_operators_is_refused() -> None:
    for label, (case, _) in IN_PLACE.items():
        operator = one(case)
        for tensor in operator.present_inputs():
            tensor.is_variable = True
        assert relations_of(operator) == (), label
        operator = one(case)
        for tensor in operator.present_inputs():
            tensor.buffer = Buffer(np.ones(1, np.uint8))
        assert relations_of(operator) == (), label
        operator = one(case)
        operator.outputs[0].shape = (2, 3, 5, 17)
        assert relations_of(operator) == (), label
        operator.outputs = ()
        assert relations_of(operator) == (), label
    assert relations_of(one(cumulated(exclusive=True))) == ()
    assert relations_of(one(lambda b: b.operator("CONV_2D", (x_of(b),), (y_of(b),)))) == ()
    assert relations_of(one(unary("SOFTMAX", I8, I16))) == ()
    assert relations_of(one(lambda b: b.operator("ADD", (x_of(b, (0, 4)),) * 2, (y_of(b, (0, 4)),)))) == ()
