"""Questions at one capacity after the other, put to a search whose answers are known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.plan.disjunctive import FOUND, LIMIT, NONE
from tflite_memopt.solvers.plan.exact import RULES, BestOfGroup, CapacityQuestions, ItemGroup, SearchRun, group_of
from tflite_memopt.solvers.plan.problem import Item, PlanProblem

GRAIN = 16
ITEM = Item(GRAIN, 0, 1)


@dataclass
class ScriptedSearch:
    """Answers by the capacity alone, and notes what it was asked. A plan takes the whole capacity."""

    answer: Callable[[int], int]
    asked: list[tuple[int, int]] = field(default_factory=list)
    first_nodes: int = 2

    @property
    def group(self) -> ItemGroup:
        return group_of(PlanProblem((ITEM,)), [0])

    def run(self, capacity: int, rule: str, nodes: int, allowance: Allowance) -> SearchRun:
        assert rule in RULES
        allowance.left -= 1
        self.asked.append((capacity, nodes))
        end = self.answer(capacity)
        return SearchRun(end, 1, (capacity - ITEM.size,) if end == FOUND else ())


def questions(answer: Callable[[int], int], bound: int, top: int) -> tuple[CapacityQuestions, ScriptedSearch]:
    search = ScriptedSearch(answer)
    return CapacityQuestions(search, BestOfGroup(top, bound), Allowance(10**6, SearchLimit())), search


def test_a_bound_that_is_far_too_low_does_not_creep() -> None:
    least = 160_000
    run, search = questions(lambda capacity: NONE if capacity < least else LIMIT, bound=16, top=320_000)
    for _ in range(20):
        run.raise_bound(1)
    assert run.best.bound == least
    # By the grain at a time it would take 10,000 questions.
    assert len(search.asked) < 150


def test_the_first_question_is_the_bound_itself() -> None:
    run, search = questions(lambda _: FOUND, bound=1600, top=320_000)
    run.raise_bound(7)
    assert search.asked == [(1600, 7)]
    assert run.best.top == 1600


def test_where_half_the_way_is_too_far_plans_nearer_to_the_best_are_found() -> None:
    run, search = questions(lambda capacity: FOUND if capacity >= 24_000 else LIMIT, bound=0, top=32_000)
    run.lower_top(100)
    assert 24_000 <= run.best.top < 24_500
    assert search.asked[0] == (16_000, 100)


def test_every_question_gets_enough_nodes_to_place_every_item() -> None:
    run, search = questions(lambda _: LIMIT, bound=0, top=320_000)
    run.lower_top(1)
    assert [nodes for _, nodes in search.asked] == [2] * 4
    assert sorted({capacity for capacity, _ in search.asked}) == [160_000, 310_000]


def test_one_node_s_refutations_are_bisected() -> None:
    run, search = questions(lambda capacity: NONE if capacity < 160_000 else LIMIT, bound=16, top=320_000)
    run.find_bound()
    assert run.best.bound == 160_000
    assert {nodes for _, nodes in search.asked} == {1}
    assert len(search.asked) < 20


def test_nothing_is_asked_once_the_best_plan_is_proved() -> None:
    run, search = questions(lambda _: LIMIT, bound=320, top=320)
    run.find_bound()
    run.raise_bound(1)
    run.lower_top(1)
    assert not search.asked


def test_a_spent_allowance_ends_the_questions() -> None:
    run, search = questions(lambda _: NONE, bound=16, top=320_000)
    run.allowance.left = 0
    run.raise_bound(1)
    assert not search.asked
