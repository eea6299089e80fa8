"""Report the searches for the order and the offsets: bound, gap, the reason of their end, dropped answers."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

import tflite_memopt
from scripts.makers.mechanisms import ordered_by
from tests.models import irregular_model
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import report_document
from tflite_memopt.report.model import Report, to_json
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.methods import STRATEGIES
from tflite_memopt.solvers.plan.problem import PlanProblem, Solution

OPTIONS = Options(verify=False, rewrite=False, cascade=False, kernels="reference")
SCHEMA = json.loads((Path(__file__).parents[2] / "schema" / "report.schema.json").read_text())


def report_of(options: Options) -> Report:
    report = tflite_memopt.optimize(write_model(irregular_model()), options).report
    jsonschema.validate(json.loads(to_json(report)), SCHEMA)
    return report


def shown(report: Report) -> str:
    console = Console(file=io.StringIO(), width=400)
    console.print(text_of(report_document(report)))
    text = console.file
    assert isinstance(text, io.StringIO)
    return text.getvalue()


def test_a_proof_comes_with_its_bound_and_the_tensors_that_bind() -> None:
    report = report_of(OPTIONS)
    plan = report.plan
    assert (plan.optimal, plan.gap_bytes, plan.ended_by, plan.dropped) == (True, 0, "proof", ())
    assert plan.lower_bound == report.bounds.plan == report.after.arena_bytes
    assert plan.bound_by == ("section" if plan.section.bytes == plan.lower_bound else "search")
    assert plan.section.tensors
    order = report.schedule
    assert (order.optimal, order.gap_bytes, order.ended_by) == (True, 0, "proof")
    assert order.lower_bound == report.bounds.schedule
    assert "operator order (best_first): proved optimal" in shown(report)
    assert f"tensor offsets for this order ({plan.method}): proved optimal" in shown(report)


def test_a_poor_planner_shows_its_gap_and_that_it_did_all_its_work() -> None:
    report = report_of(replace(OPTIONS, planner="naive"))
    plan = report.plan
    assert (plan.optimal, plan.ended_by) == (False, "work_limit")
    assert plan.gap_bytes == report.after.arena_bytes - plan.lower_bound > 0
    assert "above the lower bound; the search reached its limit of work" in shown(report)


def test_an_order_that_is_not_the_best_shows_its_gap() -> None:
    with ordered_by("as_is"):
        report = report_of(OPTIONS)
    assert (report.schedule.optimal, report.schedule.ended_by) == (False, "work_limit")
    assert report.schedule.gap_bytes == report.after.peak_bytes - report.schedule.lower_bound > 0


def test_a_plan_that_the_clock_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(problem: PlanProblem, limit: SearchLimit) -> Solution:
        return replace(STRATEGIES["naive"](problem, limit), stopped_by_clock=True)

    monkeypatch.setattr("tflite_memopt.solvers.plan.methods.STRATEGIES", {"naive": hasty})
    report = report_of(replace(OPTIONS, planner="naive", seed=1))  # another seed: nobody knows the plan yet
    assert report.plan.ended_by == "clock"
    assert any("the clock stopped the search for the plan" in warning for warning in report.warnings)
    assert "the search ran out of time" in shown(report)


def test_a_strategy_that_broke_a_rule_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem: PlanProblem, limit: SearchLimit) -> Solution:
        return Solution((0,) * len(problem.items))

    monkeypatch.setattr("tflite_memopt.solvers.plan.methods.STRATEGIES", {**STRATEGIES, "greedy_by_size": broken})
    report = report_of(replace(OPTIONS, seed=2))  # another seed: nobody knows the plan yet
    assert [reason.split(":")[0] for reason in report.plan.dropped] == ["greedy_by_size"]
    assert any("please report this model: greedy_by_size" in warning for warning in report.warnings)
