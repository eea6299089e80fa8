"""How much orders differ: the peaks of random ones.

Source: SERENITY (Ahn et al., MLSys 2020), Figure 3.
"""

from __future__ import annotations

import random

from ..graph.bit_sets import bits
from .memory_graph import memory_graph
from .problem import ScheduleProblem


def peaks_of_random_orders(problem: ScheduleProblem, count: int, seed: int) -> tuple[int, ...]:
    """Peaks in bytes of ``count`` random orders, smallest first.

    At each step one of the operators that can run is drawn, each with the same chance. That is not the same as drawing
    each order with the same chance, which would need the number of orders.
    """
    graph, source = memory_graph(problem), random.Random(seed)
    return tuple(sorted(graph.peak(random_order(graph.needs, graph.feeds, source)) for _ in range(count)))


def random_order(needs: tuple[int, ...], feeds: tuple[int, ...], source: random.Random) -> list[int]:
    """One order of the vertices that wait for ``needs`` and are waited for by ``feeds``, both as bit sets."""
    missing = [some.bit_count() for some in needs]
    ready = [v for v, count in enumerate(missing) if not count]
    order = []
    while ready:
        at = source.randrange(len(ready))
        ready[at], ready[-1] = ready[-1], ready[at]
        order.append(ready.pop())
        for later in bits(feeds[order[-1]]):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return order
