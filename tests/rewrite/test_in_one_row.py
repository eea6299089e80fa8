"""Columns written as rows: operands of fewer dimensions lie along the rows that are turned; what keeps its shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cascade.test_lower import assert_equal
from tests.model_builder import ModelBuilder
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.search.rewrite.in_one_row import lay_in_one_row

ROWS, CHANNELS = 6, 3
COLUMN = (1, ROWS, 1, CHANNELS)
SHAPES = [
    (ROWS, 1, 1),
    (ROWS, 1, CHANNELS),
    (1, 1, CHANNELS),
    (1, CHANNELS),
    (CHANNELS,),
    (1,),
    COLUMN,
    (1, ROWS, 1, 1),
]


def between_vectors(write: Callable[[ModelBuilder, Tensor], Tensor]) -> Model:
    """An operator on columns, between reshapes from and to a vector, which keep the interface."""
    b = ModelBuilder()
    y = write(b, b.reshape(b.input("x", (1, ROWS * CHANNELS)), COLUMN))
    return read_model(write_model(b.finish(b.reshape(y, (1, y.elements)))))


def assert_turned(model: Model) -> None:
    laid = copy_model(model)
    assert lay_in_one_row(laid).uses
    check_model(laid)
    assert not [each for each in laid.main.tensors if len(each.shape) == 4 and each.shape[1] > 1]
    laid = read_model(write_model(laid))
    assert prove(model, laid).status is Status.PROVED
    assert_equal(model, laid)


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "PRELU", "SELECT_V2"])
@pytest.mark.parametrize("shape", SHAPES)
def test_constants_lie_along_the_rows_that_are_turned(shape: tuple[int, ...], name: str, is_first: bool) -> None:
    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        values = np.random.default_rng(len(shape)).integers(-90, 90, shape).astype(np.int8)
        scale = per_tensor(0.05, 0)
        operands: list[Tensor] = [x, b.constant("c", values, scale)]
        y = b.tensor("y", COLUMN)
        if is_first and name != "PRELU":  # whose first operand is computed
            operands.reverse()
        if name == "SELECT_V2":
            operands.insert(0, b.constant("which", values > 0))
        b.operator(name, operands, (y,), f"{name.capitalize()}Options" if name in ("ADD", "SUB", "MUL") else None)
        return y

    assert_turned(between_vectors(write))


def test_other_readers_keep_a_constant_as_it_is() -> None:
    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        values = np.arange(ROWS, dtype=np.int8).reshape(ROWS, 1, 1)
        constant = b.constant("c", values, per_tensor(0.05, 0))
        first, second = b.tensor("first", COLUMN), b.tensor("second", COLUMN)
        b.operator("ADD", (x, constant), (first,), "AddOptions")
        wide = b.tensor("wide", (ROWS, ROWS, CHANNELS))
        b.operator("ADD", (b.input("z", (1, ROWS, CHANNELS)), constant), (wide,), "AddOptions")
        b.operator("MUL", (first, constant), (second,), "MulOptions")
        b.graph.outputs = (b.reshape(wide, (1, wide.elements)),)
        return second

    assert_turned(between_vectors(write))


def test_what_is_computed_along_the_rows_of_three_dimensions_is_left_alone() -> None:
    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        other = b.reshape(b.input("z", (1, ROWS)), (ROWS, 1, 1))
        y = b.tensor("y", COLUMN)
        b.operator("ADD", (x, other), (y,), "AddOptions")
        return y

    model = between_vectors(write)
    before = write_model(model)
    assert not lay_in_one_row(model).uses
    assert write_model(model) == before


def moved(name: str) -> Callable[[ModelBuilder, Tensor], Tensor]:
    """Movers of columns, each with operands of the fewest dimensions that it takes."""

    def ints(b: ModelBuilder, *values: object) -> Tensor:
        return b.constant(f"c{len(b.graph.tensors)}", np.asarray(values, np.int32))

    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        y = b.tensor("y", (1, 2, 1, CHANNELS))
        if name == "SLICE":
            b.operator(name, (x, ints(b, 0, 3, 0, 0), ints(b, 1, 2, 1, -1)), (y,), "SliceOptions")
            return y
        if name == "CONCATENATION":
            return b.concat((x, b.constant("c", np.ones(COLUMN, np.int8), per_tensor(0.05, 0))), 1)
        y = b.tensor("z", (1, ROWS + 3, 1, CHANNELS))
        if name in ("PAD", "PADV2"):
            operands = [x, ints(b, [0, 0], [1, 2], [0, 0], [0, 0])]
            value = b.constant("v", np.asarray([7], np.int8).reshape(()), per_tensor(0.05, 0))
            b.operator(name, [*operands, value] if name == "PADV2" else operands, (y,))
            return y
        y = b.tensor("u", COLUMN)
        update = b.constant("c", np.ones((1, 2, 1, CHANNELS), np.int8), per_tensor(0.05, 0))
        b.operator("DYNAMIC_UPDATE_SLICE", (x, update, ints(b, 0, 3, 0, 0)), (y,))
        return y

    return write


@pytest.mark.parametrize("name", ["SLICE", "CONCATENATION", "PAD", "PADV2", "DYNAMIC_UPDATE_SLICE"])
def test_what_moves_columns_moves_rows(name: str) -> None:
    def write(b: ModelBuilder, x: Tensor) -> Tensor:
        y = moved(name)(b, x)
        constant = b.constant("short", np.arange(y.shape[1], dtype=np.int8).reshape(-1, 1, 1), per_tensor(0.05, 0))
        total = b.tensor("total", y.shape)
        b.operator("ADD", (constant, y), (total,), "AddOptions")
        return total

    assert_turned(between_vectors(write))


def test_what_keeps_its_shape_keeps_all_as_it_is() -> None:
    b = ModelBuilder()
    model = b.finish(b.add(*(b.input(name, COLUMN) for name in ("x", "z"))))
    assert not lay_in_one_row(model, model.main.outputs).uses
    assert not lay_in_one_row(model, model.main.inputs[1:]).uses
    assert model.main.outputs[0].shape == COLUMN
    assert lay_in_one_row(model).uses
    assert model.main.outputs[0].shape == (1, 1, ROWS, CHANNELS)
