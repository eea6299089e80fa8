"""Operators in the shape in which their values are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.one_shape import ONE_SHAPE


def mean(branch: Branch, x: Tensor, axes: Sequence[int], keeps: bool = False) -> Tensor:
    kept = [1 if at in axes else size for at, size in enumerate(x.shape)]
    shape = kept if keeps else [size for at, size in enumerate(x.shape) if at not in axes]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    kind = branch.random.choice(("MEAN", "REDUCE_MAX")) if x.dtype is F32 else "MEAN"
    branch.builder.operator(kind, (x, branch.ints(*axes)), (y,), "ReducerOptions", keepDims=keeps)
    return y


def unary(branch: Branch, x: Tensor, kind: str, options: str | None = None) -> Tensor:
    quantization = {"scale": 1 / 256, "zero_point": -128} if x.dtype is I8 and kind != "ADD" else quantization_of(x)
    y = branch.tensor(x.shape, x.dtype, **quantization)
    fields = {"beta": 1.0} if kind == "SOFTMAX" else {}
    branch.builder.operator(kind, (x, x) if kind == "ADD" else (x,), (y,), options, **fields)
    return y


def read(branch: Branch, x: Tensor, shape: Sequence[int]) -> None:
    """A RESHAPE, and a sum that is returned."""
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(*shape)), (y,), "ReshapeOptions")
    z = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.run("ADD", (y, y), z, "AddOptions")


def norm(branch: Branch) -> None:
    """A reduction that loses dimensions, with operators behind it, which are read with them."""
    pick, dtype = branch.random, branch.random.choice((F32, I8))
    shape = [pick.choice((1, 1, 2)), *(pick.randint(2, 5) for _ in range(2))]
    axis = pick.choice((1, 2))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    made, wanted = mean(branch, x, [axis]), [1 if at == axis else size for at, size in enumerate(shape)]
    if pick.random() < 0.4:
        read(branch, made, wanted)
    for _ in range(pick.randint(0, 2)):
        made = unary(branch, made, *pick.choice((("LOGISTIC",), ("ADD", "AddOptions"))))
    read(branch, made, wanted)


def between(branch: Branch) -> None:
    """A SOFTMAX or another operator between two reshapes."""
    pick, dtype = branch.random, branch.random.choice((F32, I8))
    heads, rows, columns = (pick.randint(2, 4) for _ in range(3))
    outer, inner = (heads, rows, columns), (1, heads, rows, columns)
    if pick.random() < 0.5:
        outer, inner = inner, outer  # type: ignore[assignment]
    x = branch.input(outer, dtype, **branch.quantization(dtype))
    y = branch.tensor(inner, dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(*inner)), (y,), "ReshapeOptions")
    for _ in range(pick.randint(1, 2)):
        y = unary(branch, y, *pick.choice((("LOGISTIC",), ("SOFTMAX", "SoftmaxOptions"))))
    read(branch, y, outer)


@pytest.mark.few(1)
@pytest.mark.parametrize("pattern", [norm, between])
def test_the_same_bits(pattern: object) -> None:
    assert_exact(ONE_SHAPE, pattern, 4, 100)  # type: ignore[arg-type]


def model(shape: tuple[int, ...], axes: tuple[int, ...], wanted: tuple[int, ...], how: str = "") -> Model:
    """A reduction, a sum, and a RESHAPE of it; ``how``: another reader of the sum, or a scale that is another one."""
    b = ModelBuilder()
    x, kept = b.input("x", shape), tuple(size for at, size in enumerate(shape) if at not in axes)
    y = b.tensor("mean", kept)
    b.operator("MEAN", (x, b.constant("axes", np.asarray(axes, np.int32))), (y,), "ReducerOptions", keepDims=False)
    y = b.add(y, y)
    z = b.tensor("shaped", wanted, scale=0.1 if how == "scaled" else 0.05)
    b.operator("RESHAPE", (y, b.constant("shape", np.asarray(wanted, np.int32))), (z,), "ReshapeOptions")
    other = b.tensor("softmax", kept, scale=1 / 256, zero_point=-128)
    if how == "read":
        b.operator("MAX_POOL_2D" if len(kept) == 4 else "CUMSUM", (y,), (other,))
    return b.finish(*((z,) if how == "returned" else (b.add(z, z),)), *((y,) if how == "is an output" else ()))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (model((1, 6, 8), (2,), (1, 6, 1), "scaled"), "'shaped'"),
        (model((1, 6, 8), (2,), (1, 6, 1), "read"), "read in its shape"),
        (model((1, 6, 8), (2,), (6, 1, 1)), "made in its shape"),
        (model((1, 4, 4, 8), (1, 2), (1, 1, 1, 8)), "made in its shape"),
    ],
)
def test_it_is_refused(found: Model, said: str) -> None:
    assert_refused(found, ONE_SHAPE, said)


def test_what_is_returned_keeps_its_shape() -> None:
    for how in ("returned", "is an output"):
        assert refusals(model((1, 6, 8), (2,), (1, 6, 1), how), ONE_SHAPE) == []


def test_no_reshape_is_left() -> None:
    found = model((1, 6, 8), (2,), (1, 6, 1))
    driver = Driver(found)
    driver.apply_everywhere((ONE_SHAPE,))
    assert [operator.name for operator in found.main.operators] == ["MEAN", "ADD", "ADD"]
