"""A document: what a report says in sentences and tables, and its form on a terminal; page.py has that of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import rich.table
from rich.console import Group, RenderableType
from rich.text import Text

from ..errors import printable
from .pictures.plot import Plot

Kind = Literal["", "good", "bad"]
_STYLES = {"good": "green", "bad": "red", "warning": "yellow"}
_LONGEST = 300
"""Characters that are shown of a reason, such as the log of a runtime."""


@dataclass(frozen=True)
class Cell:
    """Words with a color; ``more``: what a page shows when it is opened."""

    text: str
    kind: Kind = ""
    more: str = ""


def folded(text: str) -> Cell:
    """Return words of which only the beginning is shown, if they are long."""
    return Cell(text) if len(text) <= _LONGEST else Cell(f"{text[: _LONGEST - 1]}…", more=text)


@dataclass(frozen=True)
class Lines:
    """Sentences: after a label on a terminal, under a title on a page. ``commands`` are to be copied.

    ``code`` is for pages alone; ``is_below``: below the picture.
    """

    label: str
    title: str
    lines: Sequence[str] = ()
    commands: Sequence[str] = ()
    code: Sequence[str] = ()
    is_below: bool = False


@dataclass(frozen=True)
class TextTable:
    """Rows of words between two texts; numbers are in columns that start with ``>``.

    ``is_open``: a page shows it at once; ``is_long``: pages alone have it; ``keeps_names``: names are never wrapped.
    """

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | Cell]] = ()
    text: str = ""
    more: str = ""
    is_open: bool = False
    is_long: bool = False
    keeps_names: bool = False
    strong: int | None = None
    """Index of the row to look at first."""


@dataclass(frozen=True)
class SizeBar:
    """One arena as a bar: its head and its tail in bytes. Without either it is a limit of ``size`` bytes."""

    title: str
    size: int
    head: int = 0
    tail: int = 0
    is_missed: bool = False


@dataclass(frozen=True)
class Tile:
    """One figure of the answer, large, with its unit; ``notes`` below it."""

    title: str
    figure: str
    notes: str
    kind: Kind = ""


@dataclass(frozen=True)
class Picture:
    """Plots under a heading, and a text that explains them."""

    heading: str
    text: str
    plots: Sequence[Plot]


@dataclass(frozen=True)
class Document:
    """A report for people: the answer in a line, sentences, tables; on a page also conditions, figures, and pictures.

    ``is_bad``: the answer is one to stop at. ``facts``: the conditions of the figures, by name.
    """

    title: str
    headline: str
    is_bad: bool = False
    lists: Sequence[Lines] = ()
    tables: Sequence[TextTable] = ()
    facts: Sequence[tuple[str, str]] = ()
    tiles: Sequence[Tile] = ()
    bars: Sequence[SizeBar] = ()
    picture: Callable[[], Picture] | None = None


def text_of(document: Document) -> RenderableType:
    """Return a document as rich prints it: the answer, red if it is bad, lines with each label once, and tables."""
    grid = rich.table.Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for label, line in labeled_lines(document):
        grid.add_row(Text("" if label == last else label, style="bold"), _text(line, _STYLES.get(label, "")))
        last = label or last
    head: list[RenderableType] = [_text(document.headline, "bold red" if document.is_bad else "bold"), Text(), grid]
    tables = [table for table in document.tables if not table.is_long]
    return Group(*head, *([Text(), tables_of(*tables)] if tables else []))


def labeled_lines(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the lines of a terminal with their labels; a command has none."""
    for block in document.lists:
        yield from ((block.label, line) for line in block.lines)
        yield from (("", command) for command in block.commands)


def tables_of(*tables: TextTable) -> RenderableType:
    """Return tables as rich prints them."""
    return Group(*(part for table in tables for part in _parts_of(table)))


def _parts_of(table: TextTable) -> Iterator[RenderableType]:
    if table.title and (table.rows or table.text):
        yield _text(table.title, "italic")
    if table.text:
        yield _text(table.text)
    if table.rows:
        made = rich.table.Table()
        for number, column in enumerate(table.columns):
            is_kept = table.keeps_names and not number
            side: Literal["left", "right"] = "right" if column[:1] == ">" else "left"
            made.add_column(column.removeprefix(">"), justify=side, overflow="fold", no_wrap=is_kept)
        for number, row in enumerate(table.rows):
            cells = (cell if isinstance(cell, Cell) else Cell(cell) for cell in row)
            style = "bold" if number == table.strong else None
            made.add_row(*(_text(cell.text, _STYLES.get(cell.kind, "")) for cell in cells), style=style)
        yield made
    if table.more:
        yield _text(table.more)


def _text(words: str, style: str = "") -> Text:
    """Return words as a terminal takes them, whatever names from a file are in them."""
    return Text(printable(words), style=style)
