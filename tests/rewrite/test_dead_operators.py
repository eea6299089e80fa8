"""Operators that nobody needs."""

from __future__ import annotations

import numpy as np

from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.models import streaming_model
from tests.rewrite.patterns import F32, I8, Branch, assert_exact, quantization_of
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import DEAD_OPERATORS

GOLDEN = """graph 0 main
  %0 x: int8[1, 4]
  %1 dead0: int8[1, 4]
  %2 dead1: int8[1, 4]
  %3 dead2: int8[1, 4]
  %4 y: int8[1, 4]
  inputs %0
  0: %4 = RELU(%0)
  outputs %4
"""


def with_dead(branch: Branch) -> None:
    """A chain that ends in nothing, beside an operator that is needed."""
    dtype = branch.random.choice((F32, I8))
    x = branch.input((1, 3, 5), dtype, **branch.quantization(dtype))
    tensor = x
    for _ in range(branch.random.randint(1, 4)):
        after = branch.tensor(x.shape, dtype, **quantization_of(x))
        branch.builder.operator("RELU", (tensor,), (after,))
        tensor = after
    branch.run("RELU", (x,), branch.tensor(x.shape, dtype, **quantization_of(x)))


def test_the_same_bits() -> None:
    assert_exact(DEAD_OPERATORS, with_dead, 1, 40)


def test_a_dead_chain_goes_as_a_whole() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    tensor = x
    for number in range(3):
        after = b.tensor(f"dead{number}", (1, 4))
        b.operator("RELU", (tensor,), (after,))
        tensor = after
    y = b.tensor("y", (1, 4))
    b.operator("RELU", (x,), (y,))
    model = b.finish(y)
    Driver(model).apply_everywhere((DEAD_OPERATORS,))
    assert dump_model(model) == GOLDEN


def test_one_output_of_several_is_enough_to_live() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4))
    axis = b.constant("axis", np.asarray(1, np.int32))
    parts = [b.tensor(f"part{number}", (1, 2)) for number in range(2)]
    b.operator("SPLIT", (axis, x), parts, "SplitOptions", numSplits=2)
    model = b.finish(parts[1])
    driver = Driver(model)
    driver.apply_everywhere((DEAD_OPERATORS,))
    assert not driver.applied


def test_side_effects_are_needed() -> None:
    """The value that an ASSIGN_VARIABLE takes is read by no operator of the graph's result."""
    model = streaming_model()
    model.main.outputs = ()
    before = dump_model(model)
    driver = Driver(model)
    driver.apply_everywhere((DEAD_OPERATORS,))
    assert not driver.applied
    assert not driver.refused
    assert dump_model(model) == before
