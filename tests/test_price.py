"""The limit on run time holds with every library that firmware may link; a thorough search for a target is no worse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cells import cell_network
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.test_random_models import random_model
from tflite_memopt import Options, analyze
from tflite_memopt.kernels.profiles import PORTABLE
from tflite_memopt.memory.work import instructions, slowdowns
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run import candidate
from tflite_memopt.run.candidate import Candidate, RunContext
from tflite_memopt.run.pipeline import optimize
from tflite_memopt.search.rewrite.stage import rewrite

NETWORKS = {f"cells {seed}": write_model(cell_network(seed, resolution=16 + 4 * seed)) for seed in range(9)}
NETWORKS["chain"] = write_model(mobile_chain(48))
TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55", "esp32", "riscv32")
PLAIN = Options(verify=False, every_byte=True)


def slowest(before: bytes, after: bytes, options: Options) -> float:
    first, second = (instructions(read_model(each), options.profile) for each in (before, after))
    return max(slowdowns(first, second).values())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), list(enumerate([*NETWORKS][-len(TARGETS) :])))
def test_a_named_target_needs_at_most_what_the_answer_for_any_needs_there(number: int, name: str) -> None:
    model, target = NETWORKS[name], TARGETS[number % len(TARGETS)]
    anywhere = optimize(model, PLAIN)
    there = analyze(anywhere.model, target=target).memory.required_for_target
    options = replace(PLAIN, target=target, effort="thorough")
    named = optimize(model, options)
    assert named.report.after.required_for_target <= there
    assert slowest(model, anywhere.model, PLAIN) <= PLAIN.max_slowdown
    assert slowest(model, named.model, options) <= options.max_slowdown


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0.0, 0.03, 0.3])
def test_the_limit_that_was_asked_for_is_kept(limit: float) -> None:
    options = Options(verify=False, max_slowdown=limit)
    for model in (NETWORKS["chain"], NETWORKS["cells 3"]):
        assert slowest(model, optimize(model, options).model, options) <= limit


@pytest.mark.slow
def test_stripes_that_are_too_slow_with_another_library_give_way_to_others() -> None:
    """Run time is priced as on Helium; here the reference kernels get slowest, since rows are computed twice."""
    model = write_model(mobile_chain(80))
    needs = []
    for limit in (0.08, 0.096):
        options = Options(verify=False, effort="quick", rewrite=False, max_slowdown=limit)
        result = optimize(model, options)
        assert slowest(model, result.model, options) <= limit
        needs.append(result.report.after.required_for_target)
    assert needs[1] <= needs[0] < optimize(model, replace(options, cascade=False)).report.after.required_for_target


def joined(side: int, branches: int, channels: int) -> bytes:
    """Branches that are concatenated for one convolution: in parts it takes far more run time."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, side, side, 3)), 4)
    wide = b.concat([b.conv(y, channels, seed=seed) for seed in range(branches)])
    return write_model(b.finish(b.conv(wide, 4, seed=9)))


@pytest.mark.parametrize("kernels", ["portable", "reference"])
@pytest.mark.parametrize(("limit", "is_wide"), [(0.0, False), (0.1, False), (0.3, False), (1.0, True)])
def test_concatenations_are_taken_apart_within_the_limit(kernels: str, limit: float, is_wide: bool) -> None:
    options = Options(kernels=kernels, allow_approximate=True, max_slowdown=limit)
    model = read_model(joined(24, 8, 8))
    before = instructions(model, options.profile)
    found = rewrite(model, options.profile, options.search, lambda _: None)
    assert [use.rule for use in found.uses] == (["partial_convolution"] if is_wide else [])
    assert max(slowdowns(before, instructions(found.model, options.profile)).values()) <= limit


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["portable", "reference"])
def test_what_may_be_taken_apart_does_not_cost_the_stripes(kernels: str) -> None:
    options = Options(kernels=kernels, verify=False, effort="quick")
    exact, approximate = (
        optimize(joined(16, 4, 16), replace(options, allow_approximate=each)).report for each in (False, True)
    )
    assert exact.after.required_for_target < exact.before.required_for_target // 2
    assert approximate.after.required_for_target <= exact.after.required_for_target


@pytest.mark.slow
def test_without_a_target_all_measured_libraries_count() -> None:
    report = optimize(NETWORKS["chain"], PLAIN).report
    assert set(report.after.instructions) == {"reference", "cmsis-nn", "cmsis-nn-dsp", "cmsis-nn-mve"}
    measured = {each.prices.library for each in PORTABLE.libraries if not each.prices.is_estimate}
    assert measured == set(report.after.instructions)


@pytest.mark.slow
def test_what_one_model_cannot_reach_is_said_with_its_bound() -> None:
    report = optimize(NETWORKS["chain"], Options(verify=False, budget=2048)).report
    (said,) = (line for line in report.summary.limits if line.startswith("one file does not fit 2 KB"))
    assert f"{report.bounds.io:,}" in said


@pytest.mark.slow
def test_the_bound_that_is_said_is_that_of_the_named_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the answer for any library is the better one, whose search has another bound."""
    bounds: dict[str, int | None] = {}
    real = candidate._made

    def noted(run: RunContext, *arguments: Any) -> Candidate:
        made = real(run, *arguments)
        if made.cascaded.least is not None:  # of a search
            bounds[run.profile.name] = made.cascaded.least
        return replace(made, is_no_worse=bool(run.profile.libraries))

    monkeypatch.setattr(candidate, "_made", noted)
    report = optimize(NETWORKS["cells 4"], replace(PLAIN, target="cortex-m4", effort="thorough")).report
    assert bounds["cmsis-nn-dsp"] != bounds["portable"]
    assert report.least_in_stripes == bounds["cmsis-nn-dsp"]


def test_a_budget_counts_with_the_library_that_needs_most() -> None:
    """The plan that meets it with TFLM's own kernels does not with esp-nn: then the least RAM is looked for."""
    data, options = write_model(random_model(110)), Options(verify=False, effort="quick")
    default = optimize(data, options).report
    most = max(each.required for each in default.libraries["after"].values())
    fit = optimize(data, replace(options, budget=most)).report.answer.fit
    assert fit is not None
    assert fit.fits
    assert most > default.after.required_for_target
