"""The front of ``explore`` in pictures: RAM against run time, operators, and flash, on a page and as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ..exploration import choice_lines, extra_macs, headline_of
from ..model import Exploration, FrontPoint
from ..words import change_in_percent, in_words, percent
from .page import Column, Lines, Page, PageTable, Picture, Tile, firmware_of, html_of
from .plot import Line, Mark, Plot, Scale, svg_of

_PRICES: Mapping[str, tuple[str, str, str]] = {
    "slowdown": ("RAM against run time", "run time added (estimated)", " %"),
    "operators": ("RAM against operators", "operators", ""),
    "file_bytes": ("RAM against flash", "size of the file, bytes", ""),
}
_TEXT = (
    "A circle is a way to run the model; a hollow one is the original, omitted if it needs far more. The line is the "
    "least RAM at each price; points above it are better in another respect."
)
_NEAR = 1.5
"""Points that need at most this many times the RAM of the front are shown beside it."""


def exploration_page(exploration: Exploration, is_chosen: bool) -> bytes:
    """Return the page of ``explore``; ``is_chosen``: whether a point was requested."""
    before, least = exploration.before.total, min((each.total for each in exploration.points), default=0)
    lists = (
        Lines("Selected point", tuple(choice_lines(exploration)) if is_chosen else ()),
        Lines("Warnings", exploration.warnings),
    )
    page = Page(
        title=f"{exploration.model or 'model'}: RAM against its price",
        headline=headline_of(exploration),
        lists=lists,
        picture=Picture("RAM against its price", _TEXT, [front_plot(exploration, price) for price in _PRICES]),
        tables=(_table(exploration),),
        facts=firmware_of(exploration.target, exploration.kernels),
        tiles=(Tile("RAM, at least", f"{least:,} bytes", f"was {before:,} ({change_in_percent(before, least)})"),),
    )
    return html_of(page)


def front_file(exploration: Exploration) -> bytes:
    """Return all pictures as one SVG file."""
    return svg_of([[front_plot(exploration, price)] for price in _PRICES])


def front_plot(exploration: Exploration, price: str) -> Plot:
    """Return a circle per point, a line at the least RAM for each price, and the budget.

    The axes are scaled to the points; the original is omitted if it is far from them.
    """
    title, x_title, unit = _PRICES[price]
    numbered = [*enumerate((exploration.before, *exploration.points))]
    most = max(point.total for _, point in numbered[1:] or numbered)
    shown = [(n, point) for n, point in numbered if n or len(numbered) == 1 or point.total <= _NEAR * most]
    is_limited = exploration.choice.objective == "total" and (exploration.choice.budget or most + 1) <= _NEAR * most
    budget = [exploration.choice.budget or 0] if is_limited else []
    sizes, prices = [*(point.total for _, point in shown), *budget], [_price(point, price) for _, point in shown]
    room, side = max(1, (max(sizes) - min(sizes)) // 10), max(0.5, (max(prices) - min(prices)) / 20)
    x = Scale(min(prices) - side, max(prices) + side)
    y = Scale(min(sizes) - room, max(sizes) + room, is_vertical=True)
    steps = [(x(_price(point, price)), y(point.total)) for point in _lowest([p for n, p in shown if n], price)]
    corners = [(at, height) for (_, height), (at, _) in pairwise(steps)]
    path = [each for pair in zip(steps, corners, strict=False) for each in pair] + steps[-1:]
    lines = [Line(*a, *b, "least") for a, b in pairwise(path)]
    lines += [Line(0, y(size), 100, y(size), "budget", f"budget: {in_words(size)}") for size in budget]
    marks = [
        Mark(x(_price(point, price)), y(point.total), _said(exploration, n, point), kind="" if n else "original")
        for n, point in shown
    ]
    return Plot(price, title, marks, lines, x_title, x.ticks(5, unit), "RAM to reserve, bytes", y.ticks(5), {}, 220)


def _price(point: FrontPoint, price: str) -> float:
    return 100 * point.slowdown if price == "slowdown" else float(getattr(point, price))


def _lowest(points: list[FrontPoint], price: str) -> Iterator[FrontPoint]:
    """Yield the points than which none needs less RAM for at most the same price."""
    least = None
    for point in sorted(points, key=lambda each: (_price(each, price), each.total)):
        if least is None or point.total < least:
            least = point.total
            yield point


def _said(exploration: Exploration, number: int, point: FrontPoint) -> str:
    return (
        f"{f'point {number}' if number else 'original'}: RAM {point.total:,} bytes, head {point.head:,}, "
        f"run time {percent(point.slowdown)}, multiply-accumulates {extra_macs(point, exploration.before)}, "
        f"{point.operators:,} operators, file {point.file_bytes:,} bytes; {point.limits or 'default options'}"
    )


def _table(exploration: Exploration) -> PageTable:
    numbers = ("", "RAM to reserve", "head", "run time", "multiply-accumulates", "operators", "bytes of file")
    columns = (*(Column(title, True) for title in numbers), Column("options"), Column("stripes"))
    rows = [
        (
            str(number) if number else "original",
            f"{point.total:,}",
            f"{point.head:,}",
            percent(point.slowdown),
            extra_macs(point, exploration.before),
            f"{point.operators:,}",
            f"{point.file_bytes:,}",
            point.limits,
            "; ".join(point.stripes),
        )
        for number, point in enumerate((exploration.before, *exploration.points))
    ]
    return PageTable("In figures", columns, rows)
