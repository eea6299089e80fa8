"""The models that are mutated: single operators and pairs, of every kind and type, and models with state."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.cascade.networks import EVERY, random_network
from tests.kernels.one_operator import MAKERS
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor

F32, I8, I16, I32 = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32
TYPES = (I8, F32, I16, I32)
IMAGE = (1, 4, 4, 4)
Array = np.ndarray[Any, Any]


def original(number: int, seed: int) -> tuple[str, bytes]:
    """Model ``number`` of a seed, and what it is."""
    draw = random.Random(f"{seed} {number}")
    way = draw.choice((_operator, _operator, _operator, _other, _pair, _network, _whole))
    name, model = way(draw)
    _vary(model, draw)
    return name, write_model(model)


def _operator(draw: random.Random) -> tuple[str, Model]:
    """One of the operators that TFLM's tables of kernels are tested with."""
    name, dtype = draw.choice(sorted(MAKERS)), draw.choice(TYPES)
    b = ModelBuilder()
    return name, b.finish(*MAKERS[name](b, dtype))


def _pair(draw: random.Random) -> tuple[str, Model]:
    """An operator, and one that reads it."""
    name, dtype = draw.choice(sorted(MAKERS)), draw.choice((I8, F32))
    b = ModelBuilder()
    outputs = MAKERS[name](b, dtype)
    second, y = draw.choice(sorted(_SECOND)), outputs[0]
    return f"{name} + {second}", b.finish(*_SECOND[second](b, y, draw))


def _network(draw: random.Random) -> tuple[str, Model]:
    """One or two layers with weights, windows and quantizations at random."""
    kind, dtype = draw.choice(EVERY), draw.choice((I8, F32, I16))
    number = draw.randrange(1 << 20)
    return f"network {kind}", random_network(number, dtype, draw.choice((1, 1, 2)), kinds=(kind,))


def _whole(draw: random.Random) -> tuple[str, Model]:
    """State, loops, conditions, and a few operators in a row."""
    name = draw.choice(("streaming_model", "if_model", "while_model", "split_model", "quantized_at_the_boundary"))
    return name, ALL[name]()


def _other(draw: random.Random) -> tuple[str, Model]:
    """Kinds that have operands of their own."""
    name = draw.choice(sorted(OTHER))
    b = ModelBuilder()
    return name, b.finish(*OTHER[name](b, draw))


def _vary(model: Model, draw: random.Random) -> None:
    """Weights and steering tables stay; an activation's zero point may be another one."""
    for tensor in model.main.tensors:
        is_activation = tensor.dtype is I8 and not tensor.is_constant and tensor.quantization is not None
        if is_activation and tensor.quantization is not None and not tensor.quantization.zero_point.any():
            reader = tensor.producer or (tensor.uses[0].operator if tensor.uses else None)
            if reader is not None and reader.name in _ANY_ZERO_POINT and draw.random() < 0.5:
                tensor.quantization = per_tensor(float(tensor.quantization.scale[0]), draw.choice((-128, -7, 3, 127)))


_ANY_ZERO_POINT = frozenset({"ADD", "SUB", "MUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MEAN", "PRELU"})
Made = Sequence[Tensor]


def _ints(b: ModelBuilder, *values: Any, dtype: Any = np.int32) -> Tensor:
    return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values if len(values) != 1 else values[0], dtype))


def _one(
    b: ModelBuilder, name: str, inputs: Sequence[Tensor | None], y: Tensor, table: str | None = None, **fields: Any
) -> Made:
    b.operator(name, inputs, (y,), table, **fields)
    return (y,)


def _type(draw: random.Random) -> DType:
    return draw.choice((I8, F32))


def _moved(name: str, table: str | None, shape: Sequence[int], output: Sequence[int], *operands: Any) -> Any:
    def make(b: ModelBuilder, draw: random.Random) -> Made:
        dtype = _type(draw)
        x, ints = b.input("x", shape, dtype), [_ints(b, each) for each in operands]
        return _one(b, name, (x, *ints), b.tensor("y", output, dtype), table)

    return make


def _logical(name: str, inputs: int) -> Any:
    def make(b: ModelBuilder, draw: random.Random) -> Made:
        del draw
        sides = [b.input(f"x{at}", IMAGE, DType.BOOL) for at in range(inputs)]
        return _one(b, name, sides, b.tensor("y", IMAGE, DType.BOOL))

    return make


def _cast(b: ModelBuilder, draw: random.Random) -> Made:
    pair = draw.choice(((F32, I32), (I32, F32), (I8, I32), (I32, I8), (DType.BOOL, I32), (F32, I8)))
    return _one(b, "CAST", (b.input("x", IMAGE, pair[0]),), b.tensor("y", IMAGE, pair[1]), "CastOptions")


def _updated(b: ModelBuilder, draw: random.Random) -> Made:
    dtype = _type(draw)
    operands = (b.input("x", IMAGE, dtype), b.input("u", (1, 2, 3, 4), dtype), _ints(b, 0, 1, 1, 0))
    return _one(b, "DYNAMIC_UPDATE_SLICE", operands, b.tensor("y", IMAGE, dtype))


def _filled(b: ModelBuilder, draw: random.Random) -> Made:
    dtype = _type(draw)
    return _one(b, "FILL", (_ints(b, 2, 3), b.input("x", (), dtype)), b.tensor("y", (2, 3), dtype), "FillOptions")


def _shape(b: ModelBuilder, draw: random.Random) -> Made:
    x = b.input("x", (2, 3), _type(draw))
    return _one(b, "SHAPE", (x,), b.tensor("y", (2,), I32), "ShapeOptions", outType=2)


def _looked_up(b: ModelBuilder, draw: random.Random) -> Made:
    table = np.random.default_rng(draw.randrange(99)).normal(size=(6, 4)).astype(np.float32)
    operands = (_ints(b, 1, 5, 0), b.constant("table", table))
    y = b.tensor("y", (3, 4), F32)
    return (*_one(b, "EMBEDDING_LOOKUP", operands, y), b.add(y, b.input("x", (3, 4), F32)))


def _svdf(b: ModelBuilder, draw: random.Random) -> Made:
    x, y = b.input("x", (1, 4), F32), b.tensor("y", (1, 4), F32)
    rng = np.random.default_rng(draw.randrange(99))
    weights = [b.constant(name, rng.normal(size=shape).astype(np.float32)) for name, shape in _SVDF.items()]
    state = b.tensor("state", (1, 12), F32)
    state.is_variable = True
    return _one(b, "SVDF", (x, *weights, None, state), y, "SVDFOptions", rank=1)


_SVDF = {"features": (4, 4), "time": (4, 3)}


def _pad_with(b: ModelBuilder, draw: random.Random) -> Made:
    del draw
    pads, value = np.asarray([[0, 0], [1, 0], [0, 2], [0, 0]], np.int32), np.asarray([5], np.int8)
    x, y = b.input("x", IMAGE), b.tensor("y", (1, 5, 6, 4))
    return _one(b, "PADV2", (x, b.constant("p", pads), b.constant("v", value, per_tensor(0.05, 0))), y, "PadV2Options")


def _reduced(name: str) -> Any:
    def make(b: ModelBuilder, draw: random.Random) -> Made:
        dtype = DType.BOOL if name in ("REDUCE_ANY", "REDUCE_ALL") else draw.choice((F32, I32))
        keep = draw.random() < 0.5
        y = b.tensor("y", (1, 1, 4, 4) if keep else (1, 4, 4), dtype)
        return _one(b, name, (b.input("x", IMAGE, dtype), _ints(b, [1])), y, "ReducerOptions", keepDims=keep)

    return make


def _dense(b: ModelBuilder, draw: random.Random) -> Made:
    """Every kind of data, weights, scales, zero points and bias."""
    data, weights = draw.choice(((I8, np.int8), (F32, np.float32), (I16, np.int8), (F32, np.int8)))
    rng, units = np.random.default_rng(draw.randrange(999)), draw.choice((1, 3))
    values = rng.normal(size=(units, 4)) if weights is np.float32 else rng.integers(-127, 128, (units, 4))
    scale = None if weights is np.float32 else per_tensor(0.01, draw.choice((0, 0, 3)) if data is I8 else 0)
    operands: list[Tensor | None] = [b.input("x", (2, 4), data), b.constant("w", values.astype(weights), scale)]
    if weights is np.int8 and draw.random() < 0.3:
        _pack(operands[1], rng.integers(0, 256, units * 2))
    kind = {I8: np.int32, I16: np.int64}.get(data, np.float32)
    if draw.random() < 0.6:
        held = rng.integers(-200, 200, units).astype(kind)
        operands.append(b.constant("b", held, None if kind is np.float32 else per_tensor(0.0005, 0)))
    fields = {"fusedActivationFunction": draw.choice((0, 1, 3))}
    return _one(b, "FULLY_CONNECTED", operands, b.tensor("y", (2, units), data), "FullyConnectedOptions", **fields)


def _pack(tensor: Tensor | None, values: Array) -> None:
    """Make weights of four bits, two of these in a byte, with a zero point of 0."""
    assert tensor is not None
    tensor.dtype, tensor.buffer.data = DType.INT4, values.astype(np.uint8)
    tensor.quantization = per_tensor(0.01, 0)


def _strided(b: ModelBuilder, draw: random.Random) -> Made:
    dtype = _type(draw)
    x = b.input("x", (2, 4, 6), dtype)
    limits = [_ints(b, 0, 1, 5), _ints(b, 2, 4, 0), _ints(b, 1, 2, -1)]
    return _one(b, "STRIDED_SLICE", (x, *limits), b.tensor("y", (2, 2, 5), dtype), "StridedSliceOptions")


def _shrunk(b: ModelBuilder, draw: random.Random) -> Made:
    dtype = _type(draw)
    x = b.input("x", (2, 4, 6), dtype)
    limits = [_ints(b, 0, 2, 0), _ints(b, 2, 3, 6), _ints(b, 1, 1, 1)]
    fields = {"shrinkAxisMask": 2, "beginMask": 1, "endMask": 4}
    return _one(b, "STRIDED_SLICE", (x, *limits), b.tensor("y", (2, 6), dtype), "StridedSliceOptions", **fields)


def _elementwise(name: str, inputs: int = 1, dtype: DType = F32) -> Any:
    def make(b: ModelBuilder, draw: random.Random) -> Made:
        del draw
        sides = [b.input(f"x{at}", IMAGE, dtype) for at in range(inputs)]
        return _one(b, name, sides, b.tensor("y", IMAGE, dtype))

    return make


def _selected(b: ModelBuilder, draw: random.Random) -> Made:
    dtype = _type(draw)
    sides = [b.input("x", IMAGE, dtype), b.input("other", IMAGE, dtype)]
    return _one(b, "SELECT", (b.input("which", IMAGE, DType.BOOL), *sides), b.tensor("y", IMAGE, dtype))


def _rank(b: ModelBuilder, draw: random.Random) -> Made:
    return _one(b, "RANK", (b.input("x", IMAGE, _type(draw)),), b.tensor("y", (), I32), "RankOptions")


def _broadcast_args(b: ModelBuilder, draw: random.Random) -> Made:
    del draw
    return _one(b, "BROADCAST_ARGS", (b.input("x", (2,), I32), _ints(b, [1, 1])), b.tensor("y", (2,), I32))


def _range(b: ModelBuilder, draw: random.Random) -> Made:
    del draw
    limits = [b.constant(f"c{at}", np.asarray(value, np.int32)) for at, value in enumerate((0, 8, 2))]
    (y,) = _one(b, "RANGE", limits, b.tensor("y", (4,), I32))
    sides = b.input("x", (4,), I32), y
    return _one(b, "ADD", sides, b.tensor("total", (4,), I32), "AddOptions")


def _enlarged(b: ModelBuilder, draw: random.Random) -> Made:
    """TRANSPOSE_CONV with a bias."""
    rng = np.random.default_rng(draw.randrange(99))
    weights = b.constant("w", rng.integers(-127, 128, (3, 2, 2, 4)).astype(np.int8), per_tensor(0.01, 0))
    bias = b.constant("b", rng.integers(-200, 200, 3).astype(np.int32), per_tensor(0.0005, 0))
    operands = (_ints(b, 1, 8, 8, 3), weights, b.input("x", IMAGE), bias)
    fields = {"padding": 0, "strideH": 2, "strideW": 2}
    return _one(b, "TRANSPOSE_CONV", operands, b.tensor("y", (1, 8, 8, 3)), "TransposeConvOptions", **fields)


OTHER: Mapping[str, Callable[[ModelBuilder, random.Random], Made]] = {
    "BATCH_TO_SPACE_ND": _moved("BATCH_TO_SPACE_ND", None, (4, 2, 2, 1), (1, 3, 4, 1), (2, 2), [[0, 1], [0, 0]]),
    "BROADCAST_TO": _moved("BROADCAST_TO", "BroadcastToOptions", (1, 3), (2, 3), (2, 3)),
    "BROADCAST_ARGS": _broadcast_args,
    "CAST": _cast,
    "DYNAMIC_UPDATE_SLICE": _updated,
    "EMBEDDING_LOOKUP": _looked_up,
    "FILL": _filled,
    "FULLY_CONNECTED": _dense,
    "GATHER": _moved("GATHER", "GatherOptions", (5, 3), (4, 3), (4, 0, 0, 2)),
    "LOGICAL_AND": _logical("LOGICAL_AND", 2),
    "LOGICAL_NOT": _logical("LOGICAL_NOT", 1),
    "LOGICAL_OR": _logical("LOGICAL_OR", 2),
    "MIRROR_PAD": _moved("MIRROR_PAD", "MirrorPadOptions", (3, 4), (5, 5), [[1, 1], [0, 1]]),
    "PAD": _moved("PAD", "PadOptions", (1, 2, 3, 1), (1, 4, 3, 2), [[0, 0], [1, 1], [0, 0], [0, 1]]),
    "PADV2": _pad_with,
    **{name: _reduced(name) for name in ("REDUCE_ALL", "REDUCE_ANY", "REDUCE_PROD", "SUM", "MEAN", "REDUCE_MAX")},
    "REVERSE_V2": _moved("REVERSE_V2", None, (2, 3, 4), (2, 3, 4), [1]),
    "RANGE": _range,
    "RANK": _rank,
    "SELECT": _selected,
    "SHAPE": _shape,
    **{name: _elementwise(name) for name in ("GELU", "SIGN", "RELU_0_TO_1", "RELU_N1_TO_1")},
    **{name: _elementwise(name, 2) for name in ("ADD_N", "ATAN2", "POW")},
    "SLICE": _moved("SLICE", "SliceOptions", (3, 4, 5), (2, 4, 3), (1, 0, 2), (2, -1, 3)),
    "STRIDED_SLICE": _strided,
    "STRIDED_SLICE shrunk": _shrunk,
    "SVDF": _svdf,
    "TILE": _moved("TILE", "TileOptions", (2, 3), (4, 9), (2, 3)),
    "TRANSPOSE_CONV": _enlarged,
    "TRANSPOSE": _moved("TRANSPOSE", "TransposeOptions", (2, 3, 4), (4, 2, 3), (2, 0, 1)),
}


def _flat(b: ModelBuilder, y: Tensor, draw: random.Random) -> Made:
    del draw
    return (b.reshape(y, (y.elements,)),)


def _doubled(b: ModelBuilder, y: Tensor, draw: random.Random) -> Made:
    del draw
    return (b.add(y, y),)


def _joined(b: ModelBuilder, y: Tensor, draw: random.Random) -> Made:
    return (b.concat((y, y), draw.randrange(len(y.shape))),)


def _cut(b: ModelBuilder, y: Tensor, draw: random.Random) -> Made:
    at = [draw.randrange(size) for size in y.shape]
    sizes = [size - first for size, first in zip(y.shape, at, strict=True)]
    return _one(b, "SLICE", (y, _ints(b, at), _ints(b, sizes)), b.tensor("cut", sizes, y.dtype), "SliceOptions")


def _rectified(b: ModelBuilder, y: Tensor, draw: random.Random) -> Made:
    del draw
    return _one(b, "RELU", (y,), b.tensor("rectified", y.shape, y.dtype))


_SECOND: Mapping[str, Callable[[ModelBuilder, Tensor, random.Random], Made]] = {
    "ADD": _doubled,
    "CONCATENATION": _joined,
    "RELU": _rectified,
    "RESHAPE": _flat,
    "SLICE": _cut,
}
