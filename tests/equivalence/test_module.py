"""TFLM in WebAssembly modules: the values of the wheel, the arenas that are counted, and no way out for a model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from scripts.device_lab.runs import run_models
from scripts.makers.model_builder import ModelBuilder
from tests.models import (
    ALL,
    branches,
    concat_model,
    dense_model,
    if_model,
    mobile_chain,
    split_model,
    streaming_model,
    transpose_conv_model,
    while_model,
)
from tests.tflm import needs_wheel
from tflite_memopt import EquivalenceError, Options, analyze, optimize
from tflite_memopt.equivalence import verification
from tflite_memopt.equivalence.adapter import Array, Run, RunJob
from tflite_memopt.equivalence.exposure import snapshots, tensors_to_show, without_plan
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.module import MODULE_FOLDER, VARIABLE, KernelModule, ModuleRunner, module_for
from tflite_memopt.equivalence.runner import GivenUpError
from tflite_memopt.errors import MemoptError
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model
from tflite_memopt.kernels.targets import profile_for

TARGETS = ("cortex-m3", "cortex-m7", "esp32", "riscv32")
"""One for each module."""
CORPUS = sorted(Path(os.environ.get("TFLITE_MEMOPT_MODELS", "/nonexistent")).glob("*.tflite"))
MODELS: Mapping[str, Model] = {
    "mobile_chain": mobile_chain(),
    "branches": branches(),
    "concat": concat_model(),
    "dense": dense_model(),
    "split": split_model(),
    "transpose_conv": transpose_conv_model(),
    "streaming": streaming_model(),
    "if": if_model(),
    "while": while_model(),
}
ARENA = 1 << 18
targets = pytest.mark.parametrize("target", TARGETS)


def module(target: str) -> KernelModule:
    found = module_for(profile_for(target))
    if found is None:
        pytest.skip(f"no module for {target}: scripts/runners builds them")
    return found


def runner(target: str) -> ModuleRunner:
    return ModuleRunner(module(target))


def same(first: Mapping[str, Array], second: Mapping[str, Array]) -> bool:
    return list(first) == list(second) and all(np.array_equal(first[key], second[key]) for key in first)


@cache
def on_the_wheel() -> dict[str, Run]:
    models = {label: write_model(model) for label, model in MODELS.items()}
    return run_models("tflm", models, {label: seeded_inputs(model, 3, 1) for label, model in MODELS.items()}, ARENA)


@needs_wheel
@targets
def test_every_module_computes_what_the_wheel_computes(target: str) -> None:
    for label, model in MODELS.items():
        run = runner(target).run(RunJob(write_model(model), seeded_inputs(model, 3, 1), ARENA))
        assert run.ran, (label, run.error)
        assert same(run.arrays, on_the_wheel()[label].arrays), label


@targets
@pytest.mark.parametrize("name", ALL)
def test_the_smallest_arena_is_what_is_counted(name: str, target: str) -> None:
    """To the byte, and sixteen bytes less are refused."""
    data = write_model(ALL[name]())
    model = read_model(data)
    if not runner(target).knows(model):
        pytest.skip("a module has no kernel for one of its operators")
    samples = seeded_inputs(model, 2, 1)
    found = runner(target).run(RunJob(data, samples, 1 << 20, measure=True))
    assert found.ran, found.error
    memory = analyze(data, target=target).memory
    counted = memory.required_bytes["target"]
    assert not memory.required_is_exact or found.facts["smallest_arena"] == counted
    exact = runner(target).run(RunJob(data, samples, found.facts["smallest_arena"]))
    assert same(exact.arrays, found.arrays)
    assert not runner(target).run(RunJob(data, samples, found.facts["smallest_arena"] - 16)).ran


@targets
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_smallest_arena_of_real_models_is_what_is_counted(path: Path, target: str) -> None:
    data = path.read_bytes()
    found = runner(target).run(RunJob(data, seeded_inputs(read_model(data), 1, 0), 16 << 20, measure=True))
    if not found.ran:
        pytest.skip(f"TFLM refuses it: {found.error}")
    assert found.facts["smallest_arena"] == analyze(path, target=target).memory.required_bytes["target"]


@targets
@pytest.mark.parametrize("name", MODELS)
def test_tensors_are_shown_as_models_with_more_outputs_show_them(name: str, target: str) -> None:
    model = MODELS[name]
    data, samples = write_model(model), seeded_inputs(model, 3, 2)
    places = tensors_to_show(model)
    shown = runner(target).run(RunJob(data, samples, ARENA, places)).tensors
    [other] = snapshots(without_plan(data), 0)
    outputs = runner(target).run(RunJob(other.model, samples, ARENA + other.extra_bytes)).outputs
    for position, place in other.tensors.items():
        assert all(map(np.array_equal, shown[place], outputs[position])), place
        assert len(shown[place]) == len(outputs[position]) == len(samples)


def endless() -> Model:
    """WHILE 0 < 1."""
    b = ModelBuilder()
    x = b.input("x", (1, 8), DType.FLOAT32)
    y = b.tensor("y", (1, 8), DType.FLOAT32)
    b.operator("WHILE", (x,), (y,), "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    b.finish(y)
    b.new_graph("condition")
    b.input("cond_x", (1, 8), DType.FLOAT32)
    numbers = [b.constant(name, np.asarray([at], dtype=np.int32)) for at, name in enumerate(("zero", "one"))]
    less = b.tensor("less", (1,), DType.BOOL)
    b.operator("LESS", numbers, (less,), "LessOptions")
    b.finish(less)
    b.new_graph("body")
    x = b.input("body_x", (1, 8), DType.FLOAT32)
    b.finish(b.add(x, x))
    return b.model


def test_a_loop_that_never_ends_is_ended_after_counted_work() -> None:
    model = endless()
    run = runner("riscv32").run(RunJob(write_model(model), seeded_inputs(model, 1, 0), ARENA))
    assert run.error == "it did not end within the work that its size allows"


def test_a_module_takes_no_more_memory_than_it_may() -> None:
    data = write_model(dense_model())
    small = ModuleRunner(module("riscv32"), 4 << 20)
    assert small.run(RunJob(data, [], ARENA)).ran
    assert small.run(RunJob(data, [], 64 << 20)).error == f"there is no room for an arena of {64 << 20} bytes"


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from tests.equivalence.test_module import dense_model, runner
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.io.writer import write_model
run = runner("riscv32").run(RunJob(write_model(dense_model()), [], 1 << 18, measure=True))
sys.exit(run.error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_module_runs_where_a_shell_limits_the_address_space() -> None:
    """Usually an instance takes 4 GB of addresses."""
    module("riscv32")
    assert subprocess.run([sys.executable, "-c", _LIMITED], check=False, cwd=Path(__file__).parents[2]).returncode == 0


def test_a_closed_module_gives_no_answer() -> None:
    model = dense_model()
    closed = ModuleRunner(module("riscv32"))
    closed.close()
    with pytest.raises(GivenUpError):
        closed.run(RunJob(write_model(model), seeded_inputs(model, 1, 0), ARENA))


@targets
def test_damaged_models_end_in_a_sentence(target: str) -> None:
    """A wrong bit anywhere, past every check of the file: the module is what stands between it and this process."""
    random = np.random.default_rng(0)
    data = bytearray(write_model(mobile_chain()))
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        for at in random.integers(0, len(damaged), 8):
            damaged[at] ^= 1 << int(random.integers(8))
        with suppress(MemoptError, ValueError):
            model = read_model(bytes(damaged))
            run = runner(target).run(RunJob(bytes(damaged), seeded_inputs(model, 1, 0), ARENA))
            refused += not run.ran
            assert run.ran or "\n" not in str(run.error)
    assert refused > 0


@pytest.mark.parametrize(
    ("target", "kernels"),
    [("cortex-m4", "cmsis-nn-dsp"), ("cortex-m0", "cmsis-nn"), ("esp32c3", "esp-nn"), (None, "reference")],
)
def test_a_result_is_verified_on_the_kernels_that_it_is_for(target: str | None, kernels: str) -> None:
    module(target or "riscv32")
    report = optimize(write_model(mobile_chain()), Options(target=target, samples=3)).report
    verdict = report.equivalence["tflm"]
    assert verdict.equal
    assert verdict.kernels is not None
    assert verdict.kernels.partition(" ")[0] == kernels
    assert report.basis.plan_executed
    assert report.after.tflm["smallest_arena"] == report.after.required_bytes["target" if target else "32"]
    assert not [each for each in report.warnings if "TFLM ran the result with" in each]


def test_where_no_module_has_the_kernels_the_reference_ones_run_and_the_report_says_so() -> None:
    module("riscv32")
    report = optimize(write_model(mobile_chain()), Options(target="cortex-m55", samples=3)).report
    assert any("ran the result with reference kernels, not with cmsis-nn-mve" in each for each in report.warnings)


@pytest.mark.parametrize("target", [None, "cortex-m7"])
def test_modules_give_the_same_file_as_the_wheel(
    target: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module(target or "riscv32")
    options, data = Options(target=target, samples=3), write_model(mobile_chain())
    with_modules = optimize(data, options)
    monkeypatch.setattr(verification, "find_spec", lambda _: None)
    assert optimize(data, options).report.equivalence == with_modules.report.equivalence
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert optimize(data, options).model == with_modules.model


@pytest.mark.usefixtures("no_modules", "no_wheel")
def test_without_modules_and_wheel_one_line_says_what_was_not_checked() -> None:
    report = optimize(write_model(mobile_chain()), Options(samples=3)).report
    [said] = [each for each in report.warnings if "graph only" in each]
    assert said == (
        "equal as a graph only: TFLM did not execute the plan (nothing was run on TFLM: scripts/runners builds its "
        "modules, and the tflite-micro wheel, for Linux on x86-64, is not installed)"
    )


@pytest.mark.usefixtures("no_modules", "no_wheel")
def test_without_modules_and_wheel_require_refuses() -> None:
    with pytest.raises(EquivalenceError, match=r"--require tflm.*scripts/runners"):
        optimize(write_model(mobile_chain()), replace(Options(samples=3), require=("tflm",)))


def test_modules_of_another_version_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tflm-reference.wasm").write_bytes(b"\0asm\1\0\0\0")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MemoptError, match="scripts/runners builds them again"):
        optimize(write_model(mobile_chain()), Options(samples=3))


def test_modules_lie_where_the_script_puts_them() -> None:
    assert MODULE_FOLDER.parent == Path(verification.__file__).parent
