"""Concatenation + pool."""

from __future__ import annotations

import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
    rule_named,
)
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.operators.window import ALL_POOLS
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_POOLING = rule_named("split_pooling")


def pool(branch: Branch) -> None:
    pick = branch.random
    name = pick.choice(ALL_POOLS)
    x = branch.concat(F32 if name == "L2_POOL_2D" else pick.choice((F32, I8, I16)))
    taps = [pick.randint(1, size) for size in x.shape[1:3]]
    strides = [pick.randint(1, 2), pick.randint(1, 3)]
    padding = pick.choice((SAME, VALID))
    trims = [0 if padding == SAME else tap - 1 for tap in taps]
    size = [-(-(size - trim) // stride) for size, trim, stride in zip(x.shape[1:3], trims, strides, strict=True)]
    y = branch.tensor((x.shape[0], *size, x.shape[3]), x.dtype, **quantization_of(x))
    fields = {"padding": padding, "strideH": strides[0], "strideW": strides[1]}
    fields |= {"filterHeight": taps[0], "filterWidth": taps[1], "fusedActivationFunction": pick.choice((0, 1, 3))}
    branch.run(name, (x,), y, "Pool2DOptions", **fields)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_POOLING, pool, seed, 60)


def test_refusals() -> None:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (4, 4, count)) for count in (2, 3)], axis=2)
    y = b.tensor("y", (2, 2, 5))
    b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", strideH=2, strideW=2, filterHeight=2, filterWidth=2)
    assert_refused(b.finish(y), SPLIT_POOLING, "4 dimensions")


def test_structure() -> None:
    b = ModelBuilder()
    y = b.average_pool(b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 3)]), 2)
    model = b.finish(y)
    Driver(model).apply_everywhere((SPLIT_POOLING,))
    assert [op.name for op in model.main.operators] == ["AVERAGE_POOL_2D", "AVERAGE_POOL_2D", "CONCATENATION"]
    assert [op.outputs[0].shape[3] for op in model.main.operators] == [2, 3, 5]
