"""A model of one operator, its key, and its inputs: what the cells of the table of runtimes are made with."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.model_builder import ModelBuilder
from tflite_memopt.evidence.equivalence.adapter import Array, Sample
from tflite_memopt.model.ir.model import Buffer, DType, Model, Quantization, Tensor

F32, F16, I8, I16, I32, I64, U8, BOOL, I4, I2, BF16 = (
    *(DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL),
    *(DType.INT4, DType.INT2, DType.BFLOAT16),
)
TYPES = (F32, F16, I8, I16, I32, I64, U8, BOOL)
MAIN = (F32, I8, I16)
IMAGE = (1, 4, 4, 4)
SHAPES: Mapping[int, tuple[int, ...]] = {
    0: (),
    1: (6,),
    2: (3, 4),
    3: (2, 3, 4),
    4: IMAGE,
    5: (1, 2, 3, 2, 4),
    6: (1, 2, 1, 3, 2, 4),
}
SAMPLES = 7
"""Inputs of a cell: all lowest, all highest, a ramp over the range, random ones, the ends beside what is next to zero,
and what is next to zero beside what is farthest from it, of which quotients and products are the smallest."""
Make = Callable[[ModelBuilder], Sequence[Tensor]]


class Key(NamedTuple):
    """Which operator it is: its kind and types, then its quantization, dimensions and options in words."""

    kind: str
    types: str
    quantization: str = ""
    rank: str = ""
    options: str = ""

    def __str__(self) -> str:
        return ", ".join(each for each in self if each)


@dataclass(frozen=True)
class Cell:
    """``domain``: of its inputs; ``given``: values of the last inputs, which are operands that a file has otherwise."""

    key: Key
    make: Callable[[], Model]
    domain: str = ""
    given: tuple[Array, ...] = field(default=())

    @property
    def samples(self) -> list[Sample]:
        """Inputs in sequence, the same for the same key."""
        model = self.make()
        rng = np.random.default_rng(zlib.crc32(str(self.key).encode()))
        free = model.main.inputs[: len(model.main.inputs) - len(self.given)]
        return [
            [*(_values(each, at, rng, self.domain, slot == 0) for slot, each in enumerate(free)), *self.given]
            for at in range(SAMPLES)
        ]


# Inputs ---------------------------------------------------------------------------------------------------------------


def _values(tensor: Tensor, number: int, rng: np.random.Generator, domain: str, is_first: bool) -> Array:
    made = _numbers(tensor, number, rng, domain, is_first)
    if domain != "nonzero" or tensor.dtype is BOOL:
        return made
    zero = 0 if made.dtype.kind == "f" else _range(tensor)[2]
    return np.where(np.abs(made.astype(np.float64) - zero) < 0.1, made.dtype.type(zero + 1), made)


def _numbers(tensor: Tensor, number: int, rng: np.random.Generator, domain: str, is_first: bool) -> Array:
    shape = tensor.shape
    if tensor.dtype in (F32, F16):
        ways: Sequence[Any] = (np.full(shape, -6.5), np.full(shape, 6.5), _ramp(shape, -8, 8))
        made = ways[number] if number < len(ways) else rng.normal(size=shape) * (1, 3, 0.2, 5)[number - 3]
        if domain == "tiny":  # a product of many stays finite
            made = 0.5 + abs(made) / 8
        return np.asarray(abs(made) + 0.1 if domain in ("positive", "small", "counts") else made, tensor.dtype.label)
    if tensor.dtype is BOOL:
        return np.asarray((np.zeros(shape), np.ones(shape))[number] if number < 2 else rng.random(shape) < 0.5, bool)
    low, high, zero = _range(tensor)
    if domain == "small":  # every type of integer has them
        low, high, zero = 0, 100, 50
    elif domain in _WHOLE and tensor.dtype in (I32, I64):
        low, high, zero = _WHOLE[domain]
    elif domain in ("positive", "counts", "tiny"):
        low = zero + 1
    ways = (np.full(shape, low), np.full(shape, high), _ramp(shape, low, high))
    made = ways[number] if number < len(ways) else rng.integers(low, high + 1, shape)
    if number == 6:
        ends = [zero - 1, zero + 1] if is_first else [high if high - zero > zero - low else low]
        made = np.resize(ends, shape).clip(low, high)
    if number == 5:
        made = rng.choice([low, high, zero - 1, zero + 1, zero + 5], shape).clip(low, high)
    return np.asarray(np.rint(made), tensor.dtype.label)


_WHOLE = {"tiny": (-1, 1, 0), "counts": (0, 3, 1)}
"""The least and the greatest integers of which products and powers fit their type, and one between."""


def _range(tensor: Tensor) -> tuple[int, int, int]:
    if tensor.dtype in (I32, I64):
        return -90, 90, 0
    zero = 0 if tensor.quantization is None else int(tensor.quantization.zero_point[0])
    limits = np.iinfo(tensor.dtype.label)
    return int(limits.min), int(limits.max), zero


def _ramp(shape: Sequence[int], low: float, high: float) -> Array:
    return np.linspace(low, high, int(np.prod(shape))).reshape(shape)


# Quantizations --------------------------------------------------------------------------------------------------------

SCALES = {I8: 0.05, I16: 0.0005, U8: 0.05}
ZEROS = {I8: -3, I16: 0, U8: 125}
_AWAY = {I8: (9, -20, 14), I16: (9, -20, 14), U8: (150, 100, 130)}
Points = Sequence[Mapping[str, Any]]
"""The scale and the zero point of each activation, the output's last."""
UNLIKE = ("scales differ", "zero points differ", "both differ")


def points(dtype: DType, how: str, count: int) -> Points:
    """Scales and zero points of ``count`` activations, the last of which is the output."""
    if dtype not in SCALES:
        return [{}] * count
    scale, zero = SCALES[dtype], ZEROS[dtype]
    scales, zeros = [scale] * count, [zero] * count
    if how in ("scales differ", "both differ"):
        scales = [*(scale * (1, 1.7, 0.8)[at % 3] for at in range(count - 1)), scale * 0.6]
    if how in ("zero points differ", "both differ"):
        zeros = [_AWAY[dtype][at % 3] for at in range(count)]
    if how == "output wider":
        scales[-1] = 2.5 * scale
    return [{"scale": each, "zero_point": at} for each, at in zip(scales, zeros, strict=True)]


def hows(dtype: DType) -> tuple[str, ...]:
    """The quantizations that are tried of a type."""
    return ("same", *UNLIKE) if dtype in (I8, I16) else ("same",) if dtype is U8 else ("",)


# Making models --------------------------------------------------------------------------------------------------------


def ints(b: ModelBuilder, values: object, dtype: Any = np.int32) -> Tensor:
    return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values, dtype))


def one_cell(key: Key, make: Make, domain: str = "") -> Cell:
    def made() -> Model:
        b = ModelBuilder()
        return b.finish(*make(b))

    return Cell(key, made, domain)


def add_operator(
    b: ModelBuilder,
    kind: str,
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    table: str | None,
    fields: Mapping[str, Any],
) -> Sequence[Tensor]:
    b.operator(kind, inputs, outputs, table, **fields)
    return outputs


def simple(
    kind: str,
    dtype: DType,
    how: str,
    shapes: Sequence[Sequence[int]],
    output: Sequence[int],
    *,
    operands: Sequence[object] = (),
    table: str | None = None,
    fields: Mapping[str, Any] | None = None,
    output_type: DType | None = None,
    at_output: Mapping[str, Any] | None = None,
    at_input: Mapping[str, Any] | None = None,
    constants_first: bool = False,
) -> Make:
    """Activations of one type, then constant operands, and one output."""

    def make(b: ModelBuilder) -> Sequence[Tensor]:
        found = points(dtype, how, len(shapes) + 1)
        given = [
            b.input(f"x{at}", shape, dtype, **{**found[at], **(at_input or {})}) for at, shape in enumerate(shapes)
        ]
        rest = [ints(b, each) for each in operands]
        y = b.tensor("y", output, output_type or dtype, **{**found[-1], **(at_output or {})})
        inputs = [*rest, *given] if constants_first else [*given, *rest]
        return add_operator(b, kind, inputs, (y,), table, fields or {})

    return make


def packed(values: Array, dtype: DType) -> Array:
    """Elements of a type of less than a byte, the first in the lowest bits."""
    bits = dtype.packed_bits
    flat = np.asarray(values, np.int8).ravel() & ((1 << bits) - 1)
    padded = np.concatenate([flat, np.zeros(-flat.size % (8 // bits), np.int8)]).astype(np.uint8)
    shifted = padded.reshape(-1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray(shifted.sum(1), np.uint8)


def stored(b: ModelBuilder, name: str, values: Array, dtype: DType, quantization: Quantization | None) -> Tensor:
    """A constant of a type that numpy may not have."""
    if dtype in (I4, I2):
        data = packed(values, dtype)
    elif dtype is BF16:
        data = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    else:
        data = np.asarray(values, dtype.label)
    held = Buffer(np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8))
    b.model.buffers.append(held)
    return b.graph.add_tensor(Tensor(name, values.shape, dtype, held, quantization))


_BASE = {I8: 0.004, I4: 0.06, I2: 0.4, U8: 0.004, I16: 0.00002}
"""Scales of weights: the largest is about one half."""


def scales_of(dtype: DType, channels: int, way: str, axis: int) -> Quantization | None:
    """One scale, one a channel that differ by up to 30 times, or one with a zero point."""
    if dtype not in _BASE:
        return None
    base = np.float32(_BASE[dtype])
    if "per channel" in way:
        scale = (base * np.resize([1, 0.3, 2, 0.07], channels)).astype(np.float32)
        return Quantization(scale, np.zeros(channels, np.int64), axis)
    zero = 2 if "weights' zero point" in way else 120 if dtype is U8 else 0
    return Quantization(np.asarray([base], np.float32), np.asarray([zero], np.int64))


def weights(b: ModelBuilder, shape: Sequence[int], dtype: DType, way: str, axis: int, name: str = "w") -> Tensor:
    """Random weights that use the whole range of their type."""
    rng = np.random.default_rng(len(shape) * 31 + axis)
    if dtype in (F32, F16, BF16):
        return stored(b, name, (rng.normal(size=shape) * 0.3).astype(np.float32), dtype, None)
    top = 255 if dtype is U8 else (1 << (dtype.packed_bits - 1)) - 1
    values = rng.integers(0 if dtype is U8 else -top, top + 1, shape)
    return stored(b, name, values, dtype, scales_of(dtype, shape[axis], way, axis))


def bias_of(b: ModelBuilder, x: Tensor, w: Tensor, count: int, dtype: DType) -> Tensor:
    """A bias of the product of the scales."""
    rng = np.random.default_rng(7)
    if dtype in (F32, F16):
        return stored(b, "bias", rng.normal(size=count).astype(np.float32), dtype, None)
    scale = np.asarray([1.0], np.float32)
    if x.quantization is not None and w.quantization is not None:
        scale = (x.quantization.scale * w.quantization.scale).astype(np.float32)
    real = rng.normal(size=count) * 0.7
    zeros = np.zeros(scale.size, np.int64)
    return stored(b, "bias", np.rint(real / scale), dtype, Quantization(scale, zeros) if x.dtype in SCALES else None)


def number_of(b: ModelBuilder, dtype: DType, at: Mapping[str, Any], name: str) -> Tensor:
    """One number of a type, as a constant."""
    tensor = b.tensor("unused", (), dtype, **at)
    b.graph.tensors.remove(tensor)
    kind = "float16" if dtype is F16 else dtype.label
    return stored(b, name, np.asarray([1 if dtype is BOOL else 7], kind), dtype, tensor.quantization)
