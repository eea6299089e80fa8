"""Stripes that are quickly found: what is promised is enough for a model that is really in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.makers.model_builder import ModelBuilder
from tests.cascade.spaces import STRIPES, figures_of, space_of
from tests.models import dense_model
from tests.profiles import examples
from tflite_memopt import Options, optimize
from tflite_memopt.cascade.tiling import apply_tilings
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.model import Model
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.oracle.description import model_of, sketch_of
from tflite_memopt.oracle.levels import PLAN, RamOracle
from tflite_memopt.oracle.necks import necks_of
from tflite_memopt.oracle.planned import PlannedNeed
from tflite_memopt.oracle.stripes import StripedNeed, striped_need

from .cells import cell_network


def found_in(model: Model, target: str | None) -> StripedNeed:
    """What the oracle finds, from the sketch alone."""
    options = Options(target=target, **PLAN)
    plan = RamOracle.on(target).ram(model, "plan")
    return striped_need(model_of(sketch_of(model)), options.profile, options, PlannedNeed(plan, plan.head, plan.macs))


@given(st.integers(0, 10**6), st.sampled_from((None, "cortex-m4", "cortex-m55")), st.sampled_from((4, 8)))
@examples(4)
def test_a_model_in_these_stripes_needs_no_more(seed: int, target: str | None, width: int) -> None:
    model = cell_network(seed, width, resolution=16, cells=1)
    found, options = found_in(model, target), Options(target=target, **PLAN)
    assert RamOracle.on(target).ram(sketch_of(model), "stripes") == found.need.required
    in_stripes = read_model(write_model(apply_tilings(copy_model(model), found.tilings)))
    memory = arrange(in_stripes, options.profile, options).placement.memory
    assert memory.required_for_target <= found.need.required
    assert memory.macs == found.need.macs


def test_optimize_keeps_the_promise() -> None:
    model = cell_network(3, width=8, resolution=16, cells=1)
    found = found_in(model, "cortex-m4")
    in_stripes = write_model(apply_tilings(copy_model(model), found.tilings))
    report = optimize(in_stripes, Options(target="cortex-m4", samples=1, rewrite=False, cascade=False)).report
    assert found.tilings
    assert report.equivalence["tflm"].equal
    assert report.after.required_for_target <= found.need.required


@pytest.mark.parametrize("target", [None, "cortex-m4"])
def test_stripes_are_found_where_they_pay(target: str | None) -> None:
    oracle, model = RamOracle.on(target), cell_network(3, width=8, resolution=16, cells=1)
    assert oracle.ram(model, "stripes") < oracle.ram(model, "bound")  # which is of operators that are not cut
    assert oracle.ram(dense_model(), "stripes") == oracle.ram(dense_model(), "plan")


def test_regions_end_where_little_is_left_alive() -> None:
    b = ModelBuilder()
    wide = b.conv(b.input("x", (1, 16, 16, 1)), 16)  # 4096 bytes beside 256
    both = b.add(wide, b.conv(wide, 16))  # three times 4096: the largest need
    narrow = b.conv(both, 1)
    model = b.finish(b.conv(narrow, 2))
    necks = necks_of(model.main)
    assert necks.exits == {2, 3}  # after the sum one of three is alive, after the narrow one 256 bytes
    assert narrow.name in necks.whole
    assert both.name not in necks.whole


def test_regions_end_only_where_they_may() -> None:
    model, profile = cell_network(3, width=8, resolution=16, cells=1), Options(target="cortex-m4").profile
    anywhere = figures_of(space_of(model, profile, STRIPES))
    some = figures_of(space_of(model, profile, STRIPES, exits={4, 6}))
    assert some == {tiling: figures for tiling, figures in anywhere.items() if tiling.end in (5, 7)}
    assert some
