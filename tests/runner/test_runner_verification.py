"""``--runner``: the verification on a runner beside the wheel, with the wheel in the place of a board."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tests.command import run
from tests.faults import differs_on, raises, wrong_option
from tests.firmware.test_own_buffers import cell
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tests.tflm import needs_wheel
from tflite_memopt import EquivalenceError, Options, UsageError, optimize, verify
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.subject import Promise, Subject
from tflite_memopt.evidence.equivalence.verification import verify_result
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.model import to_json

ROOT = Path(__file__).parents[2]
MODEL = write_model(mobile_chain())
pytestmark = needs_wheel
OPTIONS = Options(samples=3, runtimes=("tflm",), cascade=False)
WHEEL = f"{sys.executable} {Path(__file__).with_name('wheel_runner.py')}"
ON_WHEEL = replace(OPTIONS, runner=WHEEL)


def wheel_that(folder: Path, change: str) -> str:
    """A runner over the wheel whose ``run_tflm`` is ``changed(job)``, a function that ``change`` defines."""
    path = folder / "changed_runner.py"
    lines = ("import sys", "from tests.runner import wheel_runner", "run = wheel_runner.run_tflm", change)
    path.write_text("\n".join((*lines, "wheel_runner.run_tflm = changed", "wheel_runner.main(sys.argv[1])")))
    return f"{sys.executable} {path}"


WRONG_WHEN_PLANNED = """
def changed(job):
    found = run(job)
    if b"tflite_memopt.plan" in job.model:
        for array in found.arrays.values():
            array.flat[0] ^= 1
    return found
"""
REFUSES = """
def changed(job):
    raise RuntimeError("no such operator")
"""


@pytest.mark.slow
def test_the_report_has_the_runners_verdict_and_figures() -> None:
    report = optimize(MODEL, ON_WHEEL).report
    verdict = report.equivalence["runner"]
    assert (verdict.equal, verdict.kernels) == (True, "reference at wheel")
    assert report.basis.executed_by == ("tflm", "runner")
    assert report.runner is not None
    for side, use in (("before", report.before), ("after", report.after)):
        assert (report.runner[side]["head"], report.runner[side]["tail"]) == (use.tflm["head"], use.tflm["tail"])
        assert report.runner[side]["smallest_arena"] == 4096
    jsonschema.validate(json.loads(to_json(report)), json.loads((ROOT / "schema" / "report.schema.json").read_text()))
    assert optimize(MODEL, OPTIONS).report.runner is None


@pytest.mark.slow
def test_a_runner_is_enough_where_the_wheel_has_no_word() -> None:
    report = optimize(MODEL, replace(ON_WHEEL, runtimes=("litert",))).report
    assert report.basis.executed_by == ("runner",)


@pytest.mark.slow
def test_what_differs_on_the_runner_alone_is_not_written(tmp_path: Path) -> None:
    """The wheel finds it equal; the runner does not, with the last step either, so there is no result."""
    options = replace(ON_WHEEL, runner=wheel_that(tmp_path, WRONG_WHEN_PLANNED))
    said: list[str] = []
    with differs_on("runner", "portable"):
        optimize(MODEL, options, said.append)
    assert any(text.startswith("rewrites dropped") for text in said)
    planned = optimize(MODEL, OPTIONS).model
    verdicts = verify(MODEL, planned, options)
    assert (verdicts["tflm"].equal, verdicts["runner"].equal) == (True, False)


def test_a_runner_that_refuses_the_model_is_an_error_before_any_search(tmp_path: Path) -> None:
    said: list[str] = []
    options = replace(ON_WHEEL, runner=wheel_that(tmp_path, REFUSES))
    with raises(EquivalenceError, ErrorKind.RUNNER, "no such operator"):
        optimize(MODEL, options, said.append)
    assert len(said) == 2  # reading, looking at the original


@pytest.mark.slow
def test_the_promised_arena_and_head_are_held_against_the_runner() -> None:
    for promise, figure in ((Promise(required_bytes=4_096), "4096 bytes"), (Promise(head=160), "says 160")):
        with differs_on("runner", figure):
            verify_result(Subject(MODEL, MODEL, promises={"runner": promise}), ON_WHEEL, lambda _: None)


TELLS_ITS_POINTERS = """
def changed(job):
    print("pointer_bits 64")
    return run(job)
"""
KEEPS_NOTHING = """
from dataclasses import replace
def changed(job):
    lost, samples = {at for _, at in job.carried}, job.samples[:1]
    for left in map(iter, job.samples[1:]):
        samples.append([array * 0 if at in lost else next(left) for at, array in enumerate(job.samples[0])])
    return run(replace(job, samples=samples))
"""


@pytest.mark.slow
def test_a_runner_runs_a_model_with_ties_in_sequence(tmp_path: Path) -> None:
    """Given all inputs in each run, it could lose a state unseen."""
    data = write_model(cell())
    options = replace(ON_WHEEL, samples=4, kernels="reference", ties=("h:out:h:in",))
    assert optimize(data, options).report.equivalence["runner"].equal
    with differs_on("runner", "invocation 1"):
        optimize(data, replace(options, runner=wheel_that(tmp_path, KEEPS_NOTHING)))


def test_a_runner_without_a_proof_or_without_a_file_is_refused() -> None:
    with wrong_option("runner"):
        Options(runner=WHEEL, verify=False)
    with raises(UsageError, ErrorKind.RUNNER, "no/such/runner"):
        optimize(MODEL, Options(runner="no/such/runner"))


@pytest.mark.slow
def test_exit_codes_of_the_command(tmp_path: Path) -> None:
    source, planned = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(MODEL)
    assert run("optimize", source, "-o", planned, "--changes", "rewrites").returncode == 0
    common = ("verify", source, planned, "--samples", 2, "--runtime", "tflm", "--runner")
    assert run(*common, WHEEL).returncode == 0
    different = run(*common, wheel_that(tmp_path, WRONG_WHEN_PLANNED))
    assert (different.returncode, "runner: " in different.stderr) == (5, True)  # the proof says equal
    silent = run(*common, wheel_that(tmp_path, REFUSES))
    assert (silent.returncode, "runner: no verdict" in silent.stderr) == (1, True)
    assert run(*common, tmp_path / "absent").returncode == 2


@pytest.mark.slow
def test_a_runner_of_another_pointer_width_than_the_target_is_refused(tmp_path: Path) -> None:
    runner = wheel_that(tmp_path, TELLS_ITS_POINTERS)
    with raises(UsageError, ErrorKind.RUNNER, "64", "cortex-m7", "32"):
        optimize(MODEL, replace(OPTIONS, runner=runner, target="cortex-m7"))


@pytest.mark.slow
def test_a_bug_of_the_library_is_not_blamed_on_the_plan(tmp_path: Path) -> None:
    b = ModelBuilder()
    x, y = b.input("x", (2,) * 5), b.tensor("y", (2,) * 5)
    order = b.constant("order", np.arange(5, dtype=np.int32)[::-1].copy())
    b.operator("TRANSPOSE", (x, order), (y,), "TransposeOptions")
    options = replace(ON_WHEEL, kernels="cmsis-nn-dsp", runner=wheel_that(tmp_path, WRONG_WHEN_PLANNED))
    with differs_on("runner", "TRANSPOSE 'y'"):
        optimize(write_model(b.finish(y)), options)
