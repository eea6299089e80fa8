"""The command ``analyze``."""

from __future__ import annotations

from pathlib import Path

import click

from .shared import JSON, KERNELS, TARGET, csv_option, only_one_format, show
from .types import ModelPath


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@TARGET
@KERNELS
@JSON
@csv_option("an operator")
def analyze(source: Path, target: str | None, kernels: str, as_json: bool, as_csv: bool) -> None:
    """Show what IN.tflite needs as it stands: how much RAM, where most of it is needed, and what limits it."""
    from ..pipeline import analyze as run
    from ..report.model import to_json

    only_one_format(as_json, as_csv)
    analysis = run(source, kernels, target)
    if as_json:
        click.echo(to_json(analysis), nl=False)
        return
    if as_csv:
        from ..report.csv_rows import operators_csv

        click.echo(operators_csv(analysis.arena), nl=False)
        return
    from ..report.console import render_analysis

    show(render_analysis(analysis))
