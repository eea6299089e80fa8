"""The command ``explore``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..options import Options
from .exit_codes import OVER_BUDGET
from .shared import (
    APPROXIMATE,
    EFFORT,
    FORCE,
    HTML,
    INPUTS,
    IO_TYPES,
    JOBS,
    JSON,
    KERNELS,
    OBJECTIVE,
    PLOT,
    QUIET,
    SAMPLES,
    SEED,
    TARGET,
    TFLM_SINCE,
    TIME_LIMIT,
    check_files,
    check_pictures,
    csv_option,
    only_one_format,
    pictures,
    progress_line,
    show,
)
from .types import ByteSize, ModelPath

if TYPE_CHECKING:
    from ..exploring import Explored
    from ..pipeline import Result
    from ..report.model import Exploration


@click.command()
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@click.option(
    "-o",
    "--output",
    type=ModelPath,
    metavar="OUT.tflite",
    help="Write the point that --budget picks, verified; without a budget the one that needs least.",
)
@click.option(
    "--budget",
    type=ByteSize(),
    metavar="SIZE",
    help="The RAM that you have, for example 64K, 64KiB or 0.5M. Picks the cheapest point that fits; when none fits, "
    "the nearest, and says what limits it and what would help. The exit code is then 3.",
)
@OBJECTIVE
@TARGET
@KERNELS
@IO_TYPES
@APPROXIMATE
@TFLM_SINCE
@EFFORT
@JOBS
@TIME_LIMIT
@SEED
@SAMPLES
@INPUTS
@JSON
@csv_option("point")
@HTML
@PLOT
@FORCE
@QUIET
def explore(
    source: Path,
    output: Path | None,
    html_path: Path | None,
    plot_path: Path | None,
    force: bool,
    quiet: bool | None,
    as_json: bool,
    as_csv: bool,
    **chosen: Any,
) -> None:
    """Show what RAM IN.tflite can need, and at which price in computation, operators and bytes of file.

    Each point is what `optimize` writes with the flags beside it and the other flags given here; a file that is
    written is proved as well.
    """
    from ..exploring import explore as run
    from ..io.files import write_files
    from ..report.exploration import with_reasons
    from ..report.pictures.front import exploration_page, front_plot

    only_one_format(as_json, as_csv)
    check_pictures(html_path, plot_path)
    check_files((output, html_path, plot_path), (source,), force)
    options = Options(**chosen)
    is_chosen = output is not None or options.budget is not None
    # It takes long enough that a pipe is told how far it is, too.
    with progress_line(bool(quiet)) as say:
        explored = run(source, options, say)
        # What does not fit is made as well: its report says what limits it.
        is_made = output is not None or explored.exploration.choice.fits is False
        result = _made(source, explored, output is not None, say) if is_made else None
    found = explored.exploration if result is None else with_reasons(explored.exploration, result.report)
    files = pictures(
        html_path, lambda: exploration_page(found, is_chosen), plot_path, lambda name: front_plot(name, found)
    )
    write_files(files if output is None or result is None else {output: result.model, **files})
    _print(found, is_chosen, as_json, as_csv)
    if output is not None and result is not None and not (as_json or as_csv):
        click.echo(f"{output}: {result.report.summary.headline}")
    if found.choice.fits is False:
        sys.exit(OVER_BUDGET)


def _made(source: Path, explored: Explored, is_proved: bool, say: Callable[[str], None]) -> Result:
    """The point that was picked, as ``optimize`` makes it."""
    from ..pipeline import optimize

    options = replace(explored.options[explored.exploration.choice.point], verify=is_proved)
    return optimize(source, options, lambda said: say(f"the point that was picked: {said}"))


def _print(exploration: Exploration, is_chosen: bool, as_json: bool, as_csv: bool) -> None:
    from ..report.csv_rows import points_csv
    from ..report.exploration import render_exploration
    from ..report.model import to_json

    if as_json:
        click.echo(to_json(exploration), nl=False)
    elif as_csv:
        click.echo(points_csv(exploration), nl=False)
    else:
        show(render_exploration(exploration, is_chosen))
