"""best_first: optimal on everything that can be checked, sound when it has to stop, and never lost in depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from tflite_memopt.solvers.graph.limits import Allowance, SearchLimit
from tflite_memopt.solvers.schedule.best_first import best_first
from tflite_memopt.solvers.schedule.bottleneck import BottleneckSearch, Direction, Segment, backward, forward
from tflite_memopt.solvers.schedule.check import check_order, peak_of
from tflite_memopt.solvers.schedule.compiled_graph import CompiledGraph, compiled
from tflite_memopt.solvers.schedule.methods import METHODS, solve
from tflite_memopt.solvers.schedule.problem import Reuse, ScheduleProblem, Step, memory_graph
from tflite_memopt.solvers.schedule.reductions import FusedGraph, _contract_at, contract

from .problems import brute_force, optimum, problems


def chain(*sizes: int) -> ScheduleProblem:
    """Tensor i is read by operator i, which writes tensor i + 1."""
    steps = tuple(Step((i,), (i + 1,)) for i in range(len(sizes) - 1))
    return ScheduleProblem(sizes, steps, (0,), (len(sizes) - 1,))


def branches(count: int) -> ScheduleProblem:
    """Branches between one input and one output: each writes much, then shrinks it; the sizes differ."""
    sizes, steps, ends = [1600], list[Step](), []
    for i in range(count):
        sizes += [16 * (7 * i % 31 + 8), 16 * (5 * i % 7 + 1)]
        steps += [Step((0,), (len(sizes) - 2,)), Step((len(sizes) - 2,), (len(sizes) - 1,))]
        ends.append(len(sizes) - 1)
    return ScheduleProblem((*sizes, 16), (*steps, Step(tuple(ends), (len(sizes),))), (0,), (len(sizes),))


def fused_operators_of(problem: ScheduleProblem) -> list[list[int]]:
    graph = FusedGraph(memory_graph(problem))
    contract(graph)
    return sorted(graph.order.values())


@given(problems(5))
@examples(150)
def test_the_oracle_is_brute_force(problem: ScheduleProblem) -> None:
    assert optimum(problem) == brute_force(problem)


@given(problems(8), st.integers(-3, 3))
@examples(200)
def test_a_limit_changes_nothing_that_comes_below_it_and_proves_what_does_not(
    problem: ScheduleProblem, more: int
) -> None:
    least = optimum(problem)
    found = solve(problem, limit=SearchLimit(below=least + 16 * more))
    assert least <= found.peak_bytes
    assert found.lower_bound <= least
    if more > 0:
        assert found.order == solve(problem).order
        assert found.optimal
    else:
        assert found.lower_bound >= least + 16 * more


@pytest.mark.slow
@given(problems(9))
@examples(500)
def test_it_proves_the_optimum_as_the_dynamic_programming_does(problem: ScheduleProblem) -> None:
    best = optimum(problem)
    for method in ("best_first", "serenity"):
        schedule = solve(problem, method)
        assert (schedule.peak_bytes, schedule.lower_bound, schedule.optimal) == (best, best, True), method


@given(problems(9))
@examples(60)
def test_it_agrees_with_integer_programming(problem: ScheduleProblem) -> None:
    assert solve(problem, "ilp").peak_bytes == solve(problem, "best_first").peak_bytes


@given(problems(8), st.sampled_from((forward, backward)))
@examples(300)
def test_each_direction_finds_the_optimum_by_itself(
    problem: ScheduleProblem, direction: Callable[[CompiledGraph, Segment], Direction]
) -> None:
    """Without contraction, segments or a known order to start from."""
    graph = compiled(FusedGraph(memory_graph(problem)))
    search = BottleneckSearch(direction(graph, _whole(graph)), 0, 1 << 40, Allowance(1 << 40, SearchLimit()))
    found = search.advance(1 << 20)
    assert found is not None
    order = [v for b in found.moves for v in graph.orders[b]]
    check_order(problem, order)
    start = sum(problem.sizes[t] for t in problem.inputs)
    assert max(found.peak, start) == peak_of(problem, order) == optimum(problem)


def _whole(graph: CompiledGraph) -> Segment:
    alive, goal = graph.alive_at_start, (1 << len(graph.needs)) - 1
    for b in range(len(graph.needs)):
        alive += graph.cost((1 << b) - 1, b)[1]
    return Segment(0, goal, graph.alive_at_start, alive)


@given(problems(9), st.sampled_from(sorted(METHODS)))
@examples(200)
def test_without_time_every_method_has_an_order_and_a_sound_bound(problem: ScheduleProblem, method: str) -> None:
    if method == "as_is":
        return  # it keeps the numbers, which need not be an order here
    schedule = solve(problem, method, SearchLimit(time_limit=0.0))
    assert schedule.lower_bound <= optimum(problem) <= schedule.peak_bytes


@given(problems(9))
@examples(100)
def test_the_linear_peak_is_the_checkers(problem: ScheduleProblem) -> None:
    order = solve(problem, "kahn").order
    assert memory_graph(problem).peak(order) == peak_of(problem, order)


def test_fused_operators_rise_late_fall_soon_and_do_not_stop_on_a_hill() -> None:
    assert fused_operators_of(chain(16, 32, 64, 128)) == [[0, 1, 2]]
    assert fused_operators_of(chain(128, 64, 32, 16)) == [[0, 1, 2]]
    assert fused_operators_of(chain(16, 64, 32)) == [[0, 1]]
    assert fused_operators_of(chain(64, 16, 128)) == [[0], [1]]


@examples(300)
@given(problems(max_steps=12))
def test_later_sweeps_miss_nothing_although_they_look_only_near_what_has_changed(problem: ScheduleProblem) -> None:
    graph, whole = FusedGraph(memory_graph(problem)), FusedGraph(memory_graph(problem))
    contract(graph)
    changed = [set(whole.operators)]
    while any(changed):
        changed = [_contract_at(whole, v) for v in sorted(whole.operators) if v in whole.operators]
    assert graph.order == whole.order


def test_nothing_is_fused_where_an_input_may_die_elsewhere() -> None:
    """Operator 0 may or may not free tensor 0, so that whether it rises is not known."""
    problem = ScheduleProblem((64, 32, 96, 32), (Step((0,), (1,)), Step((1,), (2,)), Step((0,), (3,))), (0,), (2, 3))
    assert [0] in fused_operators_of(problem)


def test_in_place_counts_only_where_the_input_dies() -> None:
    step = Step((0,), (1,), reuses=(Reuse(0, 64),))
    alone = ScheduleProblem((64, 64), (step,), (0,), (1,))
    shared = ScheduleProblem((64, 64, 16), (step, Step((0,), (2,))), (0,), (1, 2))
    assert solve(alone).peak_bytes == 64
    assert (solve(shared).peak_bytes, solve(shared).order) == (80, (1, 0))


def test_the_models_own_order_stays_where_none_is_better() -> None:
    steps = (Step((0,), (1,)), Step((0,), (2,)), Step((1, 2), (3,)))
    for order in ((0, 1, 2), (1, 0, 2)):
        problem = ScheduleProblem((16, 32, 32, 16), tuple(steps[v] for v in order), (0,), (3,))
        assert best_first(problem, SearchLimit()).order == (0, 1, 2)


@pytest.mark.slow
def test_no_recursion_and_no_quadratic_time_on_a_long_chain() -> None:
    """The second reader of the input makes it a search, and not an order that is given."""
    sizes = [16 * (7919 * i % 101 + 1) for i in range(20_001)]
    problem = ScheduleProblem((*sizes, 16), (*chain(*sizes).steps, Step((0,), (20_001,))), (0,), (20_000, 20_001))
    schedule = solve(problem)
    assert schedule.optimal
    assert schedule.peak_bytes == 16 + max(a + b for a, b in pairwise(sizes))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "gap"), [(60, 1.35), (600, 1.1)])
def test_parallel_branches_end_within_little_work_and_with_a_small_gap(count: int, gap: float) -> None:
    problem = branches(count)
    schedule = solve(problem, "best_first", SearchLimit(time_limit=600.0, effort=0.1))
    assert schedule.lower_bound <= schedule.peak_bytes <= solve(problem, "rpo").peak_bytes
    assert schedule.peak_bytes <= gap * schedule.lower_bound
    assert not schedule.stopped_by_clock


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_limit_of_work_gives_the_same_order_however_late_it_is(method: str) -> None:
    problem = branches(12)
    hurried, patient = (solve(problem, method, SearchLimit(seconds, effort=0.001)) for seconds in (60.0, 6000.0))
    assert replace(hurried, seconds=0.0) == replace(patient, seconds=0.0)
    assert not hurried.stopped_by_clock


@pytest.mark.parametrize("method", ["serenity", "hmcos", "ilp", "best_first"])
def test_the_emergency_stop_is_admitted(method: str) -> None:
    schedule = solve(branches(12), method, SearchLimit(time_limit=0.0))
    assert schedule.stopped_by_clock is not schedule.optimal
