"""A program in a picture: its parts side by side in the arena, as a page and as a file."""

from __future__ import annotations

from ..report.extras import need
from ..report.pictures.appearance import FILE, PAGE, Appearance
from ..report.pictures.charts import Chart, inline_chart
from ..report.pictures.page import Column, Page, PageTable, Picture, Side, html_of, made_for_firmware
from ..report.pictures.plot import picture_of
from ..report.pictures.rows import Row
from ..report.words import counted, percent
from .files import Feed, PartFile, Program

_HEIGHT, _STEP = 260, 48
_TEXT = (
    "From left to right the parts, one after another in the same bytes. At the bottom lie the tensors of a part, at "
    "the top TFLM's structures for it. The solid line is the arena, the dashed one what the model needs as one."
)


_ROWS = (
    "From left to right the calls of the first part, from top to bottom the rows of the image: each call takes a few. "
    "Where no row comes, line buffers are only filled or emptied."
)
_MOST_BLOCKS = 120
"""In a picture of calls: with more, some are shown as one."""


def program_page(program: Program) -> bytes:
    """One HTML file. Raises UsageError when the packages that draw are not installed."""
    slowdown = max(program.slowdown.values(), default=0.0)
    headline = (
        f"RAM {program.arena:,} bytes in {counted(len(program.parts), 'part')}, {program.whole_bytes:,} as one; "
        f"{percent(slowdown)} run time, making every interpreter included; {program.equality}"
    )
    columns = [
        Column("file"),
        *(Column(each, True) for each in ("operators", "tensors", "structures", "takes", "gives")),
    ]
    rows = [
        (part.file, *(f"{each:,}" for each in (part.operators, part.head, part.tail, *_sides(part))))
        for part in program.parts
    ]
    pictures: tuple[Picture, ...] = (
        Picture("The arena over time", _TEXT, (Side("parts", "", parts_chart(program, PAGE)),)),
    )
    if program.feed is not None:
        pictures += (Picture("Rows over time", _ROWS, (Side("rows", "", rows_chart(program.feed, PAGE)),)),)
    facts = made_for_firmware(program.target, program.kernels)
    title = f"{program.source or 'model'}: in parts"
    return html_of(Page(title, headline, (), pictures, (PageTable("In bytes", columns, rows),), facts))


def _sides(part: PartFile) -> tuple[int, int]:
    """Bytes that a part takes, and that it gives."""
    return sum(each.bytes for each in part.inputs), sum(each.bytes for each in part.outputs)


def parts_plot(program: Program) -> bytes:
    """The picture as an SVG file."""
    return picture_of(parts_chart(program, FILE).properties(width=_STEP * len(program.parts)))


def parts_chart(program: Program, look: Appearance) -> Chart:
    """A block for each part, with its tensors and its structures, and lines at the arena and at the model as one."""
    alt, arena = need("altair"), program.arena
    rows: list[Row] = []
    for number, part in enumerate(program.parts):
        for what, start, end in (("tensors", 0, part.head), ("structures", arena - part.tail, arena)):
            said = f"part {number}: {end - start:,} bytes of {what}"
            rows.append({"part": f"{number}", "start": start, "end": end, "what": what, "said": said})
    colors = alt.Scale(domain=["tensors", "structures"], range=[look.bar, look.gap])
    blocks = (
        inline_chart(rows)
        .mark_rect(stroke=look.ink, strokeWidth=0.5)
        .encode(
            x=alt.X("part:N", sort=None, axis=alt.Axis(title="part", labelAngle=0)),
            y=alt.Y("start:Q", axis=alt.Axis(title="bytes", format=",d", tickCount=6)),
            y2="end:Q",
            color=alt.Color("what:N", scale=colors, legend=alt.Legend(title=None, orient="top")),
            tooltip=[alt.Tooltip("said:N")],
            description=alt.Description("said:N"),
        )
    )
    lines = [
        inline_chart([{"bytes": size}]).mark_rule(stroke=look.ink, strokeDash=dash, aria=False).encode(y="bytes:Q")
        for size, dash in ((arena, [1, 0]), (program.whole_bytes, [5, 3]))
    ]
    return alt.layer(blocks, *lines).properties(height=_HEIGHT)


def rows_chart(feed: Feed, look: Appearance) -> Chart:
    """A block for the rows of the image that each call takes, or each few calls."""
    alt, rows = need("altair"), list[Row]()
    step = -(-feed.calls // _MOST_BLOCKS)
    for call in range(0, feed.calls, step):
        end = min(feed.calls, call + step)
        first, last = (min(feed.height, max(0, at * feed.rows - feed.lead)) for at in (call, end))
        said = f"calls {call} to {end - 1}: rows {first} to {last - 1}" if last > first else f"call {call}: no row"
        rows.append({"call": call, "end": end, "first": first, "last": last, "said": said})
    blocks = (
        inline_chart(rows)
        .mark_rect(stroke=look.ink, strokeWidth=0.5, color=look.bar)
        .encode(
            x=alt.X("call:Q", axis=alt.Axis(title="calls", format="d")),
            x2="end:Q",
            y=alt.Y("first:Q", scale=alt.Scale(reverse=True), axis=alt.Axis(title="rows", format=",d", tickCount=6)),
            y2="last:Q",
            tooltip=[alt.Tooltip("said:N")],
            description=alt.Description("said:N"),
        )
    )
    return blocks.properties(height=_HEIGHT)
