"""The command ``batch``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import printable
from .exit_codes import INTERRUPTED, NOT_EQUAL
from .optimize import optimize as optimize_command
from .optimize import options_from_flags
from .shared import QUIET, progress_line
from .types import ByteSize, ModelPath

_OF_OPTIMIZE = frozenset(each.name for each in optimize_command.params) - {
    *(
        "source",
        "output",
        "ties",
        "step",
        "slide",
        "inputs",
        "force",
        "replay",
        "reports",
        "as_json",
        "receipt",
        "quiet",
        "verbose",
    ),
    *("parts", "feed"),
}
"""Options of ``optimize`` that do not depend on one particular model."""


@click.command(
    short_help="Optimize many models.",
    params=[each for each in optimize_command.params if each.name in _OF_OPTIMIZE],
)
@click.argument("patterns", metavar="MODELS...", nargs=-1, required=True)
@click.option(
    "-o", "--output", "folder", required=True, type=ModelPath, metavar="OUT", help="Folder for results and models."
)
@click.option(
    "-j",
    "--jobs",
    "workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of models to process in parallel. [default: one per available processor]",
)
@click.option(
    "--worker-memory",
    type=ByteSize(),
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
@QUIET
def batch(
    patterns: tuple[str, ...],
    folder: Path,
    workers: int | None,
    worker_memory: int | None,
    cluster: str | None,
    no_models: bool,
    quiet: bool | None,
    **chosen: Any,
) -> None:
    """Optimize all MODELS: files, folders, or patterns in quotes. Results go to folder OUT, one line of JSON per file.

    A failure affects only that model; its line has the reason. The same command continues an interrupted run: it skips
    models that are done under the same options and whose result is still whole. Exits with 1 if a model has no result.
    """
    from ..batch.cluster import open_cluster
    from ..batch.find import find_models
    from ..batch.results import DONE, RESULTS, Results, refuse_mixing
    from ..batch.run import run_batch
    from ..run.pipeline import optimize

    if cluster is not None and (workers, worker_memory) != (None, None):
        raise click.UsageError("--cluster has its own workers: omit --jobs and --worker-memory")
    options, models = replace(options_from_flags(**chosen), jobs=1), find_models(patterns)
    refuse_mixing(folder, models, not no_models)
    try:
        with open_cluster(workers, worker_memory, cluster) as client, progress_line(quiet) as say:
            results = Results(folder, options, not no_models)

            def watch(done: int, total: int, line: dict[str, Any]) -> None:
                say(f"{done:,} of {total:,}")
                if line["status"] != DONE:
                    click.echo(f"{printable(line['model'])}: {line['status']}: {line['error']}", err=True)

            counts = run_batch(client, optimize, models, options, results, watch)
    except KeyboardInterrupt:
        click.echo("tflite-memopt: interrupted; run the same command to continue", err=True)
        sys.exit(INTERRUPTED)
    said = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    click.echo(f"{len(models):,} models: {said}. See: {folder / RESULTS}")
    if counts.total() > counts[DONE]:
        sys.exit(NOT_EQUAL)
