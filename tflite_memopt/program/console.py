"""A program for people: the answer, the parts, what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table

from ..report.words import counted, percent
from .run import ProgramResult


def render_program(result: ProgramResult, folder: Path) -> RenderableType:
    """What ``optimize --parts`` shows."""
    return Group(*_lines(result, folder), _table(result))


def _lines(result: ProgramResult, folder: Path) -> Iterator[str]:
    program, report = result.program, result.whole.report
    is_head = report.objective == "head"
    what, before, after = "RAM", report.before.required_for_target, program.arena
    if is_head:
        what, before, after = "largest head", report.before.arena_bytes, program.head
    change = percent(after / before - 1) if before else ""
    slowdown = max(program.slowdown.values(), default=0.0)
    count = "as one model" if result.why_whole else f"in {counted(len(program.parts), 'part')}"
    yield (
        f"{what} {before:,} -> {after:,} bytes ({change}) {count} at {percent(slowdown)} run time, making every "
        f"interpreter included; {program.equality}"
    )
    if result.why_whole:
        yield f"limit  one part was written: {result.why_whole}"
        return
    if program.feed is not None:
        feed = program.feed
        yield f"feed   {feed.rows} rows a call, {feed.calls} calls for the {feed.height} rows of the image"
    if program.tflm_since is not None:
        yield f"needs  TFLM of {program.tflm_since} or later in the firmware"
    yield f"whole  as one model it needs {program.whole_bytes:,} bytes"
    if is_head:
        yield f"arena  with TFLM's own structures and what crosses cuts it needs {program.arena:,} bytes"
    if max(program.arena_bytes.values()) > program.arena:
        needs = ", ".join(
            f"{need:,} with {library}" for library, need in program.arena_bytes.items() if need > program.arena
        )
        yield f"kernels it needs {needs}: name a --target"
    yield f"next   tflite-memopt codegen {folder} -o firmware: the class Program, which runs the parts in one arena"


def _table(result: ProgramResult) -> Table:
    table = Table("file", "operators", "needs by itself, bytes", "takes", "gives")
    for part in result.program.parts:
        need = part.required_bytes.get("table", part.required_bytes.get("target", part.required_bytes["32"]))
        takes, gives = (sum(each.bytes for each in side) for side in (part.inputs, part.outputs))
        table.add_row(part.file, str(part.operators), f"{need:,}", f"{takes:,}", f"{gives:,}")
    return table
