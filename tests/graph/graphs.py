"""Random graphs without cycles, and their orders by trying them all."""

from __future__ import annotations

from itertools import permutations

from hypothesis import strategies as st

from tflite_memopt.solvers.graph.dependency_graph import DependencyGraph, dependency_graph


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> DependencyGraph:
    """Vertices numbered in a random order, so that "as numbered" need not be one of the orders."""
    numbers = draw(st.permutations(range(draw(st.integers(0, most)))))
    needs = [0] * len(numbers)
    for place, v in enumerate(numbers):
        earlier = numbers[:place]
        some = draw(st.lists(st.sampled_from(earlier), max_size=3)) if earlier else []
        needs[v] = sum(1 << u for u in set(some))
    return dependency_graph(needs)


def needed(graph: DependencyGraph, v: int) -> set[int]:
    """What vertex v waits for, as numbers."""
    return {u for u in range(len(graph.needs)) if graph.needs[v] >> u & 1}


def is_order(graph: DependencyGraph, order: tuple[int, ...]) -> bool:
    """Whether every vertex comes once, after all that it needs."""
    after_needs = all(needed(graph, v) <= set(order[:place]) for place, v in enumerate(order))
    return sorted(order) == list(range(len(graph.needs))) and after_needs


def all_orders(graph: DependencyGraph) -> list[tuple[int, ...]]:
    """Every order, for up to 6 vertices."""
    return [order for order in permutations(range(len(graph.needs))) if is_order(graph, order)]
