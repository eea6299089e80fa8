"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import Options
from .shared import KERNELS, QUIET, SEED, TARGET, TIME_LIMIT, progress_line, show
from .types import ModelPath


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option("--schedulers", default="all", show_default=True, metavar="A,B", help="Methods for the order.")
@click.option("--planners", default="all", show_default=True, metavar="A,B", help="Methods for the offsets.")
@TARGET
@KERNELS
@TIME_LIMIT
@SEED
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@QUIET
def compare(source: Path, schedulers: str, planners: str, as_json: bool, quiet: bool, **chosen: Any) -> None:
    """Show the published methods side by side on IN.tflite: every scheduler, and every planner on the best order."""
    from ..pipeline import compare as run
    from ..report.model import to_json

    names = [[name.strip() for name in text.split(",")] for text in (schedulers, planners)]
    comparison = run(source, names[0], names[1], Options(**chosen), progress_line(quiet))
    if as_json:
        click.echo(to_json(comparison), nl=False)
        return
    from ..report.console import render_comparison

    show(render_comparison(comparison))
