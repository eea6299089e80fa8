"""The command ``batch``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..errors import printable
from .exit_codes import INTERRUPTED, NOT_EQUAL
from .flags import GroupedCommand, flags_of, options_from
from .shared import QUIET, file_option, progress_line
from .types import Size, WholeNumber


@click.command(cls=GroupedCommand, short_help="Optimize many models.")
@flags_of("batch")
@click.argument("patterns", metavar="MODELS...", nargs=-1, required=True)
@file_option("-o", "--output", "folder", required=True, metavar="OUT", help="Folder for results and models.")
@click.option(
    "-j",
    "--jobs",
    "workers",
    type=WholeNumber(min=1),
    metavar="N",
    help="Number of models to process in parallel. [default: one per available processor]",
)
@click.option(
    "--worker-memory",
    type=Size,
    metavar="SIZE",
    help="Memory limit per worker; Dask restarts a worker that exceeds it. [default: an equal share of the "
    "machine's memory]",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the workers of this Dask cluster instead of this machine: tcp://HOST:PORT of its scheduler. "
    "Workers need tflite-memopt.",
)
@click.option("--no-models", is_flag=True, help="Write reports only, no optimized models.")
@click.option(
    "--estimate",
    is_flag=True,
    help="Only estimate the RAM after optimization, in a fraction of a second per model. Writes no models.",
)
@QUIET
def batch(
    patterns: tuple[str, ...],
    folder: Path,
    workers: int | None,
    worker_memory: int | None,
    cluster: str | None,
    no_models: bool,
    estimate: bool,
    quiet: bool | None,
    **flags: Any,
) -> None:
    """Optimize all MODELS: files, folders, or patterns in quotes. Results go to folder OUT, one line of JSON per file.

    A failure affects only that model; its line has the reason. The same command continues an interrupted run: it skips
    models that are done under the same options and whose result is still whole. Exits with 1 if a model has no result.
    """
    from ..batch.cluster import open_cluster
    from ..batch.find import find_models
    from ..batch.results import DONE, RESULTS, Results, refuse_mixing
    from ..batch.run import run_batch
    from ..costs.cost import cost_under
    from ..report.words import counted
    from ..run.pipeline import optimize

    if cluster is not None and (workers, worker_memory) != (None, None):
        raise click.UsageError("--cluster has its own workers: omit --jobs and --worker-memory")
    options, models, keeps_models = options_from(flags), find_models(patterns), not (no_models or estimate)
    refuse_mixing(folder, models, keeps_models)
    work = partial(cost_under, depth="estimate") if estimate else optimize
    try:
        with open_cluster(workers, worker_memory, cluster) as client, progress_line(quiet) as say:
            results = Results(folder, options, keeps_models, estimate)

            def watch(done: int, total: int, line: dict[str, Any]) -> None:
                say(f"{done:,} of {total:,}")
                if line["status"] != DONE:
                    click.echo(f"{printable(line['model'])}: {line['status']}: {line['error']}", err=True)
                elif line.get("warning"):
                    click.echo(f"{printable(line['model'])}: {line['warning']}", err=True)

            counts, before = run_batch(client, work, models, options, results, watch)
    except KeyboardInterrupt:
        click.echo("tflite-memopt: interrupted; run the same command to continue", err=True)
        sys.exit(INTERRUPTED)
    by_status = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    earlier = f" ({before:,} by an earlier run)" if before else ""
    different = len({model.content for model in models})
    alike = f" ({different:,} different)" if different < len(models) else ""
    click.echo(f"{counted(len(models), 'model')}{alike}: {by_status}{earlier}. See: {folder / RESULTS}")
    if counts.total() > counts[DONE]:
        sys.exit(NOT_EQUAL)
