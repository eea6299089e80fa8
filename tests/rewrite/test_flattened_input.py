"""A reshape in front of FULLY_CONNECTED is left out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import (
    F32,
    I8,
    I16,
    I32,
    Branch,
    assert_exact,
    quantization_of,
    refusals,
    weights_quantization,
)
from tflite_memopt.model.ir.model import Model
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.shapes import FLATTENED_INPUT


def flattened(branch: Branch) -> None:
    """An image, or the images of a batch, as rows of FULLY_CONNECTED."""
    pick = branch.random
    dtype = pick.choice((F32, I8, I16))
    rows, size = pick.choice((1, 1, 3)), [pick.randint(1, 4) for _ in range(pick.randint(1, 3))]
    x = branch.input((rows, *size), dtype, **branch.quantization(dtype))
    depth = int(np.prod(size))
    flat = branch.tensor((rows, depth), dtype, **quantization_of(x))
    branch.builder.operator("RESHAPE", (x, branch.ints(rows, depth)), (flat,), "ReshapeOptions")
    units = pick.randint(1, 9)
    bias = None
    if dtype is F32:
        weights, bias = (
            branch.constant(branch.values((units, depth), F32)),
            branch.constant(branch.values((units,), F32)),
        )
    else:
        values = np.maximum(branch.values((units, depth), I8), -127)
        weights = branch.constant(values, weights_quantization(branch, units, 0))
    y = branch.tensor((rows, units), dtype, **branch.quantization(dtype))
    fields = {"fusedActivationFunction": pick.choice((0, 1)), "keepNumDims": pick.random() < 0.5}
    branch.run("FULLY_CONNECTED", (flat, weights, bias), y, "FullyConnectedOptions", **fields)


def test_the_same_bits() -> None:
    assert_exact(FLATTENED_INPUT, flattened, 3, 40)


def scores(why: str = "") -> Model:
    b = ModelBuilder()
    x = b.input("x", (2, 3, 4))
    flat = b.reshape(x, (1, 2, 12) if why == "kept" else (2, 12))
    y = b.tensor("y", {"rows": (4, 5), "kept": (1, 2, 5)}.get(why, (2, 5)))
    weights = b.constant("w", np.ones((5, 6 if why == "rows" else 12), np.int8))
    b.operator("FULLY_CONNECTED", (flat, weights, None), (y,), "FullyConnectedOptions", keepNumDims=why == "kept")
    model = b.finish(y, *((flat,) if why == "shared" else ()))
    if why == "computed":
        model.main.set_input(model.main.operators[0], 1, b.input("shape", (2,), I32))
    return model


def test_only_the_dense_layer_is_left() -> None:
    model = scores()
    Driver(model).apply_everywhere((FLATTENED_INPUT,))
    (only,) = model.main.operators
    assert only.inputs[0] is model.main.inputs[0]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("kept", "it keeps the dimensions of its input"),
        ("shared", "'reshape0' is needed by others too"),
        ("computed", "a shape is computed"),
    ],
)
def test_refusals(why: str, reason: str) -> None:
    assert refusals(scores(why), FLATTENED_INPUT) == [reason]
