"""The operators to probe: shapes, types, strides, paddings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tests.kernels.probe import Build, Case
from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Tensor
from tflite_memopt.operators.window import CONVOLUTIONS, POOLS


def convolutions(full: bool) -> Iterator[Case]:
    """CONV_2D and DEPTHWISE_CONV_2D over kernels, strides, paddings, channels and multipliers."""
    kernels, strides = ((1, 2, 3, 5), (1, 2, 3)) if full else ((1, 3), (1, 2))
    for kernel, stride, padding, (depth, channels) in product(
        kernels, strides, (SAME, VALID), ((4, 16), (16, 16), (16, 4))
    ):
        label = f"CONV_2D {kernel}x{kernel} stride {stride} {_padding(padding)} {depth}->{channels}"
        yield Case(
            label,
            lambda b, d=depth, c=channels, k=kernel, s=stride, p=padding: (  # type: ignore[misc]
                b.conv(b.input("x", (1, 11, 9, d)), c, k, s, p),
            ),
        )
    for kernel, stride, padding, multiplier in product(kernels, strides, (SAME, VALID), (1, 2)):
        label = f"DEPTHWISE_CONV_2D {kernel}x{kernel} stride {stride} {_padding(padding)} multiplier {multiplier}"
        yield Case(
            label,
            lambda b, k=kernel, s=stride, p=padding, m=multiplier: (  # type: ignore[misc]
                b.depthwise(b.input("x", (1, 11, 9, 16)), k, s, p, m),
            ),
        )


def dense(full: bool) -> Iterator[Case]:
    """FULLY_CONNECTED of every pixel, with a scale for each channel."""
    for depth, channels in ((4, 16), (16, 16), (16, 4), *(((3, 5), (20, 7)) if full else ())):
        yield Case(f"FULLY_CONNECTED of pixels {depth}->{channels}", _dense(depth, channels))


def _dense(depth: int, channels: int) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x, y = b.input("x", (1, 11, 9, depth)), b.tensor("y", (1, 11, 9, channels))
        values = np.random.default_rng(0).integers(-127, 127, (channels, depth)).astype(np.int8)
        filters = b.constant("filter", values, per_channel(np.linspace(0.01, 0.02, channels, dtype=np.float32), 0))
        b.operator("FULLY_CONNECTED", (x, filters, None), (y,), "FullyConnectedOptions", keepNumDims=True)
        return (y,)

    return build


def pools(full: bool) -> Iterator[Case]:
    """MAX_POOL_2D and AVERAGE_POOL_2D."""
    for name, kernel, stride, padding in product(POOLS, (2, 3), (1, 2) if full else (2,), (SAME, VALID)):
        yield Case(
            f"{name} {kernel}x{kernel} stride {stride} {_padding(padding)}", _pool(name, kernel, stride, padding)
        )


def _pool(name: str, kernel: int, stride: int, padding: int) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x = b.input("x", (1, 11, 9, 16))
        trim = kernel - 1 if padding == VALID else 0
        y = b.tensor("y", (1, -(-(11 - trim) // stride), -(-(9 - trim) // stride), 16))
        fields = {"padding": padding, "strideH": stride, "strideW": stride}
        b.operator(name, (x,), (y,), "Pool2DOptions", **fields, filterHeight=kernel, filterWidth=kernel)
        return (y,)

    return build


def moves(full: bool) -> Iterator[Case]:
    """PAD, SLICE and STRIDED_SLICE."""
    for low, high in ((0, 1), (1, 1), (2, 0)) if full else ((1, 1), (0, 1)):
        yield Case(f"PAD {low} before {high} after", _pad(low, high))
    for name in ("SLICE", "STRIDED_SLICE"):
        for begin, size in (
            ((0, 0, 0, 0), (1, 8, 8, 16)),
            ((0, 2, 0, 0), (1, 4, 9, 16)),
            ((0, 1, 1, 0), (1, 9, 7, 16)),
        ):
            yield Case(f"{name} {size} from {begin}", _slice(name, begin, size))


def _pad(low: int, high: int) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x = b.input("x", (1, 6, 7, 16))
        y = b.tensor("y", (1, 6 + low + high, 7 + low + high, 16))
        paddings = np.asarray([[0, 0], [low, high], [low, high], [0, 0]], np.int32)
        b.operator("PAD", (x, b.constant("paddings", paddings)), (y,), "PadOptions")
        return (y,)

    return build


def _slice(name: str, begin: tuple[int, ...], size: tuple[int, ...]) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x, y = b.input("x", (1, 11, 9, 16)), b.tensor("y", size)
        first, length = np.asarray(begin, np.int32), np.asarray(size, np.int32)
        if name == "SLICE":
            operands = [b.constant("begin", first), b.constant("size", length)]
            b.operator(name, (x, *operands), (y,), "SliceOptions")
        else:
            values = {"begin": first, "end": first + length, "strides": np.ones(4, np.int32)}
            operands = [b.constant(key, value) for key, value in values.items()]
            b.operator(name, (x, *operands), (y,), "StridedSliceOptions")
        return (y,)

    return build


def resizes(full: bool) -> Iterator[Case]:
    """RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR, TRANSPOSE_CONV."""
    for name in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
        for size, corners, half in product((9, 12) if full else (12,), (False, True), (False, True)):
            if not (corners and half):
                label = f"{name} 6 -> {size}{' align_corners' * corners}{' half_pixel_centers' * half}"
                yield Case(label, _resize(name, size, corners, half))
    yield Case("TRANSPOSE_CONV 2x2 stride 2", _transpose_conv)


def _resize(name: str, size: int, corners: bool, half: bool) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x, y = b.input("x", (1, 6, 6, 16)), b.tensor("y", (1, size, size, 16))
        options = "ResizeBilinearOptions" if name == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        shape = b.constant("size", np.asarray((size, size), np.int32))
        b.operator(name, (x, shape), (y,), options, alignCorners=corners, halfPixelCenters=half)
        return (y,)

    return build


def _transpose_conv(b: ModelBuilder) -> tuple[Tensor, ...]:
    x, y = b.input("x", (1, 6, 6, 16)), b.tensor("y", (1, 12, 12, 8))
    shape = b.constant("shape", np.asarray(y.shape, np.int32))
    values = np.random.default_rng(0).integers(-127, 128, (8, 2, 2, 16)).astype(np.int8)
    filters = b.constant("filter", values, per_channel(np.full(8, 0.002, np.float32), 0))
    b.operator("TRANSPOSE_CONV", (shape, filters, x), (y,), "TransposeConvOptions", strideH=2, strideW=2)
    return (y,)


def floats(full: bool) -> Iterator[Case]:
    """CONV_2D and DEPTHWISE_CONV_2D in float32."""
    for name, stride, padding in product(CONVOLUTIONS, (1, 2), (SAME, VALID)):
        yield Case(f"{name} 3x3 stride {stride} {_padding(padding)} float32", _float(name, stride, padding))


def _float(name: str, stride: int, padding: int) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x = b.input("x", (1, 11, 9, 4), DType.FLOAT32)
        trim = 2 if padding == VALID else 0
        y = b.tensor("y", (1, -(-(11 - trim) // stride), -(-(9 - trim) // stride), 4), DType.FLOAT32)
        shape = (4, 3, 3, 4) if name == "CONV_2D" else (1, 3, 3, 4)
        filters = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        operands = (x, b.constant("filter", filters), b.constant("bias", np.ones(4, np.float32)))
        fields = {"padding": padding, "strideH": stride, "strideW": stride}
        if name == "CONV_2D":
            b.operator(name, operands, (y,), "Conv2DOptions", **fields)
        else:
            b.operator(name, operands, (y,), "DepthwiseConv2DOptions", **fields, depthMultiplier=1)
        return (y,)

    return build


def elementwise(full: bool) -> Iterator[Case]:
    """ADD and MUL of each input, activations, SOFTMAX, conversions."""
    for name in ("ADD", "MUL", "SUB", "MAXIMUM", "MINIMUM") if full else ("ADD", "MUL"):
        yield Case(name, _binary(name, (1, 7, 5, 16)))
        yield Case(f"{name} broadcast", _binary(name, (1, 1, 1, 16)))
        if full:
            yield Case(f"{name} of 67 elements", _binary(name, (1, 1, 1, 67), (1, 1, 1, 67)))
            yield Case(f"{name} int16", _binary(name, (1, 7, 5, 16), dtype=DType.INT16))
    unary = ("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU") if full else ("RELU", "LOGISTIC")
    for name in unary:
        yield Case(name, _unary(name, DType.INT8, DType.INT8))
    yield Case("SOFTMAX", lambda b: (b.softmax(b.input("x", (1, 7, 5, 16))),))
    yield Case("QUANTIZE float32 -> int8", _unary("QUANTIZE", DType.FLOAT32, DType.INT8))
    yield Case("QUANTIZE int8 -> int8", _unary("QUANTIZE", DType.INT8, DType.INT8))
    yield Case("DEQUANTIZE int8 -> float32", _unary("DEQUANTIZE", DType.INT8, DType.FLOAT32))


def _binary(
    name: str, second: tuple[int, ...], first: tuple[int, ...] = (1, 7, 5, 16), dtype: DType = DType.INT8
) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x, z = b.input("x", first, dtype), b.input("z", second, dtype)
        y = b.tensor("y", x.shape, dtype)
        b.operator(name, (x, z), (y,), {"ADD": "AddOptions", "MUL": "MulOptions", "SUB": "SubOptions"}.get(name))
        return (y,)

    return build


def _unary(name: str, source: DType, result: DType) -> Build:
    def build(b: ModelBuilder) -> tuple[Tensor, ...]:
        x = b.input("x", (1, 7, 5, 16), source)
        scale = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}.get(name, (0.05, 0))
        y = b.tensor("y", x.shape, result, *scale)
        b.operator(name, (x,), (y,), "LeakyReluOptions" if name == "LEAKY_RELU" else None)
        return (y,)

    return build


def views(full: bool) -> Iterator[Case]:
    """RESHAPE, CONCATENATION, SPLIT, PACK, UNPACK."""
    yield Case("RESHAPE", lambda b: (b.reshape(b.input("x", (1, 6, 4, 16)), (24, 16)),))
    yield Case(
        "CONCATENATION of rows", lambda b: (b.concat([b.input(f"x{n}", (1, n, 4, 16)) for n in (1, 2, 3)], axis=1),)
    )
    yield Case("SPLIT of rows", _split)


def _split(b: ModelBuilder) -> tuple[Tensor, ...]:
    x = b.input("x", (1, 6, 4, 16))
    parts = tuple(b.tensor(f"part{n}", (1, 2, 4, 16)) for n in range(3))
    axis = b.constant("axis", np.asarray(1, np.int32))
    b.operator("SPLIT", (axis, x), parts, "SplitOptions", numSplits=3)
    return parts


GRIDS = (convolutions, dense, floats, pools, moves, resizes, elementwise, views)


def _padding(padding: int) -> str:
    return "SAME" if padding == SAME else "VALID"
