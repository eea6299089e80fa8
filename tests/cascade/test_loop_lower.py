"""Loops compute the same bytes as the whole, on TFLM and on LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cascade.forms import LOOPS, Loop
from tests.cascade.networks import EVERY, OPERATORS, TYPES, Network, random_network, regions
from tests.cascade.test_lower import assert_equal
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model
from tflite_memopt.model.ir.model import DType, Model, Operator
from tflite_memopt.search.cascade.loop import lower_loop
from tflite_memopt.search.cascade.loop_rows import Masked
from tflite_memopt.search.cascade.region import Region, region_of
from tflite_memopt.search.cascade.tiling import CutLoop, MaskedLoop, Tiling, loop_rows_for, with_rows_cut


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


def looped_network(dtype: DType, kinds: Sequence[str], rows: int, seed: int) -> tuple[Model, Model] | None:
    """A chain of these operators, and the same as a masked loop; None where there is none of its windows."""
    network = Network(Random(seed), dtype)
    x = network.image("x", (1, 16, 20, 3), is_input=True)
    for kind in kinds:
        x = network.layer(kind, x, [x])
    model = network.b.finish(x)
    region = region_of(model.main, model.main.operators)
    looped = as_loop(model, region, rows, MaskedLoop) if isinstance(region, Region) else region
    return None if isinstance(looped, str) else (model, looped)


def operators_of(model: Model) -> list[Operator]:
    return [operator for graph in model.graphs for operator in graph.operators]


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("kind", ["nearest", "transpose_conv", "depth_to_space"])
@pytest.mark.parametrize("dtype", TYPES)
def test_rows_made_of_one_run_in_masked_loops(dtype: DType, kind: str, rows: int) -> None:
    kinds = ("conv", "nearest" if dtype is DType.INT16 and kind == "depth_to_space" else kind, "conv")
    model, looped = next(found for seed in range(40) if (found := looped_network(dtype, kinds, rows, seed)) is not None)
    assert_equal(model, looped)


@pytest.mark.parametrize(("kernel", "rows", "parts"), [(3, 1, 2), (3, 2, 0), (5, 1, 4)])
def test_rows_that_stay_are_copied_whole(kernel: int, rows: int, parts: int) -> None:
    """Of a window of 3 rows two stay: one by one where one is new, at once where two are. ``CutLoop`` cuts out."""
    b = ModelBuilder()
    x = b.conv(b.input("x", (1, 16, 40, 4)), 24)
    model = b.finish(b.conv(x, 2, kernel=kernel))
    region = region_of(model.main, model.main.operators)
    assert isinstance(region, Region)
    looped, loop = as_loop(model, region, rows, MaskedLoop), loop_rows_for(region, MaskedLoop(rows))
    assert isinstance(looped, Model)
    assert isinstance(loop, Masked)
    copies = [each for each in operators_of(looped) if each.name == "CONCATENATION" and len(each.inputs) == 1]
    assert len(copies) == loop.parts_kept(x) == parts
    form = with_rows_cut(model, Tiling(0, len(model.main.operators), MaskedLoop(rows))).form
    assert form == (CutLoop(rows) if parts > 2 else MaskedLoop(rows))
    cut = as_loop(model, region, rows, CutLoop)
    assert isinstance(cut, Model)
    assert not any(each.name == "CONCATENATION" and len(each.inputs) == 1 for each in operators_of(cut))
    assert_equal(model, looped, cut)


def test_columns_of_floats_are_joined() -> None:
    """Of the first network whose integers are padded: the seed draws the same windows for both."""
    for seed in range(40):
        integers = looped_network(DType.INT8, ("conv", "conv"), 2, seed)
        if integers is not None and any(map(adds_columns, operators_of(integers[1]))):
            floats = looped_network(DType.FLOAT32, ("conv", "conv"), 2, seed)
            assert floats is not None
            assert not any(map(adds_columns, operators_of(floats[1])))
            assert_equal(*floats)
            return
    raise AssertionError("no network is padded")


def test_one_pad_is_around_rows_and_columns_of_a_cut_loop() -> None:
    """A masked loop of floats joins columns with an input's rows, and then the rows above and below the image."""
    for seed in range(40):
        found = looped_network(DType.FLOAT32, ("conv",), 2, seed)
        if found is None:
            continue
        model, masked = found
        if with_rows_cut(model, Tiling(0, 1, MaskedLoop(2))).form == CutLoop(2):
            region = region_of(model.main, model.main.operators)
            assert isinstance(region, Region)
            cut = as_loop(model, region, 2, CutLoop)
            assert isinstance(cut, Model)
            assert len(operators_of(cut)) == len(operators_of(masked)) - 1
            assert any(map(adds_columns, operators_of(cut)))
            assert_equal(model, masked, cut)
            return
    raise AssertionError("no network is padded")


@pytest.mark.parametrize("width", [20, 60])
@pytest.mark.parametrize("form", LOOPS)
def test_a_row_of_short_pixels_is_written_as_one_run(form: Loop, width: int) -> None:
    b = ModelBuilder()
    model = b.finish(b.conv(b.conv(b.input("x", (1, 16, width, 4)), 8, kernel=3), 2, kernel=3))
    region = region_of(model.main, model.main.operators)
    assert isinstance(region, Region)
    looped = as_loop(model, region, 2, form)
    assert isinstance(looped, Model)
    (written,) = [each for each in operators_of(looped) if each.name == "DYNAMIC_UPDATE_SLICE" and is_result(each)]
    assert (written.outputs[0].shape == (1, 16, 1, 2 * width)) == (width == 60)
    assert_equal(model, looped)


def adds_columns(operator: Operator) -> bool:
    return operator.name == "PAD" and operator.required(0).shape[2] < operator.outputs[0].shape[2]


def is_result(update: Operator) -> bool:
    return update.outputs[0].shape[1] == 16
