"""The command ``explore``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..solvers.graph.side_by_side import usable_cores
from .exit_codes import OVER_BUDGET
from .flags import GroupedCommand, flag, flag_of, flags_of, options_from, parts_option
from .reports import report_option, reports_of, result_option
from .shared import FORCE, JSON, QUIET, check_files, progress_line, show
from .types import ModelPath, Value, row_counts


@click.command(cls=GroupedCommand, short_help="Show the trade-off between RAM and run time.")
@click.argument("source", metavar="IN.tflite", type=ModelPath)
@result_option(help="Write the point that --budget selects, verified; without a budget, the smallest one.")
@flag_of(
    "budget",
    help="Available RAM, for example 64K, 64KiB, or 0.5M. Selects the fastest point that fits. If none fits, "
    "selects the nearest one, names its limits and options that would help, and exits with 3.",
)
@parts_option(
    help="Also show the model split into up to N models that run one after another in one arena; auto: as many as "
    "pay for themselves. Only optimize --parts writes them."
)
@flag(
    "--slide",
    "hops",
    group="Result",
    type=Value(row_counts),
    default="",
    metavar="HOP,...",
    help="Also show a window that moves along a signal by so many rows per call, for each number, within the budget.",
)
@flags_of("explore")
@report_option(".json", ".html", ".svg")
@JSON
@FORCE
@QUIET
def explore(
    source: Path,
    output: Path | None,
    reports: tuple[Path, ...],
    force: bool,
    quiet: bool | None,
    as_json: bool,
    parts: int | None,
    hops: tuple[int, ...],
    **flags: Any,
) -> None:
    """Show how little RAM IN.tflite can need, and the price in run time, operators, and file size.

    `optimize` writes a point with the options beside it and the other options given here. A file that explore writes is
    verified.
    """
    from ..model.io.files import write_files
    from ..report.document import text_of
    from ..report.exploration import exploration_document, with_reasons
    from ..report.model import to_json
    from ..run.explore import explore as run
    from ..run.pipeline import optimize

    check_files((output, *reports), (source, flags["inputs"]), force, output)
    if parts is not None and output is not None:
        raise click.UsageError("--parts only shows parts: to write them, run optimize with the options of the point")
    options = options_from(flags, jobs=usable_cores(), every_byte=True)
    is_chosen = output is not None or options.budget is not None
    # Runs are long enough to report progress in a pipe, too.
    with progress_line(bool(quiet)) as say:
        explored = run(source, options, say, 1 if parts is None else parts or None, hops)
        # A point that does not fit is made as well: its report names the limits.
        choice = explored.exploration.choice
        is_missed = choice.fits is False and explored.exploration.points[choice.point].parts == 1
        result = None
        if output is not None or is_missed:
            picked = replace(explored.options[choice.point], verify=output is not None)
            result = optimize(source, picked, lambda said: say(f"the point that was picked: {said}"))
    shown = explored.exploration if result is None else with_reasons(explored.exploration, result.report)
    document = exploration_document(shown, is_chosen)
    files = reports_of(reports, shown, document)
    write_files(files if output is None or result is None else {output: result.model, **files})
    if as_json:
        click.echo(to_json(shown), nl=False)
    else:
        show(text_of(document))
    if output is not None and result is not None and not as_json:
        click.echo(f"{output}: {result.report.summary.headline}")
    if shown.choice.fits is False:
        sys.exit(OVER_BUDGET)
