"""Models of one operator, of any element type, for what TFLM's kernels take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.model_builder import ModelBuilder, per_channel
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.operators import elementwise
from tflite_memopt.operators.window import ALL_POOLS

Make = Callable[[ModelBuilder, DType], tuple[Tensor, ...]]
MakeLayer = Callable[[ModelBuilder, DType, DType], tuple[Tensor, ...]]
IMAGE = (1, 4, 4, 4)
LEFT_OUT = frozenset({("SOFTMAX", DType.UINT8)})
"""LiteRT crashed on it without its factor."""


def alone(name: str, dtype: DType) -> Model:
    """The operator between an input and an output of this type."""
    b = ModelBuilder()
    return b.finish(*MAKERS[name](b, dtype))


def with_weights(name: str, dtype: DType, of_weights: DType) -> Model:
    """A layer whose activations and weights have these types."""
    b = ModelBuilder()
    return b.finish(*LAYERS[name](b, dtype, of_weights))


def _ints(b: ModelBuilder, values: object) -> Tensor:
    return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values, np.int32))


def _elementwise(name: str, inputs: int) -> Make:
    def make(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
        y = b.tensor("y", IMAGE, dtype)
        b.operator(name, [b.input(f"x{at}", IMAGE, dtype) for at in range(inputs)], (y,))
        return (y,)

    return make


def _with(name: str, options: str | None, operands: list[object], shape: tuple[int, ...], **fields: Any) -> Make:
    """An image and constants in, one tensor out."""

    def make(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
        x, y = b.input("x", IMAGE, dtype), b.tensor("y", shape, dtype)
        b.operator(name, (x, *(_ints(b, each) for each in operands)), (y,), options, **fields)
        return (y,)

    return make


def _split(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    x, parts = b.input("x", IMAGE, dtype), [b.tensor(f"y{at}", (1, 4, 4, 2), dtype) for at in range(2)]
    b.operator("SPLIT", (_ints(b, 3), x), parts, "SplitOptions", numSplits=2)
    return tuple(parts)


def _split_v(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    x, parts = b.input("x", IMAGE, dtype), [b.tensor(f"y{at}", (1, 4, 4, 2), dtype) for at in range(2)]
    b.operator("SPLIT_V", (x, _ints(b, (2, 2)), _ints(b, 3)), parts, "SplitVOptions", numSplits=2)
    return tuple(parts)


def _unpack(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    x, parts = b.input("x", (1, 4, 4, 2), dtype), [b.tensor(f"y{at}", (1, 4, 4), dtype) for at in range(2)]
    b.operator("UNPACK", (x,), parts, "UnpackOptions", num=2, axis=3)
    return tuple(parts)


def _pack(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    y = b.tensor("y", (1, 4, 4, 2), dtype)
    b.operator(
        "PACK", [b.input(f"x{at}", (1, 4, 4), dtype) for at in range(2)], (y,), "PackOptions", valuesCount=2, axis=3
    )
    return (y,)


def _concatenation(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    y = b.tensor("y", (1, 4, 4, 8), dtype)
    b.operator(
        "CONCATENATION", [b.input(f"x{at}", IMAGE, dtype) for at in range(2)], (y,), "ConcatenationOptions", axis=3
    )
    return (y,)


def _weights(b: ModelBuilder, shape: tuple[int, ...], dtype: DType, axis: int) -> Tensor:
    """A filter as the converter makes it: int8 with a scale a channel for integers, float for floats."""
    kind = {DType.FLOAT32: np.float32, DType.FLOAT16: np.float16, DType.UINT8: np.uint8}.get(dtype, np.int8)
    scales = per_channel(np.full(shape[axis], 0.01, np.float32), axis)
    if kind is np.uint8:
        scales = per_tensor(0.01, 128)
    return b.constant("w", np.ones(shape, kind), scales if kind in (np.int8, np.uint8) else None)


def _windowed(name: str, options: str, shape: tuple[int, ...], axis: int, **fields: Any) -> MakeLayer:
    def make(b: ModelBuilder, dtype: DType, of_weights: DType) -> tuple[Tensor, ...]:
        x, y = b.input("x", IMAGE, dtype), b.tensor("y", IMAGE, dtype)
        kind = {DType.FLOAT32: np.float32, DType.INT16: np.int64}.get(dtype, np.int32)
        bias = b.constant("bias", np.zeros(shape[axis], kind))
        b.operator(name, (x, _weights(b, shape, of_weights, axis), bias), (y,), options, **fields)
        return (y,)

    return make


def _transpose_conv(b: ModelBuilder, dtype: DType, of_weights: DType) -> tuple[Tensor, ...]:
    x, y = b.input("x", IMAGE, dtype), b.tensor("y", IMAGE, dtype)
    operands = (_ints(b, IMAGE), _weights(b, (4, 1, 1, 4), of_weights, 0), x)
    b.operator("TRANSPOSE_CONV", operands, (y,), "TransposeConvOptions", padding=0, strideH=1, strideW=1)
    return (y,)


def _batch_matmul(b: ModelBuilder, dtype: DType, of_weights: DType) -> tuple[Tensor, ...]:
    x, y = b.input("x", (1, 4, 4), dtype), b.tensor("y", (1, 4, 4), dtype)
    other = b.input("z", (1, 4, 4), of_weights)
    b.operator("BATCH_MATMUL", (x, other), (y,), "BatchMatMulOptions", adjX=False, adjY=False)
    return (y,)


def _same(make: MakeLayer) -> Make:
    """Weights as the converter makes them: of the activations' type, but int8 for all integers."""

    def same(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
        return make(b, dtype, dtype)

    return same


def _quantize(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    y = b.tensor("y", IMAGE)
    b.operator("QUANTIZE", (b.input("x", IMAGE, dtype),), (y,))
    return (y,)


def _dequantize(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    y = b.tensor("y", IMAGE, DType.FLOAT32)
    b.operator("DEQUANTIZE", (b.input("x", IMAGE, dtype),), (y,))
    return (y,)


def _argument(name: str) -> Make:
    def make(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
        y = b.tensor("y", (1, 4, 4), DType.INT32)
        b.operator(name, (b.input("x", IMAGE, dtype), _ints(b, 3)), (y,), f"Arg{name[4:].title()}Options", outputType=2)
        return (y,)

    return make


def _select(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
    y = b.tensor("y", IMAGE, dtype)
    condition = b.input("condition", IMAGE, DType.BOOL)
    b.operator("SELECT_V2", (condition, *(b.input(f"x{at}", IMAGE, dtype) for at in range(2))), (y,), "SelectV2Options")
    return (y,)


def _compare(name: str) -> Make:
    def make(b: ModelBuilder, dtype: DType) -> tuple[Tensor, ...]:
        y = b.tensor("y", IMAGE, DType.BOOL)
        b.operator(name, [b.input(f"x{at}", IMAGE, dtype) for at in range(2)], (y,))
        return (y,)

    return make


_POOL = {"padding": 1, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
_WINDOW = {"padding": 0, "strideH": 1, "strideW": 1}
UNARY, BINARY = (
    tuple(
        name
        for name, kind in elementwise.KINDS.items()
        if kind.tflm.types is not None and not kind.tflm.activation and not kind.tflm.outputs
        if kind.overwrites == overwritten
    )
    for overwritten in ("first input", "any input")
)
"""Elementwise kinds whose inputs and output have one type, but for comparisons, which have another output."""
COMPARED = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_PADS = ((0, 0), (1, 1), (1, 1), (0, 0))
LAYERS: Mapping[str, MakeLayer] = {
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _windowed("CONV_2D", "Conv2DOptions", (4, 1, 1, 4), 0, **_WINDOW),
    "DEPTHWISE_CONV_2D": _windowed(
        "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", (1, 1, 1, 4), 3, depthMultiplier=1, **_WINDOW
    ),
    "FULLY_CONNECTED": _windowed("FULLY_CONNECTED", "FullyConnectedOptions", (4, 4), 0, keepNumDims=True),
    "TRANSPOSE_CONV": _transpose_conv,
}
MAKERS: Mapping[str, Make] = {
    **{name: _same(make) for name, make in LAYERS.items()},
    **{name: _elementwise(name, 1) for name in UNARY},
    **{name: _elementwise(name, 2) for name in BINARY if name != "ADD_N"},  # which takes any number
    **{name: _compare(name) for name in COMPARED},
    **{name: _with(name, "Pool2DOptions", [], (1, 2, 2, 4), **_POOL) for name in ALL_POOLS},
    **{
        name: _with(name, "ReducerOptions", [(1, 2)], (1, 4), keepDims=False)
        for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    },
    "ARG_MAX": _argument("ARG_MAX"),
    "ARG_MIN": _argument("ARG_MIN"),
    "BATCH_TO_SPACE_ND": _with("BATCH_TO_SPACE_ND", None, [(1, 1), ((0, 0), (0, 0))], IMAGE),
    "SPACE_TO_BATCH_ND": _with("SPACE_TO_BATCH_ND", None, [(1, 1), ((0, 0), (0, 0))], IMAGE),
    "CONCATENATION": _concatenation,
    "CUMSUM": _with("CUMSUM", "CumsumOptions", [3], IMAGE),
    "DEPTH_TO_SPACE": _with("DEPTH_TO_SPACE", "DepthToSpaceOptions", [], (1, 8, 8, 1), blockSize=2),
    "DEQUANTIZE": _dequantize,
    "EXPAND_DIMS": _with("EXPAND_DIMS", "ExpandDimsOptions", [0], (1, *IMAGE)),
    "GATHER": _with("GATHER", "GatherOptions", [(0, 2)], (1, 4, 4, 2), axis=3),
    "GATHER_ND": _with("GATHER_ND", "GatherNdOptions", [((0, 1),)], (1, 4, 4)),
    "MIRROR_PAD": _with("MIRROR_PAD", "MirrorPadOptions", [_PADS], (1, 6, 6, 4), mode=0),
    "PACK": _pack,
    "PAD": _with("PAD", "PadOptions", [_PADS], (1, 6, 6, 4)),
    "QUANTIZE": _quantize,
    "RESHAPE": _with("RESHAPE", "ReshapeOptions", [(1, 64)], (1, 64)),
    "SELECT_V2": _select,
    "SQUEEZE": _with("SQUEEZE", "SqueezeOptions", [], (4, 4, 4), squeezeDims=np.asarray((0,), np.int32)),
    "RESIZE_BILINEAR": _with("RESIZE_BILINEAR", "ResizeBilinearOptions", [(8, 8)], (1, 8, 8, 4)),
    "RESIZE_NEAREST_NEIGHBOR": _with("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions", [(8, 8)], (1, 8, 8, 4)),
    "REVERSE_V2": _with("REVERSE_V2", None, [(3,)], IMAGE),
    "SLICE": _with("SLICE", None, [(0, 0, 0, 0), (1, 2, 4, 4)], (1, 2, 4, 4)),
    "SPACE_TO_DEPTH": _with("SPACE_TO_DEPTH", "SpaceToDepthOptions", [], (1, 2, 2, 16), blockSize=2),
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _with(
        "STRIDED_SLICE", "StridedSliceOptions", [(0, 0, 0, 0), (1, 2, 4, 4), (1, 1, 1, 1)], (1, 2, 4, 4)
    ),
    "TRANSPOSE": _with("TRANSPOSE", None, [(0, 2, 1, 3)], IMAGE),
    "UNPACK": _unpack,
}
