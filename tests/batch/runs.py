"""Runs of small models for the tests of batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.makers.model_builder import ModelBuilder
from tests import models
from tflite_memopt.batch.engines import Engine, open_engine
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.job import BatchSetting, WorkerLimits
from tflite_memopt.batch.run import BatchPlan, BatchState, run_batch
from tflite_memopt.batch.store import COMPARED, open_store
from tflite_memopt.io.writer import write_model
from tflite_memopt.options import Options

from .works import by_fate

OPTIONS = Options(verify=False, cascade=False)
SMALL = ("mobile_chain", "branches", "dense_model", "irregular_model")


def write_models(folder: Path, names: Sequence[str] = SMALL) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.tflite").write_bytes(write_model(models.ALL[name]()))


def write_many(folder: Path, count: int) -> list[str]:
    """So many models, no two alike; returns their names without the ending."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"many{number:02}" for number in range(count)]
    for number, name in enumerate(names):
        b = ModelBuilder()
        y = b.conv(b.input("x", (1, 8, 8, 2)), 4 + number, seed=number)
        (folder / f"{name}.tflite").write_bytes(write_model(b.finish(y)))
    return names


def write_fates(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for word in words:
        (folder / f"{word.split()[0]}.tflite").write_bytes(word.encode())


def run(
    folder: Path,
    output: Path,
    jobs: int = 1,
    cluster: str | None = None,
    limits: WorkerLimits = WorkerLimits(seconds=60.0),
    is_shared: bool = False,
    engine: Engine | None = None,
) -> BatchState:
    """A run of all models of a folder, without what was done before."""
    output.mkdir(exist_ok=True)
    setting = BatchSetting(by_fate, OPTIONS, limits)
    is_new = not (output / "results.sqlite").exists()
    with open_store(output, is_new) as store:
        done = frozenset(store.has(store.keep_options(OPTIONS), and_failures=True))
        plan = BatchPlan(find_models([str(folder)]), done, output, setting, is_shared)
        if engine is not None:
            return run_batch(plan, engine, store, lambda *_: None)
        with open_engine(jobs, cluster) as opened:
            return run_batch(plan, opened, store, lambda *_: None)


def statuses(output: Path) -> dict[str, str]:
    """What became of each model, by its name without the ending."""
    with open_store(output) as store:
        return {row.name.removesuffix(".tflite"): row.status for row in store.rows()}


def events(output: Path) -> list[str]:
    with open_store(output) as store:
        return store.events()


def compared(output: Path) -> list[tuple[object, ...]]:
    """The columns that must be the same in every run."""
    with open_store(output) as store:
        columns, rows = store.table()
    return [tuple(row[columns.index(name)] for name in COMPARED) for row in rows]
