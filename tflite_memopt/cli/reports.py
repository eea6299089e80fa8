"""The option ``--report``: files in the format of their suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from .types import FilePath

Makers = Mapping[str, Callable[[], bytes]]
"""Functions that make a report, by file suffix."""

_FORMATS = {
    ".json": "everything, for programs",
    ".html": "a page for any browser, one file",
    ".svg": "the picture alone",
}
_DRAWN = (".html", ".svg")


class _ReportPath(FilePath):
    """A file whose name ends with one of ``endings``. The packages that draw it must be installed."""

    def __init__(self, endings: Sequence[str]) -> None:
        super().__init__(path_type=Path)
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from ..report.extras import need

        path = super().convert(value, param, ctx)
        if path.suffix not in self._endings:
            self.fail(f"{path}: the name must end with {_either(self._endings)}", param, ctx)
        if path.suffix in _DRAWN:
            need("jinja2")
        return path


def report_option(*endings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option of a command that writes reports of these formats."""
    known = ", ".join(f"{each} ({_FORMATS[each]})" for each in endings)
    drawn = [each for each in endings if each in _DRAWN]
    needed = f" {_either(drawn)} needs tflite-memopt[report]." if drawn else ""
    return click.option(
        "--report",
        "reports",
        type=_ReportPath(endings),
        multiple=True,
        metavar="FILE",
        help=f"Write a report in the format of the file name: {known}. Repeat for more.{needed}",
    )


def reports_of(paths: Sequence[Path], makers: Makers) -> dict[Path, bytes]:
    """Return the bytes of each file that was asked for."""
    return {path: makers[path.suffix]() for path in paths}


def _either(endings: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
