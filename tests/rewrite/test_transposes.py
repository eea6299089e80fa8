"""Transposes that meet across reshapes, and operators that read what is behind a transpose."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.stage import clean_up
from tflite_memopt.search.rewrite.transposes import CONSECUTIVE_TRANSPOSES, LOWERED_TRANSPOSE, origin_of


def turned(branch: Branch, x: Tensor, order: Any) -> Tensor:
    y = branch.tensor([x.shape[axis] for axis in order], x.dtype, **quantization_of(x))
    branch.builder.operator("TRANSPOSE", (x, branch.ints(*order)), (y,), "TransposeOptions")
    return y


def shaped(branch: Branch, x: Tensor, shape: Any) -> Tensor:
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(*shape)), (y,), "ReshapeOptions")
    return y


def relu(branch: Branch, x: Tensor) -> None:
    branch.run("RELU", (x,), branch.tensor(x.shape, x.dtype, **quantization_of(x)))


def image(branch: Branch, *types: DType) -> Tensor:
    pick = branch.random
    dtype = pick.choice(types or (F32, I8, I16))
    shape = (1, pick.choice((1, pick.randint(2, 4))), pick.randint(2, 5), pick.randint(2, 5))
    return branch.input(shape, dtype, **branch.quantization(dtype))


def undone(branch: Branch) -> None:
    """Channels first, the two dimensions of the image made one, and channels last again."""
    x = image(branch)
    _, height, width, channels = x.shape
    flat = shaped(branch, turned(branch, x, (0, 3, 1, 2)), (1, channels, height * width))
    relu(branch, turned(branch, flat, (0, 2, 1)))


def joined(branch: Branch) -> None:
    """Two transposes that together are another one."""
    x = image(branch)
    orders = [branch.random.sample(range(4), 4) for _ in range(2)]
    while _keeps(x.shape, orders[0]) or _keeps([x.shape[axis] for axis in orders[0]], orders[1]):
        orders = [branch.random.sample(range(4), 4) for _ in range(2)]
    relu(branch, turned(branch, turned(branch, x, orders[0]), orders[1]))


def _keeps(shape: Any, order: Any) -> bool:
    long = [axis for axis in order if shape[axis] > 1]
    return long == sorted(long)


@pytest.mark.parametrize("pattern", [undone, joined])
def test_consecutive_transposes_give_the_same_bits(pattern: Any) -> None:
    assert_exact(CONSECUTIVE_TRANSPOSES, pattern, 3, 40)


def sequence(branch: Branch, *types: DType) -> tuple[Tensor, Tensor]:
    """(1, 1, L, C) and its transpose of three dimensions, (1, C, L)."""
    pick = branch.random
    dtype = pick.choice(types or (F32, I8))
    x = branch.input((1, 1, pick.randint(3, 7), pick.randint(2, 5)), dtype, **branch.quantization(dtype))
    first = turned(branch, x, (0, 3, 1, 2))
    return x, shaped(branch, first, (1, x.shape[3], x.shape[2]))


def constant(branch: Branch, shape: Any, dtype: DType) -> Tensor:
    like = branch.tensor((1,), dtype, **branch.quantization(dtype))
    return branch.constant(branch.values(shape, dtype), like.quantization)


def scaled(branch: Branch) -> None:
    """A constant for each channel, for each step, or for each element, on either side."""
    _, y = sequence(branch)
    _, channels, steps = y.shape
    shape = branch.random.choice(((channels, 1), (1, channels, 1), (1, 1, steps), (channels, steps), (1,)))
    operands = [y, constant(branch, shape, y.dtype)]
    branch.random.shuffle(operands)
    name = branch.random.choice(("ADD", "MUL", "SUB"))
    kind = f"{name.capitalize()}Options"
    branch.run(name, operands, branch.tensor(y.shape, y.dtype, **branch.quantization(y.dtype)), kind)


def added(branch: Branch) -> None:
    """The sum of two that are transposed likewise."""
    x, y = sequence(branch)
    other = branch.input(x.shape, x.dtype, **branch.quantization(x.dtype))
    z = shaped(branch, turned(branch, other, (0, 3, 1, 2)), y.shape)
    branch.run("ADD", (y, z), branch.tensor(y.shape, y.dtype, **branch.quantization(y.dtype)), "AddOptions")


def gated(branch: Branch) -> None:
    """A computed value for each channel, or for each step, on either side."""
    _, y = sequence(branch)
    shape = branch.random.choice(((1, y.shape[1], 1), (1, 1, y.shape[2]), (1, 1, 1)))
    gate = branch.input(shape, y.dtype, **branch.quantization(y.dtype))
    operands = [y, gate]
    branch.random.shuffle(operands)
    branch.run("MUL", operands, branch.tensor(y.shape, y.dtype, **branch.quantization(y.dtype)), "MulOptions")


def squeezed(branch: Branch) -> None:
    """A mean that keeps dimensions and leaves the others in the order of the source."""
    pick = branch.random
    x = branch.input((1, pick.randint(2, 5), pick.randint(2, 5), pick.randint(2, 4)), I8, **branch.quantization(I8))
    y = turned(branch, x, (0, 3, 1, 2))
    axes = pick.choice(((2, 3), (1,), (1, 3), (1, 2, 3)))
    z = branch.tensor([1 if at in axes else size for at, size in enumerate(y.shape)], I8, **branch.quantization(I8))
    branch.run("MEAN", (y, branch.ints(*axes)), z, "ReducerOptions", keepDims=True)


def padded(branch: Branch) -> None:
    _, y = sequence(branch)
    pairs = np.asarray([[0, 0], *([branch.random.randint(0, 2) for _ in "ab"] for _ in range(2))], np.int32)
    shape = [size + int(pair.sum()) for size, pair in zip(y.shape, pairs, strict=True)]
    branch.run("PAD", (y, branch.constant(pairs)), branch.tensor(shape, y.dtype, **quantization_of(y)), "PadOptions")


def cut(branch: Branch) -> None:
    _, y = sequence(branch)
    first = [branch.random.randint(0, size - 1) for size in y.shape]
    count = [branch.random.randint(1, size - at) for at, size in zip(first, y.shape, strict=True)]
    z = branch.tensor(count, y.dtype, **quantization_of(y))
    branch.run("SLICE", (y, branch.ints(*first), branch.ints(*count)), z, "SliceOptions")


def concatenated(branch: Branch) -> None:
    x, y = sequence(branch)
    axis = branch.random.choice((1, 2))
    shape = list(x.shape)
    shape[3 if axis == 1 else 2] += 1
    other = branch.input(shape, x.dtype, **quantization_of(x))
    z = shaped(branch, turned(branch, other, (0, 3, 1, 2)), (1, shape[3], shape[2]))
    made = list(y.shape)
    made[axis] += z.shape[axis]
    result = branch.tensor(made, y.dtype, **quantization_of(y))
    branch.run("CONCATENATION", (y, z), result, "ConcatenationOptions", axis=axis)


def pooled(branch: Branch) -> None:
    """A mean over the steps, of which the dimension of 1 in the source is taken along or not."""
    _, y = sequence(branch)
    z = branch.tensor((1, y.shape[1]), y.dtype, **quantization_of(y))
    branch.run("MEAN", (y, branch.ints(2)), z, "ReducerOptions", keepDims=False)


@pytest.mark.parametrize("pattern", [scaled, added, gated, squeezed, padded, cut, concatenated, pooled])
def test_lowered_transposes_give_the_same_bits(pattern: Any) -> None:
    assert_exact(LOWERED_TRANSPOSE, pattern, 5, 25)


def causal(b: ModelBuilder, x: Tensor) -> Tensor:
    """Channels first around a PAD of the steps, as converters write it for a causal convolution of PyTorch."""
    first = b.tensor(f"first{len(b.graph.operators)}", (1, x.shape[3], 1, x.shape[2]), x.dtype)
    b.operator("TRANSPOSE", (x, b.constant("", np.asarray((0, 3, 1, 2), np.int32))), (first,), "TransposeOptions")
    flat = b.reshape(first, (1, x.shape[3], x.shape[2]))
    wide = b.tensor(f"wide{len(b.graph.operators)}", (1, x.shape[3], x.shape[2] + 2), x.dtype)
    amounts = b.constant("", np.asarray([[0, 0], [0, 0], [2, 0]], np.int32))
    b.operator("PAD", (flat, amounts), (wide,), "PadOptions")
    again = b.reshape(wide, (1, x.shape[3], 1, wide.shape[2]))
    last = b.tensor(f"last{len(b.graph.operators)}", (1, 1, wide.shape[2], x.shape[3]), x.dtype)
    b.operator("TRANSPOSE", (again, b.constant("", np.asarray((0, 2, 3, 1), np.int32))), (last,), "TransposeOptions")
    return last


def test_the_transposes_around_a_causal_convolution_go() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 1, 8, 4))
    model = b.finish(b.conv(causal(b, b.conv(causal(b, x), 4, kernel=1)), 4, kernel=1))
    original = write_model(model)
    clean_up(model, profile_named("portable"))
    assert [operator.name for operator in model.main.operators] == ["PAD", "CONV_2D", "PAD", "CONV_2D"]
    assert prove(read_model(original), read_model(write_model(model))).status is Status.PROVED


def test_a_transpose_that_would_only_move_stays_where_it_is() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3))
    y = b.tensor("y", (1, 3, 4, 4))
    b.operator("TRANSPOSE", (x, b.constant("order", np.asarray((0, 3, 1, 2), np.int32))), (y,), "TransposeOptions")
    model = b.finish(b.add(y, y))
    clean_up(model, profile_named("portable"))
    assert [operator.name for operator in model.main.operators] == ["TRANSPOSE", "ADD"]


def behind(name: str, *operands: Any, shape: Any = (1, 3, 4, 4), dtype: DType = I8, **fields: Any) -> Model:
    """An operator behind a transpose to channels first."""
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 3), dtype)
    y = b.tensor("y", (1, 3, 4, 4), dtype)
    b.operator("TRANSPOSE", (x, b.constant("order", np.asarray((0, 3, 1, 2), np.int32))), (y,), "TransposeOptions")
    given = [
        b.input("other", each) if isinstance(each, tuple) else b.constant("", np.asarray(each)) for each in operands
    ]
    z = b.tensor("z", shape, dtype)
    kind = {"MEAN": "ReducerOptions", "CONCATENATION": "ConcatenationOptions"}.get(name)
    b.operator(name, (y, *given), (z,), kind, **fields)
    return b.finish(z)


INTS = np.int32


@pytest.mark.parametrize("rank", range(6))
def test_a_constant_of_one_element_has_no_more_dimensions_than_the_source(rank: int) -> None:
    branch = Branch(ModelBuilder(), Random(1), 0)
    x = branch.input((1, 2, 3, 4), F32)
    first = turned(branch, x, (0, 3, 1, 2))
    wide = shaped(branch, first, (1, 4, 2, 1, 3))
    total = branch.tensor(wide.shape, F32)
    one = branch.constant(np.full((1,) * rank, 2, np.float32))
    branch.builder.operator("ADD", (wide, one), (total,), "AddOptions")
    last = turned(branch, shaped(branch, total, first.shape), (0, 2, 3, 1))
    relu(branch, last)
    data = write_model(branch.builder.finish(*branch.outputs))
    model = read_model(data)
    clean_up(model, profile_named("portable"))
    result = read_model(write_model(model))
    assert [operator.name for operator in result.main.operators] == ["ADD", "RELU"]
    assert len(result.main.operators[0].required(1).shape) == min(rank, 4)
    assert prove(read_model(data), result).status is Status.PROVED


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (behind("ADD", (1, 3, 4, 4)), "'other' is not transposed likewise"),
        (behind("ADD", np.zeros((2, 3, 4, 4), np.int8), shape=(2, 3, 4, 4)), "makes the output larger"),
        (behind("PAD", np.asarray([[1, 0], *[[0, 0]] * 3], INTS), shape=(2, 3, 4, 4)), "it pads a dimension of one"),
        (behind("MEAN", np.asarray([1, 2], INTS), shape=(1, 1, 1, 4), keepDims=True), "a sum of their own"),
        (behind("MEAN", np.asarray([2, 3], INTS), shape=(1, 3), dtype=F32), "floats would be added in another order"),
        (behind("MEAN", np.asarray([2], INTS), shape=(1, 3, 4)), "its output is transposed"),
        (
            behind("CONCATENATION", (1, 3, 4, 4), shape=(2, 3, 4, 4), axis=0),
            "it joins along a dimension of one element",
        ),
        (behind("CONCATENATION", (1, 3, 4, 4), shape=(1, 6, 4, 4), axis=1), "its inputs are not transposed likewise"),
    ],
)
def test_refusals(model: Model, reason: str) -> None:
    (found,) = refusals(model, LOWERED_TRANSPOSE)
    assert reason in found


def test_a_transpose_between_that_others_read_is_not_joined() -> None:
    b = ModelBuilder()
    branch = Branch(b, Random(1), 0)
    x = branch.input((1, 2, 3, 4), I8)
    between = turned(branch, x, (0, 3, 1, 2))
    relu(branch, between)
    relu(branch, turned(branch, between, (0, 3, 1, 2)))
    assert_refused(b.finish(*branch.outputs), CONSECUTIVE_TRANSPOSES, "others")


def test_a_reshape_that_cuts_through_a_dimension_ends_the_search() -> None:
    b = ModelBuilder()
    branch = Branch(b, Random(1), 0)
    x = branch.input((1, 6, 5, 4), I8)
    first = turned(branch, x, (0, 3, 1, 2))
    halves = shaped(branch, first, (1, 8, 3, 5))
    last = turned(branch, halves, (0, 2, 1, 3))
    found = origin_of(last)
    assert found is not None
    assert found.source is halves
    assert prod(halves.shape) == prod(x.shape)
    Driver(b.finish(last)).apply_everywhere((CONSECUTIVE_TRANSPOSES,))
    assert len(b.graph.operators) == 3
