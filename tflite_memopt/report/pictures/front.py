"""The front of ``explore``: RAM against run time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..model import Exploration, FrontPoint
from ..words import in_words, percent
from .plot import Line, Mark, Plot, Scale

_NEAR = 1.5
"""Points that need at most this many times the RAM of the front are shown beside it."""


def front_plot(exploration: Exploration) -> Plot:
    """Return a circle per point, a line at the least RAM for each price, and the budget.

    The axes are scaled to the points; the original is omitted if it is far from them.
    """
    numbered = [*enumerate((exploration.before, *exploration.points))]
    most = max(point.total for _, point in numbered[1:] or numbered)
    shown = [(n, point) for n, point in numbered if n or len(numbered) == 1 or point.total <= _NEAR * most]
    given = exploration.choice.budget
    budget = [given] if given and exploration.choice.objective == "total" and given <= _NEAR * most else []
    sizes, prices = [*(point.total for _, point in shown), *budget], [_price(point) for _, point in shown]
    room, side = max(1, (max(sizes) - min(sizes)) // 10), max(0.5, (max(prices) - min(prices)) / 20)
    x = Scale(min(prices) - side, max(prices) + side)
    y = Scale(min(sizes) - room, max(sizes) + room, is_vertical=True)
    steps = [(x(_price(point)), y(point.total)) for point in _lowest([p for n, p in shown if n])]
    corners = [(at, height) for (_, height), (at, _) in pairwise(steps)]
    path = [corner for pair in zip(steps, corners, strict=False) for corner in pair] + steps[-1:]
    lines = [Line(*a, *b, "least") for a, b in pairwise(path)]
    lines += [Line(0, y(size), 100, y(size), "budget", f"budget: {in_words(size)}") for size in budget]
    marks = [
        Mark(x(_price(point)), y(point.total), _described(exploration, n, point), kind="" if n else "original")
        for n, point in shown
    ]
    x_ticks, y_ticks = x.ticks(5, " %"), y.ticks(5)
    return Plot("front", "", marks, lines, "run time added (estimated)", x_ticks, "RAM to reserve, bytes", y_ticks, {})


def _price(point: FrontPoint) -> float:
    return 100 * point.slowdown


def _lowest(points: list[FrontPoint]) -> Iterator[FrontPoint]:
    """Yield the points than which none needs less RAM for at most the same price."""
    least = None
    for point in sorted(points, key=lambda point: (point.slowdown, point.total)):
        if least is None or point.total < least:
            least = point.total
            yield point


def _described(exploration: Exploration, number: int, point: FrontPoint) -> str:
    return (
        f"{f'point {number}' if number else 'original'}: RAM {point.total:,} bytes, head {point.head:,}, "
        f"run time {percent(point.slowdown)}, multiply-accumulates {extra_macs(point, exploration.before)}, "
        f"{point.operators:,} operators, file {point.file_bytes:,} bytes; {point.limits or 'default options'}"
    )


def extra_macs(point: FrontPoint, before: FrontPoint) -> str:
    """Return the multiply-accumulates beyond those of the model as it came."""
    return percent((point.macs - before.macs) / max(1, before.macs))
