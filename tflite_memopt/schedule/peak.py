"""The peak of an order, for methods: quicker than the checker, which must not share code with them."""

from __future__ import annotations

from collections.abc import Iterable

from .wiring import Wiring


def order_peak(wiring: Wiring, order: Iterable[int]) -> int:
    """Largest working set in bytes of a valid order, the graph's inputs before the first step included. O(n)."""
    problem = wiring.problem
    return max((sum(problem.sizes[t] for t in set(problem.inputs)), *step_needs(wiring, order)))


def step_needs(wiring: Wiring, order: Iterable[int]) -> list[int]:
    """Working set in bytes of each step of a valid order."""
    executed, alive = 0, wiring.alive_at_start
    needs = []
    for operator in order:
        need, alive = wiring.run(executed, alive, operator)
        executed |= 1 << operator
        needs.append(need)
    return needs
