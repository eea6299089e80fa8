"""Runs on one machine: every model gets its row, whatever happens to the processes that work on it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from tests.models import dense_model
from tflite_memopt.batch import machine, worker
from tflite_memopt.batch.engines import ThreadEngine, WorkersLostError
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.job import BatchJob, BatchSetting, ModelOutcome, WorkerLimits
from tflite_memopt.batch.store import open_store
from tflite_memopt.errors import UsageError
from tflite_memopt.io.writer import write_model

from .runs import SMALL, compared, events, run, statuses, write_fates, write_models


class Fragile(ThreadEngine):
    """An engine of which a worker dies whenever it comes to a certain model."""

    def outcomes(self, jobs: Iterable[BatchJob], setting: BatchSetting) -> Generator[ModelOutcome]:
        for job in jobs:
            if job.name == "always.tflite":
                raise WorkersLostError("a worker was killed")
            yield from super().outcomes([job], setting)


def test_rows_are_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    write_models(tmp_path / "in")
    write_fates(tmp_path / "in", "refuse", "fault")
    one, two, shared = tmp_path / "one", tmp_path / "two", tmp_path / "shared"
    run(tmp_path / "in", one)
    run(tmp_path / "in", two, jobs=2)
    run(tmp_path / "in", shared, is_shared=True)
    assert statuses(one) == {**dict.fromkeys(SMALL, "done"), "refuse": "refused", "fault": "failed"}
    assert compared(one) == compared(two) == compared(shared)
    for name in SMALL:
        first = (one / "models" / f"{name}.tflite").read_bytes()
        assert first == (two / "models" / f"{name}.tflite").read_bytes()
        assert first == (shared / "models" / f"{name}.tflite").read_bytes()


def test_what_happens_to_one_model_costs_only_that_model(tmp_path: Path) -> None:
    write_models(tmp_path / "in", ["dense_model"])  # a quick one: the limit is that of all models
    write_fates(tmp_path / "in", "segv", "kill", "exit", "sleep", "memory", "refuse")
    state = run(tmp_path / "in", tmp_path / "out", jobs=2, limits=WorkerLimits(6.0, 400 << 20))
    found = statuses(tmp_path / "out")
    assert found == {
        "dense_model": "done",
        **dict.fromkeys(("segv", "kill", "exit"), "crashed"),
        "sleep": "timeout",
        "memory": "memory",
        "refuse": "refused",
    }
    assert state.done == len(found)
    with open_store(tmp_path / "out") as store:
        reasons = {row.name: row.error for row in store.rows() if row.error}
    assert reasons["segv.tflite"] == "its process was ended by SIGSEGV"
    assert "another program ended it" in str(reasons["kill.tflite"])
    assert reasons["exit.tflite"] == "its process ended with code 7"
    assert reasons["sleep.tflite"] == "it did not finish within 6 s"
    assert reasons["memory.tflite"] == "it took more than 400 MiB of memory"
    assert reasons["refuse.tflite"] == "UsageError: not this one"


def test_a_model_that_always_takes_its_worker_with_it_is_written_down(tmp_path: Path) -> None:
    write_fates(tmp_path / "in", "always", "refuse", "fault")
    with closing(Fragile(1)) as engine:
        run(tmp_path / "in", tmp_path / "out", engine=engine)
    assert statuses(tmp_path / "out") == {"refuse": "refused", "fault": "failed", "always": "lost"}
    assert [said[:13] for said in events(tmp_path / "out")] == ["a worker died"] * 2


def test_what_takes_too_much_beside_others_runs_alone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fates(tmp_path / "in", "memory", "refuse")
    monkeypatch.setattr(worker, "physical_bytes", lambda: 1000 << 20)
    run(tmp_path / "in", tmp_path / "out", limits=WorkerLimits(60.0, shares=2))
    # Alone it has 800 MiB, which is enough to come to its end.
    assert statuses(tmp_path / "out") == {"memory": "refused", "refuse": "refused"}
    assert events(tmp_path / "out") == [
        "memory.tflite: it took more than 400 MiB of memory; it gets a machine of its own at the end"
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_processes_end_with_the_run_that_is_killed(tmp_path: Path) -> None:
    """Nobody is left who could end them: they see that their input ends."""
    write_fates(tmp_path / "in", "sleep")
    (tmp_path / "in" / "too.tflite").write_bytes(b"sleep too")
    code = (
        "import sys; from pathlib import Path; from tests.batch.runs import run; run(*map(Path, sys.argv[1:]), jobs=2)"
    )
    started = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "in"), str(tmp_path / "out")])
    while len(children := set(machine.processes_of(started.pid)) - {started.pid}) < 2:
        time.sleep(0.02)
    time.sleep(1.0)  # they work
    started.kill()
    started.wait()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody says which processors are allowed")
def test_processors_are_those_that_the_process_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    assert machine.usable_processors() == 6
    for text, count in (("max 100000", 6), ("250000 100000", 2), ("20000 100000", 1), ("900000 100000", 6)):
        (tmp_path / "cpu.max").write_text(f"{text}\n")
        assert machine.usable_processors() == count
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    for text, count in (("-1", 6), ("300000", 3)):
        (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{text}\n")
        assert machine.usable_processors() == count


def test_a_second_run_does_only_what_is_new(tmp_path: Path) -> None:
    write_fates(tmp_path / "in", "refuse")
    assert run(tmp_path / "in", tmp_path / "out").total == 1
    write_fates(tmp_path / "in", "fault")
    (tmp_path / "in" / "again.tflite").write_bytes(b"refuse")
    assert run(tmp_path / "in", tmp_path / "out").total == 1
    assert statuses(tmp_path / "out") == {"refuse": "refused", "fault": "failed", "again": "refused"}


def test_files_of_one_content_have_the_result_under_the_name_of_each(tmp_path: Path) -> None:
    data = write_model(dense_model())
    for name in ("b.tflite", "sub/a.tflite"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    assert run(tmp_path / "in", tmp_path / "out").total == 1
    (tmp_path / "in" / "a.tflite").write_bytes(data)
    assert run(tmp_path / "in", tmp_path / "out").total == 0
    names = ("a.tflite", "b.tflite", "sub/a.tflite")
    assert len({(tmp_path / "out" / "models" / name).read_bytes() for name in names}) == 1


def test_models_are_named_from_the_folder_that_holds_all(tmp_path: Path) -> None:
    write_fates(tmp_path / "a" / "b", "x")
    write_fates(tmp_path / "a" / "c", "y")
    found = find_models([str(tmp_path / "a" / "*" / "*.tflite"), str(tmp_path / "a" / "b" / "x.tflite")])
    assert [(model.name, model.nbytes) for model in found] == [("b/x.tflite", 1), ("c/y.tflite", 1)]
    assert found[0].content == hashlib.sha256(b"x").hexdigest()
    assert find_models([str(tmp_path)]) == tuple(found)
    with pytest.raises(UsageError, match="quote a pattern"):
        find_models([str(tmp_path / "nothing*")])
