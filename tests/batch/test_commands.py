"""The commands ``batch`` and ``report`` as users run them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.interrupts import heed_interrupts
from tflite_memopt.batch.store import COMPARED, TIMED, open_store
from tflite_memopt.cli import cli
from tflite_memopt.cli.batch import terminated_like_interrupted
from tflite_memopt.errors import UsageError

from .runs import SMALL, statuses, write_fates, write_many, write_models


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the small models and of one file that is no model."""
    folder = tmp_path_factory.mktemp("done")
    write_models(folder / "in")
    write_fates(folder / "in", "nonsense")
    result = invoke("batch", folder / "in", "-o", folder / "out", "--jobs", "1", "--no-verify", "--effort", "quick")
    assert result.exit_code == 1, result.output
    assert "5 models: 4 done, 1 refused" in result.stdout
    return folder / "out"


def test_a_report_shows_savings_limits_and_refusals(done: Path, tmp_path: Path) -> None:
    shown = invoke("report", done, "--report", tmp_path / "all.html", "--report", tmp_path / "all.csv")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("5 models: 4 done, 1 refused")
    assert "nonsense.tflite: refused: ModelFormatError" in shown.stdout
    page = (tmp_path / "all.html").read_text()
    assert all(f"{name}.tflite" in page for name in (*SMALL, "nonsense"))
    with sqlite3.connect(done / "results.sqlite") as connection:
        table = dict(connection.execute("SELECT name, report FROM results WHERE status = 'done'"))
    connection.close()
    assert len(table) == 4
    full = json.loads(table["irregular_model.tflite"])
    assert full["model"] == "irregular_model.tflite"
    assert "timing" not in full
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert {*rows[0]} == {*COMPARED, *TIMED} - {"report"}
    saved = {row["name"]: int(row["before"]) - int(row["after"]) for row in rows if row["status"] == "done"}
    assert saved["irregular_model.tflite"] > 0
    assert all(int(row["saved"]) == saved[row["name"]] for row in rows if row["status"] == "done")
    assert all(abs(float(row["slowdown"])) <= 0.1 for row in rows if row["status"] == "done")


def test_regressions_are_named_and_change_the_exit_code(done: Path, tmp_path: Path) -> None:
    now = tmp_path / "now"
    shutil.copytree(done, now)
    same = invoke("report", now, "--against", done)
    assert same.exit_code == 0
    assert "no model is worse" in same.stdout
    with sqlite3.connect(now / "results.sqlite") as connection:
        connection.execute("UPDATE results SET after = after + 16 WHERE name = 'branches.tflite'")
        connection.execute("UPDATE results SET after = NULL, status = 'crashed' WHERE name = 'dense_model.tflite'")
        connection.execute("DELETE FROM files WHERE name = 'mobile_chain.tflite'")
    connection.close()
    worse = invoke("report", now, "--against", done)
    assert worse.exit_code == 3
    assert "3 models are worse" in worse.stdout
    assert "branches.tflite: it needs 16 bytes more" in worse.stdout
    assert "dense_model.tflite: it had a result of" in worse.stdout
    assert "mobile_chain.tflite: it is not in the run any more" in worse.stdout
    assert invoke("report", done, "--against", now).exit_code == 0


def test_results_are_neither_mixed_nor_lost(done: Path, tmp_path: Path) -> None:
    models = done.parent / "in"
    again = invoke("batch", models, "-o", done)
    assert again.exit_code == 2
    assert "--resume goes on" in again.output
    resumed = invoke("batch", models, "-o", done, "--jobs", "1", "--no-verify", "--effort", "quick", "--resume")
    assert "0 models: nothing to do; 5 more: done before" in resumed.stdout
    assert ". No result: 1. See" in resumed.stdout
    assert resumed.exit_code == 1, "as of the first run: a model is refused"
    assert invoke("batch", models, "-o", done, "--resume", "--force").exit_code == 2
    assert invoke("batch", models, "-o", tmp_path, "--retry-failed").exit_code == 2
    assert isinstance(invoke("batch", models / "nothing*", "-o", tmp_path / "other").exception, UsageError)
    assert not (tmp_path / "other").exists()
    assert isinstance(invoke("report", tmp_path).exception, UsageError)


QUICKLY = ("--jobs", "1", "--no-verify", "--effort", "quick")


def test_results_that_are_replaced_leave_no_models(tmp_path: Path) -> None:
    """They would stand beside those of the new run as if they were of it."""
    write_models(tmp_path / "in", ["dense_model"])
    write_models(tmp_path / "in" / "sub", ["branches"])
    out = tmp_path / "out"
    assert invoke("batch", tmp_path / "in", "-o", out, *QUICKLY).exit_code == 0
    assert (out / "models" / "sub" / "branches.tflite").exists()
    (out / "models" / "mine.txt").write_text("not a result")
    shutil.rmtree(tmp_path / "in" / "sub")
    assert invoke("batch", tmp_path / "in", "-o", out, "--force", *QUICKLY).exit_code == 0
    left = {path.relative_to(out / "models").as_posix() for path in (out / "models").rglob("*")}
    assert left == {"dense_model.tflite", "mine.txt"}
    assert invoke("batch", tmp_path / "in", "-o", out, "--force", "--no-models", *QUICKLY).exit_code == 0
    assert [path.name for path in (out / "models").iterdir()] == ["mine.txt"]


def test_models_are_not_overwritten_by_their_results(tmp_path: Path) -> None:
    write_models(tmp_path / "models", ["dense_model"])
    before = (tmp_path / "models" / "dense_model.tflite").read_bytes()
    refused = invoke("batch", tmp_path / "models", "-o", tmp_path, *QUICKLY)
    assert refused.exit_code == 2
    assert "give another OUT" in refused.output
    assert (tmp_path / "models" / "dense_model.tflite").read_bytes() == before
    assert not (tmp_path / "results.sqlite").exists()
    assert invoke("batch", tmp_path / "models", "-o", tmp_path, "--no-models", *QUICKLY).exit_code == 0


def test_ctrl_c_ends_cleanly_and_a_second_run_goes_on(tmp_path: Path) -> None:
    names = write_many(tmp_path / "in", 16)  # so many that some are left when the first ones are done
    words = [
        "batch",
        str(tmp_path / "in"),
        "-o",
        str(tmp_path / "out"),
        "--jobs",
        "2",
        "--samples",
        "1",
        "--no-cascade",
    ]
    command = [sys.executable, "-m", "tflite_memopt", *words]
    first = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupts
    )
    while not done_so_far(tmp_path / "out"):
        time.sleep(0.02)
        assert first.poll() is None
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to the command and to all of its workers
    _, said = first.communicate(timeout=60)
    assert first.returncode == 130
    assert said == f"tflite-memopt: interrupted; go on with: --resume -o {tmp_path / 'out'}\n"
    kept = done_so_far(tmp_path / "out")
    assert 0 < len(kept) < len(names)
    second = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=True)
    assert f"{len(names) - len(kept)} models: {len(names) - len(kept)} done" in second.stdout
    assert statuses(tmp_path / "out") == dict.fromkeys(names, "done")
    assert done_so_far(tmp_path / "out").items() >= kept.items()


def test_termination_is_an_interruption() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def done_so_far(folder: Path) -> dict[str, str]:
    """When each model was finished, by name."""
    if not (folder / "results.sqlite").exists():
        return {}
    try:
        with open_store(folder) as store:
            columns, rows = store.table()
    except Exception:
        return {}  # it is being made
    return {row[columns.index("name")]: row[columns.index("finished")] for row in rows}
