"""The front of a model: monotone, repeatable, and every point is what ``optimize`` then writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.test_page import striped
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.cascade.front import EXTRA_MACS, FrontLimit, FrontSearch, grid_of
from tflite_memopt.cascade.rounds import MACS
from tflite_memopt.explore import Explored, explore
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.memory.cost import cost_of
from tflite_memopt.pipeline import Stages
from tflite_memopt.report.model import to_json

OPTIONS = Options(effort="quick", max_extra_macs=1.0, samples=2, runtimes=("tflm",))


@pytest.fixture(scope="module")
def explored() -> Explored:
    return explore(write_model(striped()), OPTIONS)


def test_the_grid_has_the_rounds_of_a_search_and_goes_from_narrow_to_wide() -> None:
    assert set(MACS) <= set(EXTRA_MACS)
    assert list(EXTRA_MACS) == sorted(set(EXTRA_MACS))
    assert grid_of(Options(max_extra_macs=0.05, loops=False)) == (FrontLimit(0.0, False), FrontLimit(0.05, False))
    assert grid_of(Options(cascade=False)) == ()
    assert len(grid_of(OPTIONS)) == 2 * len(EXTRA_MACS)


@pytest.mark.parametrize("objective", ["total", "head"])
def test_a_wider_limit_never_needs_more_and_every_limit_is_kept(objective: str) -> None:
    options = replace(OPTIONS, objective="total" if objective == "total" else "head")
    model, profile = read_model(write_model(striped())), options.profile
    before = cost_of(model, profile, options)
    needs: dict[bool, list[int]] = {False: [], True: []}
    found = list(FrontSearch(model, profile, options).run(lambda _: None))
    assert found
    for limit, recipe in found:
        cost = cost_of(recipe.applied(model).model, profile, options)
        assert cost.macs <= before.macs * (1 + limit.extra_macs)
        assert limit.loops or not recipe.has_loops
        needs[limit.loops].append(cost.need)
    for each in needs.values():
        assert each == sorted(each, reverse=True)
    assert min(needs[True], default=0) <= min(needs[False])


def test_the_front_is_the_same_every_time(explored: Explored) -> None:
    again = explore(write_model(striped()), OPTIONS)
    assert to_json(again.exploration) == to_json(explored.exploration)
    assert len(explored.ways) == len(explored.exploration.points) > 2
    assert explored.exploration.searches == 4 * len(EXTRA_MACS)


def test_each_point_is_what_optimize_then_writes_and_proves(explored: Explored) -> None:
    data, has_stripes = write_model(striped()), set()
    for point, way in zip(explored.exploration.points, explored.ways, strict=True):
        made = optimize(data, replace(way.options, max_extra_macs=1.0), stages=Stages(way.rewrite, way.cascade))
        after = made.report.after
        assert (after.required_for_target, after.arena_bytes) == (point.total, point.head)
        assert (after.macs, after.operators, len(made.model)) == (point.macs, point.operators, point.file_bytes)
        assert made.report.equivalence["tflm"].equal
        assert len(point.stripes) == sum(use.rule.startswith("cascade") for use in made.report.rewrites)
        has_stripes.add(bool(point.stripes))
    assert has_stripes == {False, True}


def test_what_the_options_no_longer_permit_is_left_out(explored: Explored) -> None:
    way = next(way for way in explored.ways if way.recipe is not None)
    model, profile = read_model(write_model(striped())), OPTIONS.profile
    assert way.cascade(model, profile, OPTIONS, lambda _: None).uses
    assert not way.cascade(model, profile, replace(OPTIONS, cascade=False), lambda _: None).uses
    looped = next((way for way in explored.ways if way.recipe is not None and way.recipe.has_loops), None)
    assert looped is not None
    unrolled = looped.cascade(model, profile, replace(OPTIONS, loops=False), lambda _: None)
    assert not any("loop" in use.rule for use in unrolled.uses)


def test_a_wrong_pin_is_refused_before_any_search() -> None:
    with pytest.raises(UsageError, match="nothing"):
        explore(write_model(striped()), replace(OPTIONS, pins=(("nothing", 0),)))
