"""The command ``compare``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from .flags import flags_of, options_from
from .reports import report_option, reports_of
from .shared import FORCE, JSON, QUIET, check_files, progress_line, show
from .types import ModelPath

_methods = partial(click.option, default="all", show_default=True, metavar="A,B")


@click.command(short_help="Show the published methods side by side.")
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@_methods("--orders", "schedulers", help="Methods for the operator order, separated by commas, or all.")
@_methods("--offsets", "planners", help="Methods for the tensor offsets, separated by commas, or all.")
@click.option(
    "--with",
    "beside",
    multiple=True,
    type=click.Choice(["msf-cnn"]),
    help="Also show msf-CNN, which fuses blocks that begin at the input of the model: the least RAM for a limit on "
    "MACs, and the fewest MACs for a limit on RAM.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of each method.",
)
@flags_of("compare")
@report_option(".json")
@JSON
@FORCE
@QUIET
def compare(
    source: Path,
    schedulers: str,
    planners: str,
    beside: tuple[str, ...],
    time_limit: float,
    reports: tuple[Path, ...],
    as_json: bool,
    force: bool,
    quiet: bool | None,
    **flags: Any,
) -> None:
    """Show the published methods side by side on IN.tflite: every scheduler, and every planner on the best order."""
    from ..api import compare as run
    from ..model.io.files import write_files
    from ..report.model import to_json
    from ..solvers.schedule.methods import METHODS, lacking_package

    check_files(reports, (source,), force)
    names = [[name.strip() for name in text.split(",")] for text in (schedulers, planners)]
    lacking = [method for method in METHODS if lacking_package(method) is not None]
    if "all" in names[0] and lacking:
        click.echo(f"without {', '.join(lacking)}: run pip install 'tflite-memopt[published]' for it", err=True)
    with progress_line(quiet) as say:
        comparison = run(source, names[0], names[1], options_from(flags), say, beside, time_limit)
    write_files(reports_of(reports, comparison))
    if as_json:
        click.echo(to_json(comparison), nl=False)
        return
    from ..report.document import tables_of
    from ..report.documents import comparison_tables

    show(tables_of(*comparison_tables(comparison)))
