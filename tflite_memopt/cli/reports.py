"""The option ``--report``: files in the format of their suffix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .flags import flag
from .types import FilePath

if TYPE_CHECKING:
    from ..report.document import Document
    from ..report.model import Record

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


class _ResultPath(FilePath):
    """A file for a model: no name that ends as that of a report."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = super().convert(value, param, ctx)
        if path.suffix in _FORMATS:
            self.fail(f"{path}: a model is written there; for a report, --report {path}", param, ctx)
        return path


result_option = partial(flag, "-o", "--output", group="Result", type=_ResultPath(path_type=Path), metavar="OUT.tflite")
"""The decorator of the option for the model that a command writes."""


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


def reports_of(paths: Sequence[Path], record: Record, document: Document | None = None) -> dict[Path, bytes]:
    """Return the bytes of each file that was asked for: the record, or in other formats than JSON the document."""
    return {path: _made(path.suffix, record, document) for path in paths}


def _made(suffix: str, record: Record, document: Document | None) -> bytes:
    if suffix == ".json" or document is None:
        from ..report.model import to_json

        return to_json(record).encode()
    if suffix == ".html":
        from ..report.pictures.page import html_of

        return html_of(document)
    from ..report.pictures.plot import svg_of

    assert document.picture is not None
    return svg_of(document.picture().plots)
