"""Real models, from the folder that TFLITE_MEMOPT_MODELS names; without it there is nothing to run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from scripts.benchmarks.figures import read
from scripts.benchmarks.models import answer
from scripts.makers.results import IN_README
from tests.deep import assert_same_tree, misaligned_buffers
from tests.tflm import HAS_WHEEL, run_models
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.options import Options
from tflite_memopt.run.pipeline import Result, optimize

pytestmark = pytest.mark.corpus

FOLDER = os.environ.get("TFLITE_MEMOPT_MODELS")
MODELS = sorted(Path(FOLDER).glob("*.tflite")) if FOLDER else []
# Heads in bytes that the plan must reach, by file name: the bound of the order that the file has.
GOALS = {"mlperf_vww_int8": (73_728, 46_080), "mlperf_vww_fp32": (294_912, 184_320)}
# Bytes of all inputs before and after --io int8, for models that convert what they take or give.
INTEGERS = {
    "mcunet_vww": (76_800, 19_200),
    "coral_keras_lstm_mnist_ptq": (784, 784),
    "mww_okay_nabu_v2": (120, 120),
}
# All tests of a model in one process of a parallel run, which optimizes it once.
corpus = pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=pytest.mark.xdist_group(path.stem)) for path in MODELS]
)


# Most bytes of the head in stripes, under the objective head and the kernels of the reference profile.
STRIPED = {
    "mlperf_vww_int8": 29_296,
    "mlperf_vww_fp32": 132_710,
    "mcunet_vww": 80_000,
    "tflm_person_detect": 24_000,
}


def verified(path: Path, options: Options) -> Result:
    """Skips a model that nothing runs here."""
    if path.stem == "tflm_audio_pre_int8" and not HAS_WHEEL:
        pytest.skip("TFLM's signal operators are in the wheel alone")
    return optimize(path, options)


@cache
def optimized(path: Path) -> Result:
    return verified(path, Options(cascade=False))


def test_the_folder_holds_models() -> None:
    assert FOLDER is None or MODELS, f"no .tflite in {FOLDER}"


@corpus
def test_read_and_write_lose_nothing(path: Path) -> None:
    data = path.read_bytes()
    model = read_model(data)
    written = write_model(model)
    assert_same_tree(data, written)
    assert misaligned_buffers(written) == []
    assert read_model(written).associated_files == model.associated_files


@corpus
def test_outputs_are_equal_on_every_runtime_that_can_run_the_model(path: Path) -> None:
    verdicts = optimized(path).report.equivalence
    assert all(verdict.equal is not False for verdict in verdicts.values())
    able = [runtime for runtime, verdict in verdicts.items() if verdict.equal]
    assert able
    for verdict in verdicts.values():
        assert verdict.equal or verdict.reason


@corpus
def test_tflm_takes_what_was_predicted_and_planned_and_never_more_than_stock(path: Path) -> None:
    report = optimized(path).report
    if "error" in report.after.tflm:
        assert report.equivalence["litert"].equal
        assert "uint8" in str(report.after.tflm["error"])
        return
    assert report.before.arena_bytes == report.before.tflm["head"]
    assert report.after.arena_bytes == report.after.tflm["head"]
    assert report.after.arena_bytes <= report.before.arena_bytes
    # The stock head stays where a plan would make some kernel library's arena larger.
    assert report.after.arena_bytes in (report.bounds.plan, report.before.arena_bytes)
    assert report.before.tflm["tail"] == report.before.tail_bytes[str(report.before.tflm.get("pointer_bits", 64))]
    goal = GOALS.get(path.stem)
    assert goal is None or goal == (report.before.arena_bytes, report.after.arena_bytes)


@corpus
def test_stripes_never_cost_more_than_they_save(path: Path) -> None:
    options = Options(samples=5, runtimes=("litert", "tflm"))
    report = verified(path, options).report
    assert any(verdict.equal for verdict in report.equivalence.values())
    assert report.after.required_bytes["32"] <= optimized(path).report.after.required_bytes["32"]
    if "error" not in report.after.tflm:
        assert report.after.arena_bytes == report.after.tflm["head"]
        assert report.after.tflm["tail"] == report.after.tail_bytes[str(report.after.tflm.get("pointer_bits", 64))]


@corpus
def test_stripes_reach_their_goal(path: Path) -> None:
    if path.stem not in STRIPED:
        pytest.skip("no goal for this model")
    options = Options(kernels="reference", objective="head", runtimes=("tflm",))
    report = verified(path, options).report
    assert report.equivalence["tflm"].equal
    assert report.after.tflm["head"] == report.after.arena_bytes <= STRIPED[path.stem]
    assert report.after.macs <= report.before.macs * 1.1


@corpus
def test_integers_at_the_boundary(path: Path) -> None:
    if path.stem not in INTEGERS:
        pytest.skip("it takes and gives integers already, or computes in float")
    report = optimize(path, Options(io="int8", samples=5, cascade=False)).report
    assert report.equivalence["tflm"].equal
    assert all(verdict.equal is not False for verdict in report.equivalence.values())
    sides = report.interface["before"], report.interface["after"]
    assert tuple(sum(t.bytes for t in side if t.side == "input") for side in sides) == INTEGERS[path.stem]
    assert {tensor.type for tensor in sides[1]} == {"int8"}
    assert report.after.arena_bytes <= report.before.arena_bytes


@corpus
def test_the_arena_to_reserve_is_enough_and_within_three_percent(path: Path) -> None:
    result = optimized(path)
    if "error" in result.report.after.tflm:
        pytest.skip("TFLM does not load this model")
    required = result.report.after.required_bytes["64" if HAS_WHEEL else "32"]  # a module has pointers of 4 bytes
    samples = seeded_inputs(read_model(result.model), 2, 0)
    accepts = {
        size: run_models("tflm", {"model": result.model}, samples, size)["model"].ran
        for size in (required, int(required / 1.03))
    }
    assert accepts == {required: True, int(required / 1.03): False}


@corpus
def test_analyze_prints_json(path: Path) -> None:
    command = [sys.executable, "-m", "tflite_memopt", "analyze", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["memory"]["operators"] > 0
    assert done.returncode == (2 if found["answer"]["judgement"] == "cannot run" else 0), done.stderr


@corpus
def test_the_rows_of_the_readme_are_those_of_today(path: Path) -> None:
    if path.stem not in IN_README:
        pytest.skip("no row of the table")
    kept = {each.name: each.value for each in read("models") if (each.model, each.target) == (path.stem, "cortex-m4")}
    today = answer(path, Options(target="cortex-m4", verify=False))
    assert kept == {name: str(value) for name, value in today.items()}
