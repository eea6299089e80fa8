"""The facts that proofs lean on, on LiteRT and TFLM: two models that differ by one fact compute the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import ARENA, F32, I8, LITERT, TFLM
from tests.tflm import run_models
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.editor import SAME, VALID
from tflite_memopt.ir.model import DType, Model, Tensor
from tflite_memopt.ir.tensors import per_tensor
from tflite_memopt.proof import FACTS, Status, facts, prove

Array = np.ndarray[Any, Any]


def quantized(dtype: DType) -> dict[str, Any]:
    return {"scale": 0.05, "zero_point": -5} if dtype is I8 else {}


def weights_of(shape: tuple[int, ...], dtype: DType, seed: int = 0) -> Array:
    draw = np.random.default_rng(seed)
    return (
        draw.integers(-127, 128, shape).astype(np.int8) if dtype is I8 else draw.normal(size=shape).astype(np.float32)
    )


def convolved(b: ModelBuilder, x: Tensor, weights: Array, padding: int, **fields: Any) -> Tensor:
    """A convolution whose scales are per channel, or per tensor where ``alike`` says how many."""
    dtype, count = x.dtype, weights.shape[0]
    alike, stride = fields.pop("alike", None), fields.pop("stride", 1)
    scales = np.full(alike or count, 0.002, np.float32) if alike else np.linspace(0.001, 0.003, count, dtype=np.float32)
    quantization = per_channel(scales, 0) if dtype is I8 else None
    filters = b.constant(f"w{len(b.graph.tensors)}", weights, quantization)
    bias = b.constant(f"b{len(b.graph.tensors)}", np.arange(count).astype(np.int32 if dtype is I8 else np.float32))
    trim = 0 if padding == SAME else weights.shape[1] - 1
    shape = (x.shape[0], *(-(-(size - trim) // stride) for size in x.shape[1:3]), count)
    y = b.tensor(f"y{len(b.graph.tensors)}", shape, dtype, **quantized(dtype))
    b.operator(
        "CONV_2D", (x, filters, bias), (y,), "Conv2DOptions", padding=padding, strideH=stride, strideW=stride, **fields
    )
    return y


def image(b: ModelBuilder, dtype: DType) -> Tensor:
    return b.input("x", (1, 6, 6, 3), dtype, **quantized(dtype))


def padding(dtype: DType) -> tuple[Model, Model]:
    weights, (one, other) = weights_of((4, 3, 3, 3), dtype), (ModelBuilder(), ModelBuilder())
    x = image(other, dtype)
    padded = other.tensor("padded", (1, 8, 8, 3), dtype, **quantized(dtype))
    amounts = other.constant("amounts", np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    other.operator("PAD", (x, amounts), (padded,), "PadOptions")
    return one.finish(convolved(one, image(one, dtype), weights, SAME)), other.finish(
        convolved(other, padded, weights, VALID)
    )


def zero_taps(dtype: DType) -> tuple[Model, Model]:
    """A window of 1x1, and one of 3x3 whose other taps are zero."""
    weights, (one, other) = weights_of((4, 1, 1, 3), dtype), (ModelBuilder(), ModelBuilder())
    wide = np.zeros((4, 3, 3, 3), weights.dtype)
    wide[:, 1:2, 1:2] = weights
    return one.finish(convolved(one, image(one, dtype), weights, SAME)), other.finish(
        convolved(other, image(other, dtype), wide, SAME)
    )


def equal_scales(dtype: DType) -> tuple[Model, Model]:
    weights, (one, other) = weights_of((4, 3, 3, 3), dtype), (ModelBuilder(), ModelBuilder())
    return one.finish(convolved(one, image(one, dtype), weights, SAME, alike=1)), other.finish(
        convolved(other, image(other, dtype), weights, SAME, alike=4)
    )


def window_of_one(dtype: DType) -> tuple[Model, Model]:
    """Behind a convolution, so that a float is never -0."""
    weights, (one, other) = weights_of((4, 3, 3, 3), dtype), (ModelBuilder(), ModelBuilder())
    ends = []
    for b in (one, other):
        y = convolved(b, image(b, dtype), weights, SAME)
        cut = b.tensor("cut", (1, 3, 3, 4), dtype, **quantized(dtype))
        if b is one:
            b.operator("AVERAGE_POOL_2D", (y,), (cut,), "Pool2DOptions", **_pool(2), padding=VALID)
        else:
            operands = [[0, 0, 0, 0], [1, 6, 6, 4], [1, 2, 2, 1]]
            tensors = (b.constant(f"o{at}", np.asarray(v, np.int32)) for at, v in enumerate(operands))
            b.operator("STRIDED_SLICE", (y, *tensors), (cut,), "StridedSliceOptions")
        ends.append(b.finish(cut))
    return ends[0], ends[1]


def _pool(stride: int) -> dict[str, int]:
    return {"filterHeight": 1, "filterWidth": 1, "strideH": stride, "strideW": stride}


def same_quantization(dtype: DType) -> tuple[Model, Model]:
    one, other = ModelBuilder(), ModelBuilder()
    y = one.tensor("y", (1, 6, 6, 3), I8, **quantized(I8))
    one.operator("QUANTIZE", (image(one, I8),), (y,), "QuantizeOptions")
    z = other.tensor("y", (1, 6, 6, 3), I8, **quantized(I8))
    shape = other.constant("shape", np.asarray([1, 6, 6, 3], np.int32))
    other.operator("RESHAPE", (image(other, I8), shape), (z,), "ReshapeOptions")
    del dtype
    return one.finish(y), other.finish(z)


def dense_pixel(dtype: DType) -> tuple[Model, Model]:
    weights, (one, other) = weights_of((5, 1, 1, 3), F32), (ModelBuilder(), ModelBuilder())
    x = image(other, F32)
    y = other.tensor("y", (1, 6, 6, 5), F32)
    bias = other.constant("b", np.arange(5, dtype=np.float32))
    operands = (x, other.constant("w", weights.reshape(5, 3)), bias)
    other.operator("FULLY_CONNECTED", operands, (y,), "FullyConnectedOptions", keepNumDims=True)
    del dtype
    return one.finish(convolved(one, image(one, F32), weights, SAME)), other.finish(y)


def never_minus_zero(dtype: DType) -> tuple[Model, Model]:
    """A bias behind a sum without one, some of it zero."""
    weights, bias = weights_of((5, 1, 1, 3), F32), np.asarray([0, 1, 0, -2, 3], np.float32)
    ends = []
    for is_apart in (False, True):
        b = ModelBuilder()
        x, y = image(b, F32), b.tensor("y", (1, 6, 6, 5), F32)
        zeros = b.constant("b", np.zeros(5, np.float32) if is_apart else bias)
        b.operator("CONV_2D", (x, b.constant("w", weights), zeros), (y,), "Conv2DOptions", strideH=1, strideW=1)
        if is_apart:
            z = b.tensor("z", (1, 6, 6, 5), F32)
            b.operator("ADD", (y, b.constant("c", bias)), (z,), "AddOptions")
            y = z
        ends.append(b.finish(y))
    del dtype
    return ends[0], ends[1]


def same_either_way(dtype: DType) -> tuple[Model, Model]:
    ends = []
    for is_apart in (False, True):
        b = ModelBuilder()
        x = image(b, dtype)
        condition = b.tensor("condition", x.shape, DType.BOOL)
        b.operator("GREATER", (x, x), (condition,), "GreaterOptions")
        y = b.tensor("y", x.shape, dtype, **quantized(dtype))
        if is_apart:
            b.operator("SELECT_V2", (condition, x, x), (y,), "SelectV2Options")
        else:
            shape = b.constant("shape", np.asarray(x.shape, np.int32))
            b.operator("RESHAPE", (x, shape), (y,), "ReshapeOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def unordered(dtype: DType) -> tuple[Model, Model]:
    """A maximum over rows and columns, and of the columns turned round."""
    ends = []
    for is_turned in (False, True):
        b = ModelBuilder()
        x = image(b, dtype)
        if is_turned:
            turned = b.tensor("turned", x.shape, dtype, **quantized(dtype))
            b.operator(
                "TRANSPOSE", (x, b.constant("p", np.asarray([0, 2, 1, 3], np.int32))), (turned,), "TransposeOptions"
            )
            x = turned
        y = b.tensor("y", (1, 3), dtype, **quantized(dtype))
        b.operator("REDUCE_MAX", (x, b.constant("a", np.asarray([1, 2], np.int32))), (y,), "ReducerOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def sum_of_integers(dtype: DType) -> tuple[Model, Model]:
    """A dense layer, and one whose inputs and weights are in another order."""
    order, weights = np.asarray([2, 0, 1]), weights_of((5, 3), I8)
    ends = []
    for is_turned in (False, True):
        b = ModelBuilder()
        x = b.input("x", (1, 3), I8, **quantized(I8))
        if is_turned:
            turned = b.tensor("turned", (1, 3), I8, **quantized(I8))
            picks = b.constant("p", order.astype(np.int32))
            b.operator("GATHER", (x, picks), (turned,), "GatherOptions", axis=1)
            x = turned
        y = b.tensor("y", (1, 5), I8, **quantized(I8))
        filters = b.constant("w", weights[:, order] if is_turned else weights, per_tensor(0.01, 0))
        b.operator("FULLY_CONNECTED", (x, filters, None), (y,), "FullyConnectedOptions")
        ends.append(b.finish(y))
    del dtype
    return ends[0], ends[1]


def integer_arithmetic(dtype: DType) -> tuple[Model, Model]:
    """Ten where x is negative, added at once and in two steps."""
    ends = []
    for steps in ((10,), (4, 6)):
        b = ModelBuilder()
        y = x = b.input("x", (1, 6), DType.INT32)
        is_negative, number = b.tensor("negative", x.shape, DType.BOOL), b.tensor("number", x.shape, DType.INT32)
        b.operator("LESS", (x, b.constant("zero", np.zeros((), np.int32))), (is_negative,))
        b.operator("CAST", (is_negative,), (number,), "CastOptions", inDataType=6, outDataType=2)
        for step in steps:
            times, total = (b.tensor(f"{name}{step}", x.shape, DType.INT32) for name in ("times", "total"))
            b.operator("MUL", (number, b.constant(f"by{step}", np.full((), step, np.int32))), (times,), "MulOptions")
            b.operator("ADD", (y, times), (total,), "AddOptions")
            y = total
        ends.append(b.finish(y))
    del dtype
    return ends[0], ends[1]


def wider_float(dtype: DType) -> tuple[Model, Model]:
    numbers, ends = np.linspace(-1, 1, 6, dtype=np.float16).reshape(1, 6), []
    for is_narrow in (False, True):
        b = ModelBuilder()
        x, y = b.input("x", (1, 6), F32), b.tensor("y", (1, 6), F32)
        held = b.constant("w", numbers if is_narrow else numbers.astype(np.float32))
        if is_narrow:
            wide = b.tensor("wide", held.shape, F32)
            b.operator("DEQUANTIZE", (held,), (wide,)).opcode.version = 3
            held = wide
        b.operator("MUL", (x, held), (y,), "MulOptions")
        ends.append(b.finish(y))
    del dtype
    return ends[0], ends[1]


def dense_of_zeros(dtype: DType) -> tuple[Model, Model]:
    """A dense layer, alone and with what another one makes of zeros added."""
    ends = []
    for is_added in (False, True):
        b = ModelBuilder()
        parts = [b.tensor(f"y{at}", (1, 5), F32) for at in range(3)]
        sources = b.input("x", (1, 3), F32), b.constant("zeros", np.zeros((1, 3), np.float32))
        for source, part in zip(sources, parts[: 1 + is_added], strict=False):
            filters = b.constant(f"w_{part.name}", weights_of((5, 3), F32))
            b.operator("FULLY_CONNECTED", (source, filters, None), (part,), "FullyConnectedOptions")
        if is_added:
            b.operator("ADD", parts[:2], (parts[2],), "AddOptions")
        ends.append(b.finish(parts[2 * is_added]))
    del dtype
    return ends[0], ends[1]


def either_way_round(dtype: DType) -> tuple[Model, Model]:
    ends = []
    for name in ("ab", "ba"):
        b = ModelBuilder()
        sides = {each: b.input(each, (1, 6), F32) for each in "ab"}
        product = b.tensor("y", (1, 6), F32)
        b.operator("MUL", [sides[each] for each in name], (product,), "MulOptions")
        ends.append(b.finish(product))
    del dtype
    return ends[0], ends[1]


CASES: dict[str, tuple[Callable[[DType], tuple[Model, Model]], ...]] = {
    facts.WINDOW: (padding,),
    facts.ZERO_TAP: (padding, zero_taps),
    facts.EQUAL_SCALES: (equal_scales,),
    facts.WINDOW_OF_ONE: (window_of_one,),
    facts.SAME_QUANTIZATION: (same_quantization,),
    facts.DENSE_PIXEL: (dense_pixel,),
    facts.NEVER_MINUS_ZERO: (never_minus_zero, dense_of_zeros),
    facts.EITHER_WAY_ROUND: (either_way_round,),
    facts.SAME_EITHER_WAY: (same_either_way,),
    facts.UNORDERED: (unordered,),
    facts.SUM_OF_INTEGERS: (sum_of_integers,),
    facts.INTEGER_ARITHMETIC: (integer_arithmetic,),
    facts.WIDER_FLOAT: (wider_float,),
}
FLOATS_TOO = (padding, window_of_one, same_either_way)


def test_every_fact_has_a_case() -> None:
    assert set(CASES) == set(FACTS)


@pytest.mark.parametrize(
    ("fact", "make", "dtype"),
    [
        (fact, make, dtype)
        for fact, makes in CASES.items()
        for make in makes
        for dtype in ((I8, F32) if make in FLOATS_TOO else (I8,))
    ],
)
def test_kernels_keep_to_the_fact(fact: str, make: Callable[[DType], tuple[Model, Model]], dtype: DType) -> None:
    models = dict(zip(("one", "other"), make(dtype), strict=True))
    proof = prove(models["one"], models["other"])
    assert proof.status is Status.PROVED, proof
    assert fact in proof.facts
    samples = seeded_inputs(models["one"], 8, 0)
    for runtime in (LITERT,) if make is wider_float else (LITERT, TFLM):  # TFLM has no float16
        found = run_models(runtime, {name: write_model(model) for name, model in models.items()}, samples, ARENA)
        assert all(run.ran for run in found.values()), {name: run.reason for name, run in found.items()}
        for a, b in zip(found["one"].outputs[0], found["other"].outputs[0], strict=True):
            assert a.tobytes() == b.tobytes()
