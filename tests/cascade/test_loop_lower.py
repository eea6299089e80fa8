"""Loops compute the same bytes as the whole, on TFLM and on LiteRT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cascade.forms import LOOPS, Loop
from tests.cascade.networks import EVERY, OPERATORS, TYPES, random_network, regions
from tests.cascade.test_lower import assert_equal
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.search.cascade.loop import lower_loop
from tflite_memopt.search.cascade.region import Region, region_of
from tflite_memopt.search.cascade.tiling import loop_rows_for


def as_loop(model: Model, region: Region, rows: int, form: Loop) -> Model | str:
    """A copy of the model with the region as a loop, or the reason why it cannot be."""
    copied = copy_model(model)
    at = model.main.operators.index(region.operators[0])
    twin = region_of(copied.main, copied.main.operators[at : at + len(region.operators)])
    assert isinstance(twin, Region)
    turns = loop_rows_for(twin, form(rows))
    if isinstance(turns, str):
        return turns
    lower_loop(copied, copied.main, twin, turns)
    check_model(copied)
    return copied


@examples(60)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    rows=st.integers(1, 4),
    longest=st.booleans(),
    kinds=st.just(EVERY),
    stacked=st.booleans(),
)
# A window higher than the image.
@example(seed=3931, dtype=DType.INT8, layers=1, rows=1, longest=False, kinds=OPERATORS, stacked=False)
# A result of bools.
@example(seed=45896, dtype=DType.FLOAT32, layers=7, rows=1, longest=False, kinds=EVERY, stacked=False)
def test_any_region_as_a_loop_computes_the_same(
    seed: int, dtype: DType, layers: int, rows: int, longest: bool, kinds: Sequence[str], stacked: bool
) -> None:
    model = random_network(seed, dtype, layers, height=24 if longest else 0, kinds=kinds, stacked=stacked)
    found = sorted(regions(model), key=lambda region: -len(region.operators))
    found = [region for region in found if region.exit.shape[1] > 1]
    if not found:
        return
    region = found[0] if longest else found[seed % len(found)]
    looped = [as_loop(model, region, rows, form) for form in LOOPS]
    assert_equal(model, *(each for each in looped if isinstance(each, Model)))


@pytest.mark.parametrize("form", LOOPS)
def test_a_value_of_its_own_around_channels_alone(form: Loop) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8, 4, 2)), b.tensor("y", (1, 8, 4, 3))
    amounts = b.constant("amounts", np.asarray([[0, 0], [0, 0], [0, 0], [0, 1]], np.int32))
    value = b.constant("value", np.asarray([3], np.int8), x.quantization)
    b.operator("PADV2", (x, amounts, value), (y,), "PadV2Options")
    model = b.finish(b.conv(y, 4, kernel=3))
    region = region_of(model.main, model.main.operators)
    assert isinstance(region, Region)
    looped = as_loop(model, region, 2, form)
    assert isinstance(looped, Model)
    assert_equal(model, looped)
