"""Runs on one machine: every model gets its row, whatever happens to the processes that work on it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.models import dense_model
from tflite_memopt.batch import worker
from tflite_memopt.batch.engines import Engine, WorkersLostError
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.job import WorkerLimits
from tflite_memopt.batch.store import open_store
from tflite_memopt.errors import UsageError
from tflite_memopt.io.writer import write_model

from .runs import SMALL, compared, events, run, statuses, write_fates, write_models


class Fragile(Engine):
    """An engine of which a worker dies whenever it comes to a certain model."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Generator[Any]:
        for job in jobs:
            if job.model == b"always":
                raise WorkersLostError("a worker was killed")
            yield function(job)


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


def test_when_a_worker_dies_nothing_is_lost_and_nothing_is_twice(tmp_path: Path) -> None:
    write_models(tmp_path / "in")
    write_fates(tmp_path / "in", f"once {tmp_path / 'mark'}")
    state = run(tmp_path / "in", tmp_path / "out", jobs=2)
    assert statuses(tmp_path / "out") == {**dict.fromkeys(SMALL, "done"), "once": "refused"}
    assert state.counts == {"done": 4, "refused": 1}
    (said,) = events(tmp_path / "out")
    assert said.startswith("a worker died")


def test_a_model_that_always_takes_its_worker_with_it_is_written_down(tmp_path: Path) -> None:
    write_fates(tmp_path / "in", "always", "refuse", "fault")
    run(tmp_path / "in", tmp_path / "out", engine=Fragile(1))
    assert statuses(tmp_path / "out") == {"refuse": "refused", "fault": "failed", "always": "lost"}
    assert [said[:13] for said in events(tmp_path / "out")] == ["a worker died"] * 2


def test_what_takes_too_much_beside_others_runs_alone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fates(tmp_path / "in", "memory", "refuse")
    monkeypatch.setattr(worker, "physical_bytes", lambda: 1000 << 20)
    run(tmp_path / "in", tmp_path / "out", limits=WorkerLimits(60.0, shares=2), engine=Engine(1))
    # Alone it has 800 MiB, which is enough to come to its end.
    assert statuses(tmp_path / "out") == {"memory": "refused", "refuse": "refused"}
    assert events(tmp_path / "out") == [
        "memory.tflite: it took more than 400 MiB of memory; it gets a machine of its own at the end"
    ]


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
