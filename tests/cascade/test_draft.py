"""Levels of a draft, against plans that are made anew, and after an interruption."""

from __future__ import annotations

import pytest

from tests.plan.problems import crowded
from tflite_memopt.cascade import draft
from tflite_memopt.cascade.draft import LEVELS, DraftedOrder
from tflite_memopt.graph.search_limit import SearchLimit
from tflite_memopt.plan.bounds import max_breadth
from tflite_memopt.plan.memory import PlanMemory
from tflite_memopt.plan.methods import BEST, solve
from tflite_memopt.plan.problem import PlanProblem

LIMIT = SearchLimit()


def drafted(problem: PlanProblem) -> DraftedOrder:
    return DraftedOrder(problem, BEST, max_breadth(problem))


@pytest.mark.parametrize("seed", range(4))
def test_each_level_is_a_plan_with_so_much_work(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "_WORK", (0.01, 0.02, 0.04))
    problem = crowded(seed)
    order = drafted(problem)
    anew = [solve(problem, limit=SearchLimit(work=work)).arena_bytes for work in draft._WORK]
    assert [order.head_at(level, LIMIT) for level in range(1, LEVELS + 1)] == [min(anew[:level]) for level in (1, 2, 3)]
    assert order.before == PlanMemory()  # there is no level to go on with


def test_an_interruption_leaves_nothing_half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(draft, "_WORK", (0.01, 0.02, 0.04))
    order, anew = drafted(crowded(1)), drafted(crowded(1))
    order.head_at(1, LIMIT)
    assert order.before != PlanMemory()
    with monkeypatch.context() as patched:
        patched.setattr(draft, "solve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            order.head_at(2, LIMIT)
    assert order.before == PlanMemory()
    assert order.head_at(LEVELS, LIMIT) == anew.head_at(LEVELS, LIMIT)
