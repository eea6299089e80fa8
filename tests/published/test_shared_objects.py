"""Shared objects: every strategy against the checker, the bound, brute force and small known answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import raises
from tests.profiles import examples
from tflite_memopt.errors import ErrorKind, InfeasibleError, UsageError
from tflite_memopt.published.shared_objects import (
    BEST_OF,
    MOST_ITEMS,
    STRATEGIES,
    check_objects,
    object_sizes,
    positional_maxima,
    solve,
)
from tflite_memopt.solvers.graph.interval import intersect
from tflite_memopt.solvers.plan.problem import Item

Items = tuple[Item, ...]


@st.composite
def item_lists(draw: st.DrawFn, most: int = 20) -> Items:
    found = []
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, 10))
        found.append(Item(draw(st.integers(1, 12)), start, start + draw(st.integers(1, 5))))
    return tuple(found)


@pytest.mark.parametrize("name", STRATEGIES)
@given(items=item_lists())
@examples(80)
def test_every_strategy_keeps_the_rules(name: str, items: Items) -> None:
    found = solve(items, name)
    check_objects(items, found.objects)
    assert sum(positional_maxima(items)) == found.lower_bound <= found.total_bytes <= sum(i.size for i in items)
    assert STRATEGIES[name](items) == found.objects


@given(items=item_lists(most=6))
@examples(60)
def test_nothing_goes_below_brute_force(items: Items) -> None:
    totals = [sum(object_sizes(items, objects)) for objects in _assignments(items)]
    optimum = min(totals)
    assert sum(positional_maxima(items)) <= optimum
    assert all(solve(items, name).total_bytes >= optimum for name in STRATEGIES)
    assert solve(items).total_bytes == min(solve(items, name).total_bytes for name in BEST_OF)


@given(items=item_lists(most=6))
@examples(60)
def test_min_cost_flow_has_the_least_sum_of_growths(items: Items) -> None:
    best = min(_growths(items, objects) for objects in _assignments(items))
    assert _growths(items, STRATEGIES["min_cost_flow"](items)) == best


def _assignments(items: Items, chosen: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """All of them, objects numbered by first use."""
    if len(chosen) == len(items):
        yield chosen
        return
    item = items[len(chosen)]
    for number in range(max(chosen, default=-1) + 2):
        if not any(other == number and intersect(items[i], item) for i, other in enumerate(chosen)):
            yield from _assignments(items, (*chosen, number))


def _growths(items: Items, objects: tuple[int, ...]) -> int:
    """Each object's first size, and what every later user has more than the one before."""
    total, latest = 0, dict[int, int]()
    for index in sorted(range(len(items)), key=lambda i: items[i].start):
        total += max(0, items[index].size - latest.get(objects[index], 0))
        latest[objects[index]] = items[index].size
    return total


@given(items=item_lists())
@examples(60)
def test_positional_maxima_are_the_slow_ones(items: Items) -> None:
    profiles = [sorted((i.size for i in items if i.start <= s < i.end), reverse=True) for s in range(16)]
    longest = max(map(len, profiles))
    assert positional_maxima(items) == tuple(max(p[k] for p in profiles if k < len(p)) for k in range(longest))


CHAIN = (Item(32, 0, 2), Item(48, 1, 3), Item(16, 2, 4), Item(64, 3, 5), Item(24, 4, 6))


@pytest.mark.parametrize("name", ["greedy_by_size", "greedy_by_size_improved", "greedy_by_breadth"])
def test_a_chain_takes_two_objects(name: str) -> None:
    found = solve(CHAIN, name)
    assert sorted(found.sizes) == [48, 64] or sorted(found.sizes) == [32, 64]
    assert positional_maxima(CHAIN) == (64, 32)


def test_improved_prefers_the_object_that_idles_least() -> None:
    """Item 3 could use either object; the one that item 2 gave up later leaves the other for item 4."""
    items = (Item(10, 0, 1), Item(10, 0, 3), Item(10, 3, 4), Item(10, 1, 2), Item(10, 2, 4))
    found = solve(items, "greedy_by_size_improved")
    assert (found.total_bytes, found.optimal) == (20, True)
    assert found.objects[1] == found.objects[2]


def test_greedy_takes_the_closest_size() -> None:
    items = (Item(10, 0, 1), Item(50, 0, 1), Item(40, 1, 2), Item(12, 1, 2))
    assert STRATEGIES["greedy"](items) == (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("objects", "kind"), [((0, 0), ErrorKind.OVERLAP), ((0,), ErrorKind.COUNT), ((0, 2), ErrorKind.PLACE)]
)
def test_the_checker_refuses(objects: tuple[int, ...], kind: ErrorKind) -> None:
    with raises(InfeasibleError, kind):
        check_objects((Item(8, 0, 2), Item(8, 1, 3)), objects)


def test_an_unknown_name_is_refused() -> None:
    with raises(UsageError, ErrorKind.UNKNOWN, "min_cost_flow"):
        solve(CHAIN, "nothing")


def test_above_its_size_min_cost_flow_says_that_greedy_ran() -> None:
    items = tuple(Item(8 + n % 7, n, n + 2) for n in range(MOST_ITEMS + 1))
    found = solve(items, "min_cost_flow")
    assert found.objects == STRATEGIES["greedy"](items)
    assert found.method == "min_cost_flow (as greedy: more than 2,000 items)"
    assert solve(CHAIN, "min_cost_flow").method == "min_cost_flow"
