"""The option ``--report``: files in the format of their suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .types import FilePath

if TYPE_CHECKING:
    from ..report.document import Document

Makers = Mapping[str, Callable[[], bytes]]
"""Functions that make a report, by file suffix."""

_FORMATS = {
    ".json": "everything, for programs",
    ".html": "a page for any browser, one file",
    ".svg": "the picture alone",
}


class _ReportPath(FilePath):
    """A file whose name ends with one of ``endings``."""

    def __init__(self, endings: Sequence[str]) -> None:
        super().__init__(path_type=Path)
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = super().convert(value, param, ctx)
        if path.suffix not in self._endings:
            self.fail(f"{path}: the name must end with {' or '.join(self._endings)}", param, ctx)
        return path


def report_option(*endings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option of a command that writes reports of these formats."""
    known = ", ".join(f"{ending} ({_FORMATS[ending]})" for ending in endings)
    return click.option(
        "--report",
        "reports",
        type=_ReportPath(endings),
        multiple=True,
        metavar="FILE",
        help=f"Write a report in the format of the file name: {known}. Repeat for more.",
    )


def makers_of(document: Document, json: Callable[[], str]) -> Makers:
    """Return what makes each form of a document."""

    def page() -> bytes:
        from ..report.pictures.page import html_of

        return html_of(document)

    def picture() -> bytes:
        from ..report.pictures.plot import svg_of

        assert document.picture is not None
        return svg_of(document.picture().plots)

    return {".json": lambda: json().encode(), ".html": page, ".svg": picture}


def reports_of(paths: Sequence[Path], makers: Makers) -> dict[Path, bytes]:
    """Return the bytes of each file that was asked for."""
    return {path: makers[path.suffix]() for path in paths}
