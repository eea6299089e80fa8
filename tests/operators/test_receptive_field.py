"""Receptive rows against an interpreter: change one row of the input, see which rows of the output change."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.networks import Network
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.litert import run_litert
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Operator, OperatorOptions, Tensor
from tflite_memopt.operators.rows import Axis, RowMap, Rows
from tflite_memopt.operators.table import row_map_of
from tflite_memopt.search.cascade.region import Region, region_of, start_of_region


def touched_rows(model: Model, slot: int) -> list[set[int]]:
    """For each row of one input: the rows of the output whose bytes change with it, found by running."""
    rng = np.random.default_rng(0)
    base = [rng.uniform(-1, 1, tensor.shape).astype(np.float32) for tensor in model.main.inputs]
    samples = [base]
    # Far up and far down: one of them shows through a maximum and through a RELU.
    for row in range(base[slot].shape[1]):
        for step in (1e3, -1e3):
            changed = [array.copy() for array in base]
            noise = rng.uniform(1, 2, changed[slot][:, row].shape)
            changed[slot][:, row] += (step * noise).astype(np.float32)
            samples.append(changed)
    arrays = run_litert(RunJob(write_model(model), samples, 0)).arrays
    whole = arrays["s0_o0"]
    differ = [np.any(arrays[f"s{n}_o0"] != whole, axis=(0, 2, 3)) for n in range(1, len(samples))]
    return [set(np.flatnonzero(up | down).tolist()) for up, down in zip(differ[::2], differ[1::2], strict=True)]


@examples(150)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(
        ("conv", "depthwise", "average", "max", "pad", "padv2", "add", "concat", "scale", "relu", "transpose")
    ),
    height=st.integers(1, 13),
)
def test_a_row_changes_the_rows_that_read_it_and_no_others(seed: int, kind: str, height: int) -> None:
    net = Network(random.Random(seed), DType.FLOAT32)
    x = net.image("x", (1, height, net.rng.randint(5, 7), 2), is_input=True)
    model = net.b.finish(net.layer(kind, x, []))
    (operator,) = model.main.operators
    if kind == "conv" and operator.options is not None:  # RELU6 would hide some changes
        operator.options = OperatorOptions("Conv2DOptions", {**operator.options.fields, "fusedActivationFunction": 0})
    way = row_map_of(operator)
    assert isinstance(way, RowMap)
    images = [operator.inputs[slot] for slot in way.sliced]
    assert images == [tensor for tensor in operator.inputs if tensor in model.main.inputs]
    for tensor in model.main.inputs:
        slot = model.main.inputs.index(tensor)
        for row, changed in enumerate(touched_rows(model, slot)):
            assert changed == readers(operator, way.rows, row), (row, changed)


def rows_read(axis: Axis, out: Rows) -> Rows:
    """The rows of the image that are read for these output rows."""
    first, last = axis.reads(out.start, out.end)
    return Rows(max(0, first), min(axis.size, last))


def padding_read(axis: Axis, out: Rows) -> tuple[int, int]:
    """The rows of padding above and below them."""
    first, last = axis.reads(out.start, out.end)
    return max(0, -first), max(0, last - axis.size)


def readers(operator: Operator, axis: Axis, row: int) -> set[int]:
    """Output rows whose window has the row. Between the taps of a dilated kernel there are rows that it skips."""
    step = int(operator.option("dilationHFactor", 1))
    found = set()
    for out in range(axis.outputs):
        reads = rows_read(axis, Rows(out, out + 1))
        first = out * axis.stride - axis.before
        assert max(0, first) == reads.start
        if reads.start <= row < reads.end and (row - first) % step == 0:
            found.add(out)
    return found


@given(st.integers(1, 20), st.integers(1, 9), st.integers(1, 5), st.data())
def test_reads_of_several_rows_are_those_of_each(size: int, reach: int, stride: int, data: st.DataObject) -> None:
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + reach - size)
    axis = Axis(size, outputs, stride, reach, total // 2, total - total // 2)
    start = data.draw(st.integers(0, outputs - 1))
    out = Rows(start, data.draw(st.integers(start + 1, outputs)))
    each = [rows_read(axis, Rows(row, row + 1)) for row in range(out.start, out.end)]
    reads = rows_read(axis, out)
    assert (reads.start, reads.end) == (min(r.start for r in each), max(r.end for r in each))
    above, below = padding_read(axis, out)
    assert above + reads.count + below == (out.count - 1) * stride + reach
    assert (above > 0) <= (reads.start == 0)
    assert (below > 0) <= (reads.end == size)


def test_padding_of_the_whole_is_that_of_the_axis() -> None:
    axis = Axis(7, 4, 2, 4, 1, 2)
    assert padding_read(axis, Rows(0, 4)) == (1, 2)
    assert rows_read(axis, Rows(0, 4)) == Rows(0, 7)


def test_hull_and_count() -> None:
    assert Rows(2, 4).hull(Rows(6, 7)) == Rows(2, 7)
    assert Rows(3, 1).count == 0


def _operator(
    name: str, *shapes: tuple[int, ...], output: tuple[int, ...] = (1, 8, 8, 4), **fields: object
) -> Operator:
    b = ModelBuilder()
    inputs = [b.input(f"in{n}", shape, DType.FLOAT32) for n, shape in enumerate(shapes)]
    return b.operator(name, inputs, [b.tensor("y", output, DType.FLOAT32)], "AddOptions" if fields else None, **fields)


def _constant_slot(name: str, values: np.ndarray, output: tuple[int, ...] = (1, 8, 8, 4)) -> Operator:
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4), DType.FLOAT32)
    return b.operator(name, (x, b.constant("c", values)), [b.tensor("y", output, DType.FLOAT32)])


IMAGE = (1, 8, 8, 4)
REFUSED: dict[str, tuple[Callable[[], Operator], str]] = {
    "batch": (lambda: _operator("RELU", (2, 8, 8, 4), output=(2, 8, 8, 4)), "batch 1"),
    "rank": (lambda: _operator("RELU", (8, 4), output=(8, 4)), "batch 1"),
    "kind": (lambda: _operator("GATHER", IMAGE), "GATHER is not computed row by row"),
    "rows taken together": (lambda: _constant_slot("MEAN", np.asarray((1, 2), np.int32)), "takes rows together"),
    "axes computed": (lambda: _operator("SUM", IMAGE, (1,)), "its axes are computed"),
    "rows joined": (lambda: _operator("CONCATENATION", (1, 4, 8, 4), (1, 4, 8, 4), axis=1), "along their rows"),
    "rows joined from the end": (lambda: _operator("CONCATENATION", (1, 4, 8, 4), axis=-3), "along their rows"),
    "weights computed": (lambda: _operator("CONV_2D", IMAGE, (4, 3, 3, 4), (4,)), "weights are computed"),
    "a constant of all rows": (lambda: _constant_slot("ADD", np.ones(IMAGE, np.float32)), "from row to row"),
    "a constant of all rows, rank 3": (lambda: _constant_slot("MUL", np.ones(IMAGE[1:], np.float32)), "row to row"),
    "a computed operand of rank 3": (lambda: _operator("ADD", IMAGE, (8, 8, 4)), "another shape"),
    "no rows": (lambda: _operator("ADD", (1, 1, 8, 4), (4,)), "no tensor of its output's height"),
    "batch padded": (
        lambda: _constant_slot("PAD", np.asarray([[0, 1], [0, 0], [0, 0], [0, 0]], np.int32)),
        "pads the batch",
    ),
    "cropped": (
        lambda: _constant_slot("PAD", np.asarray([[0, 0], [-1, 0], [0, 0], [0, 0]], np.int32)),
        "negative number",
    ),
    "paddings computed": (lambda: _operator("PAD", IMAGE, (4, 2)), "not constant"),
    "a constant joined": (lambda: _constant_slot("CONCATENATION", np.ones(IMAGE, np.float32)), "along their rows"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_run_by_rows_is_refused_with_the_reason(case: str) -> None:
    make, reason = REFUSED[case]
    way = row_map_of(make())
    assert isinstance(way, str)
    assert reason in way


def test_a_constant_in_a_channel_concat_is_refused() -> None:
    b = ModelBuilder()
    x, c = b.input("x", IMAGE, DType.FLOAT32), b.constant("c", np.ones(IMAGE, np.float32))
    way = row_map_of(b.operator("CONCATENATION", (x, c), [b.tensor("y", (1, 8, 8, 8))], "ConcatenationOptions", axis=3))
    assert "constant" in str(way)


def test_no_kind_computes_from_a_constant_image() -> None:
    b = ModelBuilder()
    image = b.constant("image", np.ones(IMAGE, np.float32))
    amounts = b.constant("amounts", np.asarray([[0, 0], [0, 0], [1, 1], [0, 0]], np.int32))
    wide, dense = b.tensor("wide", (1, 8, 10, 4), DType.FLOAT32), b.tensor("dense", (1, 8, 8, 2), DType.FLOAT32)
    weights = b.constant("w", np.ones((2, 4), np.float32))
    for operator in (
        b.operator("MIRROR_PAD", (image, amounts), (wide,), "MirrorPadOptions", mode=1),
        b.operator("FULLY_CONNECTED", (image, weights, None), (dense,), "FullyConnectedOptions", keepNumDims=True),
    ):
        assert "constant" in str(row_map_of(operator))


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (8, 1), (1, 1, 8, 1)])
def test_a_computed_operand_broadcast_over_the_rows_is_read_whole(shape: tuple[int, ...]) -> None:
    way = row_map_of(_operator("MUL", IMAGE, shape))
    assert isinstance(way, RowMap)
    assert way.sliced == (0,)


def test_an_operand_of_one_column_is_read_by_rows() -> None:
    way = row_map_of(_operator("ADD", IMAGE, (1, 8, 1, 4)))
    assert isinstance(way, RowMap)
    assert way.sliced == (0, 1)


def float_conv_with_int8_weights() -> Tensor:
    b = ModelBuilder()
    y = b.conv(b.input("x", IMAGE), 4)
    assert y.producer is not None
    x = b.input("real", IMAGE, DType.FLOAT32)
    b.graph.set_input(y.producer, 0, x)
    return y


def test_a_hybrid_convolution_is_refused() -> None:
    # LiteRT quantizes its float input by the range of all rows.
    way = row_map_of(float_conv_with_int8_weights().producer)  # type: ignore[arg-type]
    assert isinstance(way, str)
    assert "range of all" in way


def _resize(name: str, *, rows: int = 16, size: bool = True, **fields: object) -> Operator:
    b = ModelBuilder()
    x, y = b.input("x", IMAGE, DType.FLOAT32), b.tensor("y", (1, rows, 8, 4), DType.FLOAT32)
    given = b.constant("size", np.asarray((rows, 8), np.int32)) if size else b.input("size", (2,), DType.INT32)
    return b.operator(name, (x, given), (y,), "ResizeBilinearOptions", **fields)


def _slice(shape: tuple[int, ...], integer: type = np.int32) -> Operator:
    b = ModelBuilder()
    said = [b.constant(n, np.asarray(v, integer)) for n, v in (("begin", (0, 0, 0, 0)), ("size", shape))]
    return b.operator("SLICE", (b.input("x", IMAGE, DType.FLOAT32), *said), [b.tensor("y", shape, DType.FLOAT32)])


@pytest.mark.parametrize("kind", ["SLICE", "RESHAPE"])
def test_a_reshape_begins_and_ends_no_region(kind: str) -> None:
    """It is its input's bytes; a slice is not."""
    b = ModelBuilder()
    x = b.input("x", IMAGE)
    y = b.tensor("y", (1, 8, 1, 32) if kind == "RESHAPE" else (1, 8, 2, 4))
    said = [b.constant(n, np.asarray(v, np.int32)) for n, v in (("begin", (0, 0, 0, 0)), ("size", y.shape))]
    b.operator(kind, (x, *(said[1:] if kind == "RESHAPE" else said)), (y,))
    model = b.finish(b.conv(y, 2, seed=1))
    steps = model.main.operators
    alone, first = (region_of(model.main, steps[:end]) for end in (1, 2))
    assert isinstance(alone, Region) == isinstance(first, Region) == (kind == "SLICE")
    ways = [row_map_of(operator) for operator in steps]
    assert start_of_region(model.main, 0, ways, 9) == (1 if kind == "RESHAPE" else 0)


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (_resize("RESIZE_BILINEAR", alignCorners=True), "aligns corners"),
        (_resize("RESIZE_BILINEAR", rows=24), "3 is no power of two"),
        (_resize("RESIZE_BILINEAR", rows=12), "a whole number of rows"),
        (_resize("RESIZE_BILINEAR", rows=8), "no more rows than it reads"),
        (_resize("RESIZE_NEAREST_NEIGHBOR", size=False), "its size is computed"),
        (_operator("DEPTH_TO_SPACE", (8, 4)), "not an NHWC tensor"),
        (_operator("SPACE_TO_DEPTH", (8, 4)), "not an NHWC tensor"),
        (_operator("FULLY_CONNECTED", IMAGE, (4, 4)), "its weights are computed"),
        (_operator("FULLY_CONNECTED", (64, 4), (4, 4)), "not computed pixel by pixel"),
        (_operator("BATCH_MATMUL", IMAGE, (1, 2, 4, 4)), "neither one for each row nor one for all"),
        (_operator("BATCH_MATMUL", (1, 1, 8, 4), (4, 4), output=(1, 1, 8, 4)), "one matrix by one"),
        (_operator("SLICE", IMAGE, (4,), (4,)), "what it cuts out is computed"),
        (_slice((1, 4, 8, 4)), "it cuts rows out, or nothing"),
        (_slice(IMAGE), "it cuts rows out, or nothing"),
        (_slice((1, 8, 2, 4), np.int64), "in 64 bits"),
        (_constant_slot("RESHAPE", np.asarray((1, 4, 8, 8)), (1, 4, 8, 8)), "does not keep rows"),
        (_operator("RESHAPE", IMAGE, output=(1, 8, 4, 8)), "not an NHWC tensor"),
        (_constant_slot("ARG_MAX", np.asarray(2, np.int32), (1, 8, 4)), "compares rows or columns"),
        (_operator("ARG_MAX", IMAGE, (1,), output=(1, 8, 8)), "its axis is computed"),
        (_operator("MIRROR_PAD", IMAGE, (4, 2)), "it mirrors rows"),
        (_operator("TRANSPOSE", IMAGE, (4,)), "its order is computed"),
        (_constant_slot("TRANSPOSE", np.asarray((0, 2, 1, 3), np.int32)), "it moves rows, or nothing"),
        (_constant_slot("TRANSPOSE", np.asarray((0, 1, 2, 3), np.int32)), "it moves rows, or nothing"),
        (_operator("TRANSPOSE_CONV", (4,), (4, 3, 3, 4), IMAGE), "its weights or its shape are computed"),
    ],
)
def test_what_is_enlarged_otherwise_is_refused_with_the_reason(operator: Operator, reason: str) -> None:
    way = row_map_of(operator)
    assert isinstance(way, str)
    assert reason in way


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_rows_that_are_enlarged_are_those_that_the_formula_reads(name: str, half: bool) -> None:
    """Source of the formula: tensorflow/lite/kernels/internal/reference/resize_bilinear.h and resize_nearest_*.h."""
    way = row_map_of(_resize(name, rows=32, halfPixelCenters=half))
    assert isinstance(way, RowMap)
    for row in range(32):
        at = (row + 0.5) / 4 - (0.5 if name == "RESIZE_BILINEAR" else 0) if half else row / 4
        above, below = (np.floor(at), np.ceil(at)) if name == "RESIZE_BILINEAR" else (np.floor(at), np.floor(at))
        read = rows_read(way.rows, Rows(row, row + 1))
        assert read.start <= max(above, 0)
        assert min(below, 7) < read.end
        made = Rows(*way.rows.makes(read.start, read.end))
        assert made.start <= row < made.end
