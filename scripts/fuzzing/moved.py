"""Cells of operators that move values, cut them, choose among them, or look for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from scripts.fuzzing.cell import (
    BOOL,
    F32,
    I8,
    I32,
    I64,
    IMAGE,
    MAIN,
    SHAPES,
    TYPES,
    U8,
    Cell,
    Key,
    Make,
    add_operator,
    hows,
    ints,
    number_of,
    one_cell,
    points,
    simple,
    stored,
    weights,
)
from tests.model_builder import ModelBuilder
from tflite_memopt.model.ir.model import DType, Tensor

Moved = tuple[str, str, Sequence[Sequence[int]], Sequence[int], Sequence[object], str | None, Mapping[str, Any]]
"""A kind, its options in words, shapes of activations and of the output, constant operands, options."""


def _reshaped() -> Iterator[Moved]:
    yield "RESHAPE", "", [IMAGE], (2, 32), [(2, 32)], "ReshapeOptions", {"newShape": np.asarray((2, 32), np.int32)}
    yield "RESHAPE", "from 6 dimensions", [SHAPES[6]], (48,), [(-1,)], "ReshapeOptions", {}
    yield (
        "RESHAPE",
        "shape in the options",
        [IMAGE],
        (64,),
        [],
        "ReshapeOptions",
        {"newShape": np.asarray((64,), np.int32)},
    )
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


def _padded() -> Iterator[Moved]:
    for kind, table in (("PAD", "PadOptions"), ("MIRROR_PAD", "MirrorPadOptions")):
        for rank in (1, 2, 3, 4, 5, 6):
            pads = [(1, 1) if SHAPES[rank][at] > 2 else (0, 0) for at in range(rank)]
            shape = [size + 2 * (size > 2) for size in SHAPES[rank]]
            yield kind, "", [SHAPES[rank]], shape, [pads], table, {}
    yield "MIRROR_PAD", "symmetric", [(3, 4)], (5, 6), [((1, 1), (1, 1))], "MirrorPadOptions", {"mode": 1}


def _joined() -> Iterator[Moved]:
    for axis in (0, 1, 3, -1):
        shape = [size * 2 if at == axis % 4 else size for at, size in enumerate(IMAGE)]
        yield "CONCATENATION", f"axis {axis}", [IMAGE] * 2, shape, [], "ConcatenationOptions", {"axis": axis}
    for rank in (1, 2, 3, 5, 6):
        shape = [*SHAPES[rank][:-1], SHAPES[rank][-1] * 2]
        yield "CONCATENATION", "axis -1", [SHAPES[rank]] * 2, shape, [], "ConcatenationOptions", {"axis": rank - 1}
    for count in (10, 11):
        yield (
            "CONCATENATION",
            f"{count} parts",
            [(1, 2)] * count,
            (1, 2 * count),
            [],
            "ConcatenationOptions",
            {"axis": 1},
        )
    for rank in (1, 3, 4, 5):
        yield "PACK", "", [SHAPES[rank]] * 2, (2, *SHAPES[rank]), [], "PackOptions", {"valuesCount": 2, "axis": 0}
    yield "PACK", "last axis", [(2, 3)] * 2, (2, 3, 2), [], "PackOptions", {"valuesCount": 2, "axis": -1}


def _sliced() -> Iterator[Moved]:
    for rank in (1, 2, 3, 4, 5):  # LEFT_OUT
        begin, size = [0] * (rank - 1) + [1], [*SHAPES[rank][:-1], 2]
        yield "SLICE", "", [SHAPES[rank]], size, [begin, size], None, {}
    for rank in (1, 2, 3, 4, 5):
        shape, (begin, end, by) = SHAPES[rank], ([0] * (rank - 1) + [1], [*SHAPES[rank]], [1] * (rank - 1) + [2])
        less = [*shape[:-1], -(-(shape[-1] - 1) // 2)]
        yield "STRIDED_SLICE", "", [shape], less, [begin, end, by], "StridedSliceOptions", {}
    for name, output, limits, masks in (
        ("backwards", (2, 3, 4), ((0, 0, 3), (2, 3, 0), (1, 1, -1)), {"endMask": 4}),
        ("shrink_axis", (2, 4), ((0, 1, 0), (2, 2, 4), (1, 1, 1)), {"shrinkAxisMask": 2}),
        ("begin and end masks", (2, 3, 2), ((1, 1, 2), (1, 2, 3), (1, 1, 1)), {"beginMask": 3, "endMask": 7}),
        ("ellipsis", (2, 3, 2), ((0, 1), (0, 3), (1, 1)), {"ellipsisMask": 1}),
        ("new axis", (1, 2, 3, 4), ((0, 0), (1, 2), (1, 1)), {"newAxisMask": 1}),
    ):
        yield "STRIDED_SLICE", name, [(2, 3, 4)], output, limits, "StridedSliceOptions", masks


def _gathered() -> Iterator[Moved]:
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


def _blocks() -> Iterator[Moved]:
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


def _resized() -> Iterator[Moved]:
    for kind in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        table = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
        for name, fields in (
            ("", {}),
            ("align_corners", {"alignCorners": True}),
            ("half_pixel_centers", {"halfPixelCenters": True}),
        ):
            yield kind, name, [IMAGE], (1, 8, 7, 4), [(8, 7)], table, fields
            yield kind, f"{name}{', ' if name else ''}smaller", [(1, 8, 7, 2)], (1, 3, 3, 2), [(3, 3)], table, fields


def cells() -> Iterator[Cell]:
    """Operators that move values, cut them, choose among them, or look for them."""
    seen: set[str] = set()
    for family in (_reshaped, _padded, _joined, _sliced, _gathered, _blocks, _resized):
        for each in family():
            yield from _of_types(each, is_first=each[0] not in seen)
            seen.add(each[0])
    for dtype in TYPES:
        for kind in ("SPLIT", "SPLIT_V", "UNPACK"):
            yield from _cuts(kind, dtype)
        for kind in ("SELECT", "SELECT_V2"):
            yield from _selects(kind, dtype)
        for how in hows(dtype):
            yield one_cell(Key("PADV2", dtype.label, how, "4"), _pad_with(dtype, how))
            yield one_cell(Key("DYNAMIC_UPDATE_SLICE", dtype.label, how, "2"), _update(dtype, how))
            yield one_cell(Key("FILL", dtype.label, how, "1"), _fill(dtype, how))
        yield one_cell(Key("SHAPE", dtype.label, "", "3"), simple("SHAPE", dtype, "", [(2, 3, 4)], (3,), **_TO_I32))
        make = simple("RANK", dtype, "", [(2, 3, 4)], (), output_type=I32)
        yield one_cell(Key("RANK", dtype.label, "", "3"), make)
        yield from _arguments(dtype)
        yield from _sums(dtype)
        if dtype in (F32, I8, U8, I32):
            yield one_cell(Key("EMBEDDING_LOOKUP", dtype.label, hows(dtype)[0], "2"), _look_up(dtype))


def _of_types(moved: Moved, is_first: bool) -> Iterator[Cell]:
    """The first of a kind with every type and quantization."""
    kind, options, shapes, output, operands, table, fields = moved
    more: dict[str, Any] = {"operands": operands, "table": table, "fields": fields}
    for dtype in TYPES if is_first else MAIN:
        for how in hows(dtype) if is_first else hows(dtype)[:1]:
            key = Key(kind, dtype.label, how, f"{len(shapes[0])}", _said(options, kind, shapes, output))
            yield one_cell(key, simple(kind, dtype, how, shapes, output, **more))


def _cuts(kind: str, dtype: DType) -> Iterator[Cell]:
    for how in hows(dtype):
        yield one_cell(Key(kind, dtype.label, how, "4"), _cut(kind, dtype, how, (1, 4, 4, 2), 3))
    said = hows(dtype)[0]
    for rank, axis in ((1, 0), (2, 0), (3, -1), (5, 1), (6, 1)) if dtype in MAIN else ():
        shape = [4 if at == axis % rank else size for at, size in enumerate(SHAPES[rank])]
        yield one_cell(Key(kind, dtype.label, said, f"{rank}", f"axis {axis}"), _cut(kind, dtype, said, shape, axis))


def _selects(kind: str, dtype: DType) -> Iterator[Cell]:
    for how in hows(dtype):
        yield one_cell(Key(kind, dtype.label, how, "4"), _select(kind, dtype, how, IMAGE, IMAGE))
    said = hows(dtype)[0]
    for options, condition, shape in (
        *(("a condition a row", (3,), (3, 4)), ("one condition", (), IMAGE)),
        *(("a condition a pixel", (1, 4, 4, 1), IMAGE), ("", SHAPES[5], SHAPES[5]), ("", SHAPES[6], SHAPES[6])),
    ):
        if dtype in (*MAIN, I32):
            make = _select(kind, dtype, said, condition, shape)
            yield one_cell(Key(kind, dtype.label, said, f"{len(shape)}", options), make)


def _arguments(dtype: DType) -> Iterator[Cell]:
    said = hows(dtype)[0]
    for kind in ("ARG_MAX", "ARG_MIN"):
        for to in (I32, I64):
            table, fields = f"Arg{kind[4:].title()}Options", {"outputType": 2 if to is I32 else 4}
            more: dict[str, Any] = {"operands": [3], "table": table, "fields": fields}
            make = simple(kind, dtype, said, [IMAGE], (1, 4, 4), output_type=to, **more)
            yield one_cell(Key(kind, f"{dtype.label}, {to.label}", said, "4"), make)


def _sums(dtype: DType) -> Iterator[Cell]:
    for option in ("", "exclusive", "reverse") if dtype in MAIN else ("",):
        for how in hows(dtype)[:1] if option else hows(dtype):
            fields = {option: True} if option else {}
            more: dict[str, Any] = {"operands": [3], "table": "CumsumOptions", "fields": fields}
            make = simple("CUMSUM", dtype, how, [IMAGE], IMAGE, **more)
            yield one_cell(Key("CUMSUM", dtype.label, how, "4", option), make)


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
            parts = [b.tensor(f"y{number}", output, dtype, **last) for number in range(shape[at])]
            return add_operator(b, kind, (x,), parts, "UnpackOptions", {"num": shape[at], "axis": axis})
        output = [size // 2 if number == at else size for number, size in enumerate(shape)]
        parts = [b.tensor(f"y{number}", output, dtype, **last) for number in range(2)]
        if kind == "SPLIT":
            return add_operator(b, kind, (ints(b, axis), x), parts, "SplitOptions", {"numSplits": 2})
        operands = (x, ints(b, (shape[at] // 2,) * 2), ints(b, axis))
        return add_operator(b, kind, operands, parts, "SplitVOptions", {"numSplits": 2})

    return make


def _pad_with(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        pads = ints(b, ((0, 0), (1, 0), (0, 2), (0, 0)))
        x, y = b.input("x", IMAGE, dtype, **first), b.tensor("y", (1, 5, 6, 4), dtype, **last)
        return add_operator(b, "PADV2", (x, pads, number_of(b, dtype, second, "v")), (y,), "PadV2Options", {})

    return make


def _update(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        x, u = b.input("x", (4, 5), dtype, **first), b.input("u", (2, 3), dtype, **second)
        y = b.tensor("y", (4, 5), dtype, **last)
        return add_operator(b, "DYNAMIC_UPDATE_SLICE", (x, u, ints(b, (1, 1))), (y,), None, {})

    return make


def _fill(dtype: DType, how: str) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, last = points(dtype, how, 2)
        x, y = b.input("x", (), dtype, **first), b.tensor("y", (2, 3), dtype, **last)
        return add_operator(b, "FILL", (ints(b, (2, 3)), x), (y,), None, {})

    return make


def _select(kind: str, dtype: DType, how: str, condition: Sequence[int], shape: Sequence[int]) -> Make:
    def make(b: ModelBuilder) -> Sequence[Tensor]:
        first, second, last = points(dtype, how, 3)
        which = b.input("which", condition, BOOL)
        sides = [b.input("x0", shape, dtype, **first), b.input("x1", shape, dtype, **second)]
        y = b.tensor("y", shape, dtype, **last)
        return add_operator(b, kind, (which, *sides), (y,), None, {})

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
        add_operator(b, "EMBEDDING_LOOKUP", (ints(b, (1, 5, 0)), held), (y,), None, {})
        return add_operator(b, "LESS", (x, y), (total,), None, {})

    return make
