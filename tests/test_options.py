"""Options check themselves, and name the field that is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tflite_memopt
from tests.models import mobile_chain
from tflite_memopt.errors import UsageError
from tflite_memopt.graph.clock import Deadline
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.change import OUT_OF_TIME
from tflite_memopt.options import Options

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
    ("max_extra_operators", -1),
    ("max_extra_macs", 10),
    ("max_extra_macs", -0.1),
    ("max_extra_macs", float("nan")),
    ("max_extra_work", 1.5),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=lambda each: str(each))
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"option {field}="):
        Options(**{field: value})


def test_the_limits_themselves_are_allowed() -> None:
    Options(time_limit=0, seed=0, samples=1, budget=1, max_extra_operators=0, max_extra_macs=1, max_extra_work=0)


def test_the_emergency_stop_is_one_for_all_searches_of_a_run() -> None:
    options = Options(time_limit=60.0).started()
    assert options.started() is options
    assert replace(options, effort="quick").until == options.until
    limits = options.search_limit(), options.search_limit(2.0), options.plan_limit()
    assert {limit.deadline() for limit in limits} == {options.until}
    over = replace(options, until=Deadline(0.0))
    assert over.seconds_left == 0.0
    assert over.search_limit().deadline().has_passed()


def test_a_limit_of_no_seconds_ends_every_search_and_the_result_is_still_right() -> None:
    model = write_model(mobile_chain(32))
    report = tflite_memopt.optimize(model, Options(time_limit=0, samples=2, runtimes=("tflm",))).report
    assert report.equivalence["tflm"].equal
    assert report.after.required_for_target <= report.before.required_for_target
    assert [each.operator for each in report.refused if each.reason == OUT_OF_TIME]
