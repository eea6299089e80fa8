"""The command ``analyze``."""

from __future__ import annotations

from pathlib import Path

import click

from .shared import KERNELS, TARGET, show
from .types import ModelPath


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@TARGET
@KERNELS
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every operator's working set included.")
def analyze(source: Path, target: str | None, kernels: str, as_json: bool) -> None:
    """Show what IN.tflite needs as it stands: arena, bounds, and the operators where memory peaks."""
    from ..pipeline import analyze as run
    from ..report.model import to_json

    analysis = run(source, kernels, target)
    if as_json:
        click.echo(to_json(analysis), nl=False)
        return
    from ..report.console import render_analysis

    show(render_analysis(analysis))
