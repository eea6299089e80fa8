"""RESHAPE after RESHAPE, SQUEEZE or EXPAND_DIMS."""

from __future__ import annotations

import numpy as np

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, assert_refused, quantization_of
from tflite_memopt.model.ir.model import Model, Tensor
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import CONSECUTIVE_RESHAPES

GOLDEN = """graph 0 main
  %0 x: int8[1, 4, 3]
  %1 reshape0: int8[12]
  %2 reshape0/shape: int32[1] const
  %3 reshape1: int8[2, 6]
  %4 reshape1/shape: int32[2] const
  inputs %0
  0: %3 = RESHAPE(%0, %4) {newShape=[2, 6]}
  outputs %3
"""


def two(branch: Branch) -> None:
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    rows, columns = pick.randint(1, 5), pick.randint(1, 5)
    x = branch.input((rows, 1, columns), dtype, **branch.quantization(dtype))
    name = pick.choice(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"))
    shape = {"RESHAPE": (rows * columns,), "SQUEEZE": (rows, columns), "EXPAND_DIMS": (rows, 1, 1, columns)}[name]
    between = branch.tensor(shape, dtype, **quantization_of(x))
    if name == "SQUEEZE":
        dims = np.asarray([1], np.int32)
        branch.builder.operator(name, (x,), (between,), "SqueezeOptions", squeezeDims=dims)
    else:
        operand = branch.ints(*shape) if name == "RESHAPE" else branch.constant(np.asarray(1, np.int32))
        branch.builder.operator(name, (x, operand), (between,))
    y = branch.tensor((columns, rows), dtype, **quantization_of(x))
    new = np.asarray((columns, pick.choice((-1, rows))), np.int32)
    inputs = (between, branch.constant(new)) if pick.random() < 0.7 else (between,)
    branch.run("RESHAPE", inputs, y, "ReshapeOptions", newShape=new)


def test_the_same_bits() -> None:
    assert_exact(CONSECUTIVE_RESHAPES, two, 1, 80)


def small() -> tuple[ModelBuilder, Tensor, Model]:
    b = ModelBuilder()
    between = b.reshape(b.input("x", (1, 4, 3)), (12,))
    return b, between, b.finish(b.reshape(between, (2, 6)))


def test_the_golden_dump() -> None:
    model = small()[2]
    Driver(model).apply_everywhere((CONSECUTIVE_RESHAPES,))
    assert dump_model(model) == GOLDEN


def test_a_tensor_between_that_is_needed_is_not_skipped() -> None:
    b, between, model = small()
    model.main.outputs = (*model.main.outputs, between)
    assert_refused(model, CONSECUTIVE_RESHAPES, "'reshape0'")
    b, between, model = small()
    model.main.outputs = (*model.main.outputs, b.add(between, between))
    assert_refused(model, CONSECUTIVE_RESHAPES, "'reshape0'")


def test_a_computed_shape_is_not_skipped() -> None:
    b, _, model = small()
    model.main.set_input(model.main.operators[0], 1, b.input("shape", (1,), I32))
    assert_refused(model, CONSECUTIVE_RESHAPES, "shape")


def test_another_quantization_between_is_not_skipped() -> None:
    _, between, model = small()
    between.quantization = ModelBuilder().tensor("like", (), scale=0.3).quantization
    assert_refused(model, CONSECUTIVE_RESHAPES, "'reshape0'", "'x'")


def test_a_variable_is_not_read_later() -> None:
    _, _, model = small()
    model.main.inputs[0].is_variable = True
    assert_refused(model, CONSECUTIVE_RESHAPES, "variable")
