"""Models of one operator: the cells of the table of what runtimes make of a file.

A cell has a key in words, which says all of it: the same key is the same model and the same inputs. Cells that end a
runtime's process are not made, but told of in ``LEFT_OUT``: nothing in this repository makes such a file.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scripts.fuzzing.oracle import constant_of
from tests.model_builder import ModelBuilder
from tests.models import if_model, streaming_model, while_model
from tflite_memopt.evidence.equivalence.adapter import Array, Sample
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import Buffer, DType, Model, OpCode, Operator, Quantization, Tensor

F32, F16, I8, I16, I32, I64, U8, BOOL, I4, I2, BF16 = (
    *(DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL),
    *(DType.INT4, DType.INT2, DType.BFLOAT16),
)
TYPES = (F32, F16, I8, I16, I32, I64, U8, BOOL)
MAIN = (F32, I8, I16)
IMAGE = (1, 4, 4, 4)
SHAPES: Mapping[int, tuple[int, ...]] = {
    **{0: (), 1: (6,), 2: (3, 4), 3: (2, 3, 4), 4: IMAGE},
    **{5: (1, 2, 3, 2, 4), 6: (1, 2, 1, 3, 2, 4)},
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
        return np.asarray(abs(made) + 0.1 if domain in ("positive", "small") else made, tensor.dtype.label)
    if tensor.dtype is BOOL:
        return np.asarray((np.zeros(shape), np.ones(shape))[number] if number < 2 else rng.random(shape) < 0.5, bool)
    low, high, zero = _range(tensor)
    if domain == "small":  # every type of integer has them
        low, high, zero = 0, 100, 50
    elif domain == "positive":
        low = zero + 1
    ways = (np.full(shape, low), np.full(shape, high), _ramp(shape, low, high))
    made = ways[number] if number < len(ways) else rng.integers(low, high + 1, shape)
    if number == 6:
        ends = [zero - 1, zero + 1] if is_first else [high if high - zero > zero - low else low]
        made = np.resize(ends, shape).clip(low, high)
    if number == 5:
        made = rng.choice([low, high, zero - 1, zero + 1, zero + 5], shape).clip(low, high)
    return np.asarray(np.rint(made), tensor.dtype.label)


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
Points = Sequence[Mapping[str, float]]
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


def _cell(key: Key, make: Make, domain: str = "") -> Cell:
    def made() -> Model:
        b = ModelBuilder()
        return b.finish(*make(b))

    return Cell(key, made, domain)


def _operator(
    b: ModelBuilder,
    kind: str,
    inputs: Sequence[Tensor | None],
    outputs: Sequence[Tensor],
    table: str | None,
    fields: Mapping[str, Any],
) -> Sequence[Tensor]:
    b.operator(kind, inputs, outputs, table, **fields)
    return outputs


def _simple(
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
    at_output: Mapping[str, float] | None = None,
    at_input: Mapping[str, float] | None = None,
    constants_first: bool = False,
) -> Make:
    """Activations of one type, then constant operands, and one output."""

    def make(b: ModelBuilder) -> Sequence[Tensor]:
        found = points(dtype, how, len(shapes) + 1)
        given = [
            b.input(f"x{at}", shape, dtype, **{**found[at], **(at_input or {})}) for at, shape in enumerate(shapes)
        ]
        rest = [ints(b, each) for each in operands]
        y = b.tensor("y", output, output_type or dtype, **{**found[-1], **(at_output or {})})  # type: ignore[arg-type]
        inputs = [*rest, *given] if constants_first else [*given, *rest]
        return _operator(b, kind, inputs, (y,), table, fields or {})

    return make


# Kinds ----------------------------------------------------------------------------------------------------------------

_WRITTEN: Mapping[str, Mapping[DType, Mapping[str, float]]] = {
    "LOGISTIC": {I8: {"scale": 1 / 256, "zero_point": -128}, I16: {"scale": 1 / 32768, "zero_point": 0}},
    "TANH": {I8: {"scale": 1 / 128, "zero_point": 0}, I16: {"scale": 1 / 32768, "zero_point": 0}},
    "SOFTMAX": {I8: {"scale": 1 / 256, "zero_point": -128}, I16: {"scale": 1 / 32768, "zero_point": 0}},
    "LOG_SOFTMAX": {I8: {"scale": 16 / 256, "zero_point": 127}},
    "L2_NORMALIZATION": {I8: {"scale": 1 / 128, "zero_point": 0}},
}
"""Outputs as converters write them: of these kinds the specification fixes the scale."""
_UNARY: Mapping[str, tuple[str | None, Mapping[str, Any]]] = {
    **dict.fromkeys(("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LOG", "LOGISTIC"), (None, {})),
    **dict.fromkeys(("NEG", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIGN"), (None, {})),
    **dict.fromkeys(("SIN", "SQRT", "SQUARE", "TANH", "ZEROS_LIKE", "LOGICAL_NOT", "LOG_SOFTMAX"), (None, {})),
    "L2_NORMALIZATION": ("L2NormOptions", {}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.1}),
    "SOFTMAX": ("SoftmaxOptions", {"beta": 1.0}),
}
_POSITIVE = frozenset({"LOG", "RSQRT", "SQRT"})
_BINARY: Mapping[str, str | None] = {
    **{"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"},
    **dict.fromkeys(("SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", "PRELU", "FLOOR_DIV", "FLOOR_MOD", "POW"), None),
    **dict.fromkeys(("ADD_N", "ATAN2", "LOGICAL_AND", "LOGICAL_OR"), None),
}
_COMPARED = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def _unary() -> Iterator[Cell]:
    for kind, (table, fields) in _UNARY.items():
        one = partial(_simple, kind, table=table, fields=fields)
        domain = "positive" if kind in _POSITIVE else ""
        for dtype in (BOOL, F32) if kind == "LOGICAL_NOT" else TYPES:
            written = _WRITTEN.get(kind, {}).get(dtype)
            for how in hows(dtype):
                yield _cell(Key(kind, dtype.label, how, "4"), one(dtype, how, [IMAGE], IMAGE), domain)
            if dtype in (I8, I16):
                key = Key(kind, dtype.label, "output wider", "4")
                yield _cell(key, one(dtype, "output wider", [IMAGE], IMAGE), domain)
            if written is not None:
                make = one(dtype, "same", [IMAGE], IMAGE, at_output=written)
                yield _cell(Key(kind, dtype.label, "as written", "4"), make, domain)
                if dtype is I16:
                    make = one(dtype, "same", [IMAGE], IMAGE, at_output=written, at_input={"scale": 1 / 4096})
                    yield _cell(Key(kind, dtype.label, "as written, input 1/4096", "4"), make, domain)
            if dtype in MAIN:
                for rank in (0, 1, 2, 3, 5, 6):
                    said = "same" if written is None and dtype is not F32 else "as written" if written else ""
                    make = one(dtype, "same", [SHAPES[rank]], SHAPES[rank], at_output=written)
                    if rank or kind not in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"):
                        yield _cell(Key(kind, dtype.label, said, f"{rank}"), make, domain)
    for dtype in MAIN:
        for alpha in (0.0, 0.5, 1.5, -0.3):
            for how in ("same", "both differ") if dtype is I8 else ("same",):
                make = _simple(
                    "LEAKY_RELU", dtype, how, [IMAGE], IMAGE, table="LeakyReluOptions", fields={"alpha": alpha}
                )
                said = how if dtype is not F32 else ""
                yield _cell(Key("LEAKY_RELU", dtype.label, said, "4", f"alpha {alpha}"), make)
        for beta in (0.5, 2.0):
            written = _WRITTEN["SOFTMAX"].get(dtype)
            make = _simple(
                *("SOFTMAX", dtype, "same", [IMAGE], IMAGE),
                **{"table": "SoftmaxOptions", "fields": {"beta": beta}, "at_output": written},  # type: ignore[arg-type]
            )
            yield _cell(Key("SOFTMAX", dtype.label, "as written" if written else "", "4", f"beta {beta}"), make)
        approximate = {"table": "GeluOptions", "fields": {"approximate": True}}
        make = _simple("GELU", dtype, "same", [IMAGE], IMAGE, **approximate)  # type: ignore[arg-type]
        yield _cell(Key("GELU", dtype.label, "same" if dtype is not F32 else "", "4", "approximate"), make)


def _binary() -> Iterator[Cell]:
    for kind, table in _BINARY.items():
        is_logical = kind.startswith("LOGICAL")
        fields = {"potScaleInt16": False} if kind in ("ADD", "SUB") else {}
        one = partial(_simple, kind, table=table, fields=fields)
        domain = "positive" if kind in ("FLOOR_DIV", "FLOOR_MOD", "POW") else "nonzero" if kind == "DIV" else ""
        for dtype in (BOOL,) if is_logical else TYPES:
            said = "" if dtype not in SCALES else "same"
            for how in hows(dtype):
                yield _cell(Key(kind, dtype.label, how, "4"), one(dtype, how, [IMAGE, IMAGE], IMAGE), domain)
            if dtype not in (*MAIN, I32, BOOL):
                continue
            most = 4 if (kind, dtype) == ("PRELU", F32) else 6  # LEFT_OUT
            for rank in (0, 1, 2, 3, 5, 6):
                shape = SHAPES[rank]
                if rank <= most:
                    yield _cell(Key(kind, dtype.label, said, f"{rank}"), one(dtype, said, [shape] * 2, shape), domain)
            for at, shapes, output in _broadcasts():
                if len(output) <= most:
                    yield _cell(Key(kind, dtype.label, said, "", at), one(dtype, said, shapes, output), domain)
            for how in UNLIKE if dtype in (I8, I16) else ():
                make = one(dtype, how, [IMAGE, (4,)], IMAGE)
                yield _cell(Key(kind, dtype.label, how, "", "4 dimensions and [4]"), make, domain)
            if table is not None:
                for number, name in ((1, "RELU"), (2, "RELU_N1_TO_1"), (3, "RELU6")):
                    fused = {**fields, "fusedActivationFunction": number}
                    for how in (said, "both differ") if said else ("",):
                        make = _simple(kind, dtype, how, [IMAGE, IMAGE], IMAGE, table=table, fields=fused)
                        yield _cell(Key(kind, dtype.label, how, "4", name), make, domain)
            if kind in ("ADD", "SUB") and dtype is I16:
                make = _simple(kind, dtype, "same", [IMAGE, IMAGE], IMAGE, table=table, at_input={"scale": 2**-11})
                yield _cell(Key(kind, dtype.label, "same", "4", "pot_scale_int16"), make)
    for kind in _COMPARED:
        for dtype in TYPES:
            for how in hows(dtype):
                make = _simple(kind, dtype, how, [IMAGE, IMAGE], IMAGE, output_type=BOOL)
                yield _cell(Key(kind, dtype.label, how, "4"), make)
            if dtype in (F32, I8, I32):
                said = "" if dtype not in SCALES else "same"
                for rank in (0, 1, 2, 3, 5, 6):
                    make = _simple(kind, dtype, said, [SHAPES[rank]] * 2, SHAPES[rank], output_type=BOOL)
                    yield _cell(Key(kind, dtype.label, said, f"{rank}"), make)
                for at, shapes, output in _broadcasts():
                    make = _simple(kind, dtype, said, shapes, output, output_type=BOOL)
                    yield _cell(Key(kind, dtype.label, said, "", at), make)


def _broadcasts() -> Iterator[tuple[str, Sequence[Sequence[int]], Sequence[int]]]:
    yield "4 dimensions and [4]", [IMAGE, (4,)], IMAGE
    yield "[4] and 4 dimensions", [(4,), IMAGE], IMAGE
    yield "4 dimensions and a number", [IMAGE, ()], IMAGE
    yield "a column and a row", [(1, 4, 1, 4), (1, 1, 4, 4)], IMAGE
    yield "5 dimensions and [4]", [SHAPES[5], (4,)], SHAPES[5]


def _pools() -> Iterator[Cell]:
    for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        for dtype in TYPES:
            for how in hows(dtype):
                yield _pool(kind, dtype, how)
            if dtype in MAIN:
                said = "" if dtype is F32 else "same"
                for at, more in enumerate((
                    *({"padding": SAME, "filterHeight": 3, "filterWidth": 3}, {"fusedActivationFunction": 1}),
                    *({"fusedActivationFunction": 3}, {"strideH": 1, "strideW": 1, "filterWidth": 3}),
                )):
                    yield _pool(kind, dtype, said, ("SAME, 3x3", "RELU", "RELU6", "stride 1, 2x3")[at], **more)
                yield _pool(kind, dtype, said, "two images", shape=(2, 4, 4, 4))


def _pool(
    kind: str, dtype: DType, how: str, options: str = "", shape: tuple[int, ...] = IMAGE, **more: int
) -> Cell:
    fields = {"padding": VALID, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2, **more}
    sizes = [
        -(-(size - (0 if fields["padding"] == SAME else taps - 1)) // stride)
        for size, taps, stride in (
            (shape[1], fields["filterHeight"], fields["strideH"]),
            (shape[2], fields["filterWidth"], fields["strideW"]),
        )
    ]
    output = (shape[0], *sizes, shape[3])
    make = _simple(kind, dtype, how, [shape], output, table="Pool2DOptions", fields=fields)
    return _cell(Key(kind, dtype.label, how, "4", options), make)


def _reductions() -> Iterator[Cell]:
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"):
        types: Sequence[DType] = (BOOL, F32) if kind in ("REDUCE_ANY", "REDUCE_ALL") else TYPES
        for dtype in types:
            for how in hows(dtype):
                for axes in ((1, 2), (3,)) if dtype in (I8, I16) else ((1, 2),):
                    yield _reduced(kind, dtype, how, IMAGE, axes, keep=False)
            if dtype in (*MAIN, I32, BOOL):
                said = "same" if dtype in SCALES else ""
                for shape, axes in ((IMAGE, (1, 2)), (IMAGE, (-1,)), (IMAGE, (1,)), (IMAGE, (0, 1, 2, 3))):
                    yield _reduced(kind, dtype, said, shape, axes, keep=True)
                for rank, axes in ((1, (0,)), (2, (1,)), (2, (0,)), (3, (1,)), (3, (0, 2)), (5, (2, 3)), (6, (5,))):
                    yield _reduced(kind, dtype, said, SHAPES[rank], axes, keep=False)


def _reduced(kind: str, dtype: DType, how: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> Cell:
    gone = {axis % len(shape) for axis in axes}
    output = [1 if at in gone else size for at, size in enumerate(shape) if keep or at not in gone]
    table, fields = "ReducerOptions", {"keepDims": keep}
    make = _simple(kind, dtype, how, [shape], output, operands=[axes], table=table, fields=fields)
    options = f"axes {' '.join(map(str, axes))}{', keep_dims' if keep else ''}"
    return _cell(Key(kind, dtype.label, how, f"{len(shape)}", options), make, "positive" if "PROD" in kind else "")


def packed(values: Array, dtype: DType) -> Array:
    """Elements of a type of less than a byte, the first in the lowest bits."""
    bits = dtype.packed_bits
    flat = np.asarray(values, np.int8).ravel() & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % (8 // bits), np.int8)]).astype(np.uint8).reshape(-1, 8 // bits)
    shifted = flat << np.arange(0, 8, bits, dtype=np.uint8)
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
        values = rng.normal(size=shape) * 0.3
        return stored(b, name, values.astype(np.float32), dtype, None)
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


_BIAS = {I8: I32, U8: I32, I16: I64}
_LAYER_TYPES = (
    *((F32, F32), (F32, I8), (F32, I4), (F32, I2), (F32, F16), (F16, F16), (I8, I8), (I8, I4), (I8, I2), (I8, F32)),
    *((I16, I8), (I16, I4), (I16, I16), (U8, U8), (I32, I8)),
)


@dataclass(frozen=True)
class Layer:
    """A kind with weights: their shape and channels' axis, that of the image and of the output, and the options."""

    kind: str
    table: str
    weights: tuple[int, ...]
    axis: int
    shape: tuple[int, ...]
    output: tuple[int, ...]
    fields: Mapping[str, Any]
    data: int = 0
    size: bool = False

    def cell(
        self, data: DType, of: DType, way: str, options: str = "", bias: DType | str | None = "", how: str = ""
    ) -> Cell:
        """``way``: of the weights' scales; ``bias``: its type, None for none; ``how``: the activations' scales."""
        said = ", ".join(filter(None, (way, how if data in SCALES else "")))
        how = how or ("scales differ" if data is I16 else "both differ")

        def make(b: ModelBuilder) -> Sequence[Tensor]:
            first, last = points(data, how, 2)
            x = b.input("x", self.shape, data, **first)
            if "computed weights" in way:
                found = scales_of(of, self.weights[self.axis], way, self.axis)
                w = b.input("w", self.weights, of)
                w.quantization = found
            else:
                w = weights(b, self.weights, of, way, self.axis)
            given: list[Tensor] = [x, w]
            if self.size:
                given = [ints(b, self.output), w, x]
            if bias is not None:
                kind = _BIAS.get(data, F32 if data in (F32, F16) else I32) if isinstance(bias, str) else bias
                given.append(bias_of(b, x, w, self.weights[self.axis], kind))
            y = b.tensor("y", self.output, data, **last)  # type: ignore[arg-type]
            return _operator(b, self.kind, given, (y,), self.table, self.fields)

        types = ", ".join((data.label, of.label, *((bias.label,) if isinstance(bias, DType) else ())))
        options = ", ".join(filter(None, (options, "no bias" if bias is None else "")))
        return _cell(Key(self.kind, types, said, f"{len(self.shape)}", options), make)


_CONV = {"padding": SAME, "strideH": 1, "strideW": 1}


def _conv(options: str = "", **more: Any) -> Iterator[tuple[str, Layer]]:
    shape, taps = more.pop("shape", (1, 5, 4, 4)), more.pop("taps", (3, 3))
    depth = more.pop("depth", shape[3])
    fields = {**_CONV, **more}
    output = (shape[0], *_sizes(shape, taps, fields), 4)
    yield options, Layer("CONV_2D", "Conv2DOptions", (4, *taps, depth), 0, shape, output, fields)
    if depth == shape[3]:
        for multiplier in (1, 2):
            count = depth * multiplier
            said = ", ".join(filter(None, (options, f"multiplier {multiplier}" if multiplier > 1 else "")))
            more_fields = {**fields, "depthMultiplier": multiplier}
            output = (*output[:3], count)
            table = "DepthwiseConv2DOptions"
            yield said, Layer("DEPTHWISE_CONV_2D", table, (1, *taps, count), 3, shape, output, more_fields)
    if not options.startswith(("dil", "gro")):
        size = (shape[0], *((size * fields["strideH"] + (taps[0] - 1) * (fields["padding"] == VALID)) for size in shape[1:3]), 4)
        yield options, Layer(
            "TRANSPOSE_CONV", "TransposeConvOptions", (4, *taps, depth), 0, shape, size, fields, size=True
        )


def _sizes(shape: Sequence[int], taps: Sequence[int], fields: Mapping[str, Any]) -> list[int]:
    found = []
    for at, axis in enumerate("HW"):
        reach = (taps[at] - 1) * fields.get(f"dilation{axis}Factor", 1) + 1
        size = shape[1 + at] - (0 if fields["padding"] == SAME else reach - 1)
        found.append(-(-size // fields[f"stride{axis}"]))
    return found


def _dense(options: str = "", shape: tuple[int, ...] = (2, 8), keep: bool = False, **more: Any) -> tuple[str, Layer]:
    output = (*shape[:-1], 5) if keep else (int(np.prod(shape)) // 8, 5)
    fields = {"keepNumDims": keep, **more}
    return options, Layer("FULLY_CONNECTED", "FullyConnectedOptions", (5, 8), 0, shape, output, fields)


def _layers() -> Iterator[Cell]:
    plain = [*_conv(), _dense()]
    for options, layer in plain:
        for data, of in _LAYER_TYPES:
            ways = ("",) if of in (F32, F16) else ("per tensor", "per channel") if of is not U8 else ("per tensor",)
            for way in ways:
                yield layer.cell(data, of, way, options)
                if options == "" and layer.kind != "DEPTHWISE_CONV_2D":  # LEFT_OUT
                    yield layer.cell(data, of, way, options, bias=None)
        if options:
            continue
        for data, of in ((I8, I8), (I16, I8), (I8, I4)):
            yield layer.cell(data, of, "per tensor, weights' zero point")
            for how in ("same", "zero points differ", "output wider"):
                yield layer.cell(data, of, "per channel", how=how)
            if data is I8 or layer.kind == "FULLY_CONNECTED":  # LEFT_OUT
                yield layer.cell(data, of, "per channel", bias=I64 if data is I8 else I32)
        for data, of in ((F32, F32), (I8, I8), (I16, I8)):
            yield layer.cell(data, of, "" if of is F32 else "per tensor, computed weights")
        for number, name in ((1, "RELU"), (2, "RELU_N1_TO_1"), (3, "RELU6")):
            fused = Layer(**{**vars(layer), "fields": {**layer.fields, "fusedActivationFunction": number}})
            for data, of in ((F32, F32), (I8, I8), (I16, I8), (I8, I4)):
                yield fused.cell(data, of, "" if of is F32 else "per tensor" if of is I4 else "per channel", name)
    for options, layer in (
        *_conv("VALID", padding=VALID),
        *_conv("stride 2", strideH=2, strideW=2),
        *_conv("stride 2, VALID", strideH=2, strideW=2, padding=VALID),
        *_conv("stride 3, 2x2", strideH=3, strideW=3, taps=(2, 2)),
        *_conv("dilation 2", dilationHFactor=2, dilationWFactor=2),
        *_conv("1x1", taps=(1, 1)),
        *_conv("1x3, one row", taps=(1, 3), shape=(1, 1, 8, 4)),
        *_conv("groups", depth=2),
        *_conv("two images", shape=(2, 5, 4, 4)),
        *_conv("one channel in", shape=(1, 5, 4, 1)),
        _dense("one row", (1, 8)),
        _dense("one dimension", (8,)),
        _dense("three dimensions", (2, 3, 8)),
        _dense("keep_num_dims", (2, 3, 8), keep=True),
        _dense("four dimensions, keep_num_dims", (1, 2, 3, 8), keep=True),
    ):
        for data, of in ((F32, F32), (I8, I8), (I16, I8), (I8, I4)):
            for way in ("",) if of is F32 else ("per tensor", "per channel"):
                yield layer.cell(data, of, way, options)


def _blockwise() -> Iterator[Cell]:
    from ai_edge_litert import schema_py_generated as schema

    for data, of in ((F32, I4), (I8, I4), (F32, I2)):

        def make(b: ModelBuilder, data: DType = data, of: DType = of) -> Sequence[Tensor]:
            x = b.input("x", (2, 64), data)
            w = weights(b, (4, 64), of, "", 0)
            scales = b.constant("scales", np.full((4, 2), 0.05, np.float16))
            details = schema.BlockwiseQuantizationT()
            details.scales, details.zeroPoints, details.blockSize = b.graph.tensors.index(scales), -1, 32
            kind = schema.QuantizationDetails.BlockwiseQuantization
            w.quantization = Quantization(
                *(np.zeros(0, np.float32), np.zeros(0, np.int64), 0), {"detailsType": kind, "details": details}
            )
            y = b.tensor("y", (2, 4), data, scale=0.2)
            return _operator(b, "FULLY_CONNECTED", (x, w, None), (y,), "FullyConnectedOptions", {})

        yield _cell(Key("FULLY_CONNECTED", f"{data.label}, {of.label}", "block-wise, blocks of 32", "2", "no bias"), make)


def _matmuls() -> Iterator[Cell]:
    pairs = ((F32, F32), (F32, I8), (F32, I4), (I8, I8), (I16, I16), (I16, I8), (I8, I4), (I32, I32), (U8, U8))
    for data, of in pairs:
        usual = "scales differ" if data is I16 else "both differ" if data in SCALES else ""
        for how in ("same", *UNLIKE) if data in (I8, I16) else ("",):
            if of is not I4:  # no network computes it
                yield _matmul(data, of, how)
        if of in SCALES or of is I4:
            for way in ("constant, per tensor", "constant, per channel"):
                yield _matmul(data, of, usual, way=way)
                yield _matmul(data, of, usual, way=way, y=True)
        if of is F32:
            yield _matmul(data, of, "", way="constant")
            yield _matmul(data, of, "", way="constant", y=True)
        if data in MAIN and of is data:
            for shapes in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((1, 2, 3, 4), (1, 2, 4, 5)), ((2, 3, 4), (1, 4, 5))):
                yield _matmul(data, of, usual, shapes)
            for x, y in ((True, False), (False, True), (True, True)):
                yield _matmul(data, of, usual, x=x, y=y)
            yield _matmul(data, of, usual, ((2, 3, 4), (4, 5)), x=True)


def _matmul(
    data: DType,
    of: DType,
    how: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((2, 3, 4), (2, 4, 5)),
    x: bool = False,
    y: bool = False,
    way: str = "",
) -> Cell:
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if swapped else shape for shape, swapped in zip(shapes, (x, y), strict=True)
    )
    output = (*max(shapes[0][:-2], shapes[1][:-2], key=len), shapes[0][-2], shapes[1][-1])

    def make(b: ModelBuilder) -> Sequence[Tensor]:
        found = points(data, how, 3)
        a = b.input("a", left, data, **found[0])
        axis = len(right) - (2 if y else 1)
        if way:
            other = weights(b, right, of, way, axis)
        else:
            other = b.input("b", right, of, **(found[1] if of in SCALES and data in SCALES else {}))
        last = {**found[2], "scale": found[2]["scale"] * 8} if found[2] else {}
        made = b.tensor("y", output, data, **last)  # type: ignore[arg-type]
        return _operator(b, "BATCH_MATMUL", (a, other), (made,), "BatchMatMulOptions", {"adjX": x, "adjY": y})

    options = ", ".join((*(["adj_x"] * x), *(["adj_y"] * y), f"{list(left)} by {list(right)}".replace(",", "")))
    said = ", ".join(filter(None, (how, f"right side {way}" if way else "")))
    return _cell(Key("BATCH_MATMUL", f"{data.label}, {of.label}", said, f"{len(left)}", options), make)


Moved = tuple[str, str, Sequence[Sequence[int]], Sequence[int], Sequence[object], str | None, Mapping[str, Any]]
"""A kind, its options in words, shapes of activations and of the output, constant operands, options."""


def _moved() -> Iterator[Moved]:
    yield "RESHAPE", "", [IMAGE], (2, 32), [(2, 32)], "ReshapeOptions", {"newShape": np.asarray((2, 32), np.int32)}
    yield "RESHAPE", "from 6 dimensions", [SHAPES[6]], (48,), [(-1,)], "ReshapeOptions", {}
    yield "RESHAPE", "shape in the options", [IMAGE], (64,), [], "ReshapeOptions", {"newShape": np.asarray((64,), np.int32)}
    yield "EXPAND_DIMS", "", [IMAGE], (1, *IMAGE), [0], None, {}
    yield "EXPAND_DIMS", "", [(3,)], (3, 1), [-1], None, {}
    yield "SQUEEZE", "", [IMAGE], (4, 4, 4), [], "SqueezeOptions", {"squeezeDims": np.asarray((0,), np.int32)}
    for order in ((0, 2, 1, 3), (3, 2, 1, 0)):
        yield "TRANSPOSE", "", [(2, 3, 4, 5)], [(2, 3, 4, 5)[at] for at in order], [order], None, {}
    yield "TRANSPOSE", "", [(3, 4)], (4, 3), [(1, 0)], None, {}
    yield "TRANSPOSE", "", [(3,)], (3,), [(0,)], None, {}
    yield "TRANSPOSE", "", [(2, 3, 4)], (4, 2, 3), [(2, 0, 1)], None, {}
    yield "TRANSPOSE", "", [SHAPES[5]], (4, 2, 3, 2, 1), [(4, 3, 2, 1, 0)], None, {}
    yield "TRANSPOSE", "", [SHAPES[6]], (4, 2, 3, 1, 2, 1), [(5, 4, 3, 2, 1, 0)], None, {}
    for kind, table in (("PAD", "PadOptions"), ("MIRROR_PAD", "MirrorPadOptions")):
        for rank in (1, 2, 3, 4, 5, 6):
            pads = [(1, 1) if SHAPES[rank][at] > 2 else (0, 0) for at in range(rank)]
            shape = [size + 2 * (size > 2) for size in SHAPES[rank]]
            yield kind, "", [SHAPES[rank]], shape, [pads], table, {}
    yield "MIRROR_PAD", "symmetric", [(3, 4)], (5, 6), [((1, 1), (1, 1))], "MirrorPadOptions", {"mode": 1}
    for axis in (0, 1, 3, -1):
        shape = [size * 2 if at == axis % 4 else size for at, size in enumerate(IMAGE)]
        yield "CONCATENATION", f"axis {axis}", [IMAGE] * 2, shape, [], "ConcatenationOptions", {"axis": axis}
    for rank in (1, 2, 3, 5, 6):
        shape = [*SHAPES[rank][:-1], SHAPES[rank][-1] * 2]
        yield "CONCATENATION", "axis -1", [SHAPES[rank]] * 2, shape, [], "ConcatenationOptions", {"axis": rank - 1}
    for count in (10, 11):
        yield "CONCATENATION", f"{count} parts", [(1, 2)] * count, (1, 2 * count), [], "ConcatenationOptions", {"axis": 1}
    for rank in (1, 3, 4, 5):
        shape = SHAPES[rank]
        yield "PACK", "", [shape] * 2, (2, *shape), [], "PackOptions", {"valuesCount": 2, "axis": 0}
    yield "PACK", "last axis", [(2, 3)] * 2, (2, 3, 2), [], "PackOptions", {"valuesCount": 2, "axis": -1}
    for rank in (1, 2, 3, 4, 5):  # LEFT_OUT
        begin, size = [0] * (rank - 1) + [1], [*SHAPES[rank][:-1], 2]
        yield "SLICE", "", [SHAPES[rank]], size, [begin, size], None, {}
    for rank in (1, 2, 3, 4, 5):
        shape, (begin, end, by) = SHAPES[rank], ([0] * (rank - 1) + [1], [*SHAPES[rank]], [1] * (rank - 1) + [2])
        output = [*shape[:-1], -(-(shape[-1] - 1) // 2)]
        yield "STRIDED_SLICE", "", [shape], output, [begin, end, by], "StridedSliceOptions", {}
    for name, output, limits, masks in (
        ("backwards", (2, 3, 4), ((0, 0, 3), (2, 3, 0), (1, 1, -1)), {"endMask": 4}),
        ("shrink_axis", (2, 4), ((0, 1, 0), (2, 2, 4), (1, 1, 1)), {"shrinkAxisMask": 2}),
        ("begin and end masks", (2, 3, 2), ((1, 1, 2), (1, 2, 3), (1, 1, 1)), {"beginMask": 3, "endMask": 7}),
        ("ellipsis", (2, 3, 2), ((0, 1), (0, 3), (1, 1)), {"ellipsisMask": 1}),
        ("new axis", (1, 2, 3, 4), ((0, 0), (1, 2), (1, 1)), {"newAxisMask": 1}),
    ):
        yield "STRIDED_SLICE", name, [(2, 3, 4)], output, limits, "StridedSliceOptions", masks
    for axis, output in ((0, (2, 3)), (1, (5, 2))):
        yield "GATHER", f"axis {axis}", [(5, 3)], output, [(2, 0)], "GatherOptions", {"axis": axis}
    yield "GATHER", "axis 3", [IMAGE], (1, 4, 4, 2), [(2, 0)], "GatherOptions", {"axis": 3}
    yield "GATHER", "indices of 2 dimensions", [(5, 3)], (2, 2, 3), [((2, 0), (1, 4))], "GatherOptions", {"axis": 0}
    yield "GATHER", "batch_dims", [(2, 5)], (2, 2), [((2, 0), (1, 4))], "GatherOptions", {"axis": 1, "batchDims": 1}
    yield "GATHER_ND", "", [(3, 4)], (2,), [((0, 1), (2, 3))], None, {}
    yield "GATHER_ND", "rows", [(3, 4)], (2, 4), [((1,), (2,))], None, {}
    yield "TILE", "", [(2, 3)], (4, 9), [(2, 3)], None, {}
    yield "BROADCAST_TO", "", [(1, 3)], (2, 3), [(2, 3)], None, {}
    yield "BROADCAST_TO", "", [(3,)], (1, 2, 2, 2, 3), [(1, 2, 2, 2, 3)], None, {}
    yield "REVERSE_V2", "", [(2, 3, 4)], (2, 3, 4), [(1,)], None, {}
    yield "REVERSE_V2", "", [IMAGE], IMAGE, [(3,)], None, {}
    yield "SPACE_TO_DEPTH", "", [IMAGE], (1, 2, 2, 16), [], "SpaceToDepthOptions", {"blockSize": 2}
    yield "DEPTH_TO_SPACE", "", [IMAGE], (1, 8, 8, 1), [], "DepthToSpaceOptions", {"blockSize": 2}
    none, two = ((0, 0), (0, 0)), ((1, 1), (0, 0))
    yield "SPACE_TO_BATCH_ND", "padding", [IMAGE], (4, 3, 2, 4), [(2, 2), two], None, {}
    yield "SPACE_TO_BATCH_ND", "", [IMAGE], (4, 2, 2, 4), [(2, 2), none], None, {}
    yield "SPACE_TO_BATCH_ND", "", [(1, 4, 3)], (2, 2, 3), [(2,), ((0, 0),)], None, {}
    yield "SPACE_TO_BATCH_ND", "", [(1, 4, 4, 4, 2)], (4, 2, 2, 4, 2), [(2, 2), none], None, {}
    yield "BATCH_TO_SPACE_ND", "", [(4, 2, 2, 4)], IMAGE, [(2, 2), none], None, {}
    yield "BATCH_TO_SPACE_ND", "crops", [(4, 2, 2, 4)], (1, 2, 4, 4), [(2, 2), two], None, {}
    yield "BATCH_TO_SPACE_ND", "", [(2, 2, 3)], (1, 4, 3), [(2,), ((0, 0),)], None, {}
    for kind in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        table = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        for name, fields in (
            ("", {}),
            ("align_corners", {"alignCorners": True}),
            ("half_pixel_centers", {"halfPixelCenters": True}),
        ):
            yield kind, name, [IMAGE], (1, 8, 7, 4), [(8, 7)], table, fields
            yield kind, f"{name}{', ' if name else ''}smaller", [(1, 8, 7, 2)], (1, 3, 3, 2), [(3, 3)], table, fields


SAME_SCALE = "same"
_MOVED_EVERY_TYPE = frozenset(
    {"CONCATENATION", "GATHER", "PACK", "PAD", "RESHAPE", "REVERSE_V2", "SLICE", "STRIDED_SLICE", "TRANSPOSE", "TILE"}
)


def _movers() -> Iterator[Cell]:
    seen: set[str] = set()
    for kind, options, shapes, output, operands, table, fields in _moved():
        types = MAIN if kind in seen else TYPES
        for dtype in types:
            for how in hows(dtype) if kind not in seen else hows(dtype)[:1]:
                more = {"operands": operands, "table": table, "fields": fields}
                make = _simple(kind, dtype, how, shapes, output, **more)  # type: ignore[arg-type]
                yield _cell(Key(kind, dtype.label, how, f"{len(shapes[0])}", _said(options, kind, shapes, output)), make)
        seen.add(kind)
    for kind in ("SPLIT", "SPLIT_V", "UNPACK"):
        for dtype in TYPES:
            for how in hows(dtype):
                yield _cell(Key(kind, dtype.label, how, "4"), _cut(kind, dtype, how, (1, 4, 4, 2), 3))
            if dtype in MAIN:
                for rank, axis in ((1, 0), (2, 0), (3, -1), (5, 1), (6, 1)):
                    shape = [4 if at == axis % rank else size for at, size in enumerate(SHAPES[rank])]
                    said = hows(dtype)[0]
                    make = _cut(kind, dtype, said, shape, axis)
                    yield _cell(Key(kind, dtype.label, said, f"{rank}", f"axis {axis}"), make)
    for dtype in TYPES:
        for how in hows(dtype):
            yield _cell(Key("PADV2", dtype.label, how, "4"), _pad_with(dtype, how))
            yield _cell(Key("DYNAMIC_UPDATE_SLICE", dtype.label, how, "2"), _update(dtype, how))
            yield _cell(Key("FILL", dtype.label, how, "1"), _fill(dtype, how))
            for kind in ("SELECT", "SELECT_V2"):
                yield _cell(Key(kind, dtype.label, how, "4"), _select(kind, dtype, how, IMAGE, IMAGE))
        said = hows(dtype)[0]
        for kind in ("SELECT", "SELECT_V2") if dtype in (*MAIN, I32) else ():
            yield _cell(Key(kind, dtype.label, said, "2", "a condition a row"), _select(kind, dtype, said, (3,), (3, 4)))
            yield _cell(Key(kind, dtype.label, said, "4", "one condition"), _select(kind, dtype, said, (), IMAGE))
            make = _select(kind, dtype, said, (1, 4, 4, 1), IMAGE)
            yield _cell(Key(kind, dtype.label, said, "4", "a condition a pixel"), make)
            yield _cell(Key(kind, dtype.label, said, "5"), _select(kind, dtype, said, SHAPES[5], SHAPES[5]))
            yield _cell(Key(kind, dtype.label, said, "6"), _select(kind, dtype, said, SHAPES[6], SHAPES[6]))
        yield _cell(Key("SHAPE", dtype.label, "", "3"), _simple("SHAPE", dtype, "", [(2, 3, 4)], (3,), **_TO_I32))
        make = _simple("RANK", dtype, "", [(2, 3, 4)], (), output_type=I32)
        yield _cell(Key("RANK", dtype.label, "", "3"), make)
        for kind in ("ARG_MAX", "ARG_MIN"):
            for to in (I32, I64):
                fields = {"outputType": 2 if to is I32 else 4}
                more = {"operands": [3], "table": f"Arg{kind[4:].title()}Options", "fields": fields}
                make = _simple(kind, dtype, said, [IMAGE], (1, 4, 4), output_type=to, **more)  # type: ignore[arg-type]
                yield _cell(Key(kind, f"{dtype.label}, {to.label}", said, "4"), make)
        for fields in ({}, {"exclusive": True}, {"reverse": True}):
            if dtype in MAIN or not fields:
                for how in hows(dtype) if not fields else (said,):
                    more = {"operands": [3], "table": "CumsumOptions", "fields": fields}
                    make = _simple("CUMSUM", dtype, how, [IMAGE], IMAGE, **more)  # type: ignore[arg-type]
                    yield _cell(Key("CUMSUM", dtype.label, how, "4", " ".join(fields)), make)
        if dtype in (F32, I8, U8, I32):
            yield _cell(Key("EMBEDDING_LOOKUP", dtype.label, said, "2"), _look_up(dtype))


_TO_I32: Mapping[str, Any] = {"output_type": I32, "table": "ShapeOptions", "fields": {"outType": 2}}


def _said(options: str, kind: str, shapes: Sequence[Sequence[int]], output: Sequence[int]) -> str:
    """The options; the shapes where they say which of two of the same rank it is."""
    if kind == "TRANSPOSE":
        return f"{list(shapes[0])} to {list(output)}".replace(",", "")
    return options


def _cut(kind: str, dtype: DType, how: str, shape: Sequence[int], axis: int) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, last = points(dtype, how, 2)
        x, at = b.input("x", shape, dtype, **first), axis % len(shape)
        if kind == "UNPACK":
            output = [size for number, size in enumerate(shape) if number != at]
            parts = [b.tensor(f"y{number}", output, dtype, **last) for number in range(shape[at])]  # type: ignore[arg-type]
            return _operator(b, kind, (x,), parts, "UnpackOptions", {"num": shape[at], "axis": axis})
        output = [size // 2 if number == at else size for number, size in enumerate(shape)]
        parts = [b.tensor(f"y{number}", output, dtype, **last) for number in range(2)]  # type: ignore[arg-type]
        if kind == "SPLIT":
            return _operator(b, kind, (ints(b, axis), x), parts, "SplitOptions", {"numSplits": 2})
        operands = (x, ints(b, (shape[at] // 2,) * 2), ints(b, axis))
        return _operator(b, kind, operands, parts, "SplitVOptions", {"numSplits": 2})

    return make


def _value(b: ModelBuilder, dtype: DType, at: Mapping[str, float], name: str) -> Tensor:
    """One number of a type, as a constant."""
    tensor = b.tensor("unused", (), dtype, **at)  # type: ignore[arg-type]
    b.graph.tensors.remove(tensor)
    kind = "float16" if dtype is F16 else dtype.label
    return stored(b, name, np.asarray([1 if dtype is BOOL else 7], kind), dtype, tensor.quantization)


def _pad_with(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        pads = ints(b, ((0, 0), (1, 0), (0, 2), (0, 0)))
        x, y = b.input("x", IMAGE, dtype, **first), b.tensor("y", (1, 5, 6, 4), dtype, **last)  # type: ignore[arg-type]
        return _operator(b, "PADV2", (x, pads, _value(b, dtype, second, "v")), (y,), "PadV2Options", {})

    return make


def _update(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        x, u = b.input("x", (4, 5), dtype, **first), b.input("u", (2, 3), dtype, **second)
        y = b.tensor("y", (4, 5), dtype, **last)  # type: ignore[arg-type]
        return _operator(b, "DYNAMIC_UPDATE_SLICE", (x, u, ints(b, (1, 1))), (y,), None, {})

    return make


def _fill(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, last = points(dtype, how, 2)
        x, y = b.input("x", (), dtype, **first), b.tensor("y", (2, 3), dtype, **last)  # type: ignore[arg-type]
        return _operator(b, "FILL", (ints(b, (2, 3)), x), (y,), None, {})

    return make


def _select(kind: str, dtype: DType, how: str, condition: Sequence[int], shape: Sequence[int]) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        which = b.input("which", condition, BOOL)
        sides = [b.input("x0", shape, dtype, **first), b.input("x1", shape, dtype, **second)]
        y = b.tensor("y", shape, dtype, **last)  # type: ignore[arg-type]
        return _operator(b, kind, (which, *sides), (y,), None, {})

    return make


def _look_up(dtype: DType) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        held = weights(b, (6, 4), dtype if dtype is not I32 else F32, "per tensor", 0, "table")
        if dtype is I32:
            held = stored(b, "numbers", np.arange(24).reshape(6, 4), I32, None)
        y = b.tensor("y", (3, 4), dtype)
        y.quantization = held.quantization
        x = b.input("x", (3, 4), dtype)
        x.quantization = held.quantization
        total = b.tensor("total", (3, 4), BOOL)
        _operator(b, "EMBEDDING_LOOKUP", (ints(b, (1, 5, 0)), held), (y,), None, {})
        return _operator(b, "LESS", (x, y), (total,), None, {})

    return make


def _conversions() -> Iterator[Cell]:
    for source in (F32, F16, I8, I16, I32, I64, U8, BOOL, DType.UINT32):
        for to in (F32, F16, I8, I16, I32, I64, U8, BOOL):
            if source is not to:
                make = _converted("CAST", source, to)
                yield _cell(Key("CAST", f"{source.label}, {to.label}", "", "4"), make, "small")
    for source in (I4, I2, F16, BF16):
        yield _cell(Key("CAST", f"{source.label}, float32", "", "2", "of a constant"), _of_constant("CAST", source, ""))
        make = _of_constant("CAST", source, "", I32)
        yield _cell(Key("CAST", f"{source.label}, int32", "", "2", "of a constant"), make)
    for source in (F32, I8, I16, I32, U8):
        for to in (I8, I16, I32, U8, I4):
            for how in ("same", *UNLIKE[:3:2]) if source in SCALES and to in SCALES else ("same",):
                make = _converted("QUANTIZE", source, to, how)
                yield _cell(Key("QUANTIZE", f"{source.label}, {to.label}", how, "4"), make)
    for rank in (0, 1, 2, 3, 5, 6):
        yield _cell(Key("QUANTIZE", "float32, int8", "same", f"{rank}"), _converted("QUANTIZE", F32, I8, shape=SHAPES[rank]))
        make = _converted("DEQUANTIZE", I8, F32, shape=SHAPES[rank])
        yield _cell(Key("DEQUANTIZE", "int8, float32", "same", f"{rank}"), make)
    yield _cell(Key("QUANTIZE", "float32, int8", "per channel", "2", "of a constant"), _quantized_constant)
    for source in (I8, I16, U8, I32, F16):
        yield _cell(Key("DEQUANTIZE", f"{source.label}, float32", "same", "4"), _converted("DEQUANTIZE", source, F32))
    for source in (I8, I4, I2, I16, U8, F16, BF16):
        for way in ("per tensor", "per channel") if source not in (F16, BF16) else ("",):
            if (source, way) != (U8, "per channel"):
                make = _of_constant("DEQUANTIZE", source, way)
                yield _cell(Key("DEQUANTIZE", f"{source.label}, float32", way, "2", "of a constant"), make)
    make = _of_constant("DEQUANTIZE", I8, "per channel", axis=1)
    yield _cell(Key("DEQUANTIZE", "int8, float32", "per channel of axis 1", "2", "of a constant"), make)


def _converted(kind: str, source: DType, to: DType, how: str = "same", shape: tuple[int, ...] = IMAGE) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        at = points(source, how, 2)[0]
        x = b.input("x", shape, source, **at)
        last = points(to, how, 2)[-1]
        y = b.tensor("y", shape, to, **last)  # type: ignore[arg-type]
        if kind == "QUANTIZE":
            for each in (x, y):
                if each.dtype in (I32, I4):
                    each.quantization = Quantization(np.asarray([0.1], np.float32), np.asarray([0], np.int64))
        if kind == "CAST":
            x.quantization = y.quantization = None
        return _operator(b, kind, (x,), (y,), "CastOptions" if kind == "CAST" else None, {})

    return make


def _of_constant(kind: str, source: DType, way: str, to: DType = F32, axis: int = 0) -> Make:
    """A constant, converted and added to the input."""

    def make(b: ModelBuilder) -> Sequence[Tensor]:
        x, held = b.input("x", (4, 6), to), weights(b, (4, 6), source, way, axis)
        made, y = b.tensor("made", (4, 6), to), b.tensor("y", (4, 6), to)
        if kind == "CAST":
            held.quantization = None
        _operator(b, kind, (held,), (made,), "CastOptions" if kind == "CAST" else None, {})
        return _operator(b, "ADD", (x, made), (y,), "AddOptions", {})

    return make


def _quantized_constant(b: ModelBuilder) -> Sequence[Tensor]:
    """Floats quantized with a scale a channel, and read by DEQUANTIZE."""
    x = b.input("x", (4, 6), F32)
    y = b.tensor("y", (4, 6), I8)
    y.quantization = scales_of(I8, 4, "per channel", 0)
    return _operator(b, "QUANTIZE", (x,), (y,), None, {})


def _others() -> Iterator[Cell]:
    make: Make
    for dtype in (F32, I32, I64):

        def make(b: ModelBuilder, dtype: DType = dtype) -> Sequence[Tensor]:
            limits = [b.constant(f"c{at}", np.asarray(value, dtype.label)) for at, value in enumerate((0, 8, 2))]
            made, y = b.tensor("made", (4,), dtype), b.tensor("y", (4,), dtype)
            _operator(b, "RANGE", limits, (made,), None, {})
            return _operator(b, "MAXIMUM", (b.input("x", (4,), dtype), made), (y,), None, {})

        yield _cell(Key("RANGE", dtype.label, "", "1"), make)
        more = {"operands": [(1, 1)], "fields": {}}
        make_args = _simple("BROADCAST_ARGS", dtype, "", [(2,)], (2,), **more)  # type: ignore[arg-type]
        if dtype is I32:
            yield _cell(Key("BROADCAST_ARGS", dtype.label, "", "1"), make_args, "positive")
    for dtype in (F32, I8, BOOL):

        def make(b: ModelBuilder, dtype: DType = dtype) -> Sequence[Tensor]:
            x, y = b.input("x", (3,), I32), b.tensor("y", (3, 5), dtype)
            on, off = (_value(b, dtype, {}, name) for name in ("on", "off"))
            for each in (on, off):
                each.shape = ()
            off.buffer = Buffer(np.zeros_like(off.buffer.data))
            return _operator(b, "ONE_HOT", (x, ints(b, 5), on, off), (y,), "OneHotOptions", {"axis": -1})

        yield _cell(Key("ONE_HOT", f"int32, {dtype.label}", "", "1"), make)
    for dtype in (F32, I8, I32):

        def make(b: ModelBuilder, dtype: DType = dtype) -> Sequence[Tensor]:
            x = b.input("x", (2, 6), dtype)
            outputs = b.tensor("y", (2, 3), dtype), b.tensor("at", (2, 3), I32)
            return _operator(b, "TOPK_V2", (x, ints(b, 3)), outputs, None, {})

        yield _cell(Key("TOPK_V2", dtype.label, "", "2"), make)
    for data, of, state in ((F32, F32, F32), (I8, I8, I8), (I8, I8, I16), (F32, I8, F32)):
        for rank in (1, 2):
            yield _cell(
                Key("SVDF", f"{data.label}, {of.label}, {state.label}", "", "2", f"rank {rank}, two outputs"),
                partial(_svdf, data=data, of=of, state=state, rank=rank),
            )
    yield Cell(Key("IF", "float32"), if_model)
    yield Cell(Key("WHILE", "int32, float32"), while_model)
    yield Cell(Key("CALL_ONCE", "int8"), streaming_model)


def _svdf(b: ModelBuilder, data: DType, of: DType, state: DType, rank: int) -> Sequence[Tensor]:
    filters, memory = 2 * rank, 4
    x = b.input("x", (1, 4), data)
    features, times = weights(b, (filters, 4), of, "per tensor", 0, "features"), weights(
        b, (filters, memory), state if state is I16 else of, "per tensor", 1, "time"
    )
    held = b.tensor("state", (1, filters * memory), state)
    held.is_variable = True
    if state is not F32:
        held.quantization = Quantization(np.asarray([0.1 if state is I8 else 0.001], np.float32), np.zeros(1, np.int64))
    bias = stored(b, "bias", np.asarray([1, -2]), F32 if data is F32 else I32, None)
    if data is I8:
        assert held.quantization is not None
        assert times.quantization is not None
        bias.quantization = Quantization(held.quantization.scale * times.quantization.scale, np.zeros(1, np.int64))
    y = b.tensor("y", (1, 2), data)
    return _operator(b, "SVDF", (x, features, times, bias, held), (y,), "SVDFOptions", {"rank": rank})


def _plain() -> Iterator[Cell]:
    for family in (_unary, _binary, _pools, _reductions, _layers, _blockwise, _matmuls, _movers, _conversions, _others):
        yield from family()


def cells() -> list[Cell]:
    """All cells, each key once; then the first of each kind and type with its constant operands computed."""
    found = {cell.key: cell for cell in _plain()}
    seen: set[tuple[str, str]] = set()
    for cell in [*found.values()]:
        if cell.key[:2] not in seen and cell.key.kind not in ("IF", "WHILE", "CALL_ONCE"):
            seen.add(cell.key[:2])
            found |= {each.key: each for each in _computed(cell)}
    return [*found.values()]


_STEERED = ("int32", "int64")


def _computed(cell: Cell) -> Iterator[Cell]:
    """The cell with operands computed that it has as constants: by the network's input, or from constants."""
    model = cell.make()
    if len(model.main.operators) > 1:
        return
    for at, tensor in enumerate(model.main.tensors):
        if not tensor.is_constant or not tensor.uses or tensor.dtype.label not in TYPE_LABELS:
            continue
        slot = tensor.uses[0].slot
        options = ", ".join(filter(None, (cell.key.options, f"operand {slot} computed")))
        values = constant_of(tensor).reshape(tensor.shape)
        yield Cell(cell.key._replace(options=options), partial(_as_input, cell.make, at), cell.domain, (values,))
        if tensor.dtype is I32 and tensor.quantization is None:
            key = cell.key._replace(options=f"{options} from constants")
            yield Cell(key, partial(_from_constants, cell.make, at), cell.domain)


TYPE_LABELS = frozenset(each.label for each in TYPES)


def _as_input(make: Callable[[], Model], at: int) -> Model:
    model = read_model(write_model(make()))
    tensor = model.main.tensors[at]
    tensor.buffer = Buffer(None)
    model.main.inputs = (*model.main.inputs, tensor)
    return model


def _from_constants(make: Callable[[], Model], at: int) -> Model:
    """The constant as the sum of itself and zeros."""
    model = read_model(write_model(make()))
    tensor = model.main.tensors[at]
    use = tensor.uses[0]
    zeros = Tensor(f"{tensor.name}/zeros", tensor.shape, tensor.dtype, Buffer(np.zeros(tensor.nbytes, np.uint8)))
    total = Tensor(f"{tensor.name}/sum", tensor.shape, tensor.dtype, Buffer(None))
    model.main.tensors += [zeros, total]
    model.main.set_input(use.operator, use.slot, total)
    model.main.add_operator(Operator(OpCode("ADD", 1, None), (tensor, zeros), (total,)), 0)
    return model


ANY = "any"
_ON_TFLM, _ON_LITERT = ("equal", "equal", "crashes"), ("crashes", "equal", "equal")
_WIDTH = "a bias of the other width"
LEFT_OUT: Mapping[Key, tuple[str, str, str]] = {
    Key("CONV_2D", "int16, int8, int32", ANY, "4", _WIDTH): ("beyond", "beyond", "1"),
    Key("DEPTHWISE_CONV_2D", "int16, int8, int32", ANY, "4", _WIDTH): ("refuses", "refuses", "beyond"),
    Key("DEPTHWISE_CONV_2D", ANY, ANY, "4", "no bias"): _ON_LITERT,
    Key("PRELU", "float32", "", "5 and more"): _ON_TFLM,
    Key("SLICE", ANY, ANY, "6"): _ON_TFLM,
    Key("SOFTMAX", "int8, int16", "as written", "4"): ("equal", "crashes", "refuses"),
    Key("SVDF", "float32, float32, float32", "", "2", "no bias"): _ON_TFLM,
    Key("TRANSPOSE_CONV", "int16, int8, int32", ANY, "4", _WIDTH): ("beyond", "beyond", "beyond"),
}
"""Cells that end the process of a runtime or read beyond a constant, and what LiteRT, its reference kernels, and TFLM make
of them. They are told of here, and nothing makes them."""
