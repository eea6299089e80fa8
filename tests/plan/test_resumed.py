"""A planner that goes on where less work has ended it, against one that begins anew with as much."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.plan.problems import crowded
from tflite_memopt.graph.search_limit import SearchLimit, WorkAllowance
from tflite_memopt.plan.exact.group import group_of
from tflite_memopt.plan.exact.pair_search import PairRun, PairSearch
from tflite_memopt.plan.exact.resumed import ResumedSearch
from tflite_memopt.plan.exact.settings import TreeSettings
from tflite_memopt.plan.exact.strategy import Searches, improve
from tflite_memopt.plan.hill_climb.strategy import Climber, Runs
from tflite_memopt.plan.memory import PlanMemory
from tflite_memopt.plan.methods import solve
from tflite_memopt.plan.problem import Plan, PlanProblem

WORK = (0.002, 0.01, 0.03, 0.03, 0.2)
"""From next to nothing to enough for some of the problems."""


def in_two_parts(seed: int) -> PlanProblem:
    """Two crowds, one after the other: what is known of the first one decides what is asked of the second."""
    first, second = crowded(seed, 30), crowded(seed + 1, 30)
    end = max(item.end for item in first.items)
    later = (replace(item, start=item.start + end, end=item.end + end) for item in second.items)
    moved = (replace(each, first=each.first + 30, second=each.second + 30) for each in second.relations)
    return PlanProblem((*first.items, *later), (*first.relations, *moved))


def without_seconds(plan: Plan) -> Plan:
    return replace(plan, seconds=0.0)


@pytest.mark.parametrize("make", [crowded, in_two_parts])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_sent", [False, True])
def test_the_plan_is_the_same_as_without_what_came_before(make: object, seed: int, is_sent: bool) -> None:
    assert callable(make)
    problem, before = make(seed), PlanMemory()
    for work in WORK:
        limit = SearchLimit(work=work)
        found = solve(problem, limit=limit, before=before)
        assert without_seconds(found) == without_seconds(solve(problem, limit=limit))
        if is_sent:  # as to another process, and back
            before = pickle.loads(pickle.dumps(before))


@pytest.mark.parametrize("compiles", [False, True])
def test_nodes_and_work_are_those_of_a_search_that_begins_anew(compiles: bool) -> None:
    problem, searches = crowded(3), Searches()
    settings, open_ = TreeSettings(pairs_limit=1_000_000, compiles=compiles), 0
    for work in WORK:
        resumed = improve(problem, None, SearchLimit(work=work), settings, before=searches)
        assert resumed == improve(problem, None, SearchLimit(work=work), settings)
        open_ += resumed.steps > 0
    assert open_ == len(WORK)
    assert searches


def test_nothing_begins_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, begun, searches = crowded(3), list[tuple[int, str]](), Searches()
    begin = PairSearch.begin

    def noted(search: PairSearch, capacity: int, rule: str) -> PairRun:
        begun.append((capacity, rule))
        return begin(search, capacity, rule)

    monkeypatch.setattr(PairSearch, "begin", noted)
    improve(problem, None, SearchLimit(work=WORK[-1]))
    anew = begun.copy()
    begun.clear()
    for work in WORK:
        improve(problem, None, SearchLimit(work=work), before=searches)
    assert begun == anew


def test_another_question_shows_a_fault() -> None:
    search = ResumedSearch(group_of(crowded(1), range(60)))
    search.run(5000, "weight", 10, WorkAllowance(1000, SearchLimit()))
    with pytest.raises(AssertionError, match="had been asked"):
        search.begin_again().run(5016, "weight", 10, WorkAllowance(2000, SearchLimit()))


def test_large_searches_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: Searches = {}
    monkeypatch.setattr("tflite_memopt.plan.exact.strategy._MOST_KEPT", 10)
    limit = SearchLimit(work=0.001)
    assert improve(crowded(2), None, limit, before=searches) == improve(crowded(2), None, limit)
    assert not searches


CLIMBS = (0.00001, 0.0001, 0.001, 0.01, 1.0)
"""With the first ones no run ends by itself; with the last all do."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("works", [CLIMBS, CLIMBS[::-1]])
def test_a_climb_that_is_known_is_what_it_would_be_anew(seed: int, works: Sequence[float]) -> None:
    problem, ended = crowded(seed, 40), Runs()
    for work in works:
        for limit in (SearchLimit(work=work, seed=turn) for turn in range(3)):
            known, anew = Climber(problem, ended), Climber(problem)
            assert (known.climb(limit), known.travel(limit)) == (anew.climb(limit), anew.travel(limit))
    assert ended


def test_no_climb_that_has_ended_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, before, placed = crowded(3), PlanMemory(), list[int]()
    place = Climber._placed

    def noted(climber: Climber, order: list[int]) -> object:
        placed.append(len(order))
        return place(climber, order)

    monkeypatch.setattr(Climber, "_placed", noted)
    first = solve(problem, "record_to_record", before=before)
    assert placed
    placed.clear()
    assert without_seconds(solve(problem, "record_to_record", before=before)) == without_seconds(first)
    assert not placed
