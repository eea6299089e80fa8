"""Plots as data, which the templates draw: inside a page, or as an SVG file of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any

_RAMP = 0.75
"""The share of the hues from the first layer to the last, so that the ends differ."""
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Mark:
    """A rectangle from its top left corner, or a circle around it if it has no size; in percent of the plot."""

    x: float
    y: float
    said: str
    """The description, for the pointer, the keyboard, and screen readers."""
    width: float = 0.0
    height: float = 0.0
    kind: str = ""
    """Classes of the style, which set outline and color."""
    fill: str | None = None
    group: str = ""
    """The description of the block that the mark belongs to; marks of one block stand together."""


@dataclass(frozen=True)
class Line:
    """A line between two points in percent of the plot, with words above its right end."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str = "limit"
    text: str = ""


Ticks = Sequence[tuple[float, str]]
"""Places in percent, with their labels."""


@dataclass(frozen=True)
class Plot:
    """Marks and lines between two axes; ``height`` is in pixels. ``legend``: kinds of marks, with their meaning."""

    name: str
    title: str
    marks: Sequence[Mark]
    lines: Sequence[Line]
    x_title: str
    x_ticks: Ticks
    y_title: str
    y_ticks: Ticks
    legend: Mapping[str, str]
    height: int = 320


@dataclass(frozen=True)
class Scale:
    """Numbers from ``low`` to ``high`` on 0 to 100 percent, backwards for a vertical axis."""

    low: float
    high: float
    is_vertical: bool = False

    def __call__(self, value: float) -> float:
        share = 100 * (value - self.low) / max(self.high - self.low, 1e-9)
        return round(100 - share if self.is_vertical else share, 3)

    def ticks(self, most: int = 6, unit: str = "") -> Ticks:
        """Return at most ``most`` round numbers and their places."""
        step = max((self.high - self.low) / most, 1e-9)
        power = 10.0 ** floor(log10(step))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
        first = -floor(-self.low / step)
        numbers = (step * n for n in range(first, floor(self.high / step) + 1))
        return [(self(number), f"{number:,.10g}{unit}") for number in numbers]


def ramp(count: int) -> list[str]:
    """Return a color per layer, from blue to yellow, neighbors in two shades."""
    hues = (0.6 + _RAMP * number / max(1, count - 1) for number in range(count))
    colors = [hls_to_rgb(hue % 1, 0.56 if number % 2 else 0.66, 0.6) for number, hue in enumerate(hues)]
    return [f"#{round(255 * r):02x}{round(255 * g):02x}{round(255 * b):02x}" for r, g, b in colors]


def render(template: str, **values: Any) -> bytes:
    """Return a template of this folder with these values, in UTF-8."""
    import jinja2

    loader = jinja2.FileSystemLoader(_FOLDER)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text: str = environment.get_template(template).render(RAMP=ramp(8), **values)
    return text.encode("utf-8", "replace")  # names in a file need not be text


_WIDTH, _LEFT, _TOP, _BELOW, _LEGEND_ROW = 520, 70, 50, 60, 18


def svg_of(plots: Sequence[Plot]) -> bytes:
    """Return plots side by side as an SVG file."""
    height = max(_TOP + plot.height + _BELOW + _LEGEND_ROW * len(plot.legend) for plot in plots)
    placed = [(_LEFT + _WIDTH * number, _TOP, plot) for number, plot in enumerate(plots)]
    size = (_WIDTH * len(plots), height)
    return render("file.svg.jinja", placed=placed, size=size, width=_WIDTH - _LEFT - 20, row=_LEGEND_ROW)
