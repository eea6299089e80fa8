"""Improve an order where its peak is: the integer program on a window of steps around it, wider when that fails.

This goes beyond the paper, whose Algorithm 2 stops when the part with the peak is solved. A better order may cross
the cuts between parts; windows lie where the peak is, whatever the cuts were.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ...graph.search_limit import SearchLimit
from ..wiring import Wiring
from .partition import parts_of
from .section import Section

GROWTH = 1.5
"""How much wider the next window is when one brings nothing."""


def improve_in_windows(
    wiring: Wiring,
    order: Sequence[int],
    fences: Sequence[int],
    width: int,
    bound: int,
    limit: SearchLimit,
    pruning: bool,
) -> tuple[tuple[int, ...], list[Section]]:
    """Start with windows of ``width`` steps, until the peak is ``bound``, nothing helps, or time is up.

    ``fences`` are the steps, from 0 to the end, at which every order has run the same operators; no window needs to
    reach beyond them, and one between two of them proves a bound. Returns the order, and the windows solved on the way.
    """
    deadline = time.perf_counter() + limit.time_limit
    order, size, solved = tuple(order), width, list[Section]()
    while True:
        peak, step = _peak_step(wiring, order)
        left = deadline - time.perf_counter()
        if peak <= bound or left <= 0:
            break
        low, high = _between(fences, step)
        start, end = _window(low, high, step, size)
        section = _section(wiring, order, start, end, exact=(start, end) == (low, high))
        if not section.solved:
            section.solve(replace(limit, time_limit=left), pruning)
            solved.append(section)
        if section.exact:
            bound = max(bound, section.lower_bound)
        if section.peak < peak:
            order, size = (*order[:start], *section.order, *order[end:]), width
        elif section.exact:
            break
        else:
            size = int(GROWTH * size) + 1
    return order, solved


def _peak_step(wiring: Wiring, order: Sequence[int]) -> tuple[int, int]:
    """The largest working set of an operator in bytes, and the first step that has it."""
    executed, alive, needs = 0, wiring.alive_at_start, list[int]()
    for v in order:
        need, alive = wiring.run(executed, alive, v)
        needs.append(need)
        executed |= 1 << v
    peak = max(needs)
    return peak, needs.index(peak)


def _between(fences: Sequence[int], step: int) -> tuple[int, int]:
    """The two fences around a step."""
    return max(f for f in fences if f <= step), min(f for f in fences if f > step)


def _window(low: int, high: int, step: int, size: int) -> tuple[int, int]:
    """``size`` steps around one, all of ``[low, high)`` if there are no more."""
    start = max(low, min(step - size // 2, high - size))
    return start, min(high, start + size)


def _section(wiring: Wiring, order: Sequence[int], start: int, end: int, exact: bool) -> Section:
    done = sum(1 << v for v in order[:start])
    inside = order[start:end]
    (part,) = parts_of(wiring, [done, done | sum(1 << v for v in inside)])
    return Section(part, exact, inside)
