"""Concatenation + reshape that leaves the channels alone."""

from __future__ import annotations

from math import prod
from random import Random

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    LITERT,
    TFLM,
    Branch,
    Pattern,
    assert_exact,
    assert_refused,
    quantization_of,
    rule_named,
)
from tflite_memopt.model.ir.model import Model
from tflite_memopt.model.ir.tensors import integers
from tflite_memopt.search.rewrite.engine import Driver

SPLIT_RESHAPE = rule_named("split_reshape")


def reshape(has_operand: bool) -> Pattern:
    def pattern(branch: Branch) -> None:
        x = branch.concat(branch.random.choice((F32, I8, I16, I32)))
        shape = np.asarray((*rearranged(x.shape[:-1], branch.random), x.shape[-1]), np.int32)
        inputs = (x, branch.constant(shape)) if has_operand else (x,)
        y = branch.tensor(shape.tolist(), x.dtype, **quantization_of(x))
        branch.run("RESHAPE", inputs, y, "ReshapeOptions", newShape=shape)

    return pattern


def rearranged(rows: tuple[int, ...], random: Random) -> list[int]:
    """The same number of pixels in one to four dimensions."""
    count = prod(rows)
    return random.choice(([count], [1, count], [1, 1, count], [rows[0], count // rows[0]], [1, count, 1]))


def expand_dims(branch: Branch) -> None:
    pick = branch.random
    x = branch.concat(pick.choice((F32, I8)), shape=(1, pick.randint(2, 6)))
    axis = pick.randint(-3, 1)
    shape = list(x.shape)
    shape.insert(axis if axis >= 0 else axis + 4, 1)
    if shape[-1] == 1:
        axis, shape = 1, [x.shape[0], 1, *x.shape[1:]]
    y = branch.tensor(shape, x.dtype, **quantization_of(x))
    branch.run("EXPAND_DIMS", (x, branch.constant(np.asarray(axis, np.int32))), y, "ExpandDimsOptions")


def squeeze(branch: Branch) -> None:
    pick = branch.random
    x = branch.concat(pick.choice((F32, I8)), shape=(2, 1, pick.randint(2, 6)))
    y = branch.tensor((2, *x.shape[2:]), x.dtype, **quantization_of(x))
    branch.run("SQUEEZE", (x,), y, "SqueezeOptions", squeezeDims=np.asarray([pick.choice((1, -3))], np.int32))


@pytest.mark.parametrize("pattern", [reshape(has_operand=True), reshape(has_operand=False), expand_dims, squeeze])
def test_the_same_bits(pattern: Pattern) -> None:
    assert_exact(SPLIT_RESHAPE, pattern, 0, 40, (LITERT, TFLM))


def model(name: str, shape: tuple[int, ...]) -> Model:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 1, 4, count)) for count in (1, 2)])
    x.shape = (1, 1, 4, 3)
    y = b.tensor("y", shape)
    b.operator(name, (x,), (y,))
    return b.finish(y)


def test_refusals() -> None:
    assert_refused(model("RESHAPE", (1, 12)), SPLIT_RESHAPE, "channels")
    assert_refused(model("SQUEEZE", (4, 3)), SPLIT_RESHAPE, "dimensions")


def test_each_part_gets_a_shape_of_its_own() -> None:
    b = ModelBuilder()
    x = b.concat([b.input(f"x{count}", (1, 2, 4, count)) for count in (1, 2)])
    model = b.finish(b.reshape(x, (1, 8, 3)))
    Driver(model).apply_everywhere((SPLIT_RESHAPE,))
    assert [op.name for op in model.main.operators] == ["RESHAPE", "RESHAPE", "CONCATENATION"]
    shapes = [integers(op.inputs[1]) for op in model.main.operators[:2]]
    assert [shape.tolist() for shape in shapes if shape is not None] == [[1, 8, 1], [1, 8, 2]]
