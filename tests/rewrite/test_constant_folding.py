"""Operators that only move constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    LITERT,
    Array,
    Branch,
    assert_exact,
    assert_refused,
    quantization_of,
)
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor, values
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.folding import CONSTANT_FOLDING

Move = tuple[list[Tensor | None], dict[str, Any], list[tuple[int, ...]]]
"""Inputs, the fields of the options, and the shapes of the outputs."""


def scalar(b: Branch, value: int) -> Tensor:
    return b.constant(np.asarray(value, np.int32))


def reshape(b: Branch, x: Tensor) -> Move:
    return [x, b.ints(-1)], {"newShape": np.asarray([-1], np.int32)}, [(x.elements,)]


def squeeze(_: Branch, x: Tensor) -> Move:
    return [x], {"squeezeDims": np.asarray([0], np.int32)}, [x.shape[1:]]


def expand(b: Branch, x: Tensor) -> Move:
    return [x, scalar(b, 1)], {}, [(1, 1, *x.shape[1:])]


def cut(b: Branch, x: Tensor) -> Move:
    shape = (1, 2, x.shape[2] - 1)
    return [x, b.ints(0, 1, 1), b.ints(1, 2, -1)], {}, [shape]


def cut_out(b: Branch, x: Tensor) -> Move:
    """One row, and its dimension taken out."""
    limits = [b.ints(0, 1, 0), b.ints(1, 2, 9), b.ints(1, 1, 1)]
    return [x, *limits], {"shrinkAxisMask": 2}, [(1, x.shape[2])]


def joined(b: Branch, x: Tensor) -> Move:
    other = b.constant(b.values((1, 2, x.shape[2]), x.dtype), x.quantization)
    return [x, other], {"axis": b.random.choice((1, -2))}, [(1, x.shape[1] + 2, x.shape[2])]


def stacked(b: Branch, x: Tensor) -> Move:
    other = b.constant(b.values(x.shape, x.dtype), x.quantization)
    return [x, other], {"axis": 1, "valuesCount": 2}, [(1, 2, *x.shape[1:])]


def unstacked(_: Branch, x: Tensor) -> Move:
    return [x], {"axis": 1, "num": x.shape[1]}, [(1, x.shape[2])] * x.shape[1]


def split(b: Branch, x: Tensor) -> Move:
    return [scalar(b, 1), x], {"numSplits": x.shape[1]}, [(1, 1, x.shape[2])] * x.shape[1]


def split_v(b: Branch, x: Tensor) -> Move:
    sizes = (1, x.shape[1] - 1)
    return [x, b.ints(*sizes), scalar(b, 1)], {"numSplits": 2}, [(1, size, x.shape[2]) for size in sizes]


def transposed(b: Branch, x: Tensor) -> Move:
    return [x, b.ints(2, 0, 1)], {}, [(x.shape[2], 1, x.shape[1])]


def tiled(b: Branch, x: Tensor) -> Move:
    return [x, b.ints(1, 1, 1)], {}, [x.shape]


def padded(b: Branch, x: Tensor) -> Move:
    """A few bytes more, which the paddings themselves make up for."""
    return [x, b.constant(np.asarray([[0, 0], [0, 0], [0, 1]], np.int32))], {}, [(1, x.shape[1], x.shape[2] + 1)]


KINDS: dict[str, tuple[Callable[[Branch, Tensor], Move], str | None]] = {
    "RESHAPE": (reshape, "ReshapeOptions"),
    "SQUEEZE": (squeeze, "SqueezeOptions"),
    "EXPAND_DIMS": (expand, "ExpandDimsOptions"),
    "SLICE": (cut, "SliceOptions"),
    "STRIDED_SLICE": (cut_out, "StridedSliceOptions"),
    "CONCATENATION": (joined, "ConcatenationOptions"),
    "PACK": (stacked, "PackOptions"),
    "UNPACK": (unstacked, "UnpackOptions"),
    "SPLIT": (split, "SplitOptions"),
    "SPLIT_V": (split_v, "SplitVOptions"),
    "TRANSPOSE": (transposed, "TransposeOptions"),
    "PAD": (padded, "PadOptions"),
}


def one_of(kinds: dict[str, tuple[Callable[[Branch, Tensor], Move], str | None]], branch: Branch) -> None:
    """A constant, the operator, and a copy of each output, since the graph must not return what is folded."""
    name = branch.random.choice(list(kinds))
    make, kind = kinds[name]
    dtype = branch.random.choice((F32, I8, I8))
    like = branch.tensor((), dtype, **branch.quantization(dtype))
    shape = (1, branch.random.randint(3, 5), branch.random.randint(2, 3))
    inputs, fields, shapes = make(branch, branch.constant(branch.values(shape, dtype), like.quantization))
    outputs = [branch.tensor(shape, dtype, **quantization_of(like)) for shape in shapes]
    branch.builder.operator(name, inputs, outputs, kind, **fields)
    for output in outputs:
        copied = branch.tensor((2 * output.shape[0], *output.shape[1:]), dtype, **quantization_of(like))
        branch.run(
            "CONCATENATION",
            (output, branch.input(output.shape, dtype, **quantization_of(like))),
            copied,
            "ConcatenationOptions",
            axis=0,
        )


def test_the_same_bits() -> None:
    assert_exact(CONSTANT_FOLDING, lambda branch: one_of(KINDS, branch), 1, 120)


def test_the_same_bits_where_tflm_has_no_kernel() -> None:
    kinds: dict[str, tuple[Callable[[Branch, Tensor], Move], str | None]] = {"TILE": (tiled, "TileOptions")}
    assert_exact(CONSTANT_FOLDING, lambda branch: one_of(kinds, branch), 1, 10, (LITERT,))


def cast(branch: Branch) -> None:
    """Wide integers become narrow ones; what does not fit is cut off as C does it."""
    x = branch.constant(branch.values((4, 3), I32))
    y = branch.tensor((4, 3), branch.random.choice((I8, I16)))
    y.quantization = None
    branch.builder.operator("CAST", (x,), (y,), "CastOptions")
    doubled = branch.tensor((8, 3), y.dtype)
    doubled.quantization = None
    other = branch.input((4, 3), y.dtype)
    other.quantization = None
    branch.run("CONCATENATION", (y, other), doubled, "ConcatenationOptions", axis=0)


def test_integers_are_cast_to_the_same_bits() -> None:
    assert_exact(CONSTANT_FOLDING, cast, 1, 10, (LITERT,))


GOLDEN = """graph 0 main
  %0 x: int8[1, 4]
  %1 c: int8[4] const
  %2 y: int8[1, 4] const
  %3 shape: int32[2] const
  %4 add1: int8[1, 4]
  inputs %0
  0: %4 = ADD(%0, %2)
  outputs %4
"""


def reshaped(weights: Array, dtype: DType = I8) -> tuple[ModelBuilder, Model]:
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    quantization = per_tensor(0.05, 0) if dtype is I8 else None
    c, y = b.constant("c", weights, quantization), b.tensor("y", (1, 4), dtype)
    b.operator("RESHAPE", (c, b.constant("shape", np.asarray((1, 4), np.int32))), (y,))
    return b, b.finish(b.add(x, y))


def test_the_golden_dump_and_the_values() -> None:
    _, model = reshaped(np.asarray([1, 2, 3, 4], np.int8))
    Driver(model).apply_everywhere((CONSTANT_FOLDING,))
    assert dump_model(model) == GOLDEN
    found = values(model.main.tensors[2])
    assert found is not None
    assert found.tolist() == [[1, 2, 3, 4]]


def test_a_constant_that_others_read_is_not_stored_twice() -> None:
    b, model = reshaped(np.arange(4, dtype=np.int8))
    model.main.outputs = (*model.main.outputs, b.add(model.main.tensors[1], model.main.tensors[1]))
    shape = model.main.tensors[3]
    b.operator("RESHAPE", (b.input("z", (4, 1)), shape), (b.tensor("zy", (1, 4)),))
    assert_refused(model, CONSTANT_FOLDING, "4", "0")


def test_bytes_that_another_tensor_shares_are_not_freed() -> None:
    b, model = reshaped(np.arange(4, dtype=np.int8))
    for tensor in model.main.tensors[1], model.main.tensors[3]:
        b.constant(f"{tensor.name}/twin", np.zeros(1, np.int8)).buffer = tensor.buffer
        b.graph.tensors[-1].shape, b.graph.tensors[-1].dtype = tensor.shape, tensor.dtype
    assert_refused(model, CONSTANT_FOLDING, "4", "0")


def test_more_flash_is_refused() -> None:
    b = ModelBuilder()
    c, y = b.constant("c", np.zeros(100, np.int8), per_tensor(0.05, 0)), b.tensor("y", (100,), F32)
    b.operator("DEQUANTIZE", (c,), (y,), "DequantizeOptions")
    model = b.finish(b.add(y, b.input("x", (100,), F32)))
    assert_refused(model, CONSTANT_FOLDING, "400", "100")


def test_what_the_graph_returns_is_refused() -> None:
    _, model = reshaped(np.arange(4, dtype=np.int8))
    model.main.outputs = (model.main.tensors[2],)
    assert_refused(model, CONSTANT_FOLDING, "'y'")


def test_another_quantization_is_no_plain_move() -> None:
    _, model = reshaped(np.arange(4, dtype=np.int8))
    model.main.tensors[1].quantization = per_tensor(0.5, 0)
    assert_refused(model, CONSTANT_FOLDING)


@pytest.mark.parametrize("shape", [(2, 1), (1, 1)])
def test_operands_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    c, y = b.constant("c", np.zeros((2, 2), np.int8), per_tensor(0.05, 0)), b.tensor("y", shape)
    order = b.constant("order", np.asarray((0, 5), np.int32))
    b.operator("TRANSPOSE", (c, order), (y,), "TransposeOptions")
    model = b.finish(b.add(y, b.input("x", shape)))
    assert_refused(model, CONSTANT_FOLDING)
