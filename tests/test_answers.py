"""The first line answers: verify, explore, parts, a result that saves nothing, a window that takes more RAM."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import tflite_memopt
from tests.command import run
from tests.faults import raises
from tests.models import dense_model, mobile_chain
from tests.test_slide import keywords
from tflite_memopt import Options, UsageError, optimize
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.verdict import Verdict
from tflite_memopt.evidence.equivalence.verification import verdict_of
from tflite_memopt.evidence.proof import Proof, Status
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.documents import verdict_line
from tflite_memopt.report.warnings import warnings_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.tflite").write_bytes(write_model(mobile_chain(12)))
    (tmp_path / "d.tflite").write_bytes(write_model(dense_model()))
    (tmp_path / "w.tflite").write_bytes(write_model(keywords()))
    return tmp_path


def changed_weight(data: bytes) -> bytes:
    """The model with another value in its largest constant."""
    model = read_model(data)
    largest = max((t for t in model.main.tensors if t.is_constant), key=lambda t: t.nbytes)
    assert largest.buffer.data is not None
    at = data.index(largest.buffer.data.tobytes())
    made = bytearray(data)
    made[at] ^= 1
    return bytes(made)


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_verify_answers_in_its_first_line(quiet: tuple[str, ...], folder: Path) -> None:
    (folder / "other.tflite").write_bytes(changed_weight((folder / "m.tflite").read_bytes()))
    equal = run("verify", *quiet, "m.tflite", "m.tflite", folder=folder)
    assert re.match(r"equal: proved for all inputs, and bit-exact on \d+ inputs \(", equal.stdout), equal.stdout
    different = run("verify", *quiet, "m.tflite", "other.tflite", folder=folder)
    assert (different.returncode, different.stdout.startswith("DIFFERENT by proof")) == (1, True), different.stdout
    assert max(map(len, different.stdout.splitlines()[1:]), default=0) <= 120


def test_the_answer_says_what_a_proof_is_limited_to() -> None:
    ran = Verdict(3, True, 0.0, None)
    verdicts = {"proof": verdict_of(Proof(Status.PROVED, is_finite=True)), "tflm": ran}
    limit = "proved for all inputs, for finite values that do not overflow, and bit-exact"
    assert verdict_line(verdicts) == f"equal: {limit} on 3 inputs (TFLM)"


def test_what_saves_nothing_is_not_flashed(folder: Path) -> None:
    done = run("optimize", "d.tflite", "-o", "o.tflite", "--target", "esp32s3", folder=folder)
    assert "keep the original" in done.stdout
    assert "flash your original: " in done.stdout
    assert "flash o.tflite" not in done.stdout
    smaller = run("optimize", "m.tflite", "-o", "o2.tflite", "--target", "cortex-m4", folder=folder)
    assert "flash o2.tflite: " in smaller.stdout


@pytest.mark.slow
def test_every_command_says_that_a_file_was_planned_with_another_target(folder: Path) -> None:
    words = ("optimize", "m.tflite", "-o", "o.tflite", "--target", "cortex-m4", "--effort", "quick", "--no-verify")
    assert run(*words, folder=folder).returncode == 0
    said = "the file was planned with --target cortex-m4: "
    again = ("optimize", "o.tflite", "--effort", "quick", "--no-verify", "-o")
    done = run(*again, "any.tflite", folder=folder)
    assert done.stdout.count(said) == 1
    assert "than the original with" not in done.stdout
    assert "flash any.tflite: " in done.stdout
    assert said not in run(*again, "same.tflite", "--target", "cortex-m4", folder=folder).stdout
    assert run(*again, "parts", "--parts", "2", folder=folder).stdout.count(said) == 1
    assert run("explore", "o.tflite", "--effort", "quick", folder=folder).stdout.count(said) == 1
    batch = ("batch", "o.tflite", "-o", "out", "-j", "1", "--no-models", "--effort", "quick", "--no-verify")
    assert f"o.tflite: {said}" in run(*batch, folder=folder).stderr


@pytest.mark.slow
def test_kernels_that_were_only_read_give_an_estimate_in_every_command(folder: Path) -> None:
    optimized = run("optimize", "m.tflite", "-o", "o.tflite", "--target", "esp32s3", "--effort", "quick", folder=folder)
    analyzed = run("analyze", "o.tflite", "--target", "esp32s3", folder=folder)
    checked = run("check", "o.tflite", folder=folder)
    for done in (optimized, analyzed, checked):
        assert "an estimate" in done.stdout, done.stdout
    assert run("codegen", "o.tflite", "-o", "firmware", folder=folder).returncode == 0
    assert "ESTIMATES for kernels that were read" in (folder / "firmware" / "arena.h").read_text()
    measured = run("analyze", "m.tflite", "--target", "cortex-m4", folder=folder)
    assert "an estimate" not in measured.stdout


def test_what_a_runtime_does_not_run_is_said_with_the_reason() -> None:
    options = Options(target="cortex-m4", effort="quick", samples=1)
    report = optimize(write_model(mobile_chain(12)), options).report
    missing = replace(report.equivalence["litert"], equal=None, reason=f"it fails: {'again, ' * 40}")
    said = warnings_for(replace(report, equivalence={"litert": missing}), options.profile, options)
    (line,) = (line for line in said if line.startswith("not run on LiteRT: it fails"))
    assert len(line) < 130


@pytest.mark.slow
def test_a_window_over_its_budget_is_written_and_told(folder: Path) -> None:
    words = ("optimize", "w.tflite", "-o", "o.tflite", "--slide", "2", "--budget", "1K", "--effort", "quick")
    done = run(*words, "--target", "cortex-m4", folder=folder)
    assert done.returncode == 3, done.stderr
    assert "DOES NOT FIT 1 KB" in done.stdout
    assert re.search(r"sliding takes [\d,]+ bytes more than the whole window; (it saves|and no)", done.stdout)
    assert (folder / "o.tflite").stat().st_size


@pytest.mark.slow
def test_explore_draws_no_budget_that_was_not_given_and_names_the_least_limit(folder: Path) -> None:
    done = run("explore", "m.tflite", "--report", "x.svg", "--effort", "quick", "--target", "cortex-m4", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "budget: " not in (folder / "x.svg").read_text()
    rows = re.findall(r"│ +\d+ │.*?│ +([+-]?[\d.]+) %.*--max-slowdown (\d+) │", done.stdout)
    for slowdown, limit in rows:
        assert float(slowdown) > 10 or int(limit) <= 10, done.stdout


def test_one_part_says_what_is_proved_and_what_to_do(folder: Path) -> None:
    words = ("optimize", "d.tflite", "-o", "program", "--parts", "auto", "--target", "cortex-m4")
    done = run(*words, folder=folder)
    assert "and proved for all inputs" in done.stdout.splitlines()[0]
    assert all(f"\n{label}" in done.stdout for label in ("limit ", "price ", "next "))


def test_codegen_says_the_bytes_the_macros_and_the_next_step(folder: Path) -> None:
    memories = ("--memory", "dtcm=4K", "--memory", "sram=64K", "--external", "input")
    done = run("codegen", "m.tflite", "-o", "fw", "--target", "cortex-m7", *memories, folder=folder)
    first, dtcm, sram, image, following, *paths = done.stdout.splitlines()
    arena = re.search(r"RAM ([\d,]+) bytes: model::kArenaBytes", first)
    assert arena is not None
    assert f"sram: {arena[1]} bytes, TFLITE_MEMOPT_IN_SRAM" in sram
    assert "TFLITE_MEMOPT_IN_DTCM" in dtcm
    assert '"image"' in image
    assert following.startswith("next: ")
    assert all(Path(folder, path).exists() for path in paths)


def test_python_shows_its_names_and_speaks_of_its_own_arguments(folder: Path) -> None:
    assert dir(tflite_memopt) == sorted(tflite_memopt.__all__)
    result = optimize(folder / "d.tflite", Options(verify=False))
    with raises(UsageError, ErrorKind.EXISTS, "force=True"):
        result.save(folder / "d.tflite")
