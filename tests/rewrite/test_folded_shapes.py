"""Arithmetic with shapes becomes constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I32, LITERT, Branch, assert_exact, assert_same_bits, model_of, refusals
from tflite_memopt import Options, optimize
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.folding import FOLDED_SHAPES


def flattened(branch: Branch) -> None:
    """All but the last dimension as one, as Keras writes a dense layer over a sequence of unknown batch."""
    pick, b = branch.random, branch.builder
    x = branch.input((pick.randint(1, 3), pick.randint(2, 4), pick.randint(1, 3)), F32)
    made: list[Tensor] = []

    def add(name: str, inputs: tuple[Tensor, ...], shape: tuple[int, ...], kind: str, **fields: Any) -> Tensor:
        y = branch.tensor(shape, I32)
        y.quantization = None
        b.operator(name, inputs, (y,), kind, **fields)
        made.append(y)
        return y

    shape = add("SHAPE", (x,), (3,), "ShapeOptions", outType=2)
    sides = []
    for chosen in ((0, 1), (2,)):
        part = add("GATHER", (shape, branch.ints(*chosen)), (len(chosen),), "GatherOptions", axis=pick.choice((0, -1)))
        sides.append(add("REDUCE_PROD", (part, branch.ints(0)), (), "ReducerOptions"))
    if pick.random() < 0.5:
        sides[1] = add("MUL", (sides[1], branch.constant(np.asarray(1, np.int32))), (), "MulOptions")
    whole = add("PACK", tuple(sides), (2,), "PackOptions", valuesCount=2)
    y = branch.tensor((x.shape[0] * x.shape[1], x.shape[2]), F32)
    branch.run("RESHAPE", (x, whole), y, "ReshapeOptions")


@pytest.mark.slow
def test_the_same_bits() -> None:
    model, owners = model_of(flattened, 3, 30)
    original = write_model(model)
    Driver(model).apply_everywhere((FOLDED_SHAPES,))
    assert {operator.name for operator in model.main.operators} == {"RESHAPE"}
    assert_same_bits(original, write_model(model), owners, 3, (LITERT,))


def moved(branch: Branch) -> None:
    """A constant of integers, and a product with what one operator moves of it."""
    b, x = branch.builder, branch.ints(*range(4))
    kinds: dict[str, tuple[tuple[Tensor, ...], tuple[int, ...], dict[str, Any]]] = {
        "Reshape": ((x, branch.ints(2, 2)), (2, 2), {}),
        "Slice": ((x, branch.ints(1), branch.ints(-1)), (3,), {}),
        "StridedSlice": ((x, branch.ints(2), branch.ints(3), branch.ints(1)), (), {"shrinkAxisMask": 1}),
        "Concatenation": ((x, branch.ints(7)), (5,), {"axis": branch.random.choice((0, -1))}),
        "Pack": ((x, x), (4, 2), {"axis": 1, "valuesCount": 2}),
        "Cast": ((branch.constant(np.asarray([1 << 33, -(1 << 33) - 1], np.int64)),), (2,), {}),
    }
    kind = branch.random.choice(list(kinds))
    inputs, shape, fields = kinds[kind]
    y, z = branch.tensor(shape, I32), branch.tensor(shape, I32)
    y.quantization = z.quantization = None
    b.operator({"StridedSlice": "STRIDED_SLICE"}.get(kind, kind.upper()), inputs, (y,), f"{kind}Options", **fields)
    branch.run("MUL", (y, branch.input(shape, I32)), z, "MulOptions")


def test_integers_are_moved_to_the_same_bits() -> None:
    assert_exact(FOLDED_SHAPES, moved, 1, 40, (LITERT,))


def test_operands_that_do_not_fit_are_left_to_the_kernel() -> None:
    b = ModelBuilder()
    y = b.tensor("y", (4,), I32)
    parts = [b.constant(f"c{size}", np.ones(size, np.int32)) for size in ((2,), (2, 1))]
    b.operator("CONCATENATION", parts, (y,), "ConcatenationOptions", axis=0)
    (reason,) = refusals(b.finish(b.add(y, b.input("x", (4,), I32))), FOLDED_SHAPES)
    assert "arithmetic" in reason


def test_tflm_loads_the_model_only_now() -> None:
    model, _ = model_of(flattened, 1, 2)
    result = optimize(write_model(model), Options(samples=2))
    assert result.report.equivalence["litert"].equal
    assert result.report.basis.plan_executed or "REDUCE_PROD" in (result.report.basis.reason or "")
    assert "head" in result.report.after.tflm
    assert all(operator.name == "RESHAPE" for operator in read_model(result.model).main.operators)


def shape_of(x: Tensor, b: ModelBuilder) -> Tensor:
    y = b.tensor("shape", (len(x.shape),), DType.INT32)
    b.operator("SHAPE", (x,), (y,), "ShapeOptions", outType=2)
    return y


def gathered(index: int) -> Model:
    b = ModelBuilder()
    y = b.tensor("y", (1,), I32)
    indices = b.constant("indices", np.asarray([index], np.int32))
    b.operator("GATHER", (shape_of(b.input("x", (2, 3), F32), b), indices), (y,), "GatherOptions")
    doubled = b.tensor("z", (1,), I32)
    b.operator("ADD", (y, b.input("other", (1,), I32)), (doubled,), "AddOptions")
    return b.finish(doubled)


def test_a_shape_that_is_returned_stays() -> None:
    b = ModelBuilder()
    (reason,) = refusals(b.finish(shape_of(b.input("x", (2, 3), F32), b)), FOLDED_SHAPES)
    assert "'shape'" in reason


@pytest.mark.parametrize("index", [2, -1])
def test_an_index_outside_the_shape_is_left_to_the_kernel(index: int) -> None:
    driver = Driver(gathered(index))
    driver.apply_everywhere((FOLDED_SHAPES,))
    (refused,) = driver.refused.values()
    assert "arithmetic" in refused.reason


def test_what_is_computed_from_values_is_no_match() -> None:
    b = ModelBuilder()
    y = b.tensor("y", (4,), I32)
    b.operator("MUL", (b.input("x", (4,), I32), b.constant("c", np.ones(4, np.int32))), (y,), "MulOptions")
    assert refusals(b.finish(y), FOLDED_SHAPES) == []
