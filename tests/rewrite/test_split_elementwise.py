"""Concatenation + elementwise operator, with and without a second operand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    LITERT,
    TFLM,
    Branch,
    Pattern,
    assert_exact,
    assert_refused,
    quantization_of,
    rule_named,
)
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_ELEMENTWISE = rule_named("split_elementwise")

FLOATS = (
    *("ABS", "COS", "EXP", "FLOOR", "HARD_SWISH", "LEAKY_RELU", "LOG", "LOGISTIC", "NEG", "RELU", "RELU6"),
    *("RSQRT", "SIN", "SQRT", "SQUARE", "TANH"),
)
INT16 = ("ABS", "LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "TANH")
UNARY = (
    *((name, F32, F32) for name in FLOATS),
    *((name, I8, I8) for name in (*INT16, "HARD_SWISH")),
    *((name, I16, I16) for name in INT16),
    *(("QUANTIZE", a, b) for a, b in ((F32, I8), (F32, I16), (I8, I8), (I8, I16), (I16, I8), (I16, I16), (I32, I8))),
    *(("DEQUANTIZE", a, F32) for a in (I8, I16)),
    *(("CAST", a, b) for a, b in ((F32, I32), (I32, F32), (I8, I16), (I16, I8))),
)
ONLY_TFLM = (("CEIL", F32, F32), ("ROUND", F32, F32), ("ELU", F32, F32), ("ELU", I8, I8))
ONLY_LITERT = (
    *((name, a, a) for name in ("RELU_N1_TO_1", "RELU_0_TO_1", "GELU", "EXP", "LOG", "NEG") for a in (I8, F32)),
    *((name, I16, I16) for name in ("EXP", "LOG", "NEG", "GELU")),
    ("SIGN", F32, F32),
)
KINDS = {"LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}), "CAST": ("CastOptions", {}), "GELU": ("GeluOptions", {})}
ARITHMETIC = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
BINARY = (
    *((name, F32) for name in (*ARITHMETIC, "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE", "FLOOR_DIV")),
    *((name, I8) for name in (*ARITHMETIC, "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE")),
    *((name, I16) for name in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")),
    *((name, I32) for name in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")),
    *((name, a) for name in ("GREATER", "LESS_EQUAL", "NOT_EQUAL") for a in (F32, I8)),
)
LIMITS = tuple((name, dtype) for name in ("MAXIMUM", "MINIMUM") for dtype in (I8, I16))
ORDERED = ("DIV", "FLOOR_DIV", "PRELU")
COMPARISONS = ("GREATER", "LESS_EQUAL", "NOT_EQUAL")
LIKE_INPUT = ("MAXIMUM", "MINIMUM", "RELU_N1_TO_1", "RELU_0_TO_1", "NEG")


def unary(table: tuple[tuple[str, DType, DType], ...]) -> Pattern:
    def pattern(branch: Branch) -> None:
        name, taken, made = table[branch.number % len(table)]
        x = branch.concat(taken)
        kind, fields = KINDS.get(name, (None, {}))
        branch.run(
            name, (x,), branch.tensor(x.shape, made, **output_quantization(branch, name, made, x)), kind, **fields
        )

    return pattern


def output_quantization(branch: Branch, name: str, dtype: DType, x: Tensor) -> dict[str, Any]:
    """What the kernels demand."""
    fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
    if name in fixed and dtype is I8:
        return dict(zip(("scale", "zero_point"), fixed[name], strict=True))
    if name in fixed and dtype is I16:
        return {"scale": 1 / 32768, "zero_point": 0}
    if name in LIKE_INPUT:
        return quantization_of(x)
    return branch.quantization(dtype)


def binary(branch: Branch) -> None:
    name, dtype = BINARY[branch.number % len(BINARY)]
    x = branch.concat(dtype)
    kinds = CONSTANTS if name in ORDERED else (*CONSTANTS, itself, same_parts, vector, one_channel, convolved)
    other = branch.random.choice(kinds)(branch, x, name)
    swapped = name not in ORDERED and branch.random.random() < 0.5
    shape = np.broadcast_shapes(x.shape, other.shape)
    if name in COMPARISONS:
        y = branch.tensor(shape, DType.BOOL)
    else:
        y = branch.tensor(shape, dtype, **output_quantization(branch, name, dtype, x))
    kind = ARITHMETIC.get(name)
    fields = {"fusedActivationFunction": branch.random.choice((0, 1, 3))} if kind and dtype is not I32 else {}
    branch.run(name, (other, x) if swapped else (x, other), y, kind, **fields)


def limited(branch: Branch) -> None:
    """Integers and constant limits, one or several."""
    name, dtype = LIMITS[branch.number % len(LIMITS)]
    x = branch.concat(dtype)
    limit = branch.random.choice(CONSTANTS)(branch, x, name)
    made = branch.tensor(
        np.broadcast_shapes(x.shape, limit.shape), dtype, **output_quantization(branch, name, dtype, x)
    )
    branch.run(name, (x, limit), made, None)


Operand = Callable[[Branch, Tensor, str], Tensor]


def constant_of(shape_of: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Operand:
    """A constant of positive values, which can be divided by, quantized as the input where the kernels demand it."""

    def operand(branch: Branch, x: Tensor, name: str) -> Tensor:
        rng = np.random.default_rng(branch.random.getrandbits(32))
        shape = shape_of(x.shape)
        if x.dtype is F32:
            return branch.constant(rng.uniform(0.1, 2, shape).astype(np.float32))
        values = np.asarray(rng.integers(1, 127, shape)).astype(x.dtype.label)
        if x.dtype is I32:
            return branch.constant(values)
        return branch.constant(values, x.quantization if name in LIKE_INPUT else per_tensor(0.02, 0))

    return operand


CONSTANTS = tuple(
    constant_of(shape_of)
    for shape_of in (
        lambda _: (),
        lambda _: (1,),
        lambda _: (1, 1, 1, 1),
        lambda shape: (1, *shape[1:3], 1),
        lambda shape: shape[3:],
        lambda shape: (1, 1, shape[3]),
        lambda shape: (1, 1, 1, shape[3]),
        lambda shape: (1, *shape[1:]),
        lambda shape: shape,
    )
)


def itself(branch: Branch, x: Tensor, name: str) -> Tensor:
    return x


def same_parts(branch: Branch, x: Tensor, name: str) -> Tensor:
    assert x.producer is not None
    counts = [part.shape[3] for part in x.producer.present_inputs()]
    parts = [branch.input((*x.shape[:3], count), x.dtype, **quantization_of(x)) for count in counts]
    other = branch.tensor(x.shape, x.dtype, **quantization_of(x))
    branch.builder.operator("CONCATENATION", parts, (other,), "ConcatenationOptions", axis=3)
    return other


def vector(branch: Branch, x: Tensor, name: str) -> Tensor:
    shape = branch.random.choice(((1, 1, 1, x.shape[3]), (1, x.shape[3]), (x.shape[3],)))
    return branch.input(shape, x.dtype, **quantization_of(x))


def convolved(branch: Branch, x: Tensor, name: str) -> Tensor:
    """An image that a convolution writes for the operator alone."""
    if x.dtype not in (F32, I8):
        return vector(branch, x, name)
    rng = np.random.default_rng(branch.random.getrandbits(32))
    image = branch.input((*x.shape[:3], 2), x.dtype, **branch.quantization(x.dtype))
    shape = (x.shape[3], 1, 1, 2)
    bias = rng.integers(-90, 90, x.shape[3])
    if x.dtype is F32:
        constants = [branch.constant(each.astype(np.float32)) for each in (rng.normal(size=shape), bias)]
    else:
        scales = per_channel(rng.uniform(0.001, 0.01, x.shape[3]).astype(np.float32), 0)
        weights = branch.constant(rng.integers(-127, 128, shape).astype(np.int8), scales)
        constants = [weights, branch.constant(bias.astype(np.int32))]
    made = branch.tensor(x.shape, x.dtype, **quantization_of(x))
    branch.builder.operator("CONV_2D", (image, *constants), (made,), "Conv2DOptions", strideH=1, strideW=1)
    return made


def one_channel(branch: Branch, x: Tensor, name: str) -> Tensor:
    return branch.input((*x.shape[:3], 1), x.dtype, **quantization_of(x))


def test_unary_the_same_bits() -> None:
    assert_exact(SPLIT_ELEMENTWISE, unary(UNARY), 0, 2 * len(UNARY))


@pytest.mark.parametrize(("table", "runtime"), [(ONLY_TFLM, TFLM), (ONLY_LITERT, LITERT)])
def test_what_only_one_runtime_has(table: tuple[tuple[str, DType, DType], ...], runtime: str) -> None:
    assert_exact(SPLIT_ELEMENTWISE, unary(table), 0, 2 * len(table), (runtime,))


@pytest.mark.slow
def test_with_limits_the_same_bits() -> None:
    assert_exact(SPLIT_ELEMENTWISE, limited, 0, 100)


@pytest.mark.parametrize("seed", range(2))
def test_with_an_operand_the_same_bits(seed: int) -> None:
    assert_exact(SPLIT_ELEMENTWISE, binary, seed, 2 * len(BINARY))


def model_with(operand_of: Callable[[ModelBuilder], Tensor]) -> Model:
    """x = CONCATENATION of 2 + 3 channels, y = x * operand."""
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 3)])
    y = b.tensor("y", x.shape)
    b.operator("MUL", (operand_of(b), x), (y,), "MulOptions")
    return b.finish(y)


def test_a_vector_is_taken_apart_by_a_view() -> None:
    model = model_with(lambda b: b.input("s", (1, 1, 1, 5)))
    Driver(model).apply_everywhere((SPLIT_ELEMENTWISE,))
    assert dump_model(model) == (Path(__file__).parent / "golden_split_elementwise.txt").read_text()


def packed(b: ModelBuilder) -> Tensor:
    tensor = b.constant("packed", np.zeros((1, 1, 1, 5), np.int8), per_tensor(0.1, 0))
    tensor.dtype, tensor.buffer.data = DType.INT4, np.zeros(3, np.uint8)
    return tensor


def per_channel_constant(b: ModelBuilder) -> Tensor:
    return b.constant("scaled", np.ones((5,), np.int8), per_channel(np.ones(5, np.float32), 0))


def unlike_parts(b: ModelBuilder) -> Tensor:
    return b.concat([b.input(f"u{count}", (1, 4, 4, count)) for count in (1, 4)])


def test_a_convolution_that_others_need_is_left_whole() -> None:
    b = ModelBuilder()
    made = b.conv(b.input("image", (1, 4, 4, 2)), 5)
    joined = b.concat([b.input(f"x{count}", (1, 4, 4, count)) for count in (2, 3)])
    model = b.finish(b.add(joined, made), made)
    driver = Driver(model)
    driver.apply_everywhere((SPLIT_ELEMENTWISE,))
    reasons = [refused.reason for refused in driver.refused.values()]
    assert ["'conv0'" in each for each in reasons] == [True]


@pytest.mark.parametrize(
    ("operand", "name"),
    [
        (lambda b: b.input("image", (1, 4, 4, 5)), "image"),
        (lambda b: b.input("row", (1, 1, 4, 5)), "row"),
        (packed, "packed"),
        (per_channel_constant, "scaled"),
        (unlike_parts, "concat0"),
    ],
)
def test_an_operand_without_a_way_to_its_channels_is_refused(
    operand: Callable[[ModelBuilder], Tensor], name: str
) -> None:
    assert_refused(model_with(operand), SPLIT_ELEMENTWISE, f"'{name}'")
