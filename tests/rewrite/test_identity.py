"""Operators that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    LITERT,
    TFLM,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    refusals,
)
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import IDENTITY

Operands = tuple[list[Tensor | None], dict[str, Any]]
"""Inputs of an operator and the fields of its options."""


def reshape(b: Branch, x: Tensor) -> Operands:
    shape = np.asarray(b.random.choice((x.shape, (-1, *x.shape[1:]))), np.int32)
    return [x, b.constant(shape)] if b.random.random() < 0.7 else [x], {"newShape": shape}


def broadcast(b: Branch, x: Tensor) -> Operands:
    return [x, b.ints(*x.shape)], {}


def tile(b: Branch, x: Tensor) -> Operands:
    return [x, b.ints(*[1] * len(x.shape))], {}


def transpose(b: Branch, x: Tensor) -> Operands:
    """Dimensions of one element may go anywhere, if the shape stays."""
    order = list(range(len(x.shape)))
    if x.shape[0] == x.shape[1] == 1:
        order[:2] = 1, 0
    return [x, b.ints(*order)], {}


def pad(b: Branch, x: Tensor) -> Operands:
    return [x, b.constant(np.zeros((len(x.shape), 2), np.int32))], {}


def whole_slice(b: Branch, x: Tensor) -> Operands:
    size = [b.random.choice((-1, count)) for count in x.shape]
    return [x, b.ints(*[0] * len(x.shape)), b.ints(*size)], {}


def strided_slice(b: Branch, x: Tensor) -> Operands:
    """Ends beyond the shape are clamped; where the mask says so, ends are not looked at."""
    mask = b.random.choice((0, 2))
    end = [0 if mask >> axis & 1 else count + b.random.choice((0, 5)) for axis, count in enumerate(x.shape)]
    return [x, b.ints(*[0] * len(x.shape)), b.ints(*end), b.ints(*[1] * len(x.shape))], {"endMask": mask}


def single(_: Branch, x: Tensor) -> Operands:
    return [x], {"axis": 0}


def split(b: Branch, x: Tensor) -> Operands:
    return [b.constant(np.asarray(b.random.choice((-1, 1)), np.int32)), x], {"numSplits": 1}


def split_v(b: Branch, x: Tensor) -> Operands:
    return [x, b.ints(x.shape[1]), b.constant(np.asarray(1, np.int32))], {"numSplits": 1}


def alone(_: Branch, x: Tensor) -> Operands:
    return [x], {}


def pool(b: Branch, x: Tensor) -> Operands:
    fields = dict.fromkeys(("filterHeight", "filterWidth", "strideH", "strideW"), 1)
    return [x], {**fields, "padding": b.random.choice((0, 1))}


KINDS: dict[str, tuple[Callable[[Branch, Tensor], Operands], str | None, tuple[DType, ...]]] = {
    "RESHAPE": (reshape, "ReshapeOptions", (F32, I8, I16)),
    "SQUEEZE": (alone, "SqueezeOptions", (F32, I8)),
    "TRANSPOSE": (transpose, "TransposeOptions", (F32, I8, I16)),
    "PAD": (pad, "PadOptions", (F32, I8, I16)),
    "MIRROR_PAD": (pad, "MirrorPadOptions", (F32, I8)),
    "SLICE": (whole_slice, "SliceOptions", (F32, I8, I16)),
    "STRIDED_SLICE": (strided_slice, "StridedSliceOptions", (F32, I8, I16)),
    "CONCATENATION": (single, "ConcatenationOptions", (F32, I8, I16)),
    "SPLIT": (split, "SplitOptions", (F32, I8, I16)),
    "SPLIT_V": (split_v, "SplitVOptions", (F32, I8, I16)),
    "CAST": (alone, "CastOptions", (F32, I8, I16)),
    "QUANTIZE": (alone, "QuantizeOptions", (I8, I16)),
    "AVERAGE_POOL_2D": (pool, "Pool2DOptions", (I8, I16)),
    "MAX_POOL_2D": (pool, "Pool2DOptions", (I8, I16)),
}
NOT_IN_LITERT = {"BROADCAST_TO": (broadcast, None, (F32, I8))}  # it has version 2 only
NOT_IN_TFLM = {"TILE": (tile, "TileOptions", (F32, I8))}


def one_of(kinds: dict[str, Any], branch: Branch) -> None:
    """x, the operator, and a copy of what it gives; at times others read x, or the graph returns it."""
    pick = branch.random
    name = pick.choice(list(kinds))
    make, kind, dtypes = kinds[name]
    dtype = pick.choice(dtypes)
    outer = (2, 3) if name == "SQUEEZE" else (pick.choice((1, 1, 2)), pick.choice((1, 3)))
    shape = (*outer, pick.randint(2, 4), pick.randint(2, 5))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    y = branch.tensor(shape, dtype, **quantization_of(x))
    inputs, fields = make(branch, x)
    branch.builder.operator(name, inputs, (y,), kind, **fields)
    parts = [y, x] if pick.random() < 0.3 else [y, y]
    joined = branch.tensor((2 * shape[0], *shape[1:]), dtype, **quantization_of(x))
    branch.run("CONCATENATION", parts, joined, "ConcatenationOptions", axis=0)


def test_the_same_bits() -> None:
    assert_exact(IDENTITY, lambda branch: one_of(KINDS, branch), 1, 150)


def test_the_same_bits_where_one_runtime_has_no_kernel() -> None:
    assert_exact(IDENTITY, lambda branch: one_of(NOT_IN_TFLM, branch), 1, 20, (LITERT,))
    assert_exact(IDENTITY, lambda branch: one_of(NOT_IN_LITERT, branch), 1, 20, (TFLM,))


GOLDEN = """graph 0 main
  %0 x: int8[1, 2, 2, 3]
  %1 y: int8[1, 2, 2, 3]
  %2 z: int8[1, 2, 2, 3]
  inputs %0
  0: %2 = RELU(%0)
  outputs %2
"""


def read_once(make: Callable[[ModelBuilder, Tensor, Tensor], None], **quantization: Any) -> Model:
    """x, an operator from it to y, and a reader of y."""
    b = ModelBuilder()
    x, y, z = b.input("x", (1, 2, 2, 3)), b.tensor("y", (1, 2, 2, 3), **quantization), b.tensor("z", (1, 2, 2, 3))
    make(b, x, y)
    b.operator("RELU", (y,), (z,))
    return b.finish(z)


def cast(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    b.operator("CAST", (x,), (y,), "CastOptions")


def test_the_golden_dump() -> None:
    model = read_once(cast)
    Driver(model).apply_everywhere((IDENTITY,))
    assert dump_model(model) == GOLDEN


def test_what_the_graph_returns_keeps_its_name() -> None:
    model = read_once(cast)
    model.main.outputs = (*model.main.outputs, model.main.tensors[1])
    assert_refused(model, IDENTITY, "'y'")


def test_another_meaning_of_the_same_integers_is_a_change() -> None:
    (reason,) = refusals(read_once(cast, scale=0.07), IDENTITY)
    assert "'y'" in reason
    (reason,) = refusals(read_once(cast, zero_point=1), IDENTITY)
    assert "'y'" in reason


def test_a_copy_of_a_variable_is_kept() -> None:
    model = read_once(cast)
    model.main.inputs[0].is_variable = True
    assert_refused(model, IDENTITY, "variable")


def computed_shape(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    b.operator("RESHAPE", (x, b.input("shape", (4,), I32)), (y,), "ReshapeOptions")


def clamped_pool(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    fields = dict.fromkeys(("filterHeight", "filterWidth", "strideH", "strideW", "fusedActivationFunction"), 1)
    b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)


def same_padded_pool(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    fields = dict.fromkeys(("strideH", "strideW"), 1) | dict.fromkeys(("filterHeight", "filterWidth"), 2)
    b.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)


def moving_transpose(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    b.operator("TRANSPOSE", (x, b.constant("order", np.asarray((0, 2, 1, 3), np.int32))), (y,), "TransposeOptions")


def reversing_slice(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    limits = [(-1, -1, -1, -1), (-2, -3, -3, -4), (-1, -1, -1, -1)]
    operands = [b.constant(f"c{at}", np.asarray(limit, np.int32)) for at, limit in enumerate(limits)]
    b.operator("STRIDED_SLICE", (x, *operands), (y,), "StridedSliceOptions")


def clamped_join(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    b.operator("CONCATENATION", (x,), (y,), "ConcatenationOptions", fusedActivationFunction=1)


def shifted(b: ModelBuilder, x: Tensor, y: Tensor) -> None:
    paddings = b.constant("paddings", np.asarray([[0, 0], [1, -1], [0, 0], [0, 0]], np.int32))
    b.operator("PAD", (x, paddings), (y,), "PadOptions")


@pytest.mark.parametrize(
    "make",
    [computed_shape, clamped_pool, same_padded_pool, moving_transpose, reversing_slice, clamped_join, shifted],
)
def test_what_may_change_a_value_is_no_match(make: Callable[[ModelBuilder, Tensor, Tensor], None]) -> None:
    model = read_once(make)
    before = dump_model(model)
    driver = Driver(model)
    driver.apply_everywhere((IDENTITY,))
    assert not driver.applied
    assert not driver.refused
    assert dump_model(model) == before


def test_a_float_pool_stops_infinities_and_is_kept() -> None:
    model = read_once(clamped_pool)
    pool = model.main.operators[0]
    assert pool.options is not None
    pool.options = replace(pool.options, fields={**pool.options.fields, "fusedActivationFunction": 0})
    for tensor in model.main.tensors:
        tensor.dtype, tensor.quantization = F32, None
    driver = Driver(model)
    driver.apply_everywhere((IDENTITY,))
    assert not driver.applied
