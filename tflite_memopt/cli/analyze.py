"""The command ``analyze``."""

from __future__ import annotations

from pathlib import Path

import click

from .pictures import HTML, PLOT, check_files, check_pictures, pictures
from .shared import FORCE, JSON, KERNELS, TARGET, csv_option, only_one_format, show
from .types import ModelPath


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@TARGET
@KERNELS
@JSON
@csv_option("an operator")
@HTML
@PLOT
@FORCE
def analyze(
    source: Path,
    target: str | None,
    kernels: str,
    as_json: bool,
    as_csv: bool,
    html_path: Path | None,
    plot_path: Path | None,
    force: bool,
) -> None:
    """Show what IN.tflite needs as it stands: how much RAM, where most of it is needed, and what limits it."""
    from ..io.files import write_files
    from ..pipeline import analyze as run
    from ..report.model import to_json
    from ..report.pictures.pages import analysis_page

    only_one_format(as_json, as_csv)
    check_pictures(html_path, plot_path)
    check_files((html_path, plot_path), (source,), force)
    analysis = run(source, kernels, target)
    write_files(pictures(html_path, lambda: analysis_page(analysis), plot_path, {"now": analysis.arena}))
    if as_json:
        click.echo(to_json(analysis), nl=False)
        return
    if as_csv:
        from ..report.csv_rows import operators_csv

        click.echo(operators_csv(analysis.arena), nl=False)
        return
    from ..report.console import render_analysis

    show(render_analysis(analysis))
