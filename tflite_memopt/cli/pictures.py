"""The options ``--html`` and ``--plot``, and the files that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .types import ModelPath

if TYPE_CHECKING:
    from ..memory.figures import ArenaMap

HTML = click.option(
    "--html",
    "html_path",
    type=ModelPath,
    metavar="R.html",
    help="Write a page with pictures of the memory: one file for any browser. Needs tflite-memopt[report].",
)
PLOT = click.option(
    "--plot",
    "plot_path",
    type=ModelPath,
    metavar="X.svg|X.png",
    help="Write the pictures as a file: memory over time and the arena, or the front. Needs tflite-memopt[report].",
)


def check_files(paths: Collection[Path | None], sources: tuple[Path, ...], force: bool) -> None:
    """Raise UsageError early, before any work, when one of the output files could not be written or drawn."""
    from ..io.files import check_target

    wanted = [path for path in paths if path is not None]
    if len({path.absolute() for path in wanted}) < len(wanted):
        raise click.UsageError("two outputs name the same file")
    for path in wanted:
        check_target(path, sources, force)


def check_pictures(html_path: Path | None, plot_path: Path | None) -> None:
    """Raise UsageError when a package that draws is missing, or when the plot's name says no kind of picture."""
    from ..report.extras import need
    from ..report.pictures.plot import check_plot

    if plot_path is not None:
        check_plot(plot_path.name)
    for package in ("altair", "vl_convert", "jinja2") if html_path or plot_path else ():
        need(package)


def arena_plot(arenas: Mapping[str, ArenaMap]) -> Callable[[str], bytes]:
    """What makes the plot of ``arenas``, by title, as a file of a name."""

    def plot(name: str) -> bytes:
        from ..report.pictures.plot import plot_of

        return plot_of(name, arenas)

    return plot


def pictures(
    html_path: Path | None,
    page: Callable[[], bytes],
    plot_path: Path | None = None,
    plot: Callable[[str], bytes] = lambda _: b"",
) -> dict[Path, bytes]:
    """The files that were asked for: the page, and the plot."""
    files = {}
    if html_path is not None:
        files[html_path] = page()
    if plot_path is not None:
        files[plot_path] = plot(plot_path.name)
    return files
