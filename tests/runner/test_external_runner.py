"""The protocol of runners: what is handed over, what comes back, and what is said when a runner breaks it."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from scripts.makers.runs import run_external
from tests.faults import raises
from tests.models import dense_model, mobile_chain, quantized_at_the_boundary, streaming_model
from tests.tflm import needs_wheel, run_models
from tflite_memopt.errors import ErrorKind, UsageError
from tflite_memopt.evidence.equivalence import external_runner
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.external_runner import command_of
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model

pytestmark = needs_wheel
WHEEL = [sys.executable, str(Path(__file__).with_name("wheel_runner.py"))]
ANSWER = "echo model model0.tflite; echo head 1; echo tail 2; printf '%08d' 0 > outputs0.bin;"


@pytest.mark.few(2)
@pytest.mark.parametrize("model", [dense_model(), mobile_chain(), streaming_model(), quantized_at_the_boundary()])
def test_a_runner_gives_what_the_same_runtime_gives_without_one(model: Model) -> None:
    data, samples = write_model(model), seeded_inputs(model, 3, 5)
    run = run_external(WHEEL, data, samples)
    assert run.ran, run.error
    direct = run_models("tflm", {"model": data}, samples, 1 << 20)["model"]
    assert list(run.arrays) == list(direct.arrays)
    for name, array in direct.arrays.items():
        assert run.arrays[name].dtype == array.dtype
        assert np.array_equal(run.arrays[name], array)
    assert (run.facts["head"], run.facts["tail"]) == (direct.facts["head"], direct.facts["tail"])
    assert (run.facts["smallest_arena"], run.kernels, run.commit) == (4096, "reference", "wheel")
    assert "instructions" not in run.facts


@pytest.mark.slow
def test_a_refusal_ends_only_its_own_job() -> None:
    model = dense_model()
    data, samples = write_model(model), seeded_inputs(model, 2, 0)
    jobs = {
        "small": RunJob(data, samples, 1200),
        "large": RunJob(data, samples, 1 << 16),
        "other": RunJob(data, samples[:1], 0),
    }
    runs = {name: external_runner.run_external(WHEEL, job) for name, job in jobs.items()}
    assert not runs["small"].ran
    assert "what the wheel said" in str(runs["small"].error)
    assert runs["large"].ran
    assert "smallest_arena" not in runs["large"].facts
    assert len(runs["large"].arrays) == 2
    assert len(runs["other"].arrays) == 1


def runner(folder: Path, body: str) -> list[str]:
    """A runner that is a shell script."""
    path = folder / "runner"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return command_of(str(path))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo 'what a board says when it starts'; " + ANSWER + "echo done", None),
        (ANSWER + "echo instructions 77; echo done", None),
        (ANSWER, "the runner ended with code 0 before it answered"),
        (ANSWER + "echo no way >&2; exit 7", "the runner ended with code 7 before it answered: no way"),
        ("kill -SEGV $$", "the runner crashed (SIGSEGV) before it answered"),
        ("exit 0", "the runner ended with code 0 before it answered"),
        ("echo model model0.tflite; echo log so it is; echo error too small", "too small (so it is)"),
        (ANSWER.replace("head", "heat") + "echo done", "codegen --write-runner: it lacks head"),
        (ANSWER.replace("head 1", "head one") + "echo done", "codegen --write-runner: invalid literal"),
        (ANSWER.replace("%08d", "%07d") + "echo done", "its outputs have 7 bytes, the model's have 8"),
        (ANSWER.replace("outputs0", "elsewhere") + "echo done", "codegen --write-runner: [Errno 2] No such file"),
    ],
)
def test_what_a_runner_does_wrong_is_said(tmp_path: Path, body: str, reason: str | None) -> None:
    model = dense_model(8)
    run = run_external(runner(tmp_path, body), write_model(model), seeded_inputs(model, 1, 0))
    if reason is None:
        assert run.ran, run.error
        assert run.arrays["s0_o0"].tolist() == [[48] * 8]
        return
    assert not run.ran
    assert reason in str(run.error)


def test_a_runner_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    model = dense_model()
    command = runner(tmp_path, f"(sleep 600; touch {tmp_path / 'alive'}) & wait")
    run = run_external(command, write_model(model), seeded_inputs(model, 1, 0), timeout=0.5)
    assert (
        run.error == "the runner did not finish within 0.5 s"
    )  # had a process lived on, this would have waited for it


def test_a_command_may_have_arguments_and_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "a runner"
    path.write_text("#!/bin/sh\n")
    for wrong in (str(path), str(tmp_path), str(tmp_path / "absent"), ""):
        with raises(UsageError, ErrorKind.RUNNER, wrong):
            command_of(wrong)
    path.chmod(0o755)
    assert command_of(path) == [str(path)]
    assert command_of(f"'{path}' --port /dev/null") == [str(path), "--port", "/dev/null"]
    with raises(UsageError, ErrorKind.RUNNER, "absent"):
        run_external([str(tmp_path / "absent")], b"", [])
