"""Pointwise convolutions of pixels that a pool or a slice has picked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import I8, I16, Branch, assert_exact, quantization_of, refusals, weights_quantization
from tflite_memopt import Options
from tflite_memopt.memory.arrange import cost_of
from tflite_memopt.memory.work import WorkLimit, instructions
from tflite_memopt.model.analysis.macs import model_macs
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.operators.window import POOLS
from tflite_memopt.search.rewrite.pixels import SKIPPING_CONVOLUTION
from tflite_memopt.search.rewrite.tiles import simplified


def picked(branch: Branch) -> None:
    """Pixels of an image, by a pool of one pixel or by a slice, and a convolution of them."""
    pick = branch.random
    dtype, first = pick.choice((I8, I8, I16)), (pick.randint(0, 2), pick.randint(0, 1))
    steps = pick.choice(((2, 2), (1, 2), (3, 2)))
    x = branch.input(
        (pick.choice((1, 2)), pick.randint(5, 9), pick.randint(5, 9), pick.randint(1, 5)),
        dtype,
        **branch.quantization(dtype),
    )
    is_pool = pick.random() < 0.5
    first = (0, 0) if is_pool else first
    size = [-(-(count - at) // step) for count, at, step in zip(x.shape[1:3], first, steps, strict=True)]
    y = branch.tensor((x.shape[0], *size, x.shape[3]), dtype, **quantization_of(x))
    if is_pool:
        fields = {"strideH": steps[0], "strideW": steps[1], "filterHeight": 1, "filterWidth": 1}
        name = pick.choice(POOLS)
        branch.builder.operator(name, (x,), (y,), "Pool2DOptions", padding=pick.choice((0, 1)), **fields)
    else:
        limits = ((0, *first, 0), x.shape, (1, *steps, 1))
        branch.builder.operator(
            "STRIDED_SLICE", (x, *(branch.ints(*each) for each in limits)), (y,), "StridedSliceOptions"
        )
    own = pick.choice((1, 1, 2))
    z = branch.tensor((y.shape[0], *(-(-count // own) for count in size), 3), dtype, **branch.quantization(dtype))
    values = np.maximum(branch.values((3, 1, 1, y.shape[3]), I8), -127)
    bias = branch.constant(np.asarray([-3, 0, 40], np.int32 if dtype is I8 else np.int64))
    fields = {"padding": pick.choice((0, 1)), "strideH": own, "strideW": own}
    fields |= {"dilationHFactor": pick.choice((1, 2)), "dilationWFactor": pick.choice((1, 2))}  # of one tap: no matter
    operands = (y, branch.constant(values, weights_quantization(branch, 3, 0)), bias)
    branch.run("CONV_2D", operands, z, "Conv2DOptions", **fields, fusedActivationFunction=pick.choice((0, 1)))


def test_the_same_bits() -> None:
    assert_exact(SKIPPING_CONVOLUTION, picked, 0, 40)


def pooled(b: ModelBuilder, x: Tensor, kernel: int = 1, dtype: DType = DType.INT8) -> Tensor:
    y = b.tensor("picked", (1, 4, 4, x.shape[3]), dtype)
    fields = {"filterHeight": kernel, "filterWidth": kernel, "strideH": 2, "strideW": 2}
    b.operator("AVERAGE_POOL_2D", (x,), (y,), "Pool2DOptions", **fields)
    return y


def refused(name: str) -> Model:
    b = ModelBuilder()
    dtype = DType.FLOAT32 if name == "float" else DType.INT8
    y = pooled(b, b.input("x", (1, 8, 8, 4), dtype), dtype=dtype)
    if name != "float":
        z = b.conv(y, 4)
        if name == "grouped":
            assert z.producer is not None
            weights = z.producer.inputs[1]
            assert weights is not None
            weights.shape, weights.buffer.data = (4, 1, 1, 2), np.zeros(8, np.uint8)
        return b.finish(z, *((y,) if name == "shared" else ()))
    z = b.tensor("z", (1, 4, 4, 1), dtype)
    b.operator("CONV_2D", (y, b.constant("w", np.ones((1, 1, 1, 4), np.float32))), (z,), "Conv2DOptions")
    return b.finish(z)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("float", "its values are no integers, or its weights are computed or packed"),
        ("grouped", "it is grouped"),
        ("shared", "'picked' is needed by others too"),
    ],
)
def test_refusals(name: str, reason: str) -> None:
    assert refusals(refused(name), SKIPPING_CONVOLUTION) == [reason]


def test_a_pool_of_more_pixels_is_another_matter() -> None:
    b = ModelBuilder()
    assert not refusals(b.finish(b.conv(pooled(b, b.input("x", (1, 8, 8, 4)), kernel=2), 4)), SKIPPING_CONVOLUTION)


def reduced(first: int) -> Model:
    """Pixels of every second row and column, from ``first`` on, of a wide image."""
    b = ModelBuilder()
    x = b.conv(b.input("x", (1, 8, 8, 1)), 32)
    y = b.tensor("picked", (1, 4, 4, 32))
    limits: Any = ((0, first, first, 0), x.shape, (1, 2, 2, 1))
    operands = [b.constant(f"limit{number}", np.asarray(each, np.int32)) for number, each in enumerate(limits)]
    b.operator("STRIDED_SLICE", (x, *operands), (y,), "StridedSliceOptions")
    return b.finish(b.conv(y, 8))


def test_it_is_kept_where_it_pays_within_the_limits_on_products_and_work() -> None:
    options = Options(kernels="reference")
    model = reduced(1)
    macs, before = model_macs(model), instructions(model, options.profile)
    wide, none = (WorkLimit(before, extra, options.profile) for extra in (10.0, 0.0))
    cost, rules = cost_of(model, options.profile, options.search), (SKIPPING_CONVOLUTION,)
    found = simplified(model, cost, rules, options.profile, options.search, 10 * macs, wide)
    assert found is not None
    assert found[1].saved_bytes > 0
    assert [operator.name for operator in found[0].main.operators] == ["CONV_2D", "CONV_2D"]
    assert model_macs(found[0]) == macs + 3 * 16 * 32 * 8
    assert simplified(model, cost, rules, options.profile, options.search, macs, wide) is None
    assert simplified(model, cost, rules, options.profile, options.search, 10 * macs, none) is None
    plain = reduced(0)
    none = WorkLimit(instructions(plain, options.profile), 0.0, options.profile)
    cost = cost_of(plain, options.profile, options.search)
    assert simplified(plain, cost, rules, options.profile, options.search, model_macs(plain), none) is not None
    assert [operator.name for operator in plain.main.operators] == ["CONV_2D", "STRIDED_SLICE", "CONV_2D"]
