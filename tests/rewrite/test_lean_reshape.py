"""RESHAPE without its operand, or EXPAND_DIMS in its place."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, assert_refused, quantization_of, refusals
from tflite_memopt.kernels.profiles import PORTABLE
from tflite_memopt.memory.reserve import reserve
from tflite_memopt.model.ir.copying import drop_dead_tensors
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.operators.requests import ILP32
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import LEAN_RESHAPE


def reshaped(branch: Branch) -> None:
    """A tensor with a dimension of 1 more, or in another shape."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    shape = [pick.choice((1, 2, 3, 5)) for _ in range(pick.randint(1, 3))]
    at = pick.randint(0, len(shape))
    longer = [*shape[:at], 1, *shape[at:]]
    other = pick.choice((longer, longer, [int(np.prod(shape))], [1, *reversed(shape)]))
    x = branch.input(shape, dtype, **branch.quantization(dtype))
    y = branch.tensor(other, dtype, **quantization_of(x))
    branch.run("RESHAPE", (x, branch.ints(*other)), y, "ReshapeOptions")


def test_the_same_bits() -> None:
    assert_exact(LEAN_RESHAPE, reshaped, 0, 40)


def lean(shape: tuple[int, ...], other: tuple[int, ...], dtype: DType = I8, given: bool = True) -> Model:
    b = ModelBuilder()
    x, y = b.input("x", shape, dtype), b.tensor("y", other, dtype)
    said = b.constant("shape", np.asarray(other, np.int32)) if given else b.input("shape", (len(other),), I32)
    b.operator("RESHAPE", (x, said), (y,), "ReshapeOptions")
    return b.finish(y)


@pytest.mark.parametrize(
    ("model", "name", "saved"),
    [
        (lean((1, 8, 4), (1, 8, 1, 4)), "EXPAND_DIMS", 36),
        (lean((1, 8, 4), (1, 32)), "RESHAPE", 12),
        (lean((1, 8, 4), (1, 8, 1, 4), DType.INT64), "RESHAPE", 12),
    ],
)
def test_what_it_leaves_less_in_the_tail(model: Model, name: str, saved: int) -> None:
    before = reserve(model, 0, PORTABLE, abi=ILP32).tail
    Driver(model).apply_everywhere((LEAN_RESHAPE,))
    drop_dead_tensors(model)
    assert [operator.name for operator in model.main.operators] == [name]
    assert abs(before - reserve(model, 0, PORTABLE, abi=ILP32).tail - saved) <= 12  # what alignment costs


def test_a_shape_that_is_computed_stays() -> None:
    assert not refusals(lean((1, 8, 4), (1, 32), given=False), LEAN_RESHAPE)


def test_a_shape_that_is_not_known() -> None:
    assert_refused(lean((1, 8, 0), (1, 0)), LEAN_RESHAPE, "shape")
