"""The front of ``explore`` in pictures: RAM against each price, for a page and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..exploration import choice_lines, extra_macs, headline_of
from ..extras import need
from ..model import Exploration, FrontPoint
from ..words import in_words, percent
from .appearance import FILE, PAGE, Appearance
from .charts import Chart, described, inline_chart
from .page import Column, Lines, Page, PageTable, Picture, Side, html_of, made_for_firmware
from .plot import picture_of
from .rows import Row

_RAM = {"total": "RAM to reserve, bytes", "head": "head, bytes"}
_PRICES = {
    "slowdown": ("RAM against run time", "run time added (estimated), %"),
    "operators": ("RAM against operators", "operators"),
    "file_bytes": ("RAM against flash", "bytes of file"),
}
_TEXTS = {
    "slowdown": "A circle is a way to run the model; a hollow one is the original, omitted if it needs far more. "
    "The line is the least memory at each price; points above it are better in another respect."
}
"""How the pictures are read: above the first."""
_HEIGHT, _WIDTH = 220, 420
_NEAR = 1.5
"""Points that need at most this many times the RAM of the front are shown beside it."""


def exploration_page(exploration: Exploration, is_chosen: bool) -> bytes:
    """Return the page of ``explore``; ``is_chosen``: whether a point was asked for."""
    pictures = [
        Picture(
            title,
            _TEXTS.get(price, ""),
            [Side(f"{price}-{ram}", ram, front_chart(exploration, ram, price, PAGE)) for ram in _RAM],
        )
        for price, (title, _) in _PRICES.items()
    ]
    lists = (
        Lines("Selected point", tuple(choice_lines(exploration)) if is_chosen else ()),
        Lines("Warnings", exploration.warnings),
    )
    title = f"{exploration.model or 'model'}: RAM against its price"
    made_for = made_for_firmware(exploration.target, exploration.kernels)
    return html_of(Page(title, headline_of(exploration), lists, pictures, (_table(exploration),), made_for))


def front_plot(exploration: Exploration) -> bytes:
    """Return all pictures as one SVG file."""
    alt = need("altair")
    columns = [
        alt.vconcat(*(front_chart(exploration, ram, price, FILE).properties(width=_WIDTH) for price in _PRICES))
        for ram in _RAM
    ]
    return picture_of(alt.hconcat(*columns))


def front_chart(exploration: Exploration, ram: str, price: str, look: Appearance) -> Chart:
    """One circle per point, a line through those of which none needs less for as much of this price, and the budget.

    The axes are scaled to the points: the model as it came is left out where it is far from them.
    """
    alt, (now, *points) = need("altair"), _rows(exploration, ram, price)
    most = max((row["ram"] for row in points), default=now["ram"])
    is_near = not points or now["ram"] <= _NEAR * most
    rows = [now, *points] if is_near else points
    budget = exploration.choice.budget if exploration.choice.objective == ram else None
    limits = [budget] if budget is not None and budget <= _NEAR * most else []
    sizes = [*(row["ram"] for row in rows), *limits]
    room = max(1, (max(sizes) - min(sizes)) // 10)
    x = alt.X(
        "price:Q",
        axis=alt.Axis(title=_PRICES[price][1], format=",.1~f" if price == "slowdown" else ",d", tickCount=5),
        scale=alt.Scale(zero=False, padding=12),
    )
    y = alt.Y(
        "ram:Q",
        axis=alt.Axis(title=_RAM[ram], format=",d", tickCount=5),
        scale=alt.Scale(domain=[min(sizes) - room, max(sizes) + room], nice=False),
    )
    line = inline_chart(list(_lowest(points))).mark_line(interpolate="step-after", color=look.ink, aria=False)
    layers = [line.encode(x=x, y=y)]
    for some, color in (([now] if is_near else [], "transparent"), (points, look.bar)):
        if not some:
            continue
        circles = inline_chart(some).mark_circle(size=90, fill=color, stroke=look.ink, strokeWidth=1, opacity=1)
        layers.append(circles.encode(x=x, y=y, **described(alt, ("number", "ram", "price", "limits"))))
    for limit in limits:
        there = inline_chart([{"ram": limit, "said": f"budget: {in_words(limit)}"}])
        words = there.mark_text(align="left", dx=4, dy=-6, fill=look.ink, aria=False)
        layers.append(there.mark_rule(stroke=look.ink, strokeDash=[5, 3], aria=False).encode(y="ram:Q"))
        layers.append(words.encode(x=alt.value(0), y="ram:Q", text="said:N"))
    return alt.layer(*layers).properties(height=_HEIGHT)


def _rows(exploration: Exploration, ram: str, price: str) -> list[Row]:
    points = (exploration.before, *exploration.points)
    return [_row(exploration, number, point, ram, price) for number, point in enumerate(points)]


def _row(exploration: Exploration, number: int, point: FrontPoint, ram: str, price: str) -> Row:
    name = f"point {number}" if number else "now"
    macs = extra_macs(point, exploration.before)
    paid: Any = getattr(point, price)
    return {
        "number": number,
        "ram": getattr(point, ram),
        "price": 100 * paid if price == "slowdown" else paid,
        "limits": point.limits or "as it came",
        "said": f"{name}: RAM {point.total:,} bytes, head {point.head:,}, run time {percent(point.slowdown)}, "
        f"multiply-accumulates {macs}, {point.operators:,} operators, "
        f"file {point.file_bytes:,} bytes; {point.limits or 'as it came'}",
    }


def _lowest(rows: list[Row]) -> Iterator[Row]:
    """Yield the least RAM for at most so much of the price."""
    least = None
    for row in sorted(rows, key=lambda each: (each["price"], each["ram"])):
        if least is None or row["ram"] < least:
            least = row["ram"]
            yield row


def _table(exploration: Exploration) -> PageTable:
    numbers = ("", "RAM to reserve", "head", "run time", "multiply-accumulates", "operators", "bytes of file")
    columns = (*(Column(title, True) for title in numbers), Column("found with"), Column("stripes"))
    rows = [
        (
            str(number) if number else "now",
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
