"""Cells of operators that take activations alone: curves, arithmetic, comparisons, pools, and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from scripts.fuzzing.cell import (
    BOOL,
    F32,
    I8,
    I16,
    I32,
    IMAGE,
    MAIN,
    SCALES,
    SHAPES,
    TYPES,
    UNLIKE,
    Cell,
    Key,
    hows,
    one_cell,
    simple,
)
from tflite_memopt.model.ir.editor import SAME, VALID
from tflite_memopt.model.ir.model import DType
from tflite_memopt.operators.window import ALL_POOLS

_WRITTEN: Mapping[str, Mapping[DType, Mapping[str, Any]]] = {
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
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
    **dict.fromkeys(("SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", "PRELU", "FLOOR_DIV", "FLOOR_MOD", "POW"), None),
    **dict.fromkeys(("ADD_N", "ATAN2", "LOGICAL_AND", "LOGICAL_OR"), None),
}
_COMPARED = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def cells() -> Iterator[Cell]:
    """Curves, arithmetic, comparisons, pools, and reductions."""
    for kind in _UNARY:
        for dtype in (BOOL, F32) if kind == "LOGICAL_NOT" else TYPES:
            yield from _unary(kind, dtype)
    for dtype in MAIN:
        yield from _with_options(dtype)
    for kind in _BINARY:
        for dtype in (BOOL,) if kind.startswith("LOGICAL") else TYPES:
            yield from _binary(kind, dtype)
    for kind in _COMPARED:
        for dtype in TYPES:
            yield from _compared(kind, dtype)
    yield from _pools()
    yield from _reductions()


def _unary(kind: str, dtype: DType) -> Iterator[Cell]:
    table, fields = _UNARY[kind]
    one = partial(simple, kind, dtype, table=table, fields=fields)
    domain = "positive" if kind in _POSITIVE else ""
    written = _WRITTEN.get(kind, {}).get(dtype)
    for how in (*hows(dtype), *(("output wider",) if dtype in (I8, I16) else ())):
        yield one_cell(Key(kind, dtype.label, how, "4"), one(how, [IMAGE], IMAGE), domain)
    said = hows(dtype)[0]
    if written is not None:
        said = "as written"
        make = one("same", [IMAGE], IMAGE, at_output=written)
        yield one_cell(Key(kind, dtype.label, said, "4"), make, domain)
    if written is not None and dtype is I16:
        make = one("same", [IMAGE], IMAGE, at_output=written, at_input={"scale": 1 / 4096})
        yield one_cell(Key(kind, dtype.label, "as written, input 1/4096", "4"), make, domain)
    for rank in (0, 1, 2, 3, 5, 6) if dtype in MAIN else ():
        make = one("same", [SHAPES[rank]], SHAPES[rank], at_output=written)
        if rank or kind not in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"):
            yield one_cell(Key(kind, dtype.label, said, f"{rank}"), make, domain)


def _with_options(dtype: DType) -> Iterator[Cell]:
    said = hows(dtype)[0]
    for alpha in (0.0, 0.5, 1.5, -0.3):
        for how in ("same", "both differ") if dtype is I8 else (said,):
            more: dict[str, Any] = {"table": "LeakyReluOptions", "fields": {"alpha": alpha}}
            make = simple("LEAKY_RELU", dtype, how, [IMAGE], IMAGE, **more)
            yield one_cell(Key("LEAKY_RELU", dtype.label, how, "4", f"alpha {alpha}"), make)
    for beta in (0.5, 2.0):
        written = _WRITTEN["SOFTMAX"].get(dtype)
        more = {"table": "SoftmaxOptions", "fields": {"beta": beta}, "at_output": written}
        make = simple("SOFTMAX", dtype, "same", [IMAGE], IMAGE, **more)
        yield one_cell(Key("SOFTMAX", dtype.label, "as written" if written else "", "4", f"beta {beta}"), make)
    more = {"table": "GeluOptions", "fields": {"approximate": True}}
    make = simple("GELU", dtype, "same", [IMAGE], IMAGE, **more)
    yield one_cell(Key("GELU", dtype.label, said, "4", "approximate"), make)


def _binary(kind: str, dtype: DType) -> Iterator[Cell]:
    table = _BINARY[kind]
    fields = {"potScaleInt16": False} if kind in ("ADD", "SUB") else {}
    one = partial(simple, kind, dtype, table=table, fields=fields)
    domain = {"POW": "counts", "DIV": "nonzero"}.get(kind, "positive" if kind.startswith("FLOOR_") else "")
    said = hows(dtype)[0]
    for how in hows(dtype):
        yield one_cell(Key(kind, dtype.label, how, "4"), one(how, [IMAGE, IMAGE], IMAGE), domain)
    if dtype not in (*MAIN, I32, BOOL):
        return
    for rank, options, shapes, output in _pairs_of_shapes():
        is_left_out = (kind, dtype) == ("PRELU", F32) and len(output) > 4  # LEFT_OUT
        if not is_left_out and (kind != "ATAN2" or not options):  # LEFT_OUT
            yield one_cell(Key(kind, dtype.label, said, rank, options), one(said, shapes, output), domain)
    for how in UNLIKE if dtype in (I8, I16) and kind != "ATAN2" else ():
        make = one(how, [IMAGE, (4,)], IMAGE)
        yield one_cell(Key(kind, dtype.label, how, "", "4 dimensions and [4]"), make, domain)
    if table is not None:
        yield from _fused(kind, dtype, table, fields, domain)
    if kind in ("ADD", "SUB") and dtype is I16:
        make = simple(kind, dtype, "same", [IMAGE, IMAGE], IMAGE, table=table, at_input={"scale": 2**-11})
        yield one_cell(Key(kind, dtype.label, "same", "4", "pot_scale_int16"), make)


def _fused(kind: str, dtype: DType, table: str, fields: Mapping[str, Any], domain: str) -> Iterator[Cell]:
    for number, name in ((1, "RELU"), (2, "RELU_N1_TO_1"), (3, "RELU6")):
        more: dict[str, Any] = {"table": table, "fields": {**fields, "fusedActivationFunction": number}}
        for how in ("same", "both differ") if dtype in SCALES else ("",):
            make = simple(kind, dtype, how, [IMAGE, IMAGE], IMAGE, **more)
            yield one_cell(Key(kind, dtype.label, how, "4", name), make, domain)


def _compared(kind: str, dtype: DType) -> Iterator[Cell]:
    one = partial(simple, kind, dtype, output_type=BOOL)
    for how in hows(dtype):
        yield one_cell(Key(kind, dtype.label, how, "4"), one(how, [IMAGE, IMAGE], IMAGE))
    said = hows(dtype)[0]
    for rank, options, shapes, output in _pairs_of_shapes() if dtype in (F32, I8, I32) else ():
        yield one_cell(Key(kind, dtype.label, said, rank, options), one(said, shapes, output))


def _pairs_of_shapes() -> Iterator[tuple[str, str, Sequence[Sequence[int]], Sequence[int]]]:
    """Of two operands: the dimensions of both or words, and the shapes of both and of the output."""
    for rank in (0, 1, 2, 3, 5, 6):
        yield f"{rank}", "", [SHAPES[rank]] * 2, SHAPES[rank]
    for options, shapes, output in _broadcasts():
        yield "", options, shapes, output


def _broadcasts() -> Iterator[tuple[str, Sequence[Sequence[int]], Sequence[int]]]:
    yield "4 dimensions and [4]", [IMAGE, (4,)], IMAGE
    yield "[4] and 4 dimensions", [(4,), IMAGE], IMAGE
    yield "4 dimensions and a number", [IMAGE, ()], IMAGE
    yield "a column and a row", [(1, 4, 1, 4), (1, 1, 4, 4)], IMAGE
    yield "5 dimensions and [4]", [SHAPES[5], (4,)], SHAPES[5]


def _pools() -> Iterator[Cell]:
    for kind in ALL_POOLS:
        for dtype in TYPES:
            for how in hows(dtype):
                yield _pool(kind, dtype, how)
            if dtype in MAIN:
                said = "" if dtype is F32 else "same"
                for options, more in _POOLS.items():
                    yield _pool(kind, dtype, said, options, more)
                yield _pool(kind, dtype, said, "two images", shape=(2, 4, 4, 4))


_POOLS: Mapping[str, Mapping[str, int]] = {
    "SAME, 3x3": {"padding": SAME, "filterHeight": 3, "filterWidth": 3},
    "RELU": {"fusedActivationFunction": 1},
    "RELU6": {"fusedActivationFunction": 3},
    "stride 1, 2x3": {"strideH": 1, "strideW": 1, "filterWidth": 3},
}
_POOL: Mapping[str, int] = {"padding": VALID, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}


def _pool(
    kind: str,
    dtype: DType,
    how: str,
    options: str = "",
    more: Mapping[str, int] = _POOL,
    shape: tuple[int, ...] = IMAGE,
) -> Cell:
    fields = {**_POOL, **more}
    sizes = [
        -(-(size - (0 if fields["padding"] == SAME else taps - 1)) // stride)
        for size, taps, stride in (
            (shape[1], fields["filterHeight"], fields["strideH"]),
            (shape[2], fields["filterWidth"], fields["strideW"]),
        )
    ]
    output = (shape[0], *sizes, shape[3])
    make = simple(kind, dtype, how, [shape], output, table="Pool2DOptions", fields=fields)
    return one_cell(Key(kind, dtype.label, how, "4", options), make)


def _reductions() -> Iterator[Cell]:
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"):
        types: Sequence[DType] = (BOOL, F32) if kind in ("REDUCE_ANY", "REDUCE_ALL") else TYPES
        for dtype in types:
            for how in hows(dtype):
                yield _reduced(kind, dtype, how, IMAGE, (1, 2), keep=False)
                if dtype in (I8, I16):
                    yield _reduced(kind, dtype, how, IMAGE, (3,), keep=False)
            if dtype in (*MAIN, I32, BOOL):
                said = "same" if dtype in SCALES else ""
                for kept in ((1, 2), (-1,), (1,), (0, 1, 2, 3)):
                    yield _reduced(kind, dtype, said, IMAGE, kept, keep=True)
                for rank, gone in ((1, (0,)), (2, (1,)), (2, (0,)), (3, (1,)), (3, (0, 2)), (5, (2, 3)), (6, (5,))):
                    yield _reduced(kind, dtype, said, SHAPES[rank], gone, keep=False)


def _reduced(kind: str, dtype: DType, how: str, shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> Cell:
    gone = {axis % len(shape) for axis in axes}
    output = [1 if at in gone else size for at, size in enumerate(shape) if keep or at not in gone]
    table, fields = "ReducerOptions", {"keepDims": keep}
    make = simple(kind, dtype, how, [shape], output, operands=[axes], table=table, fields=fields)
    options = f"axes {' '.join(map(str, axes))}{', keep_dims' if keep else ''}"
    return one_cell(Key(kind, dtype.label, how, f"{len(shape)}", options), make, "tiny" if "PROD" in kind else "")
