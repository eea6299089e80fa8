"""The same runs on real clusters: processes that are started here and know nothing of the tests' own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tflite_memopt.batch.engines import DaskEngine, open_engine
from tflite_memopt.errors import UsageError

from .runs import SMALL, compared, run, statuses, write_fates, write_models
from .works import worker_of

FATES = {**dict.fromkeys(SMALL, "done"), "refuse": "refused", "kill": "crashed", "once": "refused"}
ROOT = Path(__file__).parent.parent.parent


@contextmanager
def dask_process(file: Path, name: str, *words: str) -> Iterator[None]:
    """One of Dask's commands, and all that it starts; ``file`` says where the scheduler is."""
    command = [sys.executable, "-m", f"distributed.cli.{name}", *words, "--no-dashboard", "--scheduler-file", str(file)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env=environment, cwd=file.parent, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def dask_workers(file: Path, count: int) -> AbstractContextManager[None]:
    """Workers of one thread each."""
    return dask_process(file, "dask_worker", "--nthreads", "1", "--nworkers", str(count))


@contextmanager
def dask_cluster(file: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers; the scheduler's address."""
    with dask_process(file, "dask_scheduler", "--port", "0"), dask_workers(file, workers):
        while not file.exists() or not file.read_text():
            time.sleep(0.02)
        yield str(json.loads(file.read_text())["address"])


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with dask_cluster(tmp_path_factory.mktemp("dask") / "scheduler.json", workers=2) as address:
        yield address


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[object, ...]]:
    """The rows that one process makes of the small models."""
    folder = tmp_path_factory.mktemp("alone")
    write_models(folder / "in")
    run(folder / "in", folder / "out")
    return set(compared(folder / "out"))


@pytest.mark.filterwarnings("ignore")
def test_rows_on_dask_are_those_of_one_process(dask: str, rows: set[tuple[object, ...]], tmp_path: Path) -> None:
    write_models(tmp_path / "in")
    write_fates(tmp_path / "in", "refuse", "kill", f"once {tmp_path / 'mark'}")
    run(tmp_path / "in", tmp_path / "out", cluster=dask)
    assert (tmp_path / "mark").exists()  # a worker of the cluster was killed, and its models went to others
    assert statuses(tmp_path / "out") == FATES
    assert rows < set(compared(tmp_path / "out"))


@pytest.mark.filterwarnings("ignore")
def test_workers_that_come_later_get_work_too(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    file, seen = tmp_path / "scheduler.json", set[int]()
    with ExitStack() as started, dask_cluster(file, workers=1) as address, closing(DaskEngine(address)) as engine:
        for worker in engine.map(worker_of, range(900)):
            if not seen:
                started.enter_context(dask_workers(file, 1))
            seen.add(worker)
            if len(seen) == 2:
                break
    assert len(seen) == 2
    assert os.getpid() not in seen  # a single worker's work is not done here


def test_an_address_that_leads_nowhere_is_said() -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with pytest.raises(UsageError, match="no Dask scheduler"), open_engine(1, "nothing://here"):
        pass
