"""Concatenation + resize, or a reduction over height and width."""

from __future__ import annotations

import numpy as np
import pytest

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
    rule_named,
)
from tflite_memopt.model.ir.model import Model
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_SPATIAL = rule_named("split_spatial")


def resize(branch: Branch) -> None:
    pick = branch.random
    name = pick.choice(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    x = branch.concat(pick.choice((F32, I8) if name == "RESIZE_BILINEAR" else (F32, I8, I16)))
    size = (pick.randint(1, 9), pick.randint(1, 9))
    y = branch.tensor((x.shape[0], *size, x.shape[3]), x.dtype, **quantization_of(x))
    centers, corners = pick.choice(((False, False), (True, False), (False, True)))
    kind = "ResizeBilinearOptions" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    branch.run(name, (x, branch.ints(*size)), y, kind, halfPixelCenters=centers, alignCorners=corners)


def reduction(branch: Branch) -> None:
    pick = branch.random
    name = pick.choice(("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"))
    x = branch.concat(pick.choice((F32, I8, I16) if name == "MEAN" else (F32, I8)))
    axes = pick.choice(((1, 2), (1, 2), (2, 1), (-3, -2), (1,), (2,), (0, 1, 2)))
    keep = pick.random() < 0.5
    reduced = {axis % 4 for axis in axes}
    shape = [1 if axis in reduced else size for axis, size in enumerate(x.shape) if keep or axis not in reduced]
    same = name.startswith("REDUCE") or pick.random() < 0.3
    y = branch.tensor(shape, x.dtype, **(quantization_of(x) if same else branch.quantization(x.dtype)))
    branch.run(name, (x, branch.constant(np.asarray(axes, np.int32))), y, "ReducerOptions", keepDims=keep)


def product(branch: Branch) -> None:
    x = branch.concat(branch.random.choice((F32, I8)))
    y = branch.tensor((x.shape[0], 1, 1, x.shape[3]), x.dtype, **branch.quantization(x.dtype))
    branch.run("REDUCE_PROD", (x, branch.ints(1, 2)), y, "ReducerOptions", keepDims=True)


@pytest.mark.parametrize("seed", range(2))
def test_resizes_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_SPATIAL, resize, seed, 50)


@pytest.mark.parametrize("seed", range(2))
def test_reductions_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_SPATIAL, reduction, seed, 60, (LITERT, TFLM))


def test_products_the_same_bits() -> None:
    assert_exact(SPLIT_SPATIAL, product, 0, 10, (LITERT,))


def reduced(axes: tuple[int, ...] | None, shape: tuple[int, ...]) -> Model:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 3)])
    y = b.tensor("y", shape)
    operand = b.input("axes", (2,), I32) if axes is None else b.constant("axes", np.asarray(axes, np.int32))
    b.operator("MEAN", (x, operand), (y,), "ReducerOptions", keepDims=True)
    return b.finish(y)


def test_refusals() -> None:
    assert_refused(reduced((1, -1), (1, 1, 4, 5)), SPLIT_SPATIAL, "channels")
    assert_refused(reduced(None, (1, 1, 1, 5)), SPLIT_SPATIAL, "axes")
    other = "its output has other channels than the concatenation"
    assert refusals(reduced((1, -1), (1, 1, 4, 1)), SPLIT_SPATIAL) == [other]


def test_structure() -> None:
    model = reduced((1, 2), (1, 1, 1, 5))
    Driver(model).apply_everywhere((SPLIT_SPATIAL,))
    assert [op.name for op in model.main.operators] == ["MEAN", "MEAN", "CONCATENATION"]
    assert [op.outputs[0].shape for op in model.main.operators] == [(1, 1, 1, 2), (1, 1, 1, 3), (1, 1, 1, 5)]
