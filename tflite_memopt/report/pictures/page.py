"""One self-contained page: sentences, pictures, tables, and the script that draws them. It loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...version import __version__
from ..extras import need
from .appearance import PAGE
from .charts import Chart, specification

_TEMPLATE = Path(__file__).parent / "page.html.jinja"


@dataclass(frozen=True)
class Lines:
    """A list of sentences under a title; left out where there are none."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Side:
    """One chart of a picture, with a title of its own where there are several."""

    name: str
    title: str
    chart: Chart


@dataclass(frozen=True)
class Picture:
    """Charts that are read together, and a text that says how."""

    title: str
    text: str
    sides: Sequence[Side]


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand on the right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table of cells in words; ``folded``: shown only when it is opened."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    text: str = ""
    folded: bool = False


@dataclass(frozen=True)
class SizeBar:
    """One arena as a bar: its head and its tail in bytes. Without either it is a chip's RAM of ``size`` bytes."""

    title: str
    size: int
    head: int = 0
    tail: int = 0


@dataclass(frozen=True)
class Page:
    """The content of a page, from top to bottom.

    ``facts``: conditions of the figures, by name. ``numbers``: the answer, each with its unit.
    ``bars``: the arena before and after, and the chip, on one scale. The first of ``pictures`` stands above ``lists``.
    """

    title: str
    headline: str
    lists: Sequence[Lines]
    pictures: Sequence[Picture]
    tables: Sequence[PageTable]
    facts: Sequence[tuple[str, str]] = ()
    numbers: Sequence[tuple[str, str]] = ()
    bars: Sequence[SizeBar] = ()


def made_for_firmware(target: str | None, kernels: str) -> tuple[tuple[str, str], ...]:
    """Return the firmware that figures hold for, and who made them."""
    return ("target", target or "any"), ("kernels", kernels), ("tflite-memopt", __version__)


def html_of(page: Page) -> bytes:
    """Return the page as one file in UTF-8. Raises UsageError when the packages that draw are not installed."""
    jinja, convert = need("jinja2"), need("vl_convert")
    sides = [side for picture in page.pictures for side in picture.sides]
    charts = {
        side.name: convert.vegalite_to_vega(_clean(specification(side.chart, PAGE, "container"))) for side in sides
    }
    environment = jinja.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    shown: Mapping[str, Any] = {
        **{each.name: getattr(page, each.name) for each in fields(Page)},
        "scale": max((bar.size for bar in page.bars), default=1),
        "version": __version__,
        "charts": charts,
        # Text that would end the script element early is escaped, anywhere in the library's strings.
        "library": convert.javascript_bundle().replace("</script", "<\\/script"),
    }
    text: str = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(page=shown)
    return text.encode("utf-8", "replace")


def _clean(value: Any) -> Any:
    """Return the same with text that can be written as UTF-8: names in a file need not be text."""
    if isinstance(value, dict):
        return {key: _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value
