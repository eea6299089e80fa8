"""Charts as Vega-Lite specifications, drawn with altair: memory over time, the arena, operators, methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...memory.figures import ArenaMap
from ..extras import need
from ..model import Comparison, MethodUse
from .appearance import ROLES, Appearance
from .rows import Row, step_rows, tensor_rows

Chart = Any
"""An altair chart; the package is loaded on first use."""
_HEIGHTS = {"time": 200, "arena": 320, "macs": 140}


def arena_charts(arena: ArenaMap, top: int, look: Appearance) -> dict[str, Chart]:
    """Return the charts of one model by name: ``time``, ``arena``, ``macs``; the axis of bytes goes up to ``top``."""
    return {
        "time": memory_over_time(arena, top, look),
        "arena": arena_map_chart(arena, top, look),
        "macs": macs_chart(arena, look),
    }


def memory_over_time(arena: ArenaMap, top: int, look: Appearance) -> Chart:
    """One bar per operator: bytes in use, gaps below the highest byte, and the tail at the end of the arena."""
    alt = need("altair")
    colors = {"in use": look.bar, "gaps": look.gap, ROLES["tail"]: look.roles["tail"]}
    fill = _legend(alt, "part", colors)
    boxes = (
        inline_chart(step_rows(arena))
        .mark_rect(stroke=None)
        .encode(
            x=_time(alt, arena),
            x2="end:Q",
            y=_bytes(alt, "bytes", top, "bytes"),
            y2=alt.datum(0),
            color=fill,
            **described(alt, _STEP),
        )
    )
    gaps = (
        inline_chart([{**row, "part": "gaps"} for row in step_rows(arena) if row["reach"] > row["bytes"]])
        .mark_rect(stroke=None, aria=False)
        .encode(x="start:Q", x2="end:Q", y="bytes:Q", y2="reach:Q", color=fill)
    )
    return (boxes + gaps + _tail_box(alt, arena, fill, "part") + _ends(alt, arena, look)).properties(
        height=_HEIGHTS["time"]
    )


def arena_map_chart(arena: ArenaMap, top: int, look: Appearance) -> Chart:
    """One rectangle per tensor: the steps in which it is alive, and its bytes of the arena; above them the tail."""
    alt, rows = need("altair"), tensor_rows(arena)
    present = {"tail", *(row["role"] for row in rows)}
    colors = {words: look.roles[role] for role, words in ROLES.items() if role in present}
    fill = _legend(alt, "role", colors)
    boxes = (
        inline_chart([{**row, "role": ROLES[row["role"]]} for row in rows])
        .mark_rect(stroke=look.ink, strokeWidth=0.5, fillOpacity=0.75)
        .encode(
            x=_time(alt, arena),
            x2="end:Q",
            y=_bytes(alt, "offset", top, "address in the arena"),
            y2="top:Q",
            color=fill,
            **described(alt, _TENSOR),
        )
    )
    return alt.layer(boxes, _tail_box(alt, arena, fill, "role"), _ends(alt, arena, look)).properties(
        height=_HEIGHTS["arena"]
    )


def _legend(alt: Any, field: str, colors: dict[str, str]) -> Any:
    """Return the color of a rectangle, and a legend of these colors alone."""
    scale = alt.Scale(domain=list(colors), range=list(colors.values()))
    legend = alt.Legend(title=None, orient="bottom", columns=2, columnPadding=20, labelLimit=260)
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def _tail_box(alt: Any, arena: ArenaMap, fill: Any, field: str) -> Chart:
    """TFLM's own structures, which stay from the first step to the last at the end of the arena."""
    size = sum(part.bytes for part in arena.tail)
    row = {
        "start": -1,
        "end": max(1, arena.end - 1),
        "low": arena.required - size,
        "high": arena.required,
        field: ROLES["tail"],
        "name": ROLES["tail"],
        "bytes": size,
        "said": f"{ROLES['tail']}: {size:,} bytes",
    }
    return (
        inline_chart([row])
        .mark_rect(stroke=None)
        .encode(x="start:Q", x2="end:Q", y="low:Q", y2="high:Q", color=fill, **described(alt, ("name", "bytes")))
    )


def macs_chart(arena: ArenaMap, look: Appearance) -> Chart:
    """One bar per operator: its multiply-accumulates."""
    alt = need("altair")
    return (
        inline_chart(step_rows(arena))
        .mark_rect(fill=look.bar, stroke=None)
        .encode(
            x=_time(alt, arena),
            x2="end:Q",
            y=alt.Y("macs:Q", axis=alt.Axis(title="multiply-accumulates", format="~s", tickCount=4)),
            y2=alt.datum(0),
            **described(alt, _STEP),
        )
        .properties(height=_HEIGHTS["macs"])
    )


def methods_chart(uses: Sequence[MethodUse], title: str, look: Appearance) -> Chart:
    """One bar per method, and a line at the lower bound."""
    alt = need("altair")
    rows = [
        {
            "method": use.method,
            "bytes": use.bytes,
            "bound": use.lower_bound,
            "said": f"{use.method}: {use.bytes:,} bytes, at least {use.lower_bound:,}, {use.seconds:.3f} seconds",
        }
        for use in uses
    ]
    order = alt.Y("method:N", sort=None, axis=alt.Axis(title=None))
    bars = (
        inline_chart(rows)
        .mark_bar(fill=look.bar)
        .encode(
            x=alt.X("bytes:Q", axis=alt.Axis(title=title, format=",d", tickCount=5)),
            y=order,
            **described(alt, ("method", "bytes", "bound")),
        )
    )
    bounds = inline_chart(rows).mark_tick(color=look.ink, thickness=2, aria=False).encode(x="bound:Q", y=order)
    return (bars + bounds).properties(height=24 * len(rows) + 10)


def comparison_charts(comparison: Comparison, look: Appearance) -> dict[str, Chart]:
    """Return the requested charts of ``compare`` by name."""
    kinds = {
        "schedulers": (comparison.schedulers, "peak in bytes"),
        "planners": (comparison.planners, "arena in bytes"),
        "objects": (comparison.shared_objects, "shared objects in bytes"),
    }
    return {name: methods_chart(uses, title, look) for name, (uses, title) in kinds.items() if uses}


def specification(chart: Chart, look: Appearance, width: int | str) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart, ``width`` in pixels or "container"."""
    made: dict[str, Any] = chart.properties(width=width, autosize=_FIT).configure(**look.config()).to_dict()
    return made


_FIT = {"type": "fit-x", "contains": "padding"}
_STEP = ("number", "operator", "output", "bytes", "reach", "macs")
_TENSOR = ("name", "shape", "type", "operator", "bytes", "offset", "role")
_COUNTED = ("number", "bytes", "reach", "macs", "offset", "first", "last", "bound", "peak", "share")
_NUMBERS = frozenset((*_COUNTED, "ram", "price"))


def inline_chart(rows: Sequence[Row]) -> Chart:
    """Return a chart whose data is part of it."""
    alt = need("altair")
    return alt.Chart(alt.InlineData(values=list(rows)))


def _time(alt: Any, arena: ArenaMap) -> Any:
    axis = alt.Axis(title="step", format="d", tickMinStep=1, grid=False)
    return alt.X("start:Q", axis=axis, scale=alt.Scale(domain=[-1, max(1, arena.end - 1)], nice=False))


def _bytes(alt: Any, field: str, top: int, title: str) -> Any:
    axis = alt.Axis(title=title, format=",d", tickCount=6)
    return alt.Y(f"{field}:Q", axis=axis, scale=alt.Scale(domain=[0, max(1, top)], nice=False))


def _ends(alt: Any, arena: ArenaMap, look: Appearance) -> Chart:
    """Return the lines at the ends of the head and of the arena, each with its bytes."""
    ends = (("head", arena.head), ("arena", arena.required))
    rows = [{"at": size, "said": f"{name}: {size:,} bytes"} for name, size in ends]
    line = inline_chart(rows).mark_rule(stroke=look.ink, strokeDash=[5, 3], aria=False).encode(y="at:Q")
    label = inline_chart(rows).mark_text(align="right", dy=-6, fill=look.ink, aria=False)
    return line + label.encode(x=alt.datum(max(1, arena.end - 1)), y="at:Q", text="said:N")


def described(alt: Any, fields: Sequence[str]) -> dict[str, Any]:
    """Tooltip for the mouse, and a sentence for keyboard and screen reader."""
    shown = [
        alt.Tooltip(f"{field}:Q", format=",") if field in _NUMBERS else alt.Tooltip(f"{field}:N") for field in fields
    ]
    return {"tooltip": shown, "description": alt.Description("said:N")}
