"""Cells of operators with weights: convolutions, dense layers, products of matrices, SVDF."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from scripts.fuzzing.cell import (
    F16,
    F32,
    I2,
    I4,
    I8,
    I16,
    I32,
    I64,
    MAIN,
    SCALES,
    U8,
    UNLIKE,
    Cell,
    Key,
    add_operator,
    bias_of,
    ints,
    one_cell,
    points,
    scales_of,
    stored,
    weights,
)
from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType, Quantization, Tensor

_BIAS = {I8: I32, U8: I32, I16: I64}
_LAYER_TYPES = (
    *((F32, F32), (F32, I8), (F32, I4), (F32, I2), (F32, F16), (F16, F16), (I8, I8), (I8, I4), (I8, I2), (I8, F32)),
    *((I16, I8), (I16, I4), (I16, I16), (U8, U8), (I32, I8)),
)


_SHORT_WEIGHTS: Mapping[str, Sequence[tuple[DType, DType]]] = {
    "CONV_2D": ((F32, F16), (F32, I2)),
    "DEPTHWISE_CONV_2D": ((I16, I4),),
}
"""What LiteRT reads as wider elements than the file has; LEFT_OUT."""


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
            y = b.tensor("y", self.output, data, **last)
            return add_operator(b, self.kind, given, (y,), self.table, self.fields)

        types = ", ".join((data.label, of.label, *((bias.label,) if isinstance(bias, DType) else ())))
        options = ", ".join(filter(None, (options, "no bias" if bias is None else "")))
        return one_cell(Key(self.kind, types, said, f"{len(self.shape)}", options), make)


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
        size = (
            shape[0],
            *((size * fields["strideH"] + (taps[0] - 1) * (fields["padding"] == VALID)) for size in shape[1:3]),
            4,
        )
        yield (
            options,
            Layer("TRANSPOSE_CONV", "TransposeConvOptions", (4, *taps, depth), 0, shape, size, fields, size=True),
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


def cells() -> Iterator[Cell]:
    """Convolutions, dense layers, products of matrices, and SVDF."""
    for options, layer in (*_conv(), _dense()):
        yield from _types(options, layer)
        if not options:
            yield from _weights_and_bias(layer)
            yield from _fused(layer)
    yield from _windows()
    yield from _blockwise()
    yield from _matmuls()
    for data, of, state in ((F32, F32, F32), (I8, I8, I8), (I8, I8, I16), (F32, I8, F32)):
        for rank in (1, 2):
            key = Key("SVDF", f"{data.label}, {of.label}, {state.label}", "", "2", f"rank {rank}, two outputs")
            yield one_cell(key, partial(_svdf, data=data, of=of, state=state, rank=rank))


_EACH = ((F32, F32), (I8, I8), (I16, I8), (I8, I4))


def _types(options: str, layer: Layer) -> Iterator[Cell]:
    for data, of in _LAYER_TYPES:
        if (data, of) in _SHORT_WEIGHTS.get(layer.kind, ()):
            continue
        for way in _ways(layer.kind, data, of):
            yield layer.cell(data, of, way, options)
            if options == "" and layer.kind != "DEPTHWISE_CONV_2D":  # LEFT_OUT
                yield layer.cell(data, of, way, options, bias=None)


def _ways(kind: str, data: DType, of: DType) -> Sequence[str]:
    if of in (F32, F16):
        return ("",)
    if of is U8:
        return ("per tensor",)
    return ("per channel",) if (kind, data, of) == ("DEPTHWISE_CONV_2D", F32, I8) else _BOTH_WAYS  # LEFT_OUT


_BOTH_WAYS = ("per tensor", "per channel")


def _weights_and_bias(layer: Layer) -> Iterator[Cell]:
    for data, of in _EACH[1:]:
        yield layer.cell(data, of, "per tensor, weights' zero point")
        for how in ("same", "zero points differ", "output wider"):
            yield layer.cell(data, of, "per channel", how=how)
        if data is I8:  # LEFT_OUT
            yield layer.cell(data, of, "per channel", bias=I64)
    for data, of in _EACH[:3]:
        yield layer.cell(data, of, "" if of is F32 else "per tensor, computed weights")


def _fused(layer: Layer) -> Iterator[Cell]:
    for number, name in ((1, "RELU"), (2, "RELU_N1_TO_1"), (3, "RELU6")):
        fused = replace(layer, fields={**layer.fields, "fusedActivationFunction": number})
        for data, of in _EACH:
            yield fused.cell(data, of, "" if of is F32 else "per tensor" if of is I4 else "per channel", name)


def _windows() -> Iterator[Cell]:
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
        for data, of in _EACH:
            for way in ("",) if of is F32 else _BOTH_WAYS:
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
            return add_operator(b, "FULLY_CONNECTED", (x, w, None), (y,), "FullyConnectedOptions", {})

        yield one_cell(
            Key("FULLY_CONNECTED", f"{data.label}, {of.label}", "block-wise, blocks of 32", "2", "no bias"), make
        )


def _matmuls() -> Iterator[Cell]:
    pairs = ((F32, F32), (F32, I8), (F32, I4), (I8, I8), (I16, I16), (I16, I8), (I8, I4), (I32, I32), (U8, U8))
    for data, of in pairs:
        usual = "scales differ" if data is I16 else "both differ" if data in SCALES else ""
        for how in ("same", *UNLIKE) if data in (I8, I16) else ("",):
            if of is not I4:  # no network computes it
                yield _matmul(data, of, how)
        ways = _BOTH_WAYS if of in SCALES or of is I4 else ("",) if of is F32 else ()
        for way in (", ".join(filter(None, ("constant", each))) for each in ways):
            yield _matmul(data, of, usual, way=way)
            yield _matmul(data, of, usual, way=way, y=True)
        if data in MAIN and of is data:
            yield from _shapes_of_matmul(data, usual)


def _shapes_of_matmul(data: DType, usual: str) -> Iterator[Cell]:
    for shapes in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((1, 2, 3, 4), (1, 2, 4, 5)), ((2, 3, 4), (1, 4, 5))):
        yield _matmul(data, data, usual, shapes)
    for x, y in ((True, False), (False, True), (True, True)):
        yield _matmul(data, data, usual, x=x, y=y)
    yield _matmul(data, data, usual, ((2, 3, 4), (4, 5)), x=True)


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
        made = b.tensor("y", output, data, **last)
        return add_operator(b, "BATCH_MATMUL", (a, other), (made,), "BatchMatMulOptions", {"adjX": x, "adjY": y})

    options = ", ".join((*(["adj_x"] * x), *(["adj_y"] * y), f"{list(left)} by {list(right)}".replace(",", "")))
    said = ", ".join(filter(None, (how, f"right side {way}" if way else "")))
    return one_cell(Key("BATCH_MATMUL", f"{data.label}, {of.label}", said, f"{len(left)}", options), make)


def _svdf(b: ModelBuilder, data: DType, of: DType, state: DType, rank: int) -> Sequence[Tensor]:
    filters, memory = 2 * rank, 4
    x = b.input("x", (1, 4), data)
    features, times = (
        weights(b, (filters, 4), of, "per tensor", 0, "features"),
        weights(b, (filters, memory), state if state is I16 else of, "per tensor", 1, "time"),
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
    return add_operator(b, "SVDF", (x, features, times, bias, held), (y,), "SVDFOptions", {"rank": rank})
