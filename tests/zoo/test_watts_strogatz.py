"""Random wiring: a simple acyclic graph with as many edges as the ring it came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.zoo_networks.watts_strogatz import small_world

probabilities = st.floats(0, 1)
seeds = st.integers(0, 2**32)


@given(vertices=st.integers(6, 40), half=st.integers(1, 2), probability=probabilities, seed=seeds)
def test_simple_acyclic_and_as_many_edges_as_the_ring(vertices: int, half: int, probability: float, seed: int) -> None:
    edges = small_world(vertices, 2 * half, probability, seed)
    assert len(set(edges)) == len(edges) == vertices * half
    assert all(0 <= low < high < vertices for low, high in edges)
    assert edges == small_world(vertices, 2 * half, probability, seed)


@given(vertices=st.integers(6, 40), seed=seeds)
def test_without_rewiring_it_is_the_ring(vertices: int, seed: int) -> None:
    ring = {(vertex, (vertex + distance) % vertices) for vertex in range(vertices) for distance in (1, 2)}
    assert small_world(vertices, 4, 0, seed) == sorted((min(edge), max(edge)) for edge in ring)


def test_most_edges_move_at_the_papers_probability() -> None:
    ring, moved = set(small_world(32, 4, 0, 1)), set(small_world(32, 4, 0.75, 1))
    assert 0.5 * 64 < len(moved - ring) <= 0.95 * 64


@pytest.mark.parametrize("neighbors", [0, 3, 8])
def test_impossible_rings_are_refused(neighbors: int) -> None:
    with pytest.raises(ValueError, match="even number of neighbors"):
        small_world(8, neighbors, 0.5, 1)
