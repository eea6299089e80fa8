"""The bound on the head of any order, against plans of orders drawn at random."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.cascade.networks import TYPES, random_network
from tests.profiles import examples
from tflite_memopt.errors import InfeasibleError
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.layout import memory_layout
from tflite_memopt.memory.problems import schedule_problem
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.operators.table import row_map_of
from tflite_memopt.search.cascade.region import start_of_region
from tflite_memopt.search.cascade.space import UNROLLED
from tflite_memopt.search.cascade.stripes import even_ends
from tflite_memopt.search.cascade.tiling import Tiling, Unrolled, apply_tilings
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.methods import solve as solve_plan
from tflite_memopt.solvers.schedule.methods import solve
from tflite_memopt.solvers.schedule.problem import (
    MemoryGraph,
    Reuse,
    ScheduleProblem,
    Step,
    head_lower_bound,
    memory_graph,
    schedule_lower_bound,
)

LIMIT = SearchLimit(10.0)
PROFILES = ("portable", "reference", "cmsis-nn", "esp-nn")


def drawn_order(graph: MemoryGraph, rng: random.Random) -> tuple[int, ...]:
    order: list[int] = []
    done = 0
    while len(order) < len(graph.needs):
        ready = [v for v, needs in enumerate(graph.needs) if not done >> v & 1 and needs & ~done == 0]
        order.append(rng.choice(ready))
        done |= 1 << order[-1]
    return tuple(order)


def striped_network(seed: int, dtype: DType, layers: int) -> Model:
    """Operators in stripes where they can be: kept rows and slices cut a tensor into several ranges of bytes."""
    model, rng = random_network(seed, dtype, layers), random.Random(seed)
    ways = [row_map_of(operator) for operator in model.main.operators]
    for exit_ in rng.sample(range(len(ways)), len(ways)):
        if (first := start_of_region(model.main, exit_, ways, 40)) > exit_:
            continue
        height = (*model.main.operators[exit_].outputs[0].shape, 1, 1)[1]
        form = Unrolled(even_ends(height, rng.randint(2, 4)), *rng.choice(UNROLLED))
        try:
            return apply_tilings(model, [Tiling(first, exit_ + 1, form)])
        except InfeasibleError:
            model = random_network(seed, dtype, layers)
    return model


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from(TYPES),
    layers=st.integers(2, 7),
    kernels=st.sampled_from(PROFILES),
)
def test_no_plan_of_any_order_goes_below_it(seed: int, dtype: DType, layers: int, kernels: str) -> None:
    model, profile = striped_network(seed, dtype, layers), profile_named(kernels)
    problem = schedule_problem(model.main, memory_layout(model, profile))
    found = solve(problem, "best_first", LIMIT)
    bounds = {head_lower_bound(problem, found.lower_bound), head_lower_bound(problem, schedule_lower_bound(problem))}
    graph, rng = memory_graph(problem), random.Random(seed)
    for order in {found.order, drawn_order(graph, rng), drawn_order(graph, rng)}:
        plan = solve_plan(memory_layout(model, profile, order=order).problem, "best", LIMIT)
        assert max(bounds) <= plan.arena_bytes


def test_what_is_not_counted_is_taken_off_once() -> None:
    plain = ScheduleProblem((100, 60), (Step((0,), (1,)),), (0,), (1,))
    assert head_lower_bound(plain, 160) == 160
    saving = ScheduleProblem((100, 60), (Step((0,), (1,), uncounted=50),), (0,), (1,))
    assert head_lower_bound(saving, 160) == 110
    other = ScheduleProblem((100, 60), (Step((0,), (1,), reuses=(Reuse(0, 20),), uncounted=50),), (0,), (1,))
    assert head_lower_bound(other, 140) == 110


def test_a_step_that_counts_everything_holds_the_bound() -> None:
    steps = (Step((0,), (1,)), Step((1,), (2,), uncounted=30))
    problem = ScheduleProblem((100, 100, 60), steps, (0,), (2,))
    assert head_lower_bound(problem, 200) == 200


def test_one_order() -> None:
    chain = ScheduleProblem((1, 1, 1), (Step((0,), (1,)), Step((1,), (2,))), (0,), (2,))
    assert memory_graph(chain).has_one_order
    fork = ScheduleProblem((1, 1, 1), (Step((0,), (1,)), Step((0,), (2,))), (0,), (1, 2))
    assert not memory_graph(fork).has_one_order
