"""Charts as a picture file, for papers and READMEs."""

from __future__ import annotations

from collections.abc import Mapping

from ...memory.figures import ArenaMap
from ..extras import need
from .appearance import FILE
from .charts import Chart, arena_charts

_WIDTH = 420
_ROOM = 1.08


def plot_of(arenas: Mapping[str, ArenaMap]) -> bytes:
    """Memory over time and the arena, of models by title, on one scale."""
    alt = need("altair")
    top = round(_ROOM * max(arena.required for arena in arenas.values()))
    columns = [
        alt.vconcat(*(chart.properties(width=_WIDTH) for chart in _shown(arena, top)))
        .resolve_scale(color="independent")
        .properties(title=f"{title}: {arena.required:,} bytes of RAM")
        for title, arena in arenas.items()
    ]
    return picture_of(alt.hconcat(*columns).resolve_scale(color="independent"))


def picture_of(chart: Chart) -> bytes:
    """Return a chart as an SVG file."""
    svg: str = need("vl_convert").vegalite_to_svg(chart.configure(**FILE.config()).to_dict())
    return svg.encode()


def _shown(arena: ArenaMap, top: int) -> list[Chart]:
    charts = arena_charts(arena, top, FILE)
    return [charts["time"], charts["arena"]]
