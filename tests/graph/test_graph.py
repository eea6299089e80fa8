"""Orders, transitive closure and cuts, each against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tflite_memopt.solvers.graph.dependency_graph import (
    DependencyGraph,
    bits,
    dependency_graph,
    first_ready_first,
    forced_cuts,
    kahn_order,
    reverse_post_order,
    set_of,
    sets_at,
    single_vertex_cuts,
    transitive_closure,
    union,
)

from .graphs import all_orders, graphs, is_order, needed


@given(st.lists(st.frozensets(st.integers(0, 200))))
def test_sets_as_integers(sets: list[frozenset[int]]) -> None:
    for numbers in sets:
        assert list(bits(set_of(numbers))) == sorted(numbers)
    assert set(bits(union(set_of(numbers) for numbers in sets))) == frozenset[int]().union(*sets)


@given(graphs())
def test_what_a_vertex_feeds_are_those_that_need_it(graph: DependencyGraph) -> None:
    for v in range(len(graph.needs)):
        assert set(bits(graph.feeds[v])) == {w for w in range(len(graph.needs)) if v in needed(graph, w)}
    assert set(bits(graph.everything)) == set(range(len(graph.needs)))


@given(graphs())
def test_kahn_takes_vertices_in_the_order_in_which_they_become_ready(graph: DependencyGraph) -> None:
    queue, taken = list[int](), set[int]()
    for _ in graph.needs:
        ready = [v for v in range(len(graph.needs)) if needed(graph, v) <= taken]
        queue += [v for v in ready if v not in queue]
        taken.add(queue[len(taken)])
    assert kahn_order(graph) == tuple(queue)
    assert is_order(graph, kahn_order(graph))


def test_what_waits_for_a_cycle_is_left_out() -> None:
    followers = {0: [1], 1: [2, 3], 2: [1], 3: [], 4: []}
    assert first_ready_first({0: 0, 1: 2, 2: 1, 3: 1, 4: 0}, followers.__getitem__) == (0, 4)


@given(graphs())
def test_reverse_post_order_is_a_depth_first_walk_backwards(graph: DependencyGraph) -> None:
    seen: list[int] = []
    finished: list[int] = []

    def walk(v: int) -> None:
        seen.append(v)
        for w in sorted(bits(graph.feeds[v]), reverse=True):
            if w not in seen:
                walk(w)
        finished.append(v)

    for v in reversed(range(len(graph.needs))):
        if not graph.needs[v]:
            walk(v)
    assert reverse_post_order(graph) == tuple(reversed(finished))
    assert is_order(graph, reverse_post_order(graph))


def test_a_chain_of_ten_thousand_needs_no_recursion() -> None:
    chain = dependency_graph([0, *(1 << v for v in range(9_999))])
    assert reverse_post_order(chain) == kahn_order(chain) == tuple(range(10_000))


@given(graphs(6))
def test_the_closure_is_what_all_orders_agree_on(graph: DependencyGraph) -> None:
    closure, orders = transitive_closure(graph), all_orders(graph)
    for v in range(len(graph.needs)):
        always = [set(order[: order.index(v)]) for order in orders]
        assert set(bits(closure.before[v])) == set.intersection(*always)
        later = [set(order[order.index(v) + 1 :]) for order in orders]
        assert set(bits(closure.after[v])) == set.intersection(*later)
        assert closure.order[closure.place[v]] == v
    assert closure.order in orders


@given(graphs(6))
def test_forced_cuts_are_the_steps_where_all_orders_have_run_the_same(graph: DependencyGraph) -> None:
    closure, orders, count = transitive_closure(graph), all_orders(graph), len(graph.needs)
    passed = [{frozenset(order[:step]) for order in orders} for step in range(count + 1)]
    assert forced_cuts(closure) == [step for step, sets in enumerate(passed) if len(sets) == 1]
    crossed = {step + 1 for step in range(count) if len({(order[step]) for order in orders}) == 1}
    assert single_vertex_cuts(closure) == sorted({0, count} | crossed)


@given(st.permutations(range(8)), st.sets(st.integers(1, 7)))
def test_the_sets_at_steps_are_prefixes(order: list[int], steps: set[int]) -> None:
    chosen = [0, *sorted(steps), 8]
    assert sets_at(order, chosen) == [set_of(order[:step]) for step in chosen]
    assert sets_at(order[3:], [0, 2, 5], set_of(order[:3])) == [set_of(order[:step]) for step in (3, 5, 8)]
