"""Options check themselves, and name the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import wrong_option
from tflite_memopt.options import Options
from tflite_memopt.run.attempts import rungs

THOROUGH = Options(target="cortex-m4", verify=False, effort="thorough", every_byte=True)
WRONG: list[tuple[str, Any]] = [
    ("kernels", "arm"),
    ("planner", "smallest"),
    ("objective", "ram"),
    ("io", "float"),
    ("runtimes", ()),
    ("runtimes", ("tflm", "onnx")),
    ("runtimes", "tflm"),
    ("seed", -1),
    ("samples", 0),
    ("jobs", 0),
    ("budget", 0),
    ("budget", -64),
    ("max_slowdown", 10),
    ("max_slowdown", -0.1),
    ("max_slowdown", float("nan")),
    ("max_slowdown", 1.5),
    ("target", 5),
    ("replay", 5),
    ("kernels", 5),
    ("samples", "3"),
    ("effort", None),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=lambda each: str(each))
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    with wrong_option(field):
        Options(**{field: value})


def test_the_limits_themselves_are_allowed() -> None:
    Options(seed=0, samples=1, budget=1, max_slowdown=0)


def test_a_decision_is_parsed_once() -> None:
    options = Options(replay="order 1,0")
    assert options.decision is options.decision
    assert Options().decision is None


@pytest.mark.parametrize(("budget", "expected"), [(None, False), (99, False), (100, True), (101, True)])
def test_a_budget_is_met_by_what_needs_no_more(budget: int | None, expected: bool) -> None:
    assert Options(budget=budget).search.meets_budget(100) == expected


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
    ladder = rungs(options.search)
    assert [step for step, _ in ladder] == steps
    assert ladder[0][1] == options.search
    assert not ladder[-1][1].cascade
    assert not ladder[-1][1].rewrite
