"""The front of ``explore`` in pictures: RAM against each price, for a page and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..exploration import choice_lines, extra_macs, headline_of
from ..extras import need
from ..model import Exploration, FrontPoint
from ..words import percent
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
_TEXT = (
    "A circle is a way to run the model, the hollow one what it is now. The line is the least memory that so much of "
    "the price buys: what lies above it is better in something else."
)
_HEIGHT, _WIDTH = 220, 420


def exploration_page(exploration: Exploration, is_chosen: bool) -> bytes:
    """The page of ``explore``; ``is_chosen``: whether a point was asked for."""
    pictures = [
        Picture(title, _TEXT, [Side(f"{price}-{ram}", ram, front_chart(exploration, ram, price, PAGE)) for ram in _RAM])
        for price, (title, _) in _PRICES.items()
    ]
    lists = (
        Lines("What was picked", tuple(choice_lines(exploration)) if is_chosen else ()),
        Lines("What to know", exploration.warnings),
    )
    title = f"{exploration.model or 'model'}: RAM against its price"
    made_for = made_for_firmware(exploration.target, exploration.kernels)
    return html_of(Page(title, headline_of(exploration), lists, pictures, (_table(exploration),), made_for))


def front_plot(ending: str, exploration: Exploration) -> bytes:
    """All pictures as one file: ``.svg`` or ``.png``."""
    alt = need("altair")
    columns = [
        alt.vconcat(*(front_chart(exploration, ram, price, FILE).properties(width=_WIDTH) for price in _PRICES))
        for ram in _RAM
    ]
    return picture_of(ending, alt.hconcat(*columns))


def front_chart(exploration: Exploration, ram: str, price: str, look: Appearance) -> Chart:
    """A circle a point, and a line through those of which none needs less for as much of this price."""
    alt, rows = need("altair"), _rows(exploration, ram, price)
    x = alt.X(
        "price:Q",
        axis=alt.Axis(title=_PRICES[price][1], format="," if price == "slowdown" else ",d", tickCount=5),
        scale=alt.Scale(zero=False, padding=12),
    )
    y = alt.Y("ram:Q", axis=alt.Axis(title=_RAM[ram], format=",d", tickCount=5), scale=alt.Scale(zero=False))
    lowest = list(_lowest([row for row in rows if row["number"] > 0]))
    line = inline_chart(lowest).mark_line(interpolate="step-after", color=look.ink, aria=False).encode(x=x, y=y)
    circles = [
        inline_chart([row for row in rows if (row["number"] > 0) == is_point])
        .mark_circle(size=90, fill=look.bar if is_point else "transparent", stroke=look.ink, strokeWidth=1, opacity=1)
        .encode(x=x, y=y, **described(alt, ("number", "ram", "price", "limits")))
        for is_point in (False, True)
    ]
    return (line + circles[0] + circles[1]).properties(height=_HEIGHT)


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
    """The least RAM for at most so much of the price."""
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
