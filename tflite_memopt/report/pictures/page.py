"""One self-contained page of a document. It loads nothing, and can be read without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import printable
from ...version import __version__
from ..document import Cell, Document, Lines, folded
from .plot import render

Section = tuple[str, list[Cell], list[str]]
"""A title, lines, and blocks with a copy button."""


def html_of(document: Document) -> bytes:
    """Return the page of a document as one file in UTF-8."""
    return render(
        "page.html.jinja",
        page=document,
        above=list(_sections([block for block in document.lists if not block.is_below])),
        below=list(_sections([block for block in document.lists if block.is_below])),
        picture=None if document.picture is None else document.picture(),
        scale=max((bar.size for bar in document.bars), default=1),
        folded=folded,
        version=__version__,
    )


def _sections(lists: Sequence[Lines]) -> Iterator[Section]:
    """Yield the lines under each title, the first of each label after it if there are several."""
    for title in dict.fromkeys(block.title for block in lists):
        alike = [block for block in lists if block.title == title and (block.lines or block.code)]
        is_labeled = len({block.label for block in alike}) > 1
        lines = [
            folded(printable(f"{block.label}: {line}" if is_labeled and block.label and not number else line))
            for block in alike
            for number, line in enumerate(block.lines)
        ]
        code = [text for block in alike for text in (*block.commands, *block.code)]
        if lines or code:
            yield title, lines, code
