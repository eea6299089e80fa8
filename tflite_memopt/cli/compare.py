"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import Options
from .shared import (
    FORCE,
    HTML,
    JSON,
    KERNELS,
    QUIET,
    SEED,
    TARGET,
    check_files,
    check_pictures,
    csv_option,
    only_one_format,
    pictures,
    progress_line,
    show,
    time_limit_option,
)
from .types import ModelPath


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option(
    "--schedulers",
    default="all",
    show_default=True,
    metavar="A,B",
    help="Methods for the order of operators: names with commas between them, or all.",
)
@click.option(
    "--planners",
    default="all",
    show_default=True,
    metavar="A,B",
    help="Methods for the places of tensors: names with commas between them, or all.",
)
@TARGET
@KERNELS
@time_limit_option(60.0, "each method may take")
@SEED
@JSON
@csv_option("method")
@HTML
@FORCE
@QUIET
def compare(
    source: Path,
    schedulers: str,
    planners: str,
    as_json: bool,
    as_csv: bool,
    html_path: Path | None,
    force: bool,
    quiet: bool | None,
    **chosen: Any,
) -> None:
    """Show the published methods side by side on IN.tflite: every scheduler, and every planner on the best order."""
    from ..io.files import write_files
    from ..measuring import compare as run
    from ..report.model import to_json
    from ..report.pictures.pages import comparison_page

    only_one_format(as_json, as_csv)
    check_pictures(html_path, None)
    check_files((html_path,), (source,), force)
    names = [[name.strip() for name in text.split(",")] for text in (schedulers, planners)]
    with progress_line(quiet) as say:
        comparison = run(source, names[0], names[1], Options(**chosen), say)
    write_files(pictures(html_path, lambda: comparison_page(comparison)))
    if as_json:
        click.echo(to_json(comparison), nl=False)
        return
    if as_csv:
        from ..report.csv_rows import methods_csv

        click.echo(methods_csv(comparison), nl=False)
        return
    from ..report.console import render_comparison

    show(render_comparison(comparison))
