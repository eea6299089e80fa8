"""Bounds of tilings, against the tilings written into the region alone, measured and planned."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cascade.forms import LOOPS, Loop
from tests.cascade.networks import EVERY as EVERY_KIND
from tests.cascade.networks import TYPES, random_network
from tests.cascade.spaces import ANY, EVERY, STRIPES, figures_of, space_of
from tests.model_builder import ModelBuilder
from tests.profiles import examples
from tflite_memopt import optimize
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import Alive
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.copying import copy_model, share_constants
from tflite_memopt.model.ir.editor import SAME
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.options import Options
from tflite_memopt.search.cascade.bound import Costs, MayShare, least_head
from tflite_memopt.search.cascade.measure import Measure, Measured, excerpt
from tflite_memopt.search.cascade.region import region_of
from tflite_memopt.search.cascade.select import Figures, Limits
from tflite_memopt.search.cascade.space import Space
from tflite_memopt.search.cascade.tiling import (
    ClampedLoop,
    PhaseLoop,
    RowLoop,
    Tiling,
    Unrolled,
    apply_tilings,
    loop_rows_for,
)
from tflite_memopt.solvers.graph.alignment import ARENA_ALIGNMENT
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.together import solve_together

PROFILES = ("portable", "reference", "cmsis-nn-dsp", "cmsis-nn-mve")
TRIED = 12
"""Tilings of each model that are written and measured."""


def planned_head(model: Model, tiling: Tiling, profile: KernelProfile) -> int:
    """What a plan of the region alone takes in this form."""
    part = excerpt(model, tiling.first, tiling.end)
    apply_tilings(part, [replace(tiling, first=0, end=tiling.end - tiling.first)])
    layout = memory_layout(part, profile)
    return solve_together(layout.joined, "best", SearchLimit(0.2)).arena_bytes


def assert_is_bound(model: Model, tiling: Tiling, bound: Figures, measured: Figures, profile: KernelProfile) -> None:
    """No figure of the bound is above what was measured; the head may be, where no plan is as small as that."""
    for name in ("tail", "temporaries", "macs", "operators", "work"):
        assert getattr(bound, name) <= getattr(measured, name), (name, str(tiling), bound, measured)
    if bound.head > measured.head:
        assert bound.head <= planned_head(model, tiling, profile), (str(tiling), bound, measured)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["portable", "cmsis-nn-mve", "esp-nn-s3"])
def test_structures_alone_bound_every_tiling_by_rows(profile: str) -> None:
    """The bound that spares long chains of small tensors the search is below those of all single tilings."""
    found = 0
    for seed in range(12):
        space = space_of(random_network(seed, DType.INT8, 6, kinds=EVERY_KIND), profile_named(profile))
        least = space.bounds.least_by_rows()
        by_rows = [figures for tiling, figures in figures_of(space).items() if not isinstance(tiling.form, PhaseLoop)]
        assert all(least <= space.tilings.needs.base.least(figures) for figures in by_rows)
        found += len(by_rows)
    assert found > 1000


def test_a_chain_of_small_tensors_is_not_searched() -> None:
    """TFLM's structures need more than the tensors, and stripes only add to them."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    for number in range(40):
        y = b.tensor(f"y{number}", (1, 8, 8, 4))
        b.operator("RELU", (x,), (y,))
        x = y
    model = b.finish(x)
    needed = optimize(write_model(model), Options(verify=False)).report
    assert needed.after.required_for_target == needed.before.required_for_target
    space = Space(read_model(write_model(model)), profile_named("portable"), Options().search, Measured(), EVERY)
    space.bounds.fill(needed.before.required_for_target)
    assert space.bounds.looked_at == 0


@pytest.mark.slow
@examples(60)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(1, 7),
    kernels=st.sampled_from(PROFILES),
    stacked=st.booleans(),
)
# Scratch and persistent buffers that grow with the rows.
@example(11, DType.INT16, 6, "cmsis-nn-mve", False)
@example(65, DType.FLOAT32, 6, "reference", False)
@example(305, DType.FLOAT32, 6, "reference", False)
# One row that becomes several.
@example(38, DType.INT8, 3, "cmsis-nn-dsp", False)
@example(913, DType.INT8, 2, "reference", False)
# A PAD in a loop, a tensor of bools beside floats, and a reader of fewer rows than there are.
@example(399, DType.INT8, 4, "cmsis-nn-mve", False)
@example(220, DType.FLOAT32, 5, "portable", False)
@example(754, DType.INT16, 5, "cmsis-nn-dsp", False)
# Rows between two stripes that no stripe reads.
@example(1236, DType.INT16, 7, "portable", False)
def test_no_tiling_of_a_random_network_is_below_its_bound(
    seed: int, dtype: DType, layers: int, kernels: str, stacked: bool
) -> None:
    model = random_network(seed, dtype, layers, kinds=EVERY_KIND, stacked=stacked)
    profile = profile_named(kernels)
    share_constants(model)  # as the pipeline does before
    across = Alive(model, profile).across
    bounds, measure = figures_of(space_of(model, profile)), Measure(model, profile, Measured())
    for tiling in random.Random(seed).sample(sorted(bounds), min(TRIED, len(bounds))):
        measured = measure(tiling)
        if measured is not None:
            alone = bounds[tiling]._replace(head=bounds[tiling].head - across(tiling.first, tiling.end))
            assert_is_bound(model, tiling, alone, measured, profile)


def chain(size: int = 32) -> Model:
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, size, size, 4)), 16, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, kernel=3, stride=2, seed=2), 8, seed=3)
    return b.finish(b.average_pool(y, size // 2))


@pytest.mark.slow
@pytest.mark.parametrize(("kernels", "most"), [("portable", 0.9), ("reference", 0.5)])
def test_what_is_said_of_stripes_is_close(kernels: str, most: float) -> None:
    """Trimmed stripes in many ways, whose rows are views: most bounds on the head are what is measured, or 16 less."""
    model, profile = chain(), profile_named(kernels)
    bounds, measure = figures_of(space_of(model, profile, STRIPES)), Measure(model, profile, Measured())
    trimmed = [each for each in sorted(bounds) if isinstance(each.form, Unrolled) and each.form.edges == "trim"]
    gaps = []
    for tiling in trimmed[:: max(1, len(trimmed) // 60)]:
        measured = measure(tiling)
        assert measured is not None
        gaps.append(measured.head - bounds[tiling].head)
    assert len(gaps) >= 60
    assert sum(gap <= ARENA_ALIGNMENT for gap in gaps) >= most * len(gaps)


@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_views_that_overlap_do_not_lower_what_is_known_of_a_head(kernels: str) -> None:
    """A section of a plan has room for less than all views of a tensor; the bound of stripes counts all of its rows."""
    model, profile = chain(), profile_named(kernels)
    space = space_of(model, profile, STRIPES)
    before = figures_of(space)
    chosen = sorted(before)[::40]
    space.measurements.take(chosen)
    after = figures_of(space)
    assert any(tiling in after for tiling in chosen)
    assert all(after[tiling].head >= before[tiling].head for tiling in chosen if tiling in after)


@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_no_plan_of_the_whole_model_goes_below_a_bound(kernels: str) -> None:
    model, profile = chain(), profile_named(kernels)
    bounds, needs = figures_of(space_of(model, profile)), Alive(model, profile).needs()
    for tiling in sorted(bounds)[::30]:
        made = apply_tilings(copy_model(model), [tiling])
        outside = [need for step, need in enumerate(needs) if not tiling.first <= step < tiling.end]
        layout = memory_layout(made, profile)
        plan = solve_together(layout.joined, "greedy_by_size", SearchLimit())
        assert max(*outside, bounds[tiling].head) <= plan.arena_bytes


def test_tilings_within_limits_only() -> None:
    limits = Limits(1000, 20, ANY)
    found = figures_of(space_of(chain(), profile_named("portable"), limits=limits))
    assert found
    assert all(limits.allow(figures) for figures in found.values())


def least_head_of(model: Model, profile: KernelProfile, form: RowLoop) -> list[int]:
    """For all regions of a model as this loop: what is measured, less what is said before."""
    count, measure, costs = len(model.main.operators), Measure(model, profile, Measured()), Costs(profile)
    gaps = []
    for first, end in combinations(range(count + 1), 2):
        region = region_of(model.main, model.main.operators[first:end])
        if isinstance(region, str) or isinstance(turns := loop_rows_for(region, form), str):
            continue
        lives_on = measure.read_later(end)
        measured = measure(Tiling(first, end, form))
        assert measured is not None
        gaps.append(measured.head - least_head(region, turns, costs.shares, lives_on))
    return gaps


@pytest.mark.few(6)
@pytest.mark.parametrize("kernels", ["portable", "reference", "cmsis-nn-dsp"])
@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize("seed", range(3))
def test_no_loop_needs_less_than_is_said_before(seed: int, form: Loop, kernels: str) -> None:
    kinds = ("conv", "depthwise", "add", "concat", "average", "cut") if seed else EVERY_KIND
    model = random_network(seed, TYPES[seed % 3], 4, height=12, kinds=kinds)
    assert all(gap >= 0 for rows in (1, 2, 3) for gap in least_head_of(model, profile_named(kernels), form(rows)))


THIN = (1, 16, 1, 1)


def deep(kind: str, lives_on: bool = False) -> Model:
    """One operator: a window of seven rows or of one, or a sum of two inputs. An input may be returned as well."""
    b = ModelBuilder()
    channels, taps = (32 if kind in ("wide", "pointwise") else 16), (1 if kind == "pointwise" else 7)
    x, y = b.input("x", (1, 16, 16, 16)), b.tensor("y", (1, 16, 16, channels))
    fields = {"padding": SAME, "strideH": 1, "strideW": 1}
    if kind in ("depthwise", "wide", "pointwise"):
        weights = b.constant("weights", np.ones((1, taps, taps, channels), np.int8))
        operands = (x, weights, b.constant("bias", np.zeros(channels, np.int32)))
        b.operator(
            "DEPTHWISE_CONV_2D", operands, (y,), "DepthwiseConv2DOptions", **fields, depthMultiplier=channels // 16
        )
    elif kind == "sum":
        b.operator("ADD", (x, b.input("other", (1, 16, 16, 16))), (y,), "AddOptions")
    else:
        b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **fields, filterHeight=7, filterWidth=1)
    return b.finish(y, x) if lives_on else b.finish(y)


@pytest.mark.parametrize("lives_on", [False, True])
@pytest.mark.parametrize("kind", ["depthwise", "wide", "pointwise", "pool", "sum"])
def test_what_is_said_lacks_the_counter_and_a_begin_at_most(kind: str, lives_on: bool) -> None:
    model, profile = deep(kind, lives_on), profile_named("portable")
    gaps = [gap for rows in (1, 2, 3) for gap in least_head_of(model, profile, ClampedLoop(rows))]
    assert len(gaps) == 3
    assert all(0 <= gap <= 32 for gap in gaps)


def test_a_slice_of_a_whole_image_may_read_from_further_on() -> None:
    b = ModelBuilder()
    x, cut, y = (b.tensor(n, s, DType.FLOAT32) for n, s in (("x", (1, 16, 4, 8)), ("cut", THIN), ("y", THIN)))
    b.graph.inputs = (x,)
    said = b.constant("begin", np.asarray([0, 0, 3, 7], np.int32)), b.constant("size", np.asarray(THIN, np.int32))
    b.operator("SLICE", (x, *said), (cut,), "SliceOptions")
    fields = {"padding": SAME, "strideH": 1, "strideW": 1, "filterHeight": 15, "filterWidth": 1}
    b.operator("MAX_POOL_2D", (cut,), (y,), "Pool2DOptions", **fields)
    model, profile = b.finish(y), profile_named("portable")
    assert all(gap >= 0 for rows in (2, 4) for gap in least_head_of(model, profile, ClampedLoop(rows)))


def test_who_may_share_under_which_profile() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8, 4, 16)), b.tensor("y", (1, 8, 4, 16))
    pool = {"padding": SAME, "strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 3}
    b.operator("MAX_POOL_2D", (x,), (y,), "Pool2DOptions", **pool)
    joins = {3: b.tensor("channels", (1, 8, 4, 32)), 2: b.tensor("columns", (1, 8, 8, 16))}
    for axis, joined in joins.items():
        b.operator("CONCATENATION", (x, y), (joined,), "ConcatenationOptions", axis=axis)
    pooled, channels, columns = b.finish(*joins.values()).main.operators
    portable, reference = MayShare(profile_named("portable")), MayShare(profile_named("reference"))
    assert (portable(pooled), reference(pooled)) == (False, True)
    assert not portable(channels)
    assert not reference(channels)
    assert portable(columns)  # one row of it is one run
    assert reference(columns)
