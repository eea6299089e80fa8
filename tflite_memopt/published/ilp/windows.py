"""Improve an order where its peak is: the integer program on a window of steps around it, wider when that fails.

This goes beyond the paper, whose Algorithm 2 stops when the part with the peak is solved. A better order may cross
the cuts between parts; windows lie where the peak is, whatever the cuts were.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...solvers.graph.dependency_graph import set_of
from ...solvers.graph.limits import Allowance
from ...solvers.schedule.problem import MemoryGraph
from ..sub_problem import sub_problems
from .ordered_part import OrderedPart

GROWTH = 1.5
"""How much wider the next window is when one brings nothing."""


def improve_in_windows(
    graph: MemoryGraph,
    order: Sequence[int],
    cuts: Sequence[int],
    width: int,
    bound: int,
    seed: int,
    allowance: Allowance,
) -> tuple[tuple[int, ...], list[OrderedPart]]:
    """Start with windows of ``width`` steps, until the peak is ``bound``, nothing helps, or the allowance is spent.

    ``cuts`` are the steps, from 0 to the end, at which every order has run the same operators; no window needs to
    reach beyond them, and one between two of them proves a bound. Returns the order, and the windows solved on the way.
    """
    order, size, solved = tuple(order), width, list[OrderedPart]()
    while True:
        needs = graph.needs_along(order)
        peak = max(needs)
        if peak <= bound or allowance.is_spent():
            break
        low, high = _between(cuts, needs.index(peak))
        start, end = _window(low, high, needs.index(peak), size)
        part = _part(graph, order, start, end, exact=(start, end) == (low, high))
        if not part.solved:
            part.solve(seed, allowance)
            solved.append(part)
        if part.exact:
            bound = max(bound, part.lower_bound)
        if part.peak < peak:
            order, size = (*order[:start], *part.order, *order[end:]), width
        elif part.exact:
            break
        else:
            size = int(GROWTH * size) + 1
    return order, solved


def _between(cuts: Sequence[int], step: int) -> tuple[int, int]:
    """Return the two cuts around a step."""
    return max(cut for cut in cuts if cut <= step), min(cut for cut in cuts if cut > step)


def _window(low: int, high: int, step: int, size: int) -> tuple[int, int]:
    """``size`` steps around one, all of ``[low, high)`` if there are no more."""
    start = max(low, min(step - size // 2, high - size))
    return start, min(high, start + size)


def _part(graph: MemoryGraph, order: Sequence[int], start: int, end: int, exact: bool) -> OrderedPart:
    (part,) = sub_problems(graph, [set_of(order[:start]), set_of(order[:end])])
    return OrderedPart(part, exact, order[start:end])
