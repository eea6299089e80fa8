"""Colors and type of the charts: for a page, where they follow light and dark mode, and for a file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ROLES = {
    "input": "input of the model",
    "output": "output of the model",
    "inner": "between operators",
    "view": "a view of its input",
    "in-place": "overwrites its input",
    "overlap": "overwrites a part of its input",
    "scratch": "scratch of a kernel",
    "tail": "TFLM's own structures (the tail)",
}
"""The kinds of rectangles in the arena, with their names in the legend and their colors."""
_OKABE_ITO = ("#e69f00", "#009e73", "#56b4e9", "#f0e442", "#cc79a7", "#d55e00", "#999999", "#c8c8c8")
"""Eight colors that people with any color vision tell apart (Okabe and Ito, 2008), without black."""


@dataclass(frozen=True)
class Appearance:
    """``ink`` of words and lines, ``quiet`` of axes, ``paper`` behind them, ``bar`` and ``gap`` of bytes.

    ``roles``: of rectangles in the arena, by the keys of ``ROLES``.
    """

    ink: str
    quiet: str
    paper: str
    bar: str
    gap: str
    roles: dict[str, str]

    def config(self) -> dict[str, Any]:
        """Return the configuration of a Vega-Lite chart."""
        words = {"labelColor": self.ink, "titleColor": self.ink, "labelFontSize": 11, "titleFontSize": 11}
        return {
            "background": self.paper,
            "font": "system-ui, sans-serif",
            "view": {"stroke": self.quiet},
            "axis": {**words, "gridColor": self.quiet, "domainColor": self.quiet, "tickColor": self.quiet},
            "legend": words,
            "title": {"color": self.ink, "fontSize": 13, "anchor": "start"},
            "text": {"color": self.ink, "fontSize": 11},
        }


PAGE = Appearance(
    "var(--ink)", "var(--quiet)", "transparent", "var(--bar)", "var(--gap)", {role: f"var(--{role})" for role in ROLES}
)
FILE = Appearance("#1a1a1a", "#d0d0d0", "#ffffff", "#0072b2", "#b9d9ec", dict(zip(ROLES, _OKABE_ITO, strict=True)))
