"""A reshape by dimensions of 1 in front of a reduction is left out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, I16, I32, Branch, assert_exact, quantization_of, refusals
from tflite_memopt.model.ir.model import Model
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import REDUCED_RESHAPE


def reduced(branch: Branch) -> None:
    """A sequence or an image with dimensions of 1 in between, without some of them, and some dimensions together."""
    pick = branch.random
    name = pick.choice(("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"))
    dtype = pick.choice((F32, I8, I16) if name == "MEAN" else (F32, I8))
    length, channels = pick.randint(2, 9), pick.randint(2, 7)
    lying, standing = (1, length, channels), (1, length, 1, channels)
    before, after = pick.choice(((standing, lying), (lying, standing), ((1, *lying), lying)))
    x = branch.input(before, dtype, **branch.quantization(dtype))
    shaped = branch.tensor(after, dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(*after)), (shaped,), "ReshapeOptions")
    axes = [1, 2] if after == standing else pick.choice([[1], [-2], [1, 2]])
    shape = [size for axis, size in enumerate(after) if axis not in {each % len(after) for each in axes}]
    made = quantization_of(x) if name.startswith("REDUCE") else branch.quantization(dtype)
    y = branch.tensor(shape, dtype, **made)
    branch.run(name, (shaped, branch.ints(*axes)), y, "ReducerOptions", keepDims=False)


def test_the_same_bits() -> None:
    assert_exact(REDUCED_RESHAPE, reduced, 4, 60)


def pooled(why: str = "") -> Model:
    b = ModelBuilder()
    flat = b.reshape(b.input("x", (1, 8, 1, 4)), (1, 4, 8) if why == "moved" else (1, 8, 4))
    y = b.tensor("y", (1, 1, 4) if why == "kept" else (1, flat.shape[2]))
    axis = b.constant("axis", np.asarray([1], np.int32))
    b.operator("MEAN", (flat, axis), (y,), "ReducerOptions", keepDims=why == "kept")
    model = b.finish(y, *((flat,) if why == "shared" else ()))
    if why == "computed":
        model.main.set_input(model.main.operators[0], 1, b.input("shape", (3,), I32))
    return model


def test_a_standing_sequence_is_taken_as_it_is() -> None:
    model = pooled()
    Driver(model).apply_everywhere((REDUCED_RESHAPE,))
    (only,) = model.main.operators
    axes = only.inputs[1]
    assert axes is not None
    assert axes.buffer.data is not None
    assert np.asarray(axes.buffer.data).view(np.int32).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("kept", "it keeps the dimensions that it takes together"),
        ("shared", "'reshape0' is needed by others too"),
        ("computed", "its dimensions or a shape are computed"),
        ("moved", "the reshape does more than add or drop dimensions of 1"),
    ],
)
def test_refusals(why: str, reason: str) -> None:
    assert refusals(pooled(why), REDUCED_RESHAPE) == [reason]
