"""Slices whose pixels are skipped, and slices of padded tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    weights_quantization,
)
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import SLICE_OF_PADDING, SUBSAMPLED_SLICE
from tflite_memopt.search.rewrite.shapes import IDENTITY


def cut(branch: Branch, x: Tensor, strides: tuple[int, int] = (1, 1)) -> Tensor:
    """Rows and columns from somewhere on, with steps; the ends are given or masked."""
    pick = branch.random
    first = [0, pick.randint(0, 2), pick.randint(1, 2), 0]  # a cut through the columns is no view
    steps = [1, *strides, 1]
    masked = pick.random() < 0.5
    end = [0 if masked else size for size in x.shape]
    shape = [-(-(size - at) // step) for size, at, step in zip(x.shape, first, steps, strict=True)]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    operands = [branch.ints(*each) for each in (first, end, steps)]
    fields = {"beginMask": 9, "endMask": 15 if masked else 0}
    branch.builder.operator("STRIDED_SLICE", (x, *operands), (y,), "StridedSliceOptions", **fields)
    return y


def image(branch: Branch, dtype: DType) -> Tensor:
    pick = branch.random
    shape = (pick.choice((1, 1, 2)), pick.randint(5, 9), pick.randint(5, 9), pick.randint(2, 6))
    return branch.input(shape, dtype, **branch.quantization(dtype))


def skipping(branch: Branch) -> None:
    """A slice, at times with steps of its own, and a window of one pixel that skips some."""
    pick = branch.random
    dtype = pick.choice((F32, I8))
    y = cut(branch, image(branch, dtype), pick.choice(((1, 1), (1, 2))))
    strides = pick.choice(((2, 2), (1, 2), (3, 2)))
    fields: dict[str, Any] = {"strideH": strides[0], "strideW": strides[1], "padding": pick.choice((0, 1))}
    size = [-(-count // step) for count, step in zip(y.shape[1:3], strides, strict=True)]
    name = pick.choice(("CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"))
    if name != "CONV_2D":
        z = branch.tensor((y.shape[0], *size, y.shape[3]), dtype, **quantization_of(y))
        branch.run(name, (y,), z, "Pool2DOptions", **fields, filterHeight=1, filterWidth=1)
        return
    z = branch.tensor((y.shape[0], *size, 3), dtype, **branch.quantization(dtype))
    values = branch.values((3, 1, 1, y.shape[3]), dtype)
    scales = weights_quantization(branch, 3, 0) if dtype is I8 else None
    weights = branch.constant(np.maximum(values, -127) if dtype is I8 else values, scales)
    bias = branch.constant(np.asarray([-3, 0, 40], np.int32 if dtype is I8 else np.float32))
    branch.run(name, (y, weights, bias), z, "Conv2DOptions", **fields, dilationHFactor=1, dilationWFactor=1)


def padded(branch: Branch) -> None:
    """A slice of a padded tensor that takes nothing of the padding, as the factorized reduction has it."""
    pick = branch.random
    x = image(branch, pick.choice((F32, I8)))
    amounts = np.asarray([[0, 0], [pick.randint(0, 1), 1], [0, pick.randint(0, 2)], [0, 0]], np.int32)
    shape = [size + int(sum(pair)) for size, pair in zip(x.shape, amounts, strict=True)]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.builder.operator("PAD", (x, branch.constant(amounts)), (y,), "PadOptions")
    first = [0, int(amounts[1, 0]) + pick.randint(0, 1), pick.randint(0, 1), 0]
    steps = [1, pick.choice((1, 2)), pick.choice((1, 2)), 1]
    limit = [x.shape[0], int(amounts[1, 0]) + x.shape[1], x.shape[2], x.shape[3]]
    count = [-(-(end - at) // step) for end, at, step in zip(limit, first, steps, strict=True)]
    z = branch.tensor(count, x.dtype, **quantization_of(x))
    branch.run("STRIDED_SLICE", (y, *(branch.ints(*each) for each in (first, limit, steps))), z, "StridedSliceOptions")


@pytest.mark.parametrize(("rule", "pattern"), [(SUBSAMPLED_SLICE, skipping), (SLICE_OF_PADDING, padded)])
def test_the_same_bits(rule: Any, pattern: Any) -> None:
    assert_exact(rule, pattern, 1, 80)


GOLDEN = """graph 0 main
  %0 x: int8[1, 4, 4, 2]
  %1 padded: int8[1, 5, 5, 2]
  %2 cut: int8[1, 4, 4, 2]
  %3 paddings: int32[4, 2] const
  %4 begin: int32[4] const
  %5 end: int32[4] const
  %6 strides: int32[4] const
  %7 pool: int8[1, 2, 2, 2]
  %8 y: int8[1, 2, 2, 2]
  %9 cut/thinned: int8[1, 2, 2, 2]
  %10 cut/thinned/begin: int32[4] const
  %11 cut/thinned/end: int32[4] const
  %12 cut/thinned/strides: int32[4] const
  %13 cut/thinned/begin_2: int32[4] const
  %14 cut/thinned/end_2: int32[4] const
  %15 cut/thinned/strides_2: int32[4] const
  inputs %0
  0: %9 = STRIDED_SLICE(%0, %13, %14, %15) {beginMask=0, endMask=0, shrinkAxisMask=0}
  1: %8 = RELU(%9)
  outputs %8
"""


def reduction(rows: int = 1, read: int = 4) -> tuple[ModelBuilder, Model]:
    """Padding at the end, a shift by one pixel, and every second pixel of that: half of a factorized reduction."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2))
    y, z = b.tensor("padded", (1, 4 + rows, 5, 2)), b.tensor("cut", (1, read, 4, 2))
    paddings = b.constant("paddings", np.asarray([[0, 0], [0, rows], [0, 1], [0, 0]], np.int32))
    b.operator("PAD", (x, paddings), (y,), "PadOptions")
    limits = {"begin": (0, 1, 1, 0), "end": (1, 1 + read, 5, 2), "strides": (1, 1, 1, 1)}
    operands = [b.constant(name, np.asarray(values, np.int32)) for name, values in limits.items()]
    b.operator("STRIDED_SLICE", (y, *operands), (z,), "StridedSliceOptions")
    pool, output = b.tensor("pool", (1, -(-read // 2), 2, 2)), b.tensor("y", (1, -(-read // 2), 2, 2))
    fields = dict.fromkeys(("strideH", "strideW"), 2) | dict.fromkeys(("filterHeight", "filterWidth", "padding"), 1)
    b.operator("AVERAGE_POOL_2D", (z,), (pool,), "Pool2DOptions", **fields)
    b.operator("RELU", (pool,), (output,))
    return b, b.finish(output)


def test_the_golden_dump_of_a_factorized_reduction() -> None:
    """Padding and pool are gone: the padding was never read."""
    model = reduction()[1]
    Driver(model).apply_everywhere((SUBSAMPLED_SLICE, SLICE_OF_PADDING, IDENTITY))
    assert dump_model(model) == GOLDEN


def test_padding_that_is_read_stays() -> None:
    model = reduction(rows=2, read=5)[1]
    Driver(model).apply_everywhere((SUBSAMPLED_SLICE, SLICE_OF_PADDING, IDENTITY))
    assert [operator.name for operator in model.main.operators] == ["PAD", "STRIDED_SLICE", "RELU"]


def test_tensors_between_that_others_need_stay() -> None:
    b, model = reduction()
    model.main.outputs = (*model.main.outputs, model.main.operators[1].outputs[0])
    assert_refused(model, SUBSAMPLED_SLICE, "'cut'")
    b, model = reduction()
    Driver(model).apply_everywhere((SUBSAMPLED_SLICE,))
    model.main.outputs = (*model.main.outputs, b.add(model.main.tensors[1], model.main.tensors[1]))
    assert_refused(model, SLICE_OF_PADDING, "'padded'")


def test_variables_are_not_read_later() -> None:
    _, model = reduction()
    model.main.operators[0].outputs[0].is_variable = True
    assert_refused(model, SUBSAMPLED_SLICE, "variable")
    _, model = reduction()
    Driver(model).apply_everywhere((SUBSAMPLED_SLICE,))
    model.main.inputs[0].is_variable = True
    assert_refused(model, SLICE_OF_PADDING, "variable")


def test_another_quantization_of_what_is_padded_is_refused() -> None:
    _, model = reduction()
    Driver(model).apply_everywhere((SUBSAMPLED_SLICE,))
    model.main.inputs[0].quantization = ModelBuilder().tensor("like", (), scale=0.3).quantization
    assert_refused(model, SLICE_OF_PADDING, "'padded'", "'x'")


def test_a_slice_that_costs_nothing_is_left_alone() -> None:
    """Rows from somewhere on are one run of bytes: the slice is a view."""
    b = ModelBuilder()
    x, y, z = b.input("x", (1, 4, 4, 16)), b.tensor("y", (1, 3, 4, 16)), b.tensor("z", (1, 2, 2, 16))
    limits = ((0, 1, 0, 0), (1, 4, 4, 16), (1, 1, 1, 1))
    operands = [b.constant(f"c{at}", np.asarray(values, np.int32)) for at, values in enumerate(limits)]
    b.operator("STRIDED_SLICE", (x, *operands), (y,), "StridedSliceOptions")
    fields = dict.fromkeys(("strideH", "strideW"), 2) | dict.fromkeys(("filterHeight", "filterWidth"), 1)
    b.operator("MAX_POOL_2D", (y,), (z,), "Pool2DOptions", **fields)
    assert_refused(b.finish(z), SUBSAMPLED_SLICE, "view")


def test_a_window_of_more_pixels_is_no_match() -> None:
    _, model = reduction()
    pool = model.main.operators[2]
    assert pool.options is not None
    pool.options.fields["filterHeight"] = 2  # type: ignore[index]
    driver = Driver(model)
    driver.apply_everywhere((SUBSAMPLED_SLICE,))
    assert not driver.applied
    assert not driver.refused
