"""Cells of conversions between types and scales, and of kinds that converters write for shapes and lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from scripts.fuzzing.cell import (
    BF16,
    BOOL,
    F16,
    F32,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    IMAGE,
    SCALES,
    SHAPES,
    TYPES,
    U8,
    Cell,
    Key,
    Make,
    add_operator,
    ints,
    number_of,
    one_cell,
    points,
    scales_of,
    simple,
    weights,
)
from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import Buffer, DType, Quantization, Tensor


def cells() -> Iterator[Cell]:
    """Conversions of types and scales, and kinds that converters write for shapes and lists."""
    yield from _casts()
    yield from _quantizes()
    yield from _dequantizes()
    for dtype in (F32, I32, I64):
        yield one_cell(Key("RANGE", dtype.label, "", "1"), partial(_range, dtype=dtype))
    make = simple("BROADCAST_ARGS", I32, "", [(2,)], (2,), operands=[(1, 1)])
    yield one_cell(Key("BROADCAST_ARGS", I32.label, "", "1"), make, "positive")
    for dtype in (F32, I8, BOOL):
        yield one_cell(Key("ONE_HOT", f"int32, {dtype.label}", "", "1"), partial(_one_hot, dtype=dtype))
    for dtype in (F32, I8, I32):
        yield one_cell(Key("TOPK_V2", dtype.label, "", "2"), partial(_top, dtype=dtype))


def _casts() -> Iterator[Cell]:
    for source in (*TYPES, DType.UINT32):
        for to in TYPES:
            if source is not to:
                make = _converted("CAST", source, to)
                yield one_cell(Key("CAST", f"{source.label}, {to.label}", "", "4"), make, "small")
    for source in (I4, I2, F16, BF16):
        for to in (F32, I32):
            make = _of_constant("CAST", source, "", to)
            yield one_cell(Key("CAST", f"{source.label}, {to.label}", "", "2", "of a constant"), make)


def _quantizes() -> Iterator[Cell]:
    for source in (F32, I8, I16, I32, U8):
        for to in (I8, I16, I32, U8, I4):
            for how in ("same", "scales differ", "both differ") if source in SCALES and to in SCALES else ("same",):
                make = _converted("QUANTIZE", source, to, how)
                yield one_cell(Key("QUANTIZE", f"{source.label}, {to.label}", how, "4"), make)
    for rank in _RANKS:
        make = _converted("QUANTIZE", F32, I8, shape=SHAPES[rank])
        yield one_cell(Key("QUANTIZE", "float32, int8", "same", f"{rank}"), make)
    yield one_cell(Key("QUANTIZE", "float32, int8", "per channel", "2"), _quantized_by_channel)


def _dequantizes() -> Iterator[Cell]:
    for rank in _RANKS:
        make = _converted("DEQUANTIZE", I8, F32, shape=SHAPES[rank])
        yield one_cell(Key("DEQUANTIZE", "int8, float32", "same", f"{rank}"), make)
    for source in (I8, I16, U8, I32, F16):
        make = _converted("DEQUANTIZE", source, F32)
        yield one_cell(Key("DEQUANTIZE", f"{source.label}, float32", "same", "4"), make)
    for source in (I8, I4, I2, I16, U8, F16, BF16):
        ways = ("",) if source in (F16, BF16) else ("per tensor", "per channel")
        for way in ways[:1] if source is U8 else ways:
            make = _of_constant("DEQUANTIZE", source, way)
            yield one_cell(Key("DEQUANTIZE", f"{source.label}, float32", way, "2", "of a constant"), make)
    make = _of_constant("DEQUANTIZE", I8, "per channel", axis=1)
    yield one_cell(Key("DEQUANTIZE", "int8, float32", "per channel of axis 1", "2", "of a constant"), make)


_RANKS = (0, 1, 2, 3, 5, 6)


def _converted(kind: str, source: DType, to: DType, how: str = "same", shape: tuple[int, ...] = IMAGE) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        at = points(source, how, 2)[0]
        x = b.input("x", shape, source, **at)
        last = points(to, how, 2)[-1]
        y = b.tensor("y", shape, to, **last)
        if kind == "QUANTIZE":
            for each in (x, y):
                if each.dtype in (I32, I4):
                    each.quantization = Quantization(np.asarray([0.1], np.float32), np.asarray([0], np.int64))
        if kind == "CAST":
            x.quantization = y.quantization = None
        return add_operator(b, kind, (x,), (y,), "CastOptions" if kind == "CAST" else None, {})

    return make


def _of_constant(kind: str, source: DType, way: str, to: DType = F32, axis: int = 0) -> Make:
    """A constant, converted and added to the input."""

    def make(b: ModelBuilder) -> Sequence[Tensor]:
        x, held = b.input("x", (4, 6), to), weights(b, (4, 6), source, way, axis)
        made, y = b.tensor("made", (4, 6), to), b.tensor("y", (4, 6), to)
        if kind == "CAST":
            held.quantization = None
        add_operator(b, kind, (held,), (made,), "CastOptions" if kind == "CAST" else None, {})
        return add_operator(b, "ADD", (x, made), (y,), "AddOptions", {})

    return make


def _quantized_by_channel(b: ModelBuilder) -> Sequence[Tensor]:
    """Floats quantized with a scale a channel."""
    x = b.input("x", (4, 6), F32)
    y = b.tensor("y", (4, 6), I8)
    y.quantization = scales_of(I8, 4, "per channel", 0)
    return add_operator(b, "QUANTIZE", (x,), (y,), None, {})


def _range(b: ModelBuilder, dtype: DType) -> Sequence[Tensor]:
    limits = [b.constant(f"c{at}", np.asarray(value, dtype.label)) for at, value in enumerate((0, 8, 2))]
    made, y = b.tensor("made", (4,), dtype), b.tensor("y", (4,), dtype)
    add_operator(b, "RANGE", limits, (made,), None, {})
    return add_operator(b, "MAXIMUM", (b.input("x", (4,), dtype), made), (y,), None, {})


def _one_hot(b: ModelBuilder, dtype: DType) -> Sequence[Tensor]:
    x, y = b.input("x", (3,), I32), b.tensor("y", (3, 5), dtype)
    on, off = (number_of(b, dtype, {}, name) for name in ("on", "off"))
    on.shape = off.shape = ()
    off.buffer = Buffer(np.zeros(off.nbytes, np.uint8))
    return add_operator(b, "ONE_HOT", (x, ints(b, 5), on, off), (y,), "OneHotOptions", {"axis": -1})


def _top(b: ModelBuilder, dtype: DType) -> Sequence[Tensor]:
    x = b.input("x", (2, 6), dtype)
    outputs = b.tensor("y", (2, 3), dtype), b.tensor("at", (2, 3), I32)
    return add_operator(b, "TOPK_V2", (x, ints(b, 3)), outputs, None, {})
