"""Pointwise convolutions as dense layers of every pixel."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.rewrite.patterns import F32, I8, Branch, assert_exact, refusals
from tflite_memopt import Options
from tflite_memopt.kernels.profiles import PROFILES
from tflite_memopt.memory.arrange import cost_of
from tflite_memopt.memory.work import WorkLimit, instructions
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.search.rewrite.engine import Driver
from tflite_memopt.search.rewrite.pixels import DENSE_PIXELS
from tflite_memopt.search.rewrite.tiles import simplified


def pointwise(branch: Branch) -> None:
    """A convolution of pixels."""
    pick = branch.random
    rows, depth = [pick.choice((1, 1, 3)), pick.randint(1, 5), pick.randint(1, 5)], pick.randint(1, 12)
    units = pick.randint(1, 9)
    filters, bias = (branch.constant(branch.values(shape, F32)) for shape in ((units, 1, 1, depth), (units,)))
    x, y = branch.input((*rows, depth), F32), branch.tensor((*rows, units), F32)
    fields = {"strideH": 1, "strideW": 1, "padding": pick.choice((0, 1))}
    activation = pick.choice((0, 1, 3))
    branch.run("CONV_2D", (x, filters, bias), y, "Conv2DOptions", **fields, fusedActivationFunction=activation)


def test_the_same_bits() -> None:
    assert_exact(DENSE_PIXELS, pointwise, 0, 40)


def convolution(
    pixels: int = 4, depth: int = 8, units: int = 32, stride: int = 1, groups: int = 1, dtype: DType = F32
) -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, pixels, pixels, depth), dtype)
    if dtype is not F32:
        return b.finish(b.conv(x, units))
    y = b.tensor("y", (1, pixels // stride, pixels // stride, units), F32)
    filters = b.constant("w", np.ones((units, 1, 1, depth // groups), np.float32))
    b.operator("CONV_2D", (x, filters, None), (y,), "Conv2DOptions", strideH=stride, strideW=stride)
    return b.finish(y)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (convolution(stride=2), "it skips pixels"),
        (convolution(groups=2), "it is grouped"),
        (convolution(dtype=I8), "LiteRT's dense layer of integers rounds otherwise"),
    ],
)
def test_refusals(model: Model, reason: str) -> None:
    assert refusals(model, DENSE_PIXELS) == [reason]


def test_a_window_is_another_matter() -> None:
    b = ModelBuilder()
    assert not refusals(b.finish(b.conv(b.input("x", (1, 4, 4, 8)), 4, 3)), DENSE_PIXELS)


def test_floats_keep_nothing_for_each_channel() -> None:
    options = Options(kernels="portable")
    model = convolution()
    work = WorkLimit(instructions(model, options.profile), 1.0, options.profile)
    cost = cost_of(model, options.profile, options.search)
    found = simplified(model, cost, (DENSE_PIXELS,), options.profile, options.search, 10**9, work)
    assert found is not None
    assert found[1].saved_bytes >= 8 * 32
    assert [operator.name for operator in found[0].main.operators] == ["FULLY_CONNECTED"]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_only_the_reference_kernels_let_the_output_lie_on_the_input(name: str) -> None:
    model = convolution()
    Driver(model).apply_everywhere((DENSE_PIXELS,))
    (dense,) = model.main.operators
    assert bool(PROFILES[name].relations(dense)) == (name == "reference")
