"""Options check themselves, and name the field that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tflite_memopt
from tests.models import mobile_chain
from tflite_memopt import transform
from tflite_memopt.errors import UsageError
from tflite_memopt.graph.limits import Deadline
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.change import OUT_OF_TIME
from tflite_memopt.options import Options, fallbacks
from tflite_memopt.report.model import Report

THOROUGH = Options(target="cortex-m4", verify=False, effort="thorough", every_byte=True)
WRONG: list[tuple[str, Any]] = [
    ("kernels", "arm"),
    ("scheduler", "fastest"),
    ("planner", "smallest"),
    ("objective", "ram"),
    ("io", "float"),
    ("runtimes", ()),
    ("runtimes", ("tflm", "onnx")),
    ("runtimes", "tflm"),
    ("halos", ()),
    ("halos", ("keep",)),
    ("time_limit", -1.0),
    ("time_limit", float("nan")),
    ("time_limit", float("inf")),
    ("seed", -1),
    ("samples", 0),
    ("jobs", 0),
    ("budget", 0),
    ("budget", -64),
    ("max_extra_work", 10),
    ("max_extra_work", -0.1),
    ("max_extra_work", float("nan")),
    ("max_extra_work", 1.5),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=lambda each: str(each))
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"option {field}="):
        Options(**{field: value})


def test_the_limits_themselves_are_allowed() -> None:
    Options(time_limit=0, seed=0, samples=1, budget=1, max_extra_work=0)


def test_the_emergency_stop_is_one_for_all_searches_of_a_run() -> None:
    options = Options(time_limit=60.0).started()
    assert options.started() is options
    assert replace(options, effort="quick").until == options.until
    limits = options.search_limit(), options.search_limit(2.0), options.plan_limit()
    assert {limit.deadline() for limit in limits} == {options.until}
    over = replace(options, until=Deadline(0.0))
    assert over.seconds_left == 0.0
    assert over.search_limit().deadline().has_passed()


@pytest.mark.parametrize("target", [None, "cortex-m4"])
def test_a_limit_of_no_seconds_ends_every_search_and_the_result_is_still_right(target: str | None) -> None:
    model, said = write_model(mobile_chain(48)), list[str]()
    options = Options(time_limit=0, samples=2, runtimes=("tflm",), target=target)
    report = tflite_memopt.optimize(model, options, said.append).report
    assert report.equivalence["tflm"].equal
    assert not any(each.startswith("for any kernel library") for each in said)
    assert report.after.required_for_target <= report.before.required_for_target
    assert [each.operator for each in report.refused if each.reason == OUT_OF_TIME]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moment that it is, which stands still."""
    moment = [0.0]
    monkeypatch.setattr("tflite_memopt.graph.limits.now", lambda: moment[0])
    return moment


def test_a_decision_is_parsed_once() -> None:
    options = Options(replay="order 1,0")
    assert options.decision is options.decision
    assert Options().decision is None


@pytest.mark.parametrize(("budget", "expected"), [(None, False), (99, False), (100, True), (101, True)])
def test_a_budget_is_met_by_what_needs_no_more(budget: int | None, expected: bool) -> None:
    assert Options(budget=budget).meets_budget(100) == expected


@pytest.mark.parametrize(
    ("left_out", "steps"),
    [
        ({}, ["stripes", "rewrites", "order and plan"]),
        ({"rewrite": False}, ["stripes", "order and plan"]),
        ({"cascade": False}, ["rewrites", "order and plan"]),
        ({"cascade": False, "rewrite": False}, ["order and plan"]),
    ],
)
def test_the_attempts_of_a_run(left_out: dict[str, bool], steps: list[str]) -> None:
    options = Options(**left_out)  # type: ignore[arg-type]
    ladder = fallbacks(options)
    assert [step for step, _ in ladder] == steps
    assert ladder[0][1] == options
    assert not ladder[-1][1].cascade
    assert not ladder[-1][1].rewrite


def never(*_: Any) -> Any:
    raise AssertionError("asked for although no time is left")


def out_of_time(report: Report) -> list[str]:
    return [each.operator for each in report.refused if each.reason == OUT_OF_TIME]


def test_where_no_time_is_left_the_answer_for_any_library_is_left_out_and_that_is_said(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = transform._made

    def late(*arguments: Any) -> Any:
        made = real(*arguments)
        clock[0] = 1e9
        return made

    monkeypatch.setattr(transform, "_made", late)
    monkeypatch.setattr(transform, "_for_any_library", never)
    report = tflite_memopt.optimize(write_model(mobile_chain(48)), THOROUGH).report
    assert out_of_time(report) == ["the search"]


def test_a_stop_in_the_search_for_any_library_is_said(clock: list[float]) -> None:
    def progress(message: str) -> None:
        if "for any kernel library: " in message and "stripes:" in message:
            clock[0] = 1e9

    model = write_model(mobile_chain(48))
    whole, stopped = (tflite_memopt.optimize(model, THOROUGH, each).report for each in (lambda _: None, progress))
    assert clock[0]
    assert (out_of_time(whole), out_of_time(stopped)) == ([], ["the search"])
    assert stopped.after.required_for_target == whole.after.required_for_target
