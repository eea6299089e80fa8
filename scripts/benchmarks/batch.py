"""Many models: what engines cost, what the oracle answers, and what a million candidates would take.

Measured in pieces that are kept as JSON in a folder: docs/benchmarks/batch.md.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from tests.oracle.cells import cell_network
from tflite_memopt.batch.engines import Engine, open_engine
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.job import BatchSetting, ModelOutcome, WorkerLimits
from tflite_memopt.batch.run import BatchPlan, BatchState, run_batch
from tflite_memopt.batch.store import FILE_NAME, open_store
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Model
from tflite_memopt.options import Options
from tflite_memopt.oracle.description import sketch_of
from tflite_memopt.oracle.levels import RAM_EFFORTS, RamEffort, RamOracle
from tflite_memopt.pipeline import optimize

from .batch_page import write_page

_TARGET = "cortex-m4"
_OPTIONS = Options(target=_TARGET, verify=False, rewrite=False, cascade=False)
_WIDTHS, _RESOLUTIONS = (4, 8, 12, 16), (16, 20, 24)
_ENGINES = {"one process": 1, "two processes": 2, "Dask, two workers": 2}
_KEPT = 100
"""Answers after which those so far are written down."""
_FOLDER = click.Path(file_okay=False, path_type=Path)


def candidate(seed: int) -> Model:
    """The candidate of a number: one of twelve sizes, two cells of three nodes."""
    return cell_network(seed, _WIDTHS[seed % 4], _RESOLUTIONS[seed % 3], cells=2, nodes=3)


@click.group()
def batch() -> None:
    """Figures on many models, measured in pieces and kept in a folder; `page` puts them together."""


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.option("--count", default=1000, show_default=True)
@click.option("--engine", type=click.Choice(["bare loop", *_ENGINES]), required=True)
@click.option("--kill", is_flag=True, help="Kill the process of a worker when a third is done.")
def engine(folder: Path, count: int, engine: str, kill: bool) -> None:
    """Candidates on one engine: models a second, and the time outside of the work itself."""
    files = _candidates(folder, count)
    output = folder / f"out {engine}"
    measured = _bare(files) if engine == "bare loop" else _run(output, files, engine, kill)
    _keep(folder, f"engine {engine}{', a worker killed' if kill else ''}", measured)


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.option("--count", default=200, show_default=True)
def costs(folder: Path, count: int) -> None:
    """Processor time of a model, and of the one process that sends jobs and writes rows; both whatever else runs."""
    files = _candidates(folder, count)
    optimize(files[0].read_bytes(), _OPTIONS)  # what is loaded on first use
    models: list[float] = []
    centers: dict[str, float] = {}
    for path in files:
        with _processor_seconds(models):
            optimize(path.read_bytes(), _OPTIONS)
    for name in list(_ENGINES)[1:]:
        seconds: list[float] = []
        with _processor_seconds(seconds):
            _run(folder / "costs", files, name, kill=False)
        centers[name] = seconds[0] / count
    _keep(folder, "costs", {"models": models, "center": centers, "bytes_a_row": _bytes(folder / "costs")})


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.argument("effort", type=click.Choice(RAM_EFFORTS[1:]))
@click.option("--count", default=10_000, show_default=True)
def oracle(folder: Path, effort: RamEffort, count: int) -> None:
    """Median and 99th percentile of one effort of the oracle; goes on where it was ended."""
    asked, path = RamOracle.on(_TARGET), folder / f"oracle {effort}.json"
    milliseconds: list[float] = json.loads(path.read_text()) if path.exists() else []
    for seed in range(len(milliseconds), count):
        sketch = sketch_of(candidate(seed))
        started = time.process_time()
        asked.ram(sketch, effort)
        milliseconds.append(round(1e3 * (time.process_time() - started), 4))
        if len(milliseconds) % _KEPT == 0 or len(milliseconds) == count:
            path.write_text(json.dumps(milliseconds))
    click.echo(f"{effort}: {statistics.median(milliseconds):.2f} ms", err=True)


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.option("--count", default=10_000, show_default=True)
def families(folder: Path, count: int) -> None:
    """A candidate's part of the time for the bounds and the plans of ten graphs at many sizes."""
    for name, found in _family_milliseconds(count).items():
        (folder / f"oracle family, {name}.json").write_text(json.dumps(found))
        click.echo(f"{name}: {statistics.median(found):.4f} ms", err=True)


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.option("--count", default=200, show_default=True)
def whole(folder: Path, count: int) -> None:
    """Whole runs, with the default options but without the verification; goes on where it was ended."""
    path, times = folder / "whole.json", folder / "whole seconds.json"
    needs: list[int] = json.loads(path.read_text()) if path.exists() else []
    seconds: list[float] = json.loads(times.read_text()) if times.exists() else []
    for seed in range(len(needs), count):
        with _processor_seconds(seconds):
            report = optimize(write_model(candidate(seed)), Options(target=_TARGET, verify=False)).report
        needs.append(report.after.required_for_target)
        path.write_text(json.dumps(needs))
        times.write_text(json.dumps(seconds))
        click.echo(f"{seed}: {needs[-1]}", err=True)


@batch.command()
@click.argument("folder", type=_FOLDER)
def errors(folder: Path) -> None:
    """Every effort for the candidates of which there is a whole run; goes on where it was ended."""
    asked, path = RamOracle.on(_TARGET), folder / "errors.json"
    rows: list[dict[str, int]] = json.loads(path.read_text()) if path.exists() else []
    for seed in range(len(rows), len(json.loads((folder / "whole.json").read_text()))):
        rows.append({effort: int(asked.ram(sketch_of(candidate(seed)), effort)) for effort in RAM_EFFORTS})
        path.write_text(json.dumps(rows))
        click.echo(f"{seed}: {rows[-1]}", err=True)


@batch.command()
@click.argument("folder", type=_FOLDER)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--said", required=True, help="Commit, and what else ran on the machine: a sentence for the page.")
def page(folder: Path, output: Path, said: str) -> None:
    """Write the page of all that is in FOLDER."""
    write_page(folder, output, said)


def _keep(folder: Path, name: str, measured: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(measured, indent=1))
    click.echo(f"{name}: {measured}", err=True)


def _candidates(folder: Path, count: int) -> list[Path]:
    models = folder / "candidates"
    models.mkdir(parents=True, exist_ok=True)
    files = [models / f"{seed:06}.tflite" for seed in range(count)]
    for seed, path in enumerate(files):
        if not path.exists():
            path.write_bytes(write_model(candidate(seed)))
    return files


def _bare(files: list[Path]) -> dict[str, Any]:
    """The loop that one would write by hand: read, optimize, keep the report."""
    optimize(files[0].read_bytes(), _OPTIONS)  # what is loaded on first use
    started, work = time.monotonic(), 0.0
    for path in files:
        work += optimize(path.read_bytes(), _OPTIONS).report.timing["total"]
    wall = time.monotonic() - started
    return {"workers": 1, "models": len(files), "wall": wall, "work": work, "rate": len(files) / wall}


def _run(output: Path, files: list[Path], name: str, kill: bool) -> dict[str, Any]:
    for each in output.glob(f"{FILE_NAME}*"):
        each.unlink()
    output.mkdir(exist_ok=True)
    workers = _ENGINES[name]
    with _engine(name, output) as opened, open_store(output, is_new=True) as store:
        setting = BatchSetting(optimize, _OPTIONS, WorkerLimits(shares=workers))
        plan = BatchPlan(find_models([str(each) for each in files]), frozenset(), output, setting, keeps_models=False)
        clock = _Clock()
        run_batch(plan, opened, store, _Killer(clock, len(files) // 3) if kill else clock)
        columns, rows = store.table()
        events = store.events()
    work = [json.loads(row[columns.index("times")]).get("total", 0.0) for row in rows]
    wall, timed = clock.last - clock.first, len(rows) - 1
    return {
        "workers": workers,
        "models": len(rows),
        "distinct": len({row[columns.index("content")] for row in rows}),
        "done": sum(row[columns.index("status")] == "done" for row in rows),
        "wall": wall,
        "work": sum(work) * timed / len(rows),
        "rate": timed / wall,
        "events": events,
    }


class _Clock:
    """When the first and the last model were written down: to start workers is no part of the rate."""

    def __init__(self) -> None:
        self.first = self.last = 0.0

    def __call__(self, *_: object) -> None:
        self.last = time.monotonic()
        self.first = self.first or self.last


class _Killer:
    """A clock that also kills the process that worked on the model that comes after so many others."""

    def __init__(self, clock: _Clock, after: int) -> None:
        self._clock, self._after = clock, after

    def __call__(self, state: BatchState, name: str, outcome: ModelOutcome | None) -> None:
        self._clock(state, name, outcome)
        if outcome is not None and state.done == self._after:
            os.kill(int(outcome.worker.rpartition(":")[2]), signal.SIGKILL)


@contextmanager
def _engine(name: str, folder: Path) -> Iterator[Engine]:
    if not name.startswith("Dask"):
        with open_engine(_ENGINES[name], None) as opened:
            yield opened
        return
    with dask_cluster(folder, _ENGINES[name]) as address, open_engine(1, address) as opened:
        yield opened


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers of one thread, processes of their own; the scheduler's address."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "start_new_session": True}
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    start: Callable[..., Any] = subprocess.Popen
    scheduler = start([sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *common], **quiet)
    flags = ["--nthreads", "1", "--nworkers", str(workers)]
    worker = start([sys.executable, "-m", "distributed.cli.dask_worker", *flags, *common], **quiet)
    try:
        while not file.exists() or not file.read_text():
            time.sleep(0.05)
        yield str(json.loads(file.read_text())["address"])
    finally:
        for process in (worker, scheduler):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def _processor_seconds(found: list[float]) -> Iterator[None]:
    """Adds the time of this process, with all its threads."""
    started = time.process_time()
    yield
    found.append(time.process_time() - started)


def _bytes(known: Path) -> float:
    """Bytes of the file of results for each row."""
    with open_store(known) as store:
        return (known / FILE_NAME).stat().st_size / len(store.table()[1])


def _family_milliseconds(count: int) -> dict[str, list[float]]:
    """Processor time a candidate for one graph at many widths and resolutions, of ten graphs."""
    found: dict[str, list[float]] = {}
    for seed in range(10):
        asked, family = RamOracle.on(_TARGET), _family(seed, count)
        for name in ("bound, at first", "bound", "plan"):
            started = time.process_time()
            asked.bounds(family) if name.startswith("bound") else asked.plans(family)
            found.setdefault(name, []).append(1e3 * (time.process_time() - started) / count)
    return found


def _family(seed: int, count: int) -> Any:
    """A candidate's graph at ``count`` pairs of width and resolution: dimensions are scaled from two that are known."""
    draw = np.random.default_rng(seed)
    widths, rows = draw.integers(1, 33, count), 2 * draw.integers(2, 33, count)
    small, tall, wide = (sketch_of(cell_network(seed, w, r, 2, 3)) for w, r in ((4, 12), (4, 16), (8, 12)))
    tensors = {}
    for name, each in small.tensors.items():
        others = tall.tensors[name].shape, wide.tensors[name].shape
        shape = []
        for own, by_rows, by_width in zip(each.shape, *others, strict=True):
            # A dimension that follows the resolution has its slope there, one that follows the width there.
            slope_rows, slope_width = (by_rows - own) / 4, (by_width - own) / 4
            is_fixed = slope_rows == slope_width == 0
            varied = own + slope_rows * (rows - 12) + slope_width * (widths - 4)
            shape.append(own if is_fixed else np.asarray(varied, np.int64))
        tensors[name] = replace(each, shape=tuple(shape))
    return replace(small, tensors=tensors)
