"""A run with wider limits than by default starts from narrower ones, and never ends worse than they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tflite_memopt
from tests.cells import cell_network
from tests.models import mobile_chain
from tests.test_explore import striped
from tflite_memopt.kernels.profile import KernelProfile
from tflite_memopt.memory.reserve import LibraryNeed
from tflite_memopt.memory.work import slowest
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed, Decision
from tflite_memopt.model.ir.model import Model
from tflite_memopt.options import Options, SearchOptions
from tflite_memopt.run import candidate
from tflite_memopt.run.attempts import NOTHING_BETTER, attempts_of
from tflite_memopt.run.candidate import Cache, RunContext, known_or_made
from tflite_memopt.run.pipeline import optimize
from tflite_memopt.search.cascade.in_order import OrderSearch
from tflite_memopt.search.cascade.search import cascade
from tflite_memopt.search.cascade.tiling import has_loop, tilings_in
from tflite_memopt.solvers.graph.limits import StageClock

PLAIN = Options(verify=False, objective="head", kernels="reference", every_byte=True)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, []),
        ({"max_slowdown": 0.05, "effort": "quick", "loops": False}, []),
        ({"max_slowdown": 0.3, "cascade": False}, []),
        ({"effort": "thorough"}, [{}]),
        ({"max_slowdown": 1.0}, [{}]),
        ({"max_slowdown": 0.3, "effort": "quick"}, [{"effort": "quick"}]),
        ({"max_slowdown": 0.05, "effort": "thorough"}, [{"max_slowdown": 0.05}]),
        ({"max_slowdown": 0.3, "effort": "thorough"}, [{}]),
    ],
)
def test_the_narrower_limits_of_a_run(asked: dict[str, object], expected: list[dict[str, object]]) -> None:
    wanted = replace(PLAIN, **asked)  # type: ignore[arg-type]
    assert [each.search for each in (replace(PLAIN, **each) for each in expected)] == narrower(wanted)  # type: ignore[arg-type]


def test_a_narrower_run_of_a_wider_one_has_no_others_than_that() -> None:
    every = narrower(replace(PLAIN, max_slowdown=1.0, effort="thorough"))
    assert every == [PLAIN.search]
    assert narrower(PLAIN) == []


@pytest.mark.parametrize(("asked", "wider"), [(0.1, []), (0.15, [0.2]), (0.2, [0.3]), (1.0, [])])
def test_the_wider_limit_of_a_run_is_above_its_own(asked: float, wider: list[float]) -> None:
    options = replace(PLAIN, max_slowdown=asked)
    limits = tried(options)
    assert [each.max_slowdown for each in limits[limits.index(options.search) + 1 :]] == wider


def narrower(options: Options) -> list[SearchOptions]:
    """The limits that are tried before those that are asked for."""
    limits = tried(options)
    return limits[: limits.index(options.search)]


def tried(options: Options) -> list[SearchOptions]:
    run = RunContext(b"", mobile_chain(32), options.profile, None, StageClock(), lambda _: None, Cache())
    return [each.limits for each in attempts_of(run, options.search)]


def test_a_candidate_is_known_for_what_each_library_may_need() -> None:
    """What runs wrongly as it came is compared with nothing, and a run without verification may not see that."""
    options, model = replace(PLAIN, cascade=False, rewrite=False), mobile_chain(12)
    anything = RunContext(b"", model, options.profile, None, StageClock(), lambda _: None, Cache())
    nothing = replace(anything, before={"reference": LibraryNeed(0, 0, measured=True)})
    assert known_or_made(anything, options.search).is_no_worse
    assert not known_or_made(nothing, options.search).is_no_worse


def without_label(data: bytes) -> bytes:
    """The file but for what it says of its making, which names the options."""
    model = read_model(data)
    plan_label.detach(model)
    return write_model(model)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"max_slowdown": 0.3}, {"effort": "thorough"}])
def test_where_wider_limits_lead_astray_the_answer_is_that_of_narrower_ones(
    asked: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is made to find nothing but within the default limits."""
    usual = replace(PLAIN, rewrite=False)
    wanted = replace(usual, **asked)  # type: ignore[arg-type]

    def astray(model: Model, profile: KernelProfile, options: SearchOptions, *others: Any) -> Changed:
        return cascade(model, profile, options, *others) if options == usual.search else Changed(model, (), ())

    monkeypatch.setattr(candidate, "cascade", astray)
    model = write_model(mobile_chain(32))
    least = optimize(model, usual)
    found = optimize(model, wanted)
    assert least.report.after.arena_bytes < least.report.before.arena_bytes
    assert without_label(found.model) == without_label(least.model)
    assert NOTHING_BETTER in found.report.refused


@pytest.mark.slow
def test_a_budget_that_narrower_limits_meet_ends_the_run() -> None:
    model = write_model(mobile_chain(32))
    need = tflite_memopt.optimize(model, PLAIN).report.after.arena_bytes
    said: list[str] = []
    optimize(model, replace(PLAIN, max_slowdown=1.0, budget=need), said.append)
    assert any(each.startswith("search 1 of 2, narrower") for each in said)
    assert not any(each.startswith("search 2 of") for each in said)


@pytest.mark.slow
def test_what_one_run_has_found_another_one_does_not_search_for(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[SearchOptions] = []

    def counted(model: Model, profile: KernelProfile, options: SearchOptions, *others: Any) -> Changed:
        searched.append(options)
        return cascade(model, profile, options, *others)

    monkeypatch.setattr(candidate, "cascade", counted)
    narrow = replace(PLAIN, rewrite=False)  # without a search for tiles, which asks for stripes as well
    wider = replace(narrow, max_slowdown=0.3)
    model, cache = write_model(mobile_chain(32)), Cache()
    first = optimize(model, wider, cache=cache)
    every = list(searched)
    again = optimize(model, wider, cache=cache)
    assert searched == every
    assert {narrow.search, wider.search} <= set(every)
    assert len(set(every)) == len(every)
    assert again.model == first.model


@pytest.mark.slow
def test_what_is_known_of_one_model_is_not_the_answer_for_another() -> None:
    cache = Cache()
    for model in (write_model(mobile_chain(32)), write_model(mobile_chain(24))):
        assert optimize(model, PLAIN, cache=cache).model == optimize(model, PLAIN).model


@pytest.mark.slow
def test_what_is_known_under_some_options_is_not_the_answer_under_others() -> None:
    """The first run may round otherwise, and makes a convolution in tiles that the second one must leave whole."""
    data, cache = write_model(striped()), Cache()
    plain = Options(effort="quick", kernels="reference", verify=False, every_byte=True)
    for options in (replace(plain, allow_approximate=True), replace(plain, seed=1), plain):
        assert optimize(data, options, cache=cache).model == optimize(data, options).model


@pytest.mark.slow
def test_a_budget_that_the_search_by_run_time_misses_is_met_by_the_search_for_the_least_ram(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search by run time is made to find nothing."""
    descended = OrderSearch._descended

    def astray(search: OrderSearch, best: Any, forms: Any, budget: int | None, *others: Any) -> Any:
        return descended(search, best, forms, None, *others) if budget is None else best

    model = write_model(mobile_chain(32))
    options = replace(PLAIN, rewrite=False, effort="quick")
    least = optimize(model, options).report.after.arena_bytes
    monkeypatch.setattr(OrderSearch, "_descended", astray)
    assert optimize(model, replace(options, budget=least)).report.within_budget


@pytest.mark.slow
def test_the_candidate_for_an_older_tflm_is_what_the_search_found_without_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is made again from its decision, without a search of its own. Here loops save less than 5 % of it."""
    model = write_model(cell_network(4, resolution=16))
    options = Options(verify=False, effort="quick", kernels="cmsis-nn")
    older: list[Decision | None] = []

    def noted(*given: Any) -> Changed:
        if given[2].build.day is not None and given[4] is None:
            older.append(given[2].decision)
        return cascade(*given)

    monkeypatch.setattr(candidate, "cascade", noted)
    found = optimize(model, options).report
    (decision,) = older
    assert decision is not None
    assert tilings_in(decision.tilings) == tilings_in(found.decision)
    assert not has_loop(tilings_in(found.decision))
    least = optimize(model, replace(options, every_byte=True)).report
    assert has_loop(tilings_in(least.decision))
    need, without = least.after.required_for_target, found.after.required_for_target
    assert need < without < need / 0.95
    assert without <= 0.95 * found.before.required_for_target


@pytest.mark.slow
def test_loops_must_save_their_share_of_what_is_found_without_them() -> None:
    """Here they save 4 %."""
    model = write_model(cell_network(12, 4, 24, 2, 3))
    options = Options(verify=False, target="cortex-m4")
    found, older = (optimize(model, replace(options, tflm=tflm)).report for tflm in (None, "2025-06-01"))
    assert found.after.required_for_target == older.after.required_for_target
    assert found.tflm_since is None


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "budget"), [(3, 13_000), (3, 15_000)])
def test_under_a_budget_stripes_that_are_faster_come_before_loops_that_need_less(seed: int, budget: int) -> None:
    model = write_model(cell_network(seed, resolution=24))
    options = Options(verify=False, target="cortex-m4", every_byte=True)
    found, least = (optimize(model, replace(options, budget=each)).report for each in (budget, None))
    assert found.within_budget
    assert "WHILE" not in found.operators_added
    assert least.after.required_for_target <= found.after.required_for_target
    assert slowest(found.before.instructions, found.after.instructions) <= slowest(
        least.before.instructions, least.after.instructions
    )
