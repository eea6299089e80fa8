"""Firmware that tests itself: its inputs are those that codegen drew, and it notices wrong outputs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tflite_memopt
from tests.faults import raises
from tests.firmware.compiled import (
    HOST,
    SMALL,
    built_tflm,
    check_against_headers,
    compiler,
    headers_of_a_tflm,
    run_on_tflm,
)
from tests.firmware.generated import generate
from tests.model_builder import ModelBuilder
from tests.models import dense_model, mobile_chain, streaming_model
from tests.tflm import needs_wheel
from tflite_memopt import Options, UsageError
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.adapter import RunJob, Sample
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.equivalence.sequences import zeros_of
from tflite_memopt.firmware.files import runner_source
from tflite_memopt.firmware.self_test import RUNS, Expected, digest, drawn_inputs, expected_outputs
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, Model

TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL)


def drawn_slowly(model: Model) -> list[Sample]:
    """The same inputs, number by number."""
    state, runs = 12345, []
    for _ in range(RUNS):
        sample = []
        for tensor in model.main.inputs:
            values: list[float] = []
            kind = {DType.FLOAT32: "float", DType.INT32: "bit", DType.INT64: "bit", DType.BOOL: "zero"}
            for _ in range(tensor.elements if tensor.dtype in kind else tensor.nbytes):
                if kind.get(tensor.dtype) == "zero":
                    values.append(0)
                    continue
                state = (state * 1664525 + 1013904223) % 2**32
                number = {"float": (state // 256 - 2**23) / 2**23, "bit": state >> 31}
                values.append(number.get(kind.get(tensor.dtype, ""), state >> 24))
            dtype = np.dtype(bool if tensor.dtype is DType.BOOL else tensor.dtype.label)
            raw = np.array(values) if tensor.dtype in kind else np.array(values, np.uint8).view(dtype)
            sample.append(raw.astype(dtype).reshape(tensor.shape))
        runs.append(sample)
    return runs


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=4))
def test_inputs_are_drawn_as_the_firmware_draws_them(shapes: list[tuple[DType, int, int]]) -> None:
    b = ModelBuilder()
    tensors = [b.input(f"x{at}", (rows, columns), dtype) for at, (dtype, rows, columns) in enumerate(shapes)]
    for ours, theirs in zip(drawn_inputs(tensors), drawn_slowly(b.finish(*tensors)), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def test_the_digest_is_fnv_1a() -> None:
    """The value of the reference implementation for "foobar"."""
    assert digest(np.frombuffer(b"foobar", np.uint8)) == 0xBF9CF968


def floats() -> Model:
    b = ModelBuilder()
    x = b.input("x", (1, 8), DType.FLOAT32)
    weights = b.constant("w", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    y = b.tensor("scores", (1, 4), DType.FLOAT32)
    b.operator("FULLY_CONNECTED", (x, weights, None), (y,), "FullyConnectedOptions")
    return b.finish(y)


MODELS = {"integers": mobile_chain, "floats": floats, "state": streaming_model, "dense": dense_model}


def firmware(folder: Path, data: bytes, expected: Expected) -> Path:
    for path, text in generate(data, HOST, expected=expected, planner="metadata").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text)
    return folder


@pytest.mark.slow
@needs_wheel
@pytest.mark.parametrize("main", ["main.cc", "main_two_arenas.cc"])
@pytest.mark.parametrize("name", MODELS)
def test_it_passes_with_tflm_and_fails_with_other_outputs(name: str, main: str, tmp_path: Path) -> None:
    original = write_model(MODELS[name]())
    small = tflite_memopt.optimize(original, Options(verify=False, effort="quick")).model
    expected = expected_outputs(small, original=("original.tflite", original))
    assert expected.reason is None
    code, said = run_on_tflm(firmware(tmp_path, small, expected), main)
    assert (code, f"PASS: {RUNS} runs" in said) == (0, True), said
    last = [values.copy() for values in expected.outputs[-1]]
    last[-1].flat[0] = 0 if last[-1].flat[0] else 1
    wrong = Expected((*expected.outputs[:-1], last), expected.reference, None)
    code, said = run_on_tflm(firmware(tmp_path, small, wrong), main)
    output = read_model(small).main.outputs[-1].name
    assert (code, f"'{output}' of run {RUNS - 1}" in said) == (4, True), said
    assert "PASS" not in said


@needs_wheel
def test_one_changed_weight_is_noticed(tmp_path: Path) -> None:
    data = write_model(dense_model())
    firmware(tmp_path, data, expected_outputs(data))
    text = (tmp_path / "model_data.cc").read_text()
    weights = next(t for t in read_model(data).main.tensors if t.is_constant and t.dtype is DType.INT8)
    assert weights.buffer.data is not None
    at = data.index(weights.buffer.data.tobytes())
    changed = bytearray(data)
    changed[at] ^= 0x40
    other = generate(bytes(changed), HOST, planner="metadata")["model_data.cc"].decode()
    assert other != text
    (tmp_path / "model_data.cc").write_text(other)
    code, said = run_on_tflm(tmp_path, "main.cc")
    assert (code, "FAIL: output 0" in said) == (4, True), said


@needs_wheel
def test_an_operator_that_is_not_registered_is_refused(tmp_path: Path) -> None:
    data = write_model(dense_model())
    firmware(tmp_path, data, expected_outputs(data))
    text = (tmp_path / "resolver.h").read_text()
    lacking = re.sub(r"  if \(resolver\.AddFullyConnected\(\) .*\n", "", text)
    assert lacking != text
    (tmp_path / "resolver.h").write_text(lacking)
    code, said = run_on_tflm(tmp_path, "main.cc")
    assert (code, "FULLY_CONNECTED" in said) == (2, True), said


def test_without_expected_outputs_it_says_that_nothing_was_checked() -> None:
    text = generate(write_model(dense_model()))["self_test.h"].decode()
    assert "constexpr bool kHasExpected = false;" in text
    assert 'MicroPrintf("NOT CHECKED: codegen ran without TFLM");' in text
    assert "kExpected0" not in text


@needs_wheel
def test_an_original_with_other_inputs_is_refused() -> None:
    with raises(UsageError, ErrorKind.INTERFACE, "'other'", "inputs"):
        expected_outputs(write_model(dense_model()), original=("other", write_model(mobile_chain())))


@needs_wheel
def test_tied_states_are_zeros_first_and_are_handed_from_run_to_run() -> None:
    b = ModelBuilder()
    x, h = b.input("x", (1, 8)), b.input("h", (1, 8))
    model = b.finish(b.add(h, x))
    data, state = write_model(model), zeros_of(h)
    found = expected_outputs(data, ((0, 1),))
    with Interpreters((), ProcessLimits()) as interpreters:
        for (given,), (wanted,) in zip(drawn_inputs(model.main.inputs, [1]), found.outputs, strict=True):
            (state,) = interpreters["tflm"].run(RunJob(data, [[given, state]], 1 << 16)).outputs[0]
            assert np.array_equal(state, wanted)


@needs_wheel
def test_the_command_writes_what_tflm_gave(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(write_model(dense_model()))
    done = CliRunner().invoke(cli, ["codegen", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "fw")])
    assert done.exit_code == 0, done.output
    found = re.search(r"kExpected0\[\] = \{(.*)\};", (tmp_path / "fw" / "self_test.h").read_text())
    assert found is not None
    assert len(found[1].split(", ")) == RUNS


@pytest.mark.device
def test_the_runner_compiles_with_the_headers_of_a_tflm(tmp_path: Path) -> None:
    """Without the operators that it lacks, as the runner's first lines say."""
    header = headers_of_a_tflm() / "tensorflow" / "lite" / "micro" / "micro_mutable_op_resolver.h"
    methods = set(re.findall(r"TfLiteStatus (Add\w+)\(", header.read_text()))
    lines = runner_source().decode().splitlines(keepends=True)
    calls = {line: call[1] for line in lines if (call := re.match(r"  resolver\.(\w+)\(\);", line))}
    lacking = [line for line, method in calls.items() if method not in methods]
    assert len(lacking) < 10 < len(calls)
    (tmp_path / "runner.cc").write_text("".join(line for line in lines if line not in lacking))
    assert check_against_headers(tmp_path, "runner.cc") == ""


@pytest.mark.device
def test_the_runner_answers_requests(tmp_path: Path) -> None:
    """On a TFLM that was built, in the protocol of runner.cc."""
    tflm = built_tflm()
    (tmp_path / "runner.cc").write_bytes(runner_source())
    includes = [f"-isystem{each}" for each in tflm.includes]
    strict = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-DTF_LITE_STATIC_MEMORY")
    command = [compiler(), *SMALL, *strict, *includes, str(tmp_path / "runner.cc"), str(tflm.library)]
    runner = tmp_path / "runner"
    built = subprocess.run([*command, "-o", str(runner)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    data = write_model(mobile_chain())
    report = tflite_memopt.optimize(data, Options(samples=3, runtimes=("litert",), runner=str(runner))).report
    assert report.equivalence["runner"].equal
    assert report.basis.executed_by == ("runner",)
    assert report.runner is not None
    assert int(report.runner["after"]["smallest_arena"]) < int(report.runner["before"]["smallest_arena"])
