"""Concatenation + pool."""

from __future__ import annotations

import pytest

from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, quantization_of
from tflite_memopt.ir.builder import SAME, VALID
from tflite_memopt.rewrite.rules.split_pooling import SPLIT_POOLING


def pool(branch: Branch) -> None:
    pick = branch.random
    name = pick.choice(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"))
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


@pytest.mark.parametrize("seed", range(2))
def test_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_POOLING, pool, seed, 100)
