"""Random patterns for the rule of partial convolutions; many of them are one model, to start few interpreters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt.model.ir.editor import NO_ACTIVATION, RELU, RELU6, SAME, VALID
from tflite_memopt.model.ir.model import DType, Model, Quantization, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

RELU_N1_TO_1 = 2
TENSOR_TYPE = {DType.FLOAT32: 0, DType.INT32: 2, DType.INT64: 4}
"""Values of the schema's TensorType."""


@dataclass(frozen=True)
class Spec:
    """One concatenation and the operator that reads it."""

    kind: str = "CONV_2D"
    dtype: DType = DType.INT8
    batch: int = 1
    height: int = 3
    width: int = 4
    depths: tuple[int, ...] = (3, 5)
    channels: int = 4
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: int = VALID
    activation: int = NO_ACTIVATION
    bias: str | None = "int32"
    by_channel: bool = True
    zero_point: int = 0
    twice: bool = False
    nested: bool = False
    seed: int = 0


@st.composite
def specs(draw: st.DrawFn, dtype: DType) -> Spec:
    """Patterns that TFLM and LiteRT both run, of one type."""
    kind = draw(st.sampled_from(("CONV_2D", "CONV_2D", "FULLY_CONNECTED")))
    small, size = st.integers(1, 2), st.integers(1, 4)
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    biases = ["int32"] if dtype is not DType.INT16 else ["int32", "int64"]
    return Spec(
        kind=kind,
        dtype=dtype,
        # One pixel alone would make the concatenation free.
        batch=draw(st.integers(2, 3) if kind == "FULLY_CONNECTED" else small),
        height=draw(size) + kernel[0] + 1,
        width=draw(size) + kernel[1],
        depths=tuple(draw(st.lists(st.integers(1, 20), min_size=2, max_size=4))),
        channels=draw(st.integers(1, 6)),
        kernel=kernel,
        stride=draw(st.tuples(small, small)),
        dilation=draw(st.tuples(small, small)) if kernel == (2, 2) else (1, 1),
        padding=draw(st.sampled_from((SAME, VALID))),
        activation=draw(st.sampled_from((NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6))),
        # LiteRT's CONV_2D demands a bias.
        bias=draw(st.sampled_from(biases if kind == "CONV_2D" else [None, *biases])),
        by_channel=draw(st.booleans()),
        zero_point=draw(st.sampled_from((-128, -128, -7, 0, 100))) if dtype is DType.INT8 else 0,
        twice=draw(st.booleans()),
        nested=draw(st.booleans()),
        seed=draw(st.integers(0, 2**16)),
    )


def build(*patterns: Spec) -> Model:
    """A model with all of the patterns side by side, each with inputs and an output of its own."""
    b = ModelBuilder()
    outputs = tuple(add_pattern(b, f"p{number}", spec) for number, spec in enumerate(patterns))
    return b.finish(*outputs)


def add_pattern(b: ModelBuilder, name: str, spec: Spec) -> Tensor:
    """Grow a model by one pattern; its output."""
    parts = [_input(b, f"{name}/x{number}", spec, depth) for number, depth in enumerate(spec.depths)]
    if spec.twice:
        parts.append(parts[0])
    if spec.nested:
        parts = [_join(b, f"{name}/inner", spec, parts[:2]), *parts[1:]]
    return _reader(b, name, spec, _join(b, f"{name}/joined", spec, parts))


def _input(b: ModelBuilder, name: str, spec: Spec, depth: int) -> Tensor:
    rows = (spec.batch,) if spec.kind == "FULLY_CONNECTED" else (spec.batch, spec.height, spec.width)
    scale = 0.04 if spec.dtype is DType.INT8 else 0.0002
    return b.input(name, (*rows, depth), spec.dtype, scale=scale, zero_point=spec.zero_point)


def _join(b: ModelBuilder, name: str, spec: Spec, parts: list[Tensor]) -> Tensor:
    shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    y = b.graph.add_tensor(replace(parts[0], name=name, shape=shape))
    b.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=-1 if spec.seed % 2 else len(shape) - 1)
    return y


def _reader(b: ModelBuilder, name: str, spec: Spec, x: Tensor) -> Tensor:
    rng = np.random.default_rng(spec.seed)
    window = () if spec.kind == "FULLY_CONNECTED" else spec.kernel
    shape = (spec.channels, *window, x.shape[-1])
    y = b.tensor(f"{name}/y", _output_shape(spec, x), spec.dtype)
    operands = _integer_operands if spec.dtype is not DType.FLOAT32 else _float_operands
    weights, bias = operands(b, name, spec, x, y, shape, rng)
    _add_operator(b, name, spec, (x, weights, bias), y)
    return y


def _float_operands(
    b: ModelBuilder, name: str, spec: Spec, x: Tensor, y: Tensor, shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[Tensor, Tensor | None]:
    weights = b.constant(f"{name}/weights", rng.uniform(-1, 1, shape).astype(np.float32))
    bias = rng.uniform(-2, 2, spec.channels).astype(np.float32)
    return weights, None if spec.bias is None else b.constant(f"{name}/bias", bias)


def _integer_operands(
    b: ModelBuilder, name: str, spec: Spec, x: Tensor, y: Tensor, shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[Tensor, Tensor | None]:
    """Weights and bias; the output gets the quantization that fits them."""
    integers = rng.integers(-127, 128, shape).astype(np.int8)
    scales = rng.uniform(1, 4, spec.channels if spec.by_channel else 1).astype(np.float32)
    real = integers.reshape(spec.channels, -1) * np.broadcast_to(scales, spec.channels)[:, None]
    # The clamps of RELU6 and RELU_N1_TO_1 are real numbers: sums have to be of that size for them to make sense.
    reach = {RELU_N1_TO_1: 1.3, RELU6: 6.0}.get(spec.activation, rng.uniform(0.5, 8))
    factor = np.float32(reach / (3.5 * _spread(x, real).max()))
    scales, real = scales * factor, real * factor
    assert x.quantization is not None
    step = scales * x.quantization.scale
    offsets = rng.normal(0, 0.3, spec.channels) * _spread(x, real)
    bias = None
    if spec.bias is not None:
        bias = b.constant(f"{name}/bias", np.round(offsets / step).astype(spec.bias), per_channel(step, 0))
    y.quantization = _output_quantization(spec, x, real, offsets * (bias is not None))
    return b.constant(f"{name}/weights", integers, per_channel(scales, 0)), bias


def _limits(x: Tensor) -> tuple[float, float]:
    assert x.quantization is not None
    limits = np.iinfo(x.dtype.label)
    scale, zero = float(x.quantization.scale[0]), int(x.quantization.zero_point[0])
    return scale * (limits.min - zero), scale * (limits.max - zero)


def _spread(x: Tensor, real: Any) -> Any:
    low, high = _limits(x)
    return (high - low) / np.sqrt(12) * np.sqrt((real**2).sum(axis=1))


def _output_quantization(spec: Spec, x: Tensor, real: Any, offsets: Any) -> Quantization:
    """What a calibration with uniform inputs would choose, about."""
    mean, spread = offsets + real.sum(axis=1) * sum(_limits(x)) / 2, 3.5 * _spread(x, real)
    low, high = min(0.0, (mean - spread).min()), max(1e-3, (mean + spread).max())
    if spec.activation in (RELU, RELU6):
        low = 0.0
    if spec.activation == RELU_N1_TO_1:
        low, high = -1.0, 1.0
    if spec.activation == RELU6:
        high = 6.0
    if spec.dtype is DType.INT16:
        return per_tensor(max(high, -low) / 32767, 0)
    scale = (high - low) / 255
    return per_tensor(scale, round(-128 - low / scale))


def _add_operator(
    b: ModelBuilder, name: str, spec: Spec, inputs: tuple[Tensor, Tensor, Tensor | None], y: Tensor
) -> None:
    x, weights, bias = inputs
    optional = () if bias is None else (bias,)
    fields: dict[str, Any] = {"fusedActivationFunction": spec.activation}
    if bias is not None:
        fields["quantizedBiasType"] = TENSOR_TYPE[bias.dtype]  # without it LiteRT reads int32 as int64
    if spec.kind == "FULLY_CONNECTED":
        b.operator(spec.kind, (x, weights, bias), (y,), "FullyConnectedOptions", **fields)
        return
    fields |= {"padding": spec.padding, "strideH": spec.stride[0], "strideW": spec.stride[1]}
    fields |= {"dilationHFactor": spec.dilation[0], "dilationWFactor": spec.dilation[1]}
    b.operator(spec.kind, (x, weights, *optional), (y,), "Conv2DOptions", **fields)


def _output_shape(spec: Spec, x: Tensor) -> tuple[int, ...]:
    if spec.kind == "FULLY_CONNECTED":
        return (spec.batch, spec.channels)
    sizes = []
    for size, kernel, stride, dilation in zip(x.shape[1:3], spec.kernel, spec.stride, spec.dilation, strict=True):
        trim = (kernel - 1) * dilation if spec.padding == VALID else 0
        sizes.append(-(-(size - trim) // stride))
    return (spec.batch, *sizes, spec.channels)
