"""Charts as a picture file, for papers and READMEs."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UsageError
from ...memory.figures import ArenaMap
from ..extras import need
from .appearance import FILE
from .charts import Chart, arena_charts

KINDS = (".svg", ".png")
_WIDTH = 420
_ROOM = 1.08
_SHARPNESS = 2
"""Pixels of a .png for each point, so that words stay readable on a dense screen."""


def check_plot(name: str) -> None:
    """Raises UsageError when a file's name says no kind of picture that can be written."""
    if not name.endswith(KINDS):
        raise UsageError(f"--plot {name}: the name must end with {' or '.join(KINDS)}")


def plot_of(name: str, arenas: Mapping[str, ArenaMap]) -> bytes:
    """Memory over time and the arena, of models by title, on one scale."""
    alt = need("altair")
    top = round(_ROOM * max(arena.head for arena in arenas.values()))
    columns = [
        alt.vconcat(*(chart.properties(width=_WIDTH) for chart in _shown(arena, top))).properties(title=title)
        for title, arena in arenas.items()
    ]
    return picture_of(name, alt.hconcat(*columns))


def picture_of(name: str, chart: Chart) -> bytes:
    """A chart as a file of the kind that ``name`` says."""
    check_plot(name)
    convert, made = need("vl_convert"), chart.configure(**FILE.config()).to_dict()
    if name.endswith(".svg"):
        svg: str = convert.vegalite_to_svg(made)
        return svg.encode()
    png: bytes = convert.vegalite_to_png(made, scale=_SHARPNESS)
    return png


def _shown(arena: ArenaMap, top: int) -> list[Chart]:
    charts = arena_charts(arena, top, FILE)
    return [charts["time"], charts["arena"]]
