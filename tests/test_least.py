"""The lower bound of one file: nothing goes below it, and a budget below it is not searched for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scripts.benchmarks.networks import random_networks
from tests.models import mobile_chain
from tflite_memopt import Options
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.run import attempts, candidate
from tflite_memopt.run.parts import ways
from tflite_memopt.run.pipeline import optimize

CHAIN = write_model(mobile_chain(24))
PLAIN = Options(verify=False, effort="quick")
HOPELESS = replace(PLAIN, budget=2048)


@pytest.mark.slow
@pytest.mark.parametrize("number", [514, 529, 532, 547, *range(17)])  # the first four return views of one another
def test_no_result_needs_less_than_the_bound(number: int) -> None:
    (model,) = random_networks(1, number)
    for options in (replace(PLAIN, every_byte=True, max_slowdown=1.0), replace(PLAIN, target="cortex-m4")):
        report = optimize(model, options).report
        assert 0 < report.least_as_one <= report.after.required_for_target
        report = optimize(model, replace(options, objective="head", cascade=False)).report
        assert 0 < report.least_as_one <= report.after.arena_bytes
        assert report.bounds.io <= report.after.arena_bytes


@pytest.mark.slow
def test_a_hopeless_budget_is_searched_for_as_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = [0]
    real = candidate.known_or_made

    def counted(*arguments: Any) -> Any:
        searches[-1] += 1
        assert arguments[1].budget is None
        return real(*arguments)

    monkeypatch.setattr(attempts, "known_or_made", counted)
    free = optimize(CHAIN, PLAIN)
    searches.append(0)
    hopeless = optimize(CHAIN, HOPELESS)
    assert HOPELESS.budget is not None
    assert hopeless.report.least_as_one > HOPELESS.budget
    assert hopeless.report.within_budget is False
    assert hopeless.report.after.required_bytes == free.report.after.required_bytes
    assert searches[0] == searches[1] > 0


@pytest.mark.slow
def test_ways_whose_bound_exceeds_the_budget_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a search for what the bound excludes")

    options = replace(HOPELESS, budget=512)
    whole = optimize(CHAIN, options)
    monkeypatch.setattr(ways, "optimize_in_parts", refused)
    monkeypatch.setattr(ways, "optimize", refused)
    found = list(ways.other_ways(CHAIN, options, whole, lambda _: None, candidate.Cache()))
    assert [way.flags for way in found] == [ways.PARTS, ways.FED]
    assert not any(way.fits or way.need is not None for way in found)
