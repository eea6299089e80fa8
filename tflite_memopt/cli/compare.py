"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import Options
from .shared import JSON, KERNELS, QUIET, SEED, TARGET, TIME_LIMIT, csv_option, only_one_format, progress_line, show
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
@TIME_LIMIT
@SEED
@JSON
@csv_option("a method")
@QUIET
def compare(
    source: Path, schedulers: str, planners: str, as_json: bool, as_csv: bool, quiet: bool | None, **chosen: Any
) -> None:
    """Show the published methods side by side on IN.tflite: every scheduler, and every planner on the best order."""
    from ..pipeline import compare as run
    from ..report.model import to_json

    only_one_format(as_json, as_csv)
    names = [[name.strip() for name in text.split(",")] for text in (schedulers, planners)]
    comparison = run(source, names[0], names[1], Options(**chosen), progress_line(quiet))
    if as_json:
        click.echo(to_json(comparison), nl=False)
        return
    if as_csv:
        from ..report.csv_rows import methods_csv

        click.echo(methods_csv(comparison), nl=False)
        return
    from ..report.console import render_comparison

    show(render_comparison(comparison))
