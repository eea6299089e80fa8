"""The command ``verify``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..options import RUNTIMES, Options
from .exit_codes import NO
from .shared import QUIET, SAMPLES, SEED, progress_line, show
from .types import ModelPath


@click.command()
@click.argument("first", metavar="A.tflite", type=ModelPath)
@click.argument("second", metavar="B.tflite", type=ModelPath)
@click.option("--inputs", type=ModelPath, metavar="X.npz", help="Your own inputs, arrays by input name.")
@SAMPLES
@SEED
@click.option(
    "--runtime", type=click.Choice([*RUNTIMES, "all"]), default="all", show_default=True, help="Where to run."
)
@QUIET
def verify(first: Path, second: Path, inputs: Path | None, samples: int, seed: int, runtime: str, quiet: bool) -> None:
    """Run A.tflite and B.tflite on the same inputs and compare every output.

    Exits with 0 when all runtimes that can run A find them equal, with 1 when one finds a difference or
    when none can run A.
    """
    from ..pipeline import verify as run
    from ..report.console import render_verdicts

    runtimes = RUNTIMES if runtime == "all" else (runtime,)
    options = Options(inputs=inputs, samples=samples, seed=seed, runtimes=runtimes)
    verdicts = run(first, second, options, progress_line(quiet))
    show(render_verdicts(verdicts))
    for name, verdict in verdicts.items():
        if verdict.equal is False:
            click.echo(f"{name}: {verdict.reason}", err=True)
    words = [verdict.equal for verdict in verdicts.values()]
    if False in words or True not in words:
        sys.exit(NO)
