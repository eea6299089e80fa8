"""The command ``batch``."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .exit_codes import INTERRUPTED, NOT_EQUAL
from .optimize import optimize as optimize_command
from .optimize import options_from_flags
from .shared import QUIET, progress_line
from .types import ByteSize, ModelPath

_OF_OPTIMIZE = frozenset(each.name for each in optimize_command.params) - {
    *("source", "output", "ties", "inputs", "force", "replay", "reports", "receipt", "quiet", "verbose"),
    *("parts", "feed"),
}
"""Options of ``optimize`` that mean something for models that are not known one by one."""


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
    help="How many models at the same time. [default: one for each processor that may be used]",
)
@click.option(
    "--worker-memory",
    type=ByteSize(),
    metavar="SIZE",
    help="How much memory each of them may take; Dask restarts a worker that takes more. [default: an equal part of "
    "the machine's]",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the workers of this Dask cluster in place of this machine: tcp://HOST:PORT of its scheduler. They "
    "need tflite-memopt too.",
)
@click.option("--no-models", is_flag=True, help="Keep the reports only, and no optimized models.")
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
    """Optimize all MODELS: files, folders, or patterns in quotes. Results go to folder OUT, one line of JSON each.

    A model that fails costs only itself, and its line says why. The same command goes on with a run that was ended: it
    skips models that are done under the same options. Exits with 1 when a model has no result.
    """
    from ..batch.cluster import open_cluster
    from ..batch.find import find_models
    from ..batch.results import DONE, RESULTS, Results, refuse_mixing
    from ..batch.run import run_batch
    from ..pipeline import optimize

    if cluster is not None and (workers, worker_memory) != (None, None):
        raise click.UsageError("--cluster has workers of its own: leave --jobs and --worker-memory out")
    options, models = replace(options_from_flags(**chosen), jobs=1), find_models(patterns)
    if not no_models:
        refuse_mixing(folder, models)
    try:
        with open_cluster(workers, worker_memory, cluster) as client, progress_line(quiet) as say:
            results = Results(folder, options)

            def watch(done: int, total: int, line: dict[str, Any]) -> None:
                say(f"{done:,} of {total:,}")
                if line["status"] != DONE:
                    click.echo(f"{line['model']}: {line['status']}: {line['error']}", err=True)

            counts = run_batch(client, optimize, models, options, results, not no_models, watch)
    except KeyboardInterrupt:
        click.echo("tflite-memopt: interrupted; the same command goes on", err=True)
        sys.exit(INTERRUPTED)
    said = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    click.echo(f"{len(models):,} models: {said}. See: {folder / RESULTS}")
    if counts.total() > counts[DONE]:
        sys.exit(NOT_EQUAL)
