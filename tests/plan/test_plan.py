"""Every strategy on random problems, the checker on wrong plans, brute force, and CSV."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.solvers.graph.interval import intersect
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.bounds import max_breadth
from tflite_memopt.solvers.plan.check import check_plan
from tflite_memopt.solvers.plan.methods import BEST_OF, NAMES, STRATEGIES, solve
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation, Solution, arena_bytes

LIMIT = SearchLimit(time_limit=2.0, seed=0)


@st.composite
def items(draw: st.DrawFn) -> Item:
    alignment = draw(st.sampled_from((1, 4, 16)))
    size = draw(st.integers(1, 40)) * 16
    start = draw(st.integers(-1, 12))
    return Item(size, start, start + draw(st.integers(1, 6)), alignment)


@st.composite
def problems(draw: st.DrawFn, most: int = 24) -> PlanProblem:
    """Free items, perhaps one with a given place, and relations that strategies may leave unused."""
    chosen = draw(st.lists(items(), min_size=1, max_size=most))
    if draw(st.booleans()):
        chosen[0] = replace(chosen[0], offset=draw(st.integers(0, 20)) * 16)
    positions = st.integers(0, len(chosen) - 1)
    pairs = draw(st.lists(st.tuples(positions, positions, st.integers(0, 64), st.booleans()), max_size=4))
    relations = tuple(Relation(a, b, 16 * distance, exact) for a, b, distance, exact in pairs if a != b)
    return PlanProblem(tuple(chosen), relations)


@pytest.mark.parametrize("name", STRATEGIES)
@given(problem=problems())
@examples(60)
def test_every_strategy_keeps_the_rules_and_repeats_itself(name: str, problem: PlanProblem) -> None:
    offsets = STRATEGIES[name](problem, LIMIT).offsets
    check_plan(problem, offsets)
    assert arena_bytes(problem, offsets) >= max_breadth(problem)
    assert STRATEGIES[name](problem, LIMIT).offsets == offsets


@given(problem=problems(most=5))
@examples(60)
def test_nothing_goes_below_brute_force_and_best_is_the_best(problem: PlanProblem) -> None:
    plain = PlanProblem(tuple(replace(item, offset=None, alignment=16) for item in problem.items))
    found = {name: solve(plain, name, LIMIT).arena_bytes for name in STRATEGIES}
    optimum = _brute_force(plain)
    assert min(found.values()) >= optimum >= max_breadth(plain)
    assert solve(plain, limit=LIMIT).arena_bytes == min(found[name] for name in BEST_OF)


def _brute_force(problem: PlanProblem) -> int:
    """Smallest arena over all orders of placement at the lowest free offset: one of them is optimal."""
    best = sum(item.size for item in problem.items)
    for order in permutations(range(len(problem.items))):
        offsets: dict[int, int] = {}
        for index in order:
            item = problem.items[index]
            rivals = [other for other in offsets if intersect(problem.items[other], item)]
            ends = [0, *(offsets[other] + problem.items[other].size for other in rivals)]
            offsets[index] = min(end for end in ends if _is_free(problem, offsets, rivals, end, item.size))
        best = min(best, max(offsets[i] + problem.items[i].size for i in offsets))
    return best


def _is_free(problem: PlanProblem, offsets: dict[int, int], rivals: list[int], start: int, size: int) -> bool:
    return all(start + size <= offsets[o] or offsets[o] + problem.items[o].size <= start for o in rivals)


@given(problem=problems())
@examples(60)
def test_the_bound_is_the_slow_sum_over_scopes(problem: PlanProblem) -> None:
    plain = PlanProblem(tuple(replace(item, offset=None) for item in problem.items))
    scopes = range(-1, 20)
    slow = max(sum(item.size for item in plain.items if item.start <= scope < item.end) for scope in scopes)
    assert max_breadth(plain) == slow


def test_a_strategy_that_breaks_a_rule_is_dropped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """TFLM's own planner knows no alignment: here its answer puts the third item at 10."""
    problem = PlanProblem((Item(10, 0, 2), Item(20, 0, 2), Item(30, 1, 3)))
    with raises(InfeasibleError, ErrorKind.PLACE, "50", "16"):
        solve(problem, "tflm_greedy", LIMIT)
    broken = {**STRATEGIES, "strip_packing_best_fit": STRATEGIES["tflm_greedy"]}
    monkeypatch.setattr("tflite_memopt.solvers.plan.methods.STRATEGIES", broken)
    monkeypatch.setattr("tflite_memopt.solvers.plan.methods.BEST_OF", ("strip_packing_best_fit", "exact"))
    plan = solve(problem, limit=LIMIT)
    check_plan(problem, plan.offsets)
    assert [reason.split(":")[0] for reason in plan.dropped] == ["strip_packing_best_fit"]


@pytest.mark.parametrize("offset", [0, 16, 32])
def test_an_item_of_no_bytes_may_lie_anywhere(offset: int) -> None:
    problem = PlanProblem(
        (Item(0, 0, 2, offset=offset), Item(64, 0, 2, offset=0), Item(32, 0, 2)), (Relation(0, 1, 0),)
    )
    for name in NAMES:
        assert solve(problem, name, LIMIT).arena_bytes == 96


def test_a_bound_above_the_plan_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(32, 1, 3)))

    def boastful(problem: PlanProblem, limit: SearchLimit) -> Solution:
        return Solution((0, 64), 112)

    monkeypatch.setattr("tflite_memopt.solvers.plan.methods.STRATEGIES", {"naive": boastful})
    with pytest.raises(AssertionError, match="96 bytes lies below the proved bound of 112"):
        solve(problem, "naive", LIMIT)


LIVE = PlanProblem((Item(64, 0, 2), Item(32, 1, 3), Item(48, 2, 4)))


@pytest.mark.parametrize(
    ("offsets", "kind", "names"),
    [
        ((0, 48, 0), ErrorKind.OVERLAP, ("items",)),
        ((0, 64, 80), ErrorKind.OVERLAP, ("items",)),
        ((0, -16, 0), ErrorKind.PLACE, ("item 1", "-16")),
        ((0, 72, 0), ErrorKind.PLACE, ("item 1", "72", "16")),
        ((0, 64), ErrorKind.COUNT, ("2", "3")),
    ],
)
def test_the_checker_refuses(offsets: tuple[int, ...], kind: ErrorKind, names: tuple[str, ...]) -> None:
    with raises(InfeasibleError, kind, *names):
        check_plan(LIVE, offsets)


def test_the_checker_accepts_shared_bytes_at_different_times() -> None:
    check_plan(LIVE, (0, 64, 0))


def test_the_checker_keeps_given_offsets() -> None:
    problem = PlanProblem((Item(16, 0, 1, offset=32),))
    check_plan(problem, (32,))
    for elsewhere in (16, 48):
        with raises(InfeasibleError, ErrorKind.PLACE, "item 0", "32"):
            check_plan(problem, (elsewhere,))


@pytest.mark.parametrize("swapped", [False, True])
def test_an_overlap_is_allowed_at_its_distance_and_not_a_unit_below(swapped: bool) -> None:
    pair = (Item(64, 0, 2), Item(64, 1, 3))
    relation = Relation(1, 0, 16) if swapped else Relation(0, 1, 16)
    problem = PlanProblem(pair, (relation,))

    def offsets(distance: int) -> tuple[int, int]:
        return (0, distance) if swapped else (distance, 0)

    check_plan(problem, offsets(16))
    check_plan(problem, offsets(32))
    for wrong in (0, 15):
        with pytest.raises(InfeasibleError):
            check_plan(PlanProblem(tuple(replace(item, alignment=1) for item in pair), (relation,)), offsets(wrong))


def test_an_exact_relation_allows_one_difference_only() -> None:
    problem = PlanProblem((Item(64, 0, 2), Item(32, 1, 3)), (Relation(1, 0, 16, exact=True),))
    check_plan(problem, (0, 16))
    for wrong in (0, 32):
        with raises(InfeasibleError, ErrorKind.OVERLAP):
            check_plan(problem, (0, wrong))


def test_tflm_order_by_hand() -> None:
    """Of equal sizes TFLM places the later item first; a gap that fits is taken."""
    problem = PlanProblem((Item(32, 0, 2), Item(32, 0, 2), Item(16, 0, 2), Item(64, 1, 3)))
    assert STRATEGIES["tflm_greedy"](problem, LIMIT).offsets == (96, 64, 128, 0)
