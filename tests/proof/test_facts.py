"""The facts that proofs lean on, on LiteRT and TFLM: two models that differ by one fact compute the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder, per_channel
from tests.rewrite.patterns import ARENA, F32, I8, LITERT, TFLM
from tests.tflm import run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs, verification_inputs
from tflite_memopt.evidence.proof import FACTS, Status, facts, prove
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import Buffer, DType, Model, OperatorOptions, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor, values
from tflite_memopt.operators.window import POOLS

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


def rounded_once(dtype: DType, is_fused: bool = False) -> tuple[Model, Model]:
    """Weights of int8 with a scale and zero point a channel, and the floats that they stand for.

    ``is_fused``: rounded twice, as scale * q + (-scale * zero_point).
    """
    del dtype
    stored = np.random.default_rng(9).integers(-128, 128, (5, 7)).astype(np.int8)
    scales, points = np.geomspace(0.003, 0.07, 5).astype(np.float32), np.arange(-7, 8, 3)
    column = scales[:, None]
    real = column * (stored - points[:, None]).astype(np.float32)
    ends = []
    for is_narrow in (True, False):
        b = ModelBuilder()
        x, y = b.input("x", (5, 7), F32), b.tensor("y", (5, 7), F32)
        floats = column * stored.astype(np.float32) - column * points[:, None].astype(np.float32) if is_fused else real
        held = b.constant("w", stored if is_narrow else floats)
        if is_narrow:
            held.quantization = Quantization(scales, points.astype(np.int64), 0)
            wide = b.tensor("wide", held.shape, F32)
            b.operator("DEQUANTIZE", (held,), (wide,), "DequantizeOptions")
            held = wide
        b.operator("MUL", (x, held), (y,), "MulOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def clamped_after(
    dtype: DType, scale: float = 0.04, zero_point: int = -100, kinds: Sequence[str] = ("RELU", "RELU6")
) -> tuple[Model, Model]:
    """RELU6 to another scale, and the ``kinds`` in its place, the first of which rescales."""
    del dtype
    ends = []
    for names in (("RELU6",), kinds):
        b = ModelBuilder()
        x = b.input("x", (1, 256), scale=0.05, zero_point=3)
        for name in names:
            y = b.tensor(f"y{len(b.graph.tensors)}", x.shape, I8, scale, zero_point)
            b.operator(name, (x,), (y,))
            x = y
        ends.append(b.finish(x))
    return ends[0], ends[1]


def not_clamped(dtype: DType) -> tuple[Model, Model]:
    """6 is the largest integer: RELU alone is the same."""
    return clamped_after(dtype, 6 / 255, -128, ("RELU",))


def table(dtype: DType, new: float = 0.0213) -> tuple[Model, Model]:
    """RELU6 of floats between integers, and integers that are quantized anew and limited."""
    del dtype
    ends, limit = [], np.asarray(min(127, round(6 / new) - 100), np.int8)
    for is_wide in (True, False):
        b = ModelBuilder()
        q = b.input("q", (1, 256), scale=0.0371, zero_point=3)
        r = b.tensor("r", q.shape, I8, new, -100)
        if is_wide:
            x, y = b.tensor("x", q.shape, F32), b.tensor("y", q.shape, F32)
            b.operator("DEQUANTIZE", (q,), (x,), "DequantizeOptions")
            b.operator("RELU6", (x,), (y,))
            b.operator("QUANTIZE", (y,), (r,), "QuantizeOptions")
        else:
            kinds = {"MAXIMUM": np.asarray(-100, np.int8), "MINIMUM": limit}
            wide = b.tensor("wide", q.shape, I8, new, -100)
            b.operator("QUANTIZE", (q,), (wide,), "QuantizeOptions")
            low = b.tensor("low", q.shape, I8, new, -100)
            for kind, source, target in zip(kinds, (wide, low), (low, r), strict=True):
                bound = b.constant(kind, kinds[kind], r.quantization)
                b.operator(kind, (source, bound), (target,), "MaximumMinimumOptions")
        ends.append(b.finish(r))
    return ends[0], ends[1]


def undone(dtype: DType) -> tuple[Model, Model]:
    """DEQUANTIZE and QUANTIZE with one scale."""
    one, other = ModelBuilder(), ModelBuilder()
    x = image(one, I8)
    wide, y = one.tensor("wide", x.shape, F32), one.tensor("y", x.shape, I8, **quantized(I8))
    one.operator("DEQUANTIZE", (x,), (wide,), "DequantizeOptions")
    one.operator("QUANTIZE", (wide,), (y,), "QuantizeOptions")
    z = other.tensor("y", x.shape, I8, **quantized(I8))
    other.operator("RESHAPE", (image(other, I8), other.constant("shape", np.asarray(x.shape, np.int32))), (z,))
    del dtype
    return one.finish(y), other.finish(z)


def chosen(dtype: DType, name: str = "REDUCE_MAX", kinds: Sequence[str] = ()) -> tuple[Model, Model]:
    """The largest of numbers, and the number of the largest integer; ``kinds``: between integers and numbers."""
    del dtype
    ends = []
    for is_wide in (True, False):
        b = ModelBuilder()
        at = image(b, I8)
        for kind in ("DEQUANTIZE", *kinds, name) if is_wide else (name, "DEQUANTIZE", *kinds):
            is_stored, is_reduced = kind == name and not is_wide, kind == name or at.shape == (1, 3)
            shape = (1, 3) if is_reduced else at.shape
            y = b.tensor(
                f"y{len(b.graph.tensors)}", shape, I8 if is_stored else F32, **quantized(I8 if is_stored else F32)
            )
            axes = [b.constant("axes", np.asarray([1, 2], np.int32))] if kind == name else []
            options = {name: "ReducerOptions", "DEQUANTIZE": "DequantizeOptions"}.get(kind)
            b.operator(kind, (at, *axes), (y,), options)
            at = y
        ends.append(b.finish(at))
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


def silent_channel(steps: float) -> tuple[Model, Model]:
    """A channel ``steps`` below 0 for any input, read with weights and with weights of 0."""
    ends = []
    for is_read in (True, False):
        b = ModelBuilder()
        y = b.conv(b.conv(b.input("x", (1, 6, 6, 3)), 4, kernel=3, padding=VALID, seed=1), 3, seed=2)
        model = b.finish(y)
        first, second = (operator.inputs[1] for operator in model.main.operators)
        assert first is not None
        assert second is not None
        rows, columns = values(first), values(second)
        assert rows is not None
        assert columns is not None
        assert first.quantization is not None
        # The largest input makes the largest sum.
        rows = np.where(np.arange(4)[:, None, None, None] == 1, abs(rows), rows)
        bias = np.arange(4, dtype=np.int32)
        bias[1] = -127 * rows[1].astype(np.int64).sum() - np.ceil(steps / first.quantization.scale[1])
        set_constant(model, f"{first.name.partition('/')[0]}/bias", bias)
        set_constant(model, first.name, rows)
        set_constant(model, second.name, columns * (1 if is_read else np.asarray((1, 0, 1, 1), np.int8)))
        ends.append(model)
    return ends[0], ends[1]


def rescaled(dtype: DType) -> tuple[Model, Model]:
    del dtype
    return silent_channel(2.5)


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
    facts.ROUNDED_ONCE: (rounded_once,),
    facts.CLAMPED_AFTER: (clamped_after, not_clamped),
    facts.RESCALED: (rescaled,),
    facts.TABLE: (table, undone),
    facts.CHOSEN: (chosen,),
}
ON_LITERT = (wider_float, rounded_once, clamped_after, not_clamped)
FLOATS_TOO = (padding, window_of_one, same_either_way)


def test_every_fact_has_a_case() -> None:
    assert set(CASES) == set(FACTS)


@pytest.mark.few(7)
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
    # TFLM has no float16, and one scale of DEQUANTIZE; its RELU6 does not rescale.
    for runtime in (LITERT,) if make in ON_LITERT else (LITERT, TFLM):
        found = run_models(runtime, {name: write_model(model) for name, model in models.items()}, samples, ARENA)
        assert all(run.ran for run in found.values()), {name: run.reason for name, run in found.items()}
        for a, b in zip(found["one"].outputs[0], found["other"].outputs[0], strict=True):
            assert a.tobytes() == b.tobytes()


# What is a little beyond each fact: if the fact said so much, the proof would hold, and kernels differ.


def set_scale(model: Model, at: int, factor: float) -> None:
    weights = model.main.operators[at].inputs[1]
    assert weights is not None
    assert weights.quantization is not None
    scale = weights.quantization.scale.copy()
    scale[0] *= np.float32(factor)
    weights.quantization = replace(weights.quantization, scale=scale)


def set_constant(model: Model, name: str, values: Array) -> None:
    (tensor,) = (each for each in model.main.tensors if each.name == name)
    tensor.buffer = Buffer(np.frombuffer(values.tobytes(), np.uint8))


def other_padding() -> tuple[Model, Model]:
    """Rows of padding at the top alone."""
    one, other = padding(I8)
    set_constant(other, "amounts", np.asarray([[0, 0], [2, 0], [1, 1], [0, 0]], np.int32))
    return one, other


def small_taps() -> tuple[Model, Model]:
    """Taps of 1 in place of 0."""
    one, other = zero_taps(I8)
    weights = other.main.operators[0].inputs[1]
    assert weights is not None
    held = weights.buffer.data
    assert held is not None
    set_constant(other, weights.name, np.where(held.view(np.int8) == 0, 1, held.view(np.int8)).astype(np.int8))
    return one, other


def scales_apart() -> tuple[Model, Model]:
    one, other = equal_scales(I8)
    set_scale(other, 0, 1.5)
    return one, other


def clamped_window() -> tuple[Model, Model]:
    """A window of one, and RELU."""
    one, other = window_of_one(I8)
    operator = one.main.operators[1]
    assert operator.options is not None
    operator.options = OperatorOptions(operator.options.kind, {**operator.options.fields, "fusedActivationFunction": 1})
    return one, other


def requantized() -> tuple[Model, Model]:
    """There and back through a coarser scale."""
    ends = []
    for scale in (0.05, 0.11):
        b = ModelBuilder()
        x = image(b, I8)
        between, y = (
            b.tensor("between", x.shape, I8, scale=scale, zero_point=-5),
            b.tensor("y", x.shape, **quantized(I8)),
        )
        b.operator("QUANTIZE", (x,), (between,), "QuantizeOptions")
        b.operator("QUANTIZE", (between,), (y,), "QuantizeOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def turned_round(b: ModelBuilder, x: Tensor) -> Tensor:
    """The columns of a tensor of rows, from the last one to the first."""
    y = b.tensor("turned", x.shape, x.dtype)
    b.operator("REVERSE_V2", (x, b.constant("axis", np.asarray([1], np.int32))), (y,))
    return y


def products_in_another_order() -> tuple[Model, Model]:
    """A dense layer of floats, with its inputs and weights turned round."""
    weights, ends = weights_of((5, 64), F32), []
    for is_turned in (False, True):
        b = ModelBuilder()
        x = b.input("x", (1, 64), F32)
        if is_turned:
            x = turned_round(b, x)
        y = b.tensor("y", (1, 5), F32)
        held = np.ascontiguousarray(weights[:, ::-1]) if is_turned else weights
        b.operator("FULLY_CONNECTED", (x, b.constant("w", held), None), (y,), "FullyConnectedOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def zero_behind_an_input() -> tuple[Model, Model]:
    """+0 added to what may be -0."""
    ends = []
    for is_added in (False, True):
        b = ModelBuilder()
        x, y, z = b.input("x", (1, 4), F32), b.tensor("y", (1, 4), F32), b.tensor("z", (1, 4), F32)
        b.operator("NEG", (x,), (y,))
        if is_added:
            b.operator("ADD", (y, b.constant("zero", np.zeros((1, 4), np.float32))), (z,), "AddOptions")
        ends.append(b.finish(z if is_added else y))
    return ends[0], ends[1]


def differences() -> tuple[Model, Model]:
    ends = []
    for name in ("ab", "ba"):
        b = ModelBuilder()
        sides = {each: b.input(each, (1, 6), F32) for each in "ab"}
        y = b.tensor("y", (1, 6), F32)
        b.operator("SUB", [sides[each] for each in name], (y,), "SubOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def another_way() -> tuple[Model, Model]:
    """SELECT of a value and of another one where the condition never holds."""
    one, other = same_either_way(I8)
    operator = other.main.operators[1]
    sevens = np.full((1, 6, 6, 3), 7, np.int8)
    tensor = Tensor("sevens", sevens.shape, I8, Buffer(np.frombuffer(sevens.tobytes(), np.uint8)), per_tensor(0.05, -5))
    other.buffers.append(tensor.buffer)
    other.main.set_input(operator, 2, other.main.add_tensor(tensor))
    return one, other


def sums_in_another_order() -> tuple[Model, Model]:
    """A sum of floats over rows and columns, and of the columns turned round."""
    ends = []
    for is_turned in (False, True):
        b = ModelBuilder()
        x = b.input("x", (1, 64), F32)
        if is_turned:
            x = turned_round(b, x)
        y = b.tensor("y", (1,), F32)
        b.operator("SUM", (x, b.constant("a", np.asarray([1], np.int32))), (y,), "ReducerOptions")
        ends.append(b.finish(y))
    return ends[0], ends[1]


def sums_in_parts() -> tuple[Model, Model]:
    """A dense layer of integers in two parts, each of which is rounded."""
    weights, ends = weights_of((5, 8), I8), []
    for parts in ((8,), (3, 5)):
        b = ModelBuilder()
        x, start, sums = b.input("x", (1, 8), I8, **quantized(I8)), 0, list[Tensor]()
        for size in parts:
            cut, y = b.tensor(f"x{start}", (1, size), **quantized(I8)), b.tensor(f"y{start}", (1, 5), **quantized(I8))
            places = (b.constant(f"{name}{start}", np.asarray(at, np.int32)) for name, at in _places(start, size))
            b.operator("SLICE", (x, *places), (cut,), "SliceOptions")
            held = np.ascontiguousarray(weights[:, start : start + size])
            filters = b.constant(f"w{start}", held, per_tensor(0.01, 0))
            b.operator("FULLY_CONNECTED", (cut, filters, None), (y,), "FullyConnectedOptions")
            sums.append(y)
            start += size
        total = sums[0]
        if len(sums) > 1:
            total = b.tensor("total", (1, 5), **quantized(I8))
            b.operator("ADD", sums, (total,), "AddOptions")
        ends.append(b.finish(total))
    return ends[0], ends[1]


def _places(start: int, size: int) -> list[tuple[str, list[int]]]:
    return [("begin", [0, start]), ("size", [1, size])]


def one_more() -> tuple[Model, Model]:
    """Ten where x is negative, and eleven."""
    one, other = integer_arithmetic(I8)
    set_constant(other, "by6", np.full((), 7, np.int32))
    return one, other


def rounded_to_16_bits() -> tuple[Model, Model]:
    """float16, and the float32 that it was rounded from."""
    one, other = wider_float(F32)
    set_constant(one, "w", np.linspace(-1, 1, 6, dtype=np.float32).reshape(1, 6))
    return one, other


BEYOND: dict[str, Callable[[], tuple[Model, Model]]] = {
    facts.WINDOW: other_padding,
    facts.ZERO_TAP: small_taps,
    facts.EQUAL_SCALES: scales_apart,
    facts.WINDOW_OF_ONE: clamped_window,
    facts.SAME_QUANTIZATION: requantized,
    facts.DENSE_PIXEL: products_in_another_order,
    facts.NEVER_MINUS_ZERO: zero_behind_an_input,
    facts.EITHER_WAY_ROUND: differences,
    facts.SAME_EITHER_WAY: another_way,
    facts.UNORDERED: sums_in_another_order,
    facts.SUM_OF_INTEGERS: sums_in_parts,
    facts.INTEGER_ARITHMETIC: one_more,
    facts.WIDER_FLOAT: rounded_to_16_bits,
    facts.ROUNDED_ONCE: lambda: rounded_once(I8, is_fused=True),
    facts.CLAMPED_AFTER: lambda: clamped_after(I8, kinds=("RELU",)),
    facts.RESCALED: lambda: silent_channel(-40.0),
    facts.TABLE: lambda: table(I8, 0.0371 * 2.4),
    facts.CHOSEN: lambda: chosen(I8, kinds=("ABS",)),
}


def test_every_fact_has_an_end() -> None:
    assert set(BEYOND) == set(FACTS)


@pytest.mark.few(7)
@pytest.mark.parametrize("fact", BEYOND)
def test_what_is_beyond_a_fact_is_not_proved_and_differs_on_kernels(fact: str) -> None:
    one, other = BEYOND[fact]()
    assert prove(one, other).status is not Status.PROVED
    samples = verification_inputs(one, 12, 0)
    samples.append([np.zeros_like(each) for each in samples[0]])
    found = run_models(LITERT, {"one": write_model(one), "other": write_model(other)}, samples, ARENA)
    assert all(run.ran for run in found.values()), {name: run.reason for name, run in found.items()}
    pairs = zip(found["one"].outputs[0], found["other"].outputs[0], strict=True)
    assert any(a.tobytes() != b.tobytes() for a, b in pairs)


def infinite_windows(name: str) -> Callable[[], tuple[Model, Model]]:
    """A window of one on floats, and none: it clamps what is infinite."""

    def make() -> tuple[Model, Model]:
        one, other = ModelBuilder(), ModelBuilder()
        x = one.input("x", (1, 4, 4, 2), F32)
        y = one.tensor("y", x.shape, F32)
        fields = dict.fromkeys(("filterHeight", "filterWidth", "strideH", "strideW"), 1)
        one.operator(name, (x,), (y,), "Pool2DOptions", padding=1, **fields)
        return one.finish(y), other.finish(other.reshape(other.input("x", x.shape, F32), x.shape))

    return make


FINITE: dict[str, Callable[[], tuple[Model, Model]]] = {
    "zero tap": lambda: zero_taps(F32),
    **{name: infinite_windows(name) for name in POOLS},
}


@pytest.mark.parametrize("name", FINITE)
def test_floats_that_are_not_finite_are_beyond_a_fact(name: str) -> None:
    one, other = FINITE[name]()
    proof = prove(one, other)
    assert proof.proved
    assert proof.is_finite
    image = np.zeros(one.main.inputs[0].shape, np.float32)
    samples = []
    for value in (np.inf, -np.inf):
        image.flat[0] = value
        samples.append([image.copy()])
    found = run_models(LITERT, {"one": write_model(one), "other": write_model(other)}, samples, ARENA)
    pairs = zip(found["one"].outputs[0], found["other"].outputs[0], strict=True)
    assert any(a.tobytes() != b.tobytes() for a, b in pairs)
