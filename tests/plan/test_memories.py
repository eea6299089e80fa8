"""Items over several memories: valid, within capacities, and close to what brute force finds."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError
from tflite_memopt.solvers.graph.limits import SearchLimit
from tflite_memopt.solvers.plan.memories import MemoriesProblem, check_memories, part_of, spread
from tflite_memopt.solvers.plan.methods import solve_within
from tflite_memopt.solvers.plan.problem import Item, PlanProblem, Relation

LARGE = 1 << 20


@st.composite
def problems(draw: st.DrawFn) -> MemoriesProblem:
    items = []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 5))
        items.append(Item(16 * draw(st.integers(1, 6)), start, start + draw(st.integers(1, 4))))
    relations = []
    if len(items) > 1 and draw(st.booleans()):
        first, second = draw(st.permutations(range(len(items))))[:2]
        relations.append(Relation(first, second, 0, draw(st.booleans())))
    traffic = tuple(draw(st.integers(0, 300)) for _ in items)
    capacity = 16 * draw(st.integers(0, 12))
    return MemoriesProblem(PlanProblem(tuple(items), tuple(relations)), traffic, (capacity, LARGE), (0, 1))


def least_by_brute_force(problem: MemoriesProblem) -> int:
    best = sum(problem.traffic)
    for fast in product((False, True), repeat=len(problem.plan.items)):
        chosen = [item for item, is_fast in enumerate(fast) if is_fast]
        slow = sum(problem.traffic[item] for item, is_fast in enumerate(fast) if not is_fast)
        if slow < best and solve_within(part_of(problem.plan, chosen), problem.capacities[0]) is not None:
            best = slow
    return best


@given(problem=problems())
@examples(150)
def test_it_is_valid_and_no_better_than_brute_force(problem: MemoriesProblem) -> None:
    found = spread(problem, SearchLimit())
    check_memories(problem, found)
    assert found.slow_bytes >= least_by_brute_force(problem)


def test_nearly_all_small_problems_are_solved_as_well_as_by_brute_force() -> None:
    rng, best = random.Random(7), 0
    for _ in range(200):
        spans = [(start, start + rng.randint(1, 4)) for start in (rng.randint(0, 5) for _ in range(rng.randint(2, 6)))]
        items = tuple(Item(16 * rng.randint(1, 6), start, end) for start, end in spans)
        traffic = tuple(rng.randint(0, 300) for _ in items)
        problem = MemoriesProblem(PlanProblem(items), traffic, (16 * rng.randint(1, 12), LARGE), (0, 1))
        best += spread(problem, SearchLimit()).slow_bytes == least_by_brute_force(problem)
    assert best >= 195


def test_three_memories_are_filled_from_the_fastest_on() -> None:
    items = tuple(Item(32, 0, 3) for _ in range(3))
    found = spread(MemoriesProblem(PlanProblem(items), (10, 30, 20), (32, 32, 32), (0, 1, 1)), SearchLimit())
    assert found.memories == (2, 0, 1)
    assert (found.used, found.slow_bytes) == ((32, 32, 32), 30)


def test_prices_count_by_memory() -> None:
    """What does not fit into the first two costs the third's price."""
    items = tuple(Item(32, 0, 3) for _ in range(3))
    found = spread(MemoriesProblem(PlanProblem(items), (10, 30, 20), (32, 32, 32), (0, 1, 5)), SearchLimit())
    assert (found.memories, found.slow_bytes) == ((2, 0, 1), 20 + 5 * 10)


def test_what_moves_little_goes_into_the_fast_memory_where_nothing_else_fits() -> None:
    items = (Item(64, 0, 4), Item(16, 0, 2))
    found = spread(MemoriesProblem(PlanProblem(items), (1, 50), (64, 16), (0, 1)), SearchLimit())
    assert (found.memories, found.slow_bytes) == ((0, 1), 50)


def test_what_does_not_fit_anywhere_is_refused() -> None:
    items = (Item(64, 0, 2), Item(64, 0, 2))
    with raises(InfeasibleError, ErrorKind.MEMORY, "memory 1", "48", "64"):
        spread(MemoriesProblem(PlanProblem(items), (1, 1), (64, 48), (0, 1)), SearchLimit())


def test_the_checker_sees_what_is_wrong() -> None:
    items = (Item(32, 0, 2), Item(32, 0, 2))
    problem = MemoriesProblem(PlanProblem(items), (5, 7), (32, 64), (0, 1))
    found = spread(problem, SearchLimit())
    changes: tuple[dict[str, Any], ...] = (
        *({"memories": (0, 0)}, {"slow_bytes": 4}, {"used": (16, 32)}),
        {"offsets": (0, 16 * 9)},
    )
    for change in changes:
        with pytest.raises(InfeasibleError):
            check_memories(problem, replace(found, **change))
