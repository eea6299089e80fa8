"""Many models on real clusters of Dask: on this machine, and with a scheduler of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests import models
from tests.faults import raises
from tests.interrupts import heed_interrupts
from tests.model_builder import ModelBuilder
from tflite_memopt import Options, UsageError, cost, optimize
from tflite_memopt.batch.cluster import answers_of, open_cluster
from tflite_memopt.batch.find import find_models
from tflite_memopt.batch.results import DONE, FAILED, LOST, REFUSED, RESULTS, Results
from tflite_memopt.batch.run import run_batch
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.schema import from_json

from .works import by_fate, worker_of

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="the extra dask is not installed"),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("batch"),
]

ROOT = Path(__file__).parent.parent.parent
OPTIONS = Options(verify=False, cascade=False)
SMALL = ("mobile_chain", "branches", "dense_model", "irregular_model")
MEMORY = 700 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with open_cluster(2, MEMORY, None) as client:
        yield client


def write_models(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.tflite").write_bytes(write_model(models.ALL[name]()))


def write_fates(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for word in words:
        (folder / f"{word.split()[0]}.tflite").write_bytes(word.encode())


def run(client: Any, folder: Path, keeps_models: bool = True) -> tuple[Counter[str], list[str]]:
    """Run all models of ``folder/in`` into ``folder/out``: what became of the files, and which were worked on."""
    told: list[str] = []
    found, results = find_models([str(folder / "in")]), Results(folder / "out", OPTIONS, keeps_models)
    counts, _ = run_batch(client, by_fate, found, OPTIONS, results, lambda _, __, line: told.append(line["model"]))
    return counts, sorted(told)


def lines_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The last line of each file, by its name without the ending."""
    lines = map(json.loads, (folder / "out" / RESULTS).read_text().splitlines())
    return {line["model"].removesuffix(".tflite"): line for line in lines}


@pytest.mark.slow
def test_a_line_is_what_optimize_says(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", *SMALL)
    write_fates(tmp_path / "in", "refuse", "fault")
    assert run(cluster, tmp_path)[0] == {DONE: 4, REFUSED: 1, FAILED: 1}
    lines = lines_in(tmp_path)
    for name in SMALL:
        data, line = (tmp_path / "in" / f"{name}.tflite").read_bytes(), lines[name]
        result = optimize(data, OPTIONS)
        assert (tmp_path / "out" / "models" / f"{name}.tflite").read_bytes() == result.model
        assert line["content"] == hashlib.sha256(data).hexdigest()
        assert line["before"] == result.report.before.required_for_target
        assert line["after"] == result.report.after.required_for_target
        report = from_json(json.dumps(line["report"]))
        assert report.after == result.report.after  # type: ignore[union-attr]
    assert lines["refuse"]["error"] == "UsageError: not this one"
    assert lines["fault"]["error"].startswith("ValueError: a fault of the tool (works.py, line ")


@pytest.mark.slow
def test_a_worker_that_dies_is_restarted_and_its_model_tried_again(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", *SMALL)
    write_fates(tmp_path / "in", f"once {tmp_path / 'mark'}")
    assert run(cluster, tmp_path)[0] == {DONE: 4, REFUSED: 1}
    assert lines_in(tmp_path)["once"]["error"] == "UsageError: lived on"


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["die", "memory"])
def test_a_model_that_ends_every_worker_costs_only_itself(fate: str, tmp_path: Path) -> None:
    import dask
    import distributed  # noqa: F401  what is set before its defaults are there takes them away with it

    write_models(tmp_path / "in", *SMALL)
    write_fates(tmp_path / "in", fate)
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), open_cluster(2, MEMORY, None) as client:
        assert run(client, tmp_path)[0] == {DONE: 4, LOST: 1}
        assert "tries" in lines_in(tmp_path)[fate]["error"] or "died" in lines_in(tmp_path)[fate]["error"]
        assert run(client, tmp_path) == ({DONE: 4, LOST: 1}, [f"{fate}.tflite"])  # only that one is tried again


@pytest.mark.slow
def test_a_second_run_works_on_what_is_new(cluster: Any, tmp_path: Path) -> None:
    write_fates(tmp_path / "in", "refuse")
    write_models(tmp_path / "in", "dense_model")
    assert run(cluster, tmp_path) == ({DONE: 1, REFUSED: 1}, ["dense_model.tflite", "refuse.tflite"])
    assert run(cluster, tmp_path) == ({DONE: 1, REFUSED: 1}, [])
    (tmp_path / "in" / "sub").mkdir()
    for name in ("dense_model", "refuse"):
        data = (tmp_path / "in" / f"{name}.tflite").read_bytes()
        (tmp_path / "in" / "sub" / f"{name}.tflite").write_bytes(data)
    write_models(tmp_path / "in", "branches")
    assert run(cluster, tmp_path) == ({DONE: 3, REFUSED: 2}, ["branches.tflite"])
    made = tmp_path / "out" / "models"
    assert (made / "sub" / "dense_model.tflite").read_bytes() == (made / "dense_model.tflite").read_bytes()
    assert lines_in(tmp_path)["sub/refuse"]["error"] == "UsageError: not this one"
    (tmp_path / "in" / "refuse.tflite").write_bytes(b"refuse again")  # other bytes under the same name
    assert run(cluster, tmp_path)[1] == ["refuse.tflite"]


@pytest.mark.slow
def test_a_line_that_was_cut_off_is_written_again(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model", "branches")
    run(cluster, tmp_path)
    path = tmp_path / "out" / RESULTS
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0] + whole[1][: len(whole[1]) // 2])
    lost = json.loads(whole[1])["model"]
    assert run(cluster, tmp_path) == ({DONE: 2}, [lost])
    assert run(cluster, tmp_path) == ({DONE: 2}, [])


@pytest.mark.slow
def test_files_of_one_content_have_the_result_under_the_path_of_each(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    write_models(tmp_path / "in" / "sub", "dense_model")
    counts, told = run(cluster, tmp_path)
    assert (counts, len(told)) == ({DONE: 2}, 1)
    made = tmp_path / "out" / "models"
    assert (made / "sub" / "dense_model.tflite").read_bytes() == (made / "dense_model.tflite").read_bytes()


def _damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"x")


@pytest.mark.few(1)
@pytest.mark.parametrize("lose", [_damage, Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_result_that_was_damaged_or_removed_is_made_again(
    lose: Callable[[Path], object], cluster: Any, tmp_path: Path
) -> None:
    write_models(tmp_path / "in", "dense_model", "branches")
    run(cluster, tmp_path)
    made = tmp_path / "out" / "models" / "dense_model.tflite"
    whole = made.read_bytes()
    assert lines_in(tmp_path)["dense_model"]["sha256"] == hashlib.sha256(whole).hexdigest()
    lose(made)
    assert run(cluster, tmp_path) == ({DONE: 2}, ["dense_model.tflite"])
    assert made.read_bytes() == whole
    assert run(cluster, tmp_path) == ({DONE: 2}, [])


def test_a_lost_result_is_copied_from_a_file_of_the_same_bytes(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    write_models(tmp_path / "in" / "sub", "dense_model")
    run(cluster, tmp_path)
    made = tmp_path / "out" / "models" / "dense_model.tflite"
    other = tmp_path / "out" / "models" / "sub" / "dense_model.tflite"
    whole = made.read_bytes()
    for lost in (made, other):
        _damage(lost)
        assert run(cluster, tmp_path) == ({DONE: 2}, [])
        assert made.read_bytes() == other.read_bytes() == whole


def test_what_is_refused_now_leaves_no_result_of_what_it_was(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    source, made = (tmp_path / each / "dense_model.tflite" for each in ("in", "out/models"))
    good = source.read_bytes()
    run(cluster, tmp_path)
    whole = made.read_bytes()
    for word in (b"refuse", b"fault"):
        source.write_bytes(word)
        run(cluster, tmp_path)
        assert not made.exists()
        made.write_bytes(whole)  # as by a run under other options in between
        run(cluster, tmp_path)
        assert not made.exists()
        source.write_bytes(good)
        assert run(cluster, tmp_path) == ({DONE: 1}, ["dense_model.tflite"])
        assert made.read_bytes() == whole


def test_models_that_were_not_kept_are_made_when_they_are_wanted(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    run(cluster, tmp_path, keeps_models=False)
    assert run(cluster, tmp_path) == ({DONE: 1}, ["dense_model.tflite"])
    assert (tmp_path / "out" / "models" / "dense_model.tflite").exists()
    assert run(cluster, tmp_path, keeps_models=False) == ({DONE: 1}, [])


def test_without_models_there_are_lines_alone(cluster: Any, tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    run(cluster, tmp_path, keeps_models=False)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [RESULTS]


@pytest.mark.slow
def test_estimates_are_lines_that_a_full_run_does_not_take_for_its_own(tmp_path: Path) -> None:
    write_models(tmp_path / "in", *SMALL)
    words = ["batch", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--jobs", "1", "--target", "cortex-m7"]
    for earlier in ("", f" ({len(SMALL)} by an earlier run)"):
        done = CliRunner().invoke(cli, [*words, "--estimate", "--budget", "16K"])
        assert (done.exit_code, f"{len(SMALL)} models: {len(SMALL)} done{earlier}." in done.output) == (0, True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [RESULTS]
    planned = optimize(write_model(models.mobile_chain(12)), Options(target="cortex-m4", verify=False)).model
    (tmp_path / "planned.tflite").write_bytes(planned)
    words_of_one = ["batch", str(tmp_path / "planned.tflite"), "-o", str(tmp_path / "one"), "--jobs", "1", "--estimate"]
    assert "planned.tflite: the file was planned with --target" in CliRunner().invoke(cli, words_of_one).output
    for name, line in lines_in(tmp_path).items():
        found = cost(tmp_path / "in" / f"{name}.tflite", "cortex-m7", depth="estimate", budget=16 << 10, cache=None)
        assert line["cost"] == asdict(found)
        assert (line["before"], line["after"]) == (found.ram, found.optimized)
    assert f"{len(SMALL)} done. " in CliRunner().invoke(cli, [*words, "--no-models", "--effort", "quick"]).output


def test_models_are_named_from_the_folder_that_holds_all(tmp_path: Path) -> None:
    write_fates(tmp_path / "a" / "b", "x")
    write_fates(tmp_path / "a" / "c", "y")
    found = find_models([str(tmp_path / "a" / "*" / "*.tflite"), str(tmp_path / "a" / "b" / "x.tflite")])
    assert [(model.name, model.nbytes) for model in found] == [("b/x.tflite", 1), ("c/y.tflite", 1)]
    assert found[0].content == hashlib.sha256(b"x").hexdigest()
    assert find_models([str(tmp_path)]) == tuple(found)
    with raises(UsageError, ErrorKind.NOT_A_FILE, "nothing*"):
        find_models([str(tmp_path / "nothing*")])


def test_virtual_environments_and_links_are_left_out_and_an_empty_folder_says_so(tmp_path: Path) -> None:
    for folder in ("a", "venv/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.tflite").write_bytes(b"x")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "link.tflite").symlink_to(tmp_path / "a" / "x.tflite")
    assert [each.path for each in find_models([str(tmp_path)])] == [tmp_path / "a" / "x.tflite"]
    assert find_models([str(tmp_path / "link.tflite")])  # what is named is meant
    (tmp_path / "empty").mkdir()
    with raises(UsageError, ErrorKind.NOT_A_FILE, str(tmp_path / "empty")):
        find_models([str(tmp_path / "empty")])


@contextmanager
def dask_process(file: Path, name: str, *words: str) -> Iterator[None]:
    """One of Dask's commands, and all that it starts; ``file`` says where the scheduler is."""
    command = [sys.executable, "-m", f"distributed.cli.{name}", *words, "--no-dashboard", "--scheduler-file", str(file)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
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
def dask_scheduler(file: Path, workers: int) -> Iterator[str]:
    """A scheduler and workers; the scheduler's address."""
    with dask_process(file, "dask_scheduler", "--port", "0"), dask_workers(file, workers):
        while not file.exists() or not file.read_text():
            time.sleep(0.02)
        yield str(json.loads(file.read_text())["address"])


@pytest.mark.slow
def test_workers_of_a_cluster_that_come_later_get_work_too(tmp_path: Path) -> None:
    file, seen = tmp_path / "scheduler.json", set[int]()
    with ExitStack() as started:
        address = started.enter_context(dask_scheduler(file, workers=1))
        client = started.enter_context(open_cluster(None, None, address))
        for _, worker in answers_of(client, worker_of, range(900)):
            assert isinstance(worker, int)
            if not seen:
                started.enter_context(dask_workers(file, 1))
            seen.add(worker)
            if len(seen) == 2:
                break
    assert len(seen) == 2
    assert os.getpid() not in seen


@pytest.mark.slow
def test_the_command_on_a_cluster_writes_what_it_writes_on_this_machine(tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model", "branches")
    write_fates(tmp_path / "in", "nonsense")
    shutil.copy(tmp_path / "in" / "branches.tflite", tmp_path / "in" / "again.tflite")
    words = ["batch", str(tmp_path / "in"), "--no-verify", "--effort", "quick", "-o"]
    with dask_scheduler(tmp_path / "scheduler.json", workers=1) as address:
        away = CliRunner().invoke(cli, [*words, str(tmp_path / "away"), "--cluster", address])
    here = CliRunner().invoke(cli, [*words, str(tmp_path / "here"), "--jobs", "1"])
    for done, out in ((away, "away"), (here, "here")):
        assert done.exit_code == 1, done.output
        assert f"4 models (3 different): 3 done, 1 refused. See: {tmp_path / out / RESULTS}" in done.output
        assert "nonsense.tflite: refused: ModelFormatError" in done.output
    for name in ("dense_model", "branches"):
        both = [(tmp_path / out / "models" / f"{name}.tflite").read_bytes() for out in ("away", "here")]
        assert both[0] == both[1]


@pytest.mark.slow
def test_a_port_that_somebody_has_taken_is_not_asked_for() -> None:
    """Dask warns where 8787 is taken."""
    with socket.socket() as other, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with suppress(OSError):  # then it is taken already
            other.bind(("", 8787))
            other.listen()
        with open_cluster(1, None, None) as client:
            assert client.submit(os.getpid).result() != os.getpid()
    assert [each for each in seen if "8787" in str(each.message)] == []


def test_an_address_that_leads_nowhere_is_said() -> None:
    with raises(UsageError, ErrorKind.UNREACHABLE, "nothing://here"), open_cluster(None, None, "nothing://here"):
        pass


@pytest.mark.parametrize("module", ["distributed", "dask"])
def test_without_dask_a_line_says_what_to_install(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_models(tmp_path / "in", "dense_model")
    monkeypatch.setitem(sys.modules, module, None)
    done = CliRunner().invoke(cli, ["batch", str(tmp_path / "in"), "-o", str(tmp_path / "out")])
    assert isinstance(done.exception, UsageError)
    assert done.exception.kind is ErrorKind.NOT_INSTALLED
    assert not (tmp_path / "out").exists()


def test_models_are_not_overwritten_by_their_results(tmp_path: Path) -> None:
    write_models(tmp_path / "models", "dense_model")
    before = (tmp_path / "models" / "dense_model.tflite").read_bytes()
    refused = CliRunner().invoke(cli, ["batch", str(tmp_path / "models"), "-o", str(tmp_path)])
    assert isinstance(refused.exception, UsageError)
    assert refused.exception.kind is ErrorKind.IS_INPUT
    assert (tmp_path / "models" / "dense_model.tflite").read_bytes() == before
    assert not (tmp_path / RESULTS).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_nor_through_a_link(tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    before = (tmp_path / "in" / "dense_model.tflite").read_bytes()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "models").symlink_to(tmp_path / "in")
    (tmp_path / "over" / "models").mkdir(parents=True)
    (tmp_path / "over" / "models" / "dense_model.tflite").symlink_to(tmp_path / "in" / "dense_model.tflite")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / RESULTS).symlink_to(tmp_path / "in" / "dense_model.tflite")
    for out, more in (("out", ()), ("over", ()), ("lines", ("--no-models",))):
        refused = CliRunner().invoke(cli, ["batch", str(tmp_path / "in"), "-o", str(tmp_path / out), *more])
        assert isinstance(refused.exception, UsageError), refused.output
        assert refused.exception.kind is ErrorKind.IS_INPUT
        assert (tmp_path / "in" / "dense_model.tflite").read_bytes() == before


@pytest.mark.slow
def test_a_cluster_has_workers_of_its_own(tmp_path: Path) -> None:
    write_models(tmp_path / "in", "dense_model")
    words = ["batch", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--cluster", "tcp://x:1", "--jobs", "2"]
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 2
    assert "--cluster has its own workers" in refused.output


def done_so_far(folder: Path) -> int:
    path = folder / RESULTS
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder, count = tmp_path / "in", 16
    folder.mkdir()
    for number in range(count):  # enough that some still wait when the first ones end
        b = ModelBuilder()
        y = b.conv(b.input("x", (1, 8, 8, 2)), 4 + number, seed=number)
        (folder / f"many{number:02}.tflite").write_bytes(write_model(b.finish(y)))
    words = ["batch", str(folder), "-o", str(tmp_path / "out"), "--jobs", "2", "--changes", "rewrites"]
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
    assert said.endswith("tflite-memopt: interrupted; run the same command to continue\n")
    assert "Traceback" not in said
    kept = done_so_far(tmp_path / "out")
    assert 0 < kept < count
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{count} models: {count} done ({kept} by an earlier run)" in second.stdout
    assert done_so_far(tmp_path / "out") == count
