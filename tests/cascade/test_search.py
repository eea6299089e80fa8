"""Cascading through the whole pipeline: objectives, limits, budgets, and models that have nothing to stripe."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import get_args

import numpy as np
import pytest
from rich.console import Console

import tflite_memopt
from scripts.makers.mechanisms import halo_alone
from tests.cascade.networks import TYPES, random_network
from tests.dump import dump_model
from tests.model_builder import ModelBuilder
from tests.models import if_model, mobile_chain, streaming_model, while_model
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.kernels.prices import REFERENCE_PRICES
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.arrange import arrange, cost_of
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.options import Options
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import report_document
from tflite_memopt.report.model import Report
from tflite_memopt.report.words import in_words
from tflite_memopt.search.cascade import in_order
from tflite_memopt.search.cascade.in_order import ANY, OrderSearch
from tflite_memopt.search.cascade.measure import Measured
from tflite_memopt.search.cascade.search import cascade
from tflite_memopt.search.cascade.stripes import Halo
from tflite_memopt.search.cascade.tiling import MaskedLoop, Unrolled, has_loop
from tflite_memopt.solvers.plan.check import check_plan
from tflite_memopt.solvers.plan.problem import arena_bytes

QUICK = Options(planner="greedy_by_size", samples=3, runtimes=("tflm",))
"""A planner without a search: what is found does not depend on the load of the machine."""
HEAD = replace(QUICK, objective="head")
SLOW = replace(HEAD, max_slowdown=1.0, every_byte=True)
"""Models of these tests are so small that calls of operators take most of their time on the fastest library."""


def wide_inside(size: int = 16) -> Model:
    """Small at both ends and wide inside: 1 x 1 convolutions, then a window with a halo."""
    b = ModelBuilder()
    x = b.input("x", (1, size, size, 2))
    y = b.conv(x, 16, seed=1)
    y = b.depthwise(y, kernel=3, stride=2, seed=2)
    y = b.conv(y, 2, seed=3)
    return b.finish(b.average_pool(y, y.shape[1]))


def pointwise(size: int = 16) -> Model:
    """Wide inside as well, without any halo."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, size, size, 2)), 16, seed=1)
    return b.finish(b.conv(y, 2, seed=2))


def run(model: Model, options: Options) -> Report:
    return tflite_memopt.optimize(write_model(model), options).report


def shown(report: Report) -> str:
    console = Console(width=400, file=StringIO(), record=True)
    console.print(text_of(report_document(report, is_short=True)))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"


@pytest.fixture(scope="module")
def best() -> Report:
    """The smallest head of the model that is wide inside."""
    return run(wide_inside(), replace(HEAD, max_slowdown=1.0, every_byte=True, runtimes=("litert", "tflm")))


@pytest.mark.slow
def test_stripes_lower_the_head_and_are_proved_on_all_runtimes(best: Report) -> None:
    unstriped = run(wide_inside(), replace(HEAD, cascade=False, rewrite=False))  # no tiles
    assert best.after.arena_bytes < unstriped.after.arena_bytes // 2
    assert {name: verdict.equal for name, verdict in best.equivalence.items()} == {"litert": True, "tflm": True}
    assert best.after.tflm["head"] == best.after.arena_bytes
    assert any(use.rule.startswith("cascade in ") and use.saved_bytes > 0 for use in best.rewrites)


@pytest.mark.few(1)
@pytest.mark.parametrize("model", [wide_inside(12), pointwise(48)], ids=["small", "large"])
def test_the_total_is_never_above_the_unstriped_one(model: Model) -> None:
    unstriped, striped = run(model, replace(QUICK, cascade=False)), run(model, QUICK)
    assert striped.after.required_bytes["32"] <= unstriped.after.required_bytes["32"]


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["reference", "portable"])
@pytest.mark.parametrize("seed", range(4))
def test_random_networks_in_stripes_need_what_the_plan_says_and_no_more_than_whole(seed: int, kernels: str) -> None:
    model = random_network(seed, TYPES[seed % 2], layers=5, height=14)
    options = replace(QUICK, kernels=kernels, objective="head" if seed < 3 else "total", max_slowdown=0.5)
    unstriped, striped = run(model, replace(options, cascade=False, verify=False)), run(model, options)
    assert striped.equivalence["tflm"].equal
    assert striped.after.tflm["head"] == striped.after.arena_bytes
    assert striped.after.tflm["tail"] == striped.after.tail_bytes[str(striped.after.tflm.get("pointer_bits", 64))]
    if options.objective == "head":
        assert striped.after.arena_bytes <= unstriped.after.arena_bytes
    else:
        assert striped.after.required_bytes["32"] <= unstriped.after.required_bytes["32"]


def test_only_stripes_that_need_less_than_what_is_known_are_looked_for() -> None:
    profile = replace(HEAD.profile, prices=REFERENCE_PRICES, libraries=())
    found = cascade(wide_inside(), profile, HEAD.search, lambda _: None)
    need = cost_of(found.model, profile, HEAD.search).need
    assert found.uses
    again = cascade(wide_inside(), profile, HEAD.search, lambda _: None, need + 1)
    assert dump_model(again.model) == dump_model(found.model)
    assert not cascade(wide_inside(), profile, HEAD.search, lambda _: None, need).uses


@pytest.mark.slow
def test_rows_are_cut_out_where_the_limit_on_run_time_has_room_for_it() -> None:
    """Of a window of 5 rows four stay: copied in four parts they take 16 tensors more."""
    b = ModelBuilder()
    wide = b.conv(b.input("x", (1, 24, 24, 4)), 32, seed=1)
    model = b.finish(b.conv(b.depthwise(wide, kernel=5, seed=2), 4, seed=3))
    options = replace(SLOW, objective="total", kernels="reference", verify=False)
    found = run(model, options)
    assert found.decision == "0-3 cut 1"
    copied = run(model, replace(options, replay="0-3 masked 1"))
    assert found.after.required_for_target < copied.after.required_for_target
    assert found.after.instructions["reference"] > copied.after.instructions["reference"]
    between = sum(each.after.instructions["reference"] for each in (found, copied)) / 2
    limit = between / found.before.instructions["reference"] - 1
    assert "cut" not in run(model, replace(options, max_slowdown=limit)).decision


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_needs_no_more_than_what_the_search_planned(seed: int) -> None:
    profile, options = SLOW.profile, replace(SLOW, planner="best").search
    found = cascade(random_network(seed, TYPES[seed % 2], layers=5, height=14), profile, options, lambda _: None)
    if found.offsets is not None:
        problem = memory_layout(found.model, profile).problem
        check_plan(problem, found.offsets)
        made = arrange(found.model, profile, options, 0.0, found.offsets)
        assert made.placement.plan.arena_bytes <= arena_bytes(problem, found.offsets)
        with pytest.raises(InfeasibleError):
            arrange(found.model, profile, options, known=(0,) * len(found.offsets))


def test_the_last_sets_of_a_search_are_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two nearly the same, the one that a short search plans worse needs less; or that of the smallest bound."""
    model, profile, options = mobile_chain(32), profile_named("reference"), replace(SLOW, kernels="reference").search
    search = OrderSearch(model, profile, options, cost_of(model, profile, options), Measured())
    search.space.bounds.fill(ANY)
    known = sorted(tiling for region in search.space.tilings.regions for tiling in region.known)
    sets = [(each,) for each in known if each.form in (Unrolled((4, 8), "recompute", "pad"), MaskedLoop(1))][:2]
    search.plans.of(sets, ANY)
    (cost, best), (_, other) = sorted(search.plans.planned)
    less = replace(cost, need=cost.need - 32)
    monkeypatch.setitem(search.plans.costs, other, replace(cost, need=cost.need + 16))
    monkeypatch.setattr(search.plans, "least", lambda chosen: cost.need - 64 * (chosen == other))
    monkeypatch.setattr(search.plans, "plan_again", lambda chosen: less if chosen == other else cost)
    assert search._final((cost, best)) == (less, other)
    assert search._final((cost, ())) == (cost, ())
    monkeypatch.setitem(search.plans.costs, other, replace(cost, need=2 * cost.need))
    assert search._final((cost, best)) == (less, other)
    monkeypatch.setattr(search.plans, "least", lambda chosen: cost.need - (32 if chosen == other else 64))
    assert search._final((cost, best)) == (cost, best)


@pytest.mark.slow
def test_a_set_that_is_planned_again_needs_no_more() -> None:
    model, profile = mobile_chain(32), profile_named("reference")
    options = replace(SLOW, kernels="reference", planner="best").search
    search = OrderSearch(model, profile, options, cost_of(model, profile, options), Measured())
    search.space.bounds.fill(ANY)
    known = sorted(tiling for region in search.space.tilings.regions for tiling in region.known)
    search.plans.of([(tiling,) for tiling in known[:: len(known) // 12]], ANY)
    assert search.plans.planned
    for before, chosen in search.plans.planned:
        again = search.plans.plan_again(chosen)
        assert search.plans.least(chosen) <= again.need <= before.need
        assert search.plans.costs[chosen] == again
        assert (search.plans.below_to_know(chosen) or ANY) > again.need
        offsets = search.plans.settled(chosen, again.need + 1)
        if offsets is not None:
            assert arena_bytes(memory_layout(search.plans.tiled(chosen), profile).problem, offsets) <= again.head
        assert search.plans.settled(chosen, 0) is None


@pytest.mark.slow
def test_sets_without_loops_are_planned_where_the_best_has_some() -> None:
    model, profile, options = mobile_chain(32), profile_named("reference"), replace(SLOW, kernels="reference").search
    untiled = cost_of(model, profile, options)
    search = OrderSearch(model, profile, options, untiled, Measured())
    cost, best = search.run(untiled)
    assert has_loop(best)
    others = [each for each, chosen in search.plans.planned if not has_loop(chosen)]
    assert cost < min(others) < untiled


@pytest.mark.slow
def test_without_extra_macs_no_row_is_made_twice() -> None:
    with halo_alone("rolling"):
        report = run(wide_inside(), replace(SLOW, kernels="reference"))
    assert any(use.rule.startswith("cascade") for use in report.rewrites)
    assert report.after.macs == report.before.macs


@pytest.mark.slow
@pytest.mark.parametrize("halo", get_args(Halo))
def test_both_treatments_of_halos_are_found(halo: Halo) -> None:
    with halo_alone(halo):
        report = run(wide_inside(), replace(HEAD, max_slowdown=1.0))
    modes = [use.rule.partition("(")[2].partition(",")[0] for use in report.rewrites if "cascade" in use.rule]
    assert modes == [halo] * len(modes) != []
    assert f" {halo} " in report.decision


@pytest.mark.slow
def test_the_limit_on_macs_is_kept_by_several_cascades_together() -> None:
    b = ModelBuilder()
    y = b.input("x", (1, 12, 12, 2))
    for seed in (1, 3):
        y = b.depthwise(b.conv(y, 16, seed=seed), kernel=3, seed=seed)
        y = b.conv(y, 2, kernel=3, seed=seed + 1)
    report = run(b.finish(y), replace(SLOW, max_slowdown=0.3))
    assert any(use.rule.startswith("cascade") for use in report.rewrites)
    assert report.after.macs <= report.before.macs * 1.3


@pytest.mark.slow
def test_a_budget_stops_at_the_cheapest_that_fits() -> None:
    options = replace(HEAD, max_slowdown=1.0, kernels="reference")
    best = run(wide_inside(), options)
    budget = (best.after.arena_bytes + best.before.arena_bytes) // 2
    report = run(wide_inside(), replace(options, budget=budget))
    assert report.within_budget is True
    assert report.after.arena_bytes <= budget
    assert report.after.operators < best.after.operators
    assert report.after.macs <= best.after.macs
    assert f"fits {in_words(budget)} with " in shown(report)


def test_a_budget_that_fits_as_it_is_changes_nothing() -> None:
    model = wide_inside()
    unstriped = run(model, replace(HEAD, cascade=False, rewrite=False))
    most = max(each.head for each in unstriped.libraries["after"].values())
    report = run(model, replace(HEAD, budget=most))
    assert report.within_budget is True
    assert report.after.operators == report.before.operators
    assert report.answer.fit is not None
    assert (report.answer.fit.fits, report.answer.fit.spare) == (True, 0)


@pytest.mark.slow
def test_a_budget_that_cannot_be_met_gives_the_smallest_need_found(best: Report) -> None:
    report = run(wide_inside(), replace(HEAD, max_slowdown=1.0, budget=64))
    assert report.within_budget is False
    assert report.after.arena_bytes <= best.after.arena_bytes * 1.1


@pytest.mark.slow
def test_refusals_have_reasons() -> None:
    report = run(wide_inside(), replace(HEAD, kernels="reference"))
    refused = [each for each in report.refused if each.rule == "cascade"]
    assert refused
    (summary,) = (each for each in refused if each.operator == "the search")
    assert "ways to cut a region" in summary.reason
    for each in refused:
        assert each is summary or "stripes" in each.operator
        assert each is summary or "more" in each.reason


def test_a_model_without_a_region_stays_as_it_is() -> None:
    b = ModelBuilder()
    y = b.softmax(b.dense(b.dense(b.input("x", (1, 64)), 256), 8))
    report = run(b.finish(y), QUICK)
    assert report.after.operators == report.before.operators
    assert not any(each.rule.startswith("cascade") for each in report.rewrites)
    (refused,) = (each for each in report.refused if each.rule == "cascade")
    assert "is not one NHWC tensor" in refused.reason


@pytest.mark.parametrize("build", [if_model, while_model, streaming_model])
def test_models_with_subgraphs_and_variables_run_through(build: object) -> None:
    report = run(build(), QUICK)  # type: ignore[operator]
    assert report.equivalence["tflm"].equal


def test_stripes_beside_control_flow_and_another_subgraph() -> None:
    b = ModelBuilder()
    condition = b.input("condition", (1,), DType.BOOL)
    y = b.conv(b.conv(b.input("x", (1, 16, 16, 2)), 16, seed=1), 2, seed=2)
    z = b.tensor("z", y.shape)
    b.operator("IF", (condition, y), (z,), "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    b.finish(z)
    for name in ("then", "else"):
        b.new_graph(name)
        value = b.input(f"{name}_x", y.shape)
        b.finish(b.add(value, value) if name == "then" else b.conv(value, 2, seed=3))
    report = run(b.model, HEAD)
    assert report.equivalence["tflm"].equal
    assert any(use.rule.startswith("cascade") for use in report.rewrites)


def test_a_tensor_in_uint8_is_not_cut() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 48, 48, 3), DType.UINT8, zero_point=128)
    y = b.tensor("y", x.shape)
    b.operator("QUANTIZE", (x,), (y,))
    y = b.conv(b.conv(y, 4, kernel=3, stride=2), 4)
    report = run(b.finish(b.average_pool(y, 24)), HEAD)
    assert report.equivalence["tflm"].equal


@pytest.mark.slow
def test_new_operators_are_named_for_the_firmware() -> None:
    report = tflite_memopt.optimize(write_model(mobile_chain(48)), replace(HEAD, every_byte=True)).report
    assert "SLICE" in report.operators_added
    assert "CONV_2D" not in report.operators_added
    assert "SLICE (new)" in shown(report)


def long_sequence(rows: int) -> Model:
    """Two convolutions of so many rows; channels in between."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, rows, 1, 4)), 16, seed=1)
    return b.finish(b.conv(y, 4, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [65_535, 65_536, 70_000, 160_000])
def test_images_of_many_rows(rows: int) -> None:
    model, profile = long_sequence(rows), replace(HEAD.profile, prices=REFERENCE_PRICES, libraries=())
    found = cascade(model, profile, HEAD.search, lambda _: None)
    assert found.uses
    before = cost_of(long_sequence(rows), profile, HEAD.search).head
    assert cost_of(found.model, profile, HEAD.search).head < before // 2


def upsampled(kind: str) -> Model:
    """A small image, a large one that is made of it, and a small one again."""
    b = ModelBuilder()
    x, large = b.conv(b.input("x", (1, 24, 24, 4)), 8, kernel=3, seed=1), b.tensor("large", (1, 48, 48, 8))
    options = {"halfPixelCenters": kind == "ResizeBilinear", "alignCorners": False}
    name = "RESIZE_BILINEAR" if kind == "ResizeBilinear" else "RESIZE_NEAREST_NEIGHBOR"
    b.operator(name, (x, b.constant("size", np.asarray((48, 48), np.int32))), (large,), f"{kind}Options", **options)
    return b.finish(b.conv(large, 2, kernel=3, stride=2, seed=2))


def wide_between_dense_layers() -> Model:
    """A sequence whose dense layers take many rows at once."""
    b = ModelBuilder()
    x = b.input("x", (1, 512, 8))
    for name, units in (("large", 64), ("small", 8)):
        values = np.random.default_rng(units).integers(-127, 128, (units, x.shape[2])).astype(np.int8)
        y = b.tensor(name, (1, 512, units))
        weights = b.constant(f"{name}/weights", values, per_tensor(0.01, 0))
        b.operator("FULLY_CONNECTED", (x, weights, None), (y,), "FullyConnectedOptions", keepNumDims=True)
        x = y
    return b.finish(x)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(upsampled("ResizeBilinear"), id="bilinear"),
        pytest.param(upsampled("ResizeNearestNeighbor"), id="nearest"),
        pytest.param(wide_between_dense_layers(), id="dense", marks=pytest.mark.slow),
    ],
)
def test_a_peak_between_resizing_or_dense_layers_is_cut(model: Model) -> None:
    report = tflite_memopt.optimize(write_model(model), Options(kernels="reference", samples=1)).report
    assert any("large" in use.operators for use in report.rewrites if use.rule.startswith("cascade"))
    assert report.after.required_for_target < 0.65 * report.before.required_for_target


def test_a_search_that_only_measured_plans_what_it_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a U-Net of 16 bits, where bounds far below what fits take all iterations."""
    monkeypatch.setattr(in_order, "_CHOICES", dict.fromkeys(in_order._CHOICES, 3))
    monkeypatch.setattr(in_order, "_CENTERS", dict.fromkeys(in_order._CENTERS, 0))
    report = run(pointwise(), replace(SLOW, verify=False, loops=False))
    assert any(use.stripes for use in report.rewrites)
    assert report.least_in_stripes is not None
    assert report.least_in_stripes <= report.after.arena_bytes
