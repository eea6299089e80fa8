"""Random wiring: the undirected graph of Watts and Strogatz, made acyclic by the order of its vertices."""

from __future__ import annotations

import numpy as np

Edges = list[tuple[int, int]]


def small_world(vertices: int, neighbors: int, probability: float, seed: int) -> Edges:
    """Edges ``(low, high)`` of WS(``vertices``, ``neighbors``, ``probability``), sorted.

    A ring where each vertex knows its ``neighbors`` nearest; then, in rounds of growing distance, the edge to the
    clockwise neighbor goes to a random vertex with ``probability``. Data flows from the lower vertex to the higher.
    Source: Xie et al., "Exploring Randomly Wired Neural Networks for Image Recognition", section 3.3.
    """
    if neighbors % 2 or not 0 < neighbors < vertices - 1:
        raise ValueError(f"an even number of neighbors below {vertices - 1} is needed, not {neighbors}")
    random = np.random.default_rng(seed)
    distances = range(1, neighbors // 2 + 1)
    edges = {_edge(vertex, (vertex + distance) % vertices) for distance in distances for vertex in range(vertices)}
    for distance in distances:
        for vertex in range(vertices):
            old = _edge(vertex, (vertex + distance) % vertices)
            if random.random() >= probability or old not in edges:
                continue
            free = [end for end in range(vertices) if end != vertex and _edge(vertex, end) not in edges]
            if free:  # Otherwise the vertex knows all others.
                edges.remove(old)
                edges.add(_edge(vertex, int(random.choice(free))))
    return sorted(edges)


def _edge(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)
