"""One self-contained page: sentences, pictures, and tables. It loads nothing, and can be read without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...version import __version__
from .plot import Plot, render


@dataclass(frozen=True)
class Cell:
    """Words with a color; ``more``: what is shown only when it is opened, such as the log of a runtime."""

    text: str
    kind: Literal["", "good", "bad"] = ""
    more: str = ""


_LONGEST = 160
"""Characters that are shown of a reason."""


def folded(text: str) -> Cell:
    """Return words of which only the beginning is shown, if they are long."""
    if len(text) <= _LONGEST:
        return Cell(text)
    return Cell(f"{text[:_LONGEST].rpartition(' ')[0]} …", more=text)


@dataclass(frozen=True)
class Lines:
    """A list of sentences under a title; omitted if empty. Each ``code`` block below them has a copy button."""

    title: str
    lines: Sequence[str | Cell]
    code: Sequence[str] = ()
    kind: Literal["", "bad"] = ""


@dataclass(frozen=True)
class PageTable:
    """A table of cells in words; a column with ``>`` is aligned right. ``is_folded``: shown only when it is opened.

    ``more``: a text below ``text`` that is shown only when it is opened.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    text: str = ""
    is_folded: bool = False
    more: str = ""


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
    kind: Literal["", "good", "bad"] = ""


@dataclass(frozen=True)
class Page:
    """The content of a page from top to bottom. ``facts``: the conditions of the figures, by name."""

    title: str
    headline: str
    lists: Sequence[Lines]
    heading: str
    """The title of the section with the plots; ``text`` explains them."""
    text: str
    plots: Sequence[Plot]
    tables: Sequence[PageTable]
    facts: Sequence[tuple[str, str]] = ()
    tiles: Sequence[Tile] = ()
    bars: Sequence[SizeBar] = ()
    below: Sequence[Lines] = ()
    """Lists below the picture."""
    is_bad: bool = False
    """Whether the headline is one to stop at: it does not fit, or computes wrongly."""


def firmware_of(target: str | None, kernels: str) -> tuple[tuple[str, str], ...]:
    """Return the firmware that figures hold for, and the version that computed them."""
    return ("target", target or "any"), ("kernels", kernels), ("tflite-memopt", __version__)


def html_of(page: Page) -> bytes:
    """Return the page as one file in UTF-8."""
    scale = max((bar.size for bar in page.bars), default=1)
    return render("page.html.jinja", page=page, scale=scale, version=__version__)
