"""The command ``batch``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .exit_codes import INTERRUPTED, NOT_EQUAL
from .grouped import GroupedCommand
from .optimize import optimize as optimize_command
from .optimize import options_from_flags
from .shared import QUIET
from .types import ByteSize, ModelPath

if TYPE_CHECKING:
    from ..batch.job import ModelOutcome
    from ..batch.run import BatchState, Watch

_OF_OPTIMIZE = frozenset(each.name for each in optimize_command.params) - {
    *("source", "output", "pins", "ties", "inputs", "runner", "keep_failures", "all_kernels", "explain"),
    *("force", "replay", "reports", "as_json", "quiet", "verbose", "jobs", "help_all", "parts", "feed"),
}
"""Options of ``optimize`` that mean something for models that are not known one by one."""
_LINE_SECONDS = 5.0
"""Between two lines of progress in a pipe."""


def _processors() -> int:
    from ..batch.machine import usable_processors

    return usable_processors()


@click.command(
    cls=GroupedCommand,
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
    default=_processors,
    show_default="one for each processor that may be used",
    metavar="N",
    help="How many models at the same time, each in a process of its own.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run on the workers of a Dask cluster: tcp://HOST:PORT of its scheduler. They need tflite-memopt too.",
)
@click.option(
    "--shared-storage",
    "is_shared",
    is_flag=True,
    help="All workers see the models and OUT under the same paths: send paths to them, and no bytes.",
)
@click.option("--resume", is_flag=True, help="Go on with OUT: skip models that have a row under the same options.")
@click.option("--retry-failed", is_flag=True, help="With --resume: try models again that crashed or took too much.")
@click.option("--force", is_flag=True, help="Replace the results that are in OUT, models and all.")
@click.option("--no-models", is_flag=True, help="Keep the reports only, and no optimized models.")
@click.option(
    "--model-seconds",
    type=click.FloatRange(min=0.1),
    default=900.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one model may take in all; then it is written down as a timeout.",
)
@click.option(
    "--worker-memory",
    type=ByteSize(),
    metavar="SIZE",
    help="How much memory one model may take, with all its processes. [default: an equal part of 80% of the machine's, "
    "and what does not fit that runs alone at the end]",
)
@QUIET
def batch(
    patterns: tuple[str, ...],
    folder: Path,
    workers: int,
    cluster: str | None,
    resume: bool,
    retry_failed: bool,
    force: bool,
    is_shared: bool,
    no_models: bool,
    model_seconds: float,
    worker_memory: int | None,
    quiet: bool | None,
    **chosen: Any,
) -> None:
    """Optimize all MODELS: files, folders, or patterns in quotes. Results go to folder OUT.

    A model that fails, crashes or takes too long costs only itself, and is written down. Ctrl-C ends the run; --resume
    goes on with it. `tflite-memopt report OUT` shows the results. Exits with 1 when a model has none.
    """
    from ..batch.engines import open_engine
    from ..batch.find import find_models
    from ..batch.job import BatchSetting, WorkerLimits
    from ..batch.run import BatchPlan, run_batch
    from ..batch.store import MODELS, open_store
    from ..pipeline import optimize

    if retry_failed and not resume:
        raise click.UsageError("--retry-failed needs --resume")
    limits = WorkerLimits(model_seconds, worker_memory, workers if cluster is None else 0)
    setting = BatchSetting(optimize, options_from_flags(**chosen), limits)
    models = find_models(patterns)
    if not no_models and any(Path(os.path.abspath(folder), MODELS) in model.path.parents for model in models):
        raise click.UsageError(f"'{folder / MODELS}' is where results go, and it holds the models: give another OUT")
    is_new = _prepare(folder, resume, force)
    with open_store(folder, is_new) as store:
        options = store.keep_options(setting.options)
        done = store.has(options, and_failures=not retry_failed)
        plan = BatchPlan(models, frozenset(done), folder, setting, is_shared, not no_models)
        try:
            with terminated_like_interrupted(), open_engine(workers, cluster) as engine, _progress(quiet) as watch:
                state = run_batch(plan, engine, store, watch)
        except KeyboardInterrupt:
            click.echo(f"tflite-memopt: interrupted; go on with: --resume -o {folder}", err=True)
            sys.exit(INTERRUPTED)
        lacking = store.without_result(options) & {model.content for model in models}
    _conclude(state, len(models), len(lacking), folder)


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, which a cluster's scheduler sends when time is up, ends workers and leaves results like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _prepare(folder: Path, resume: bool, force: bool) -> bool:
    """Whether results are made anew in ``folder``. Raises click.UsageError rather than mix them with others."""
    from ..batch.store import has_store, remove_results

    if force and resume:
        raise click.UsageError("--force and --resume exclude each other")
    exists = has_store(folder)
    if exists and not (resume or force):
        raise click.UsageError(f"'{folder}' holds results: --resume goes on with them, --force replaces them")
    if exists and force:
        remove_results(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"cannot make the folder '{folder}': {error.strerror or error}") from error
    return force or not exists


def _conclude(state: BatchState, models: int, lacking: int, folder: Path) -> None:
    """``lacking``: how many models have no result, be it of this run or of the one that it goes on with."""
    said = ", ".join(f"{count:,} {status}" for status, count in state.counts.most_common())
    skipped = f"; {models - state.total:,} more: done before, or equal to another" if models > state.total else ""
    none = f". No result: {lacking:,}" if lacking else ""
    click.echo(f"{state.total:,} models: {said or 'nothing to do'}{skipped}{none}. See: tflite-memopt report {folder}")
    if lacking:
        sys.exit(NOT_EQUAL)


@contextmanager
def _progress(quiet: bool | None) -> Iterator[Watch]:
    """What shows how far a run is, on stderr: a bar on a terminal, a line now and then in a pipe."""
    is_terminal = sys.stderr.isatty()
    if quiet or (quiet is None and not is_terminal):
        yield lambda *_: None
    elif is_terminal:
        yield from _bar()
    else:
        yield _lines()


def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        task = progress.add_task("starting", total=None, rate="")

        def watch(state: BatchState, name: str, outcome: ModelOutcome | None) -> None:
            speed = progress.tasks[0].finished_speed or progress.tasks[0].speed
            rate = f"{speed:.1f}/s" if speed else ""
            progress.update(task, total=state.total, completed=state.done, description=escape(name[-40:]), rate=rate)
            if _is_worth_saying(outcome):
                progress.console.print(_said(name, outcome), markup=False)

        yield watch


def _lines() -> Watch:
    from ..graph.clock import now

    started = last = now()

    def watch(state: BatchState, name: str, outcome: ModelOutcome | None) -> None:
        nonlocal last
        if _is_worth_saying(outcome):
            click.echo(_said(name, outcome), err=True)
        if now() - last >= _LINE_SECONDS or state.done == state.total:
            last = now()
            rate = state.done / max(last - started, 1e-9)
            left = (state.total - state.done) / rate if rate else 0.0
            click.echo(f"{state.done:,} of {state.total:,}, {rate:.2f} a second, {left:.0f} s left", err=True)

    return watch


def _is_worth_saying(outcome: ModelOutcome | None) -> bool:
    return outcome is None or outcome.status != "done"


def _said(name: str, outcome: ModelOutcome | None) -> str:
    return name if outcome is None else f"{name}: {outcome.status}: {outcome.error}"
