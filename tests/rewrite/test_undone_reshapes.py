"""A reshape that another one undoes."""

from __future__ import annotations

import numpy as np

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, Branch, assert_exact, quantization_of
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import DEAD_OPERATORS, UNDONE_RESHAPES


def pair(branch: Branch) -> None:
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    shape = (1, 1, pick.randint(1, 6), pick.randint(1, 5))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    between = branch.tensor(shape[1:], dtype, **quantization_of(x))
    if pick.random() < 0.5:
        branch.builder.operator("RESHAPE", (x, branch.ints(*shape[1:])), (between,))
    else:
        dims = np.asarray([pick.choice((0, 1))], np.int32)
        branch.builder.operator("SQUEEZE", (x,), (between,), "SqueezeOptions", squeezeDims=dims)
    again = branch.tensor(shape, dtype, **quantization_of(x))
    if pick.random() < 0.5:
        branch.builder.operator("EXPAND_DIMS", (between, branch.constant(np.asarray(0, np.int32))), (again,))
    else:
        branch.builder.operator("RESHAPE", (between, branch.ints(*shape)), (again,))
    y = branch.tensor(shape, dtype, **quantization_of(x))
    branch.run("RELU", (again,), y)


def test_the_same_bits() -> None:
    assert_exact(UNDONE_RESHAPES, pair, 1, 60)


def test_both_go_and_the_first_stays_where_others_read_it() -> None:
    for is_read in (False, True):
        b = ModelBuilder()
        between = b.reshape(b.input("x", (1, 4, 4, 3)), (4, 12))
        y = b.conv(b.reshape(between, (1, 4, 4, 3)), 2)
        model = b.finish(*([y, b.softmax(between)] if is_read else [y]))
        Driver(model).apply_everywhere((UNDONE_RESHAPES, DEAD_OPERATORS))
        kinds = [operator.name for operator in model.main.operators]
        assert kinds == (["RESHAPE", "CONV_2D", "SOFTMAX"] if is_read else ["CONV_2D"])
        assert model.main.operators[-1 - is_read].inputs[0] is model.main.inputs[0]


def test_another_shape_or_an_output_of_the_graph_is_left_alone() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 3))
    model = b.finish(b.reshape(b.reshape(x, (12,)), (1, 4, 3)), b.softmax(b.reshape(b.reshape(x, (12,)), (3, 4))))
    driver = Driver(model)
    driver.apply_everywhere((UNDONE_RESHAPES,))
    assert not driver.applied
    assert "returns" in next(iter(driver.refused.values())).reason
