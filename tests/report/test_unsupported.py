"""A model that TFLM cannot run: said first, everywhere, and nothing is promised of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflite_memopt
from tests.command import run
from tests.faults import raises
from tests.firmware.generated import generate
from tests.kernels.one_operator import alone, with_weights
from tests.model_builder import ModelBuilder
from tests.models import dense_model
from tflite_memopt import Options, UnsupportedModelError
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import DType, OpCode
from tflite_memopt.report.documents import analysis_document, report_document
from tflite_memopt.report.model import to_json
from tflite_memopt.report.pictures.page import html_of

HYBRID = write_model(with_weights("CONV_2D", DType.FLOAT32, DType.INT8))
UINT8 = write_model(alone("AVERAGE_POOL_2D", DType.UINT8))
FIRST = "TFLM cannot run this model: only the weights are quantized, give the converter a representative dataset"


def test_an_analysis_says_so_first_and_that_it_fits_nowhere() -> None:
    analysis = tflite_memopt.analyze(HYBRID)
    assert analysis.summary.headline.startswith(FIRST)
    assert "fits" not in analysis.summary.headline
    assert "tflite-memopt optimize" not in {each.option for each in analysis.summary.advice}
    fields = json.loads(to_json(analysis))["tflm"]
    assert (fields["runs"], fields["reasons"][0]["kind"]) == (False, "weights_only")
    assert FIRST in html_of(analysis_document(analysis)).decode()


@pytest.mark.parametrize("options", [Options(samples=2), Options(verify=False)])
def test_nothing_is_made_of_it(options: Options) -> None:
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL):
        tflite_memopt.optimize(HYBRID, options)


@pytest.mark.parametrize("options", [Options(samples=2), Options(verify=False)])
def test_what_old_versions_of_tflm_run_is_made_and_the_report_says_so_first(options: Options) -> None:
    report = tflite_memopt.optimize(UINT8, options).report
    line = report.summary.headline
    assert "convert to int8" in line
    assert "fits" not in line
    assert not report.tflm.runs
    assert line.partition(" (")[0] in html_of(report_document(report)).decode()


def test_what_tflm_refuses_and_the_table_does_not_know_is_said_first() -> None:
    """GATHER with positions of 64 bits, which LiteRT takes."""
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), DType.FLOAT32), b.tensor("y", (1, 2), DType.FLOAT32)
    b.operator("GATHER", (x, b.constant("at", np.asarray((0, 2), np.int64))), (y,), "GatherOptions", axis=1)
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "operator 0 (GATHER, 'y')"):
        tflite_memopt.optimize(write_model(b.finish(y)), Options(samples=2))


def test_an_operator_of_somebody_is_an_estimate_and_needs_its_runner() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), DType.FLOAT32), b.tensor("y", (1, 8), DType.FLOAT32)
    operator = b.operator("CUSTOM", (x,), (y,))
    operator.opcode = OpCode("CUSTOM", custom_code="Mine")
    model = b.finish(y)
    model.opcodes[:] = [operator.opcode]
    summary = tflite_memopt.analyze(write_model(model)).summary
    assert "(an estimate: an operator is not in the kernel tables)" in summary.headline
    assert {each.option for each in summary.advice} == {"tflite-memopt optimize --no-verify"}


def test_what_runs_says_nothing() -> None:
    report = tflite_memopt.optimize(write_model(dense_model()), Options(samples=2)).report
    assert report.tflm.runs
    assert report.summary.headline.startswith("RAM ")


def test_no_firmware_is_written_without_force(tmp_path: Path) -> None:
    with raises(UnsupportedModelError, ErrorKind.NO_KERNEL, "--force"):
        generate(HYBRID)
    source = tmp_path / "hybrid.tflite"
    source.write_bytes(HYBRID)
    words = ("codegen", source, "-o", tmp_path / "firmware")
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tflite-memopt: 'hybrid.tflite': {FIRST}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "firmware").exists()
    forced = run(*words, "--force")
    assert (forced.returncode, forced.stderr) == (0, "")


def test_floats_hear_what_int8_would_save() -> None:
    data = write_model(alone("CONV_2D", DType.FLOAT32))
    head = tflite_memopt.analyze(data).memory.arena_bytes
    for summary in (
        tflite_memopt.analyze(data).summary,
        tflite_memopt.optimize(data, Options(verify=False)).report.summary,
    ):
        (said,) = [each.text for each in summary.advice if each.option == "int8"]
        assert f"{head // 4:,}" in said
    assert not any(each.option == "int8" for each in tflite_memopt.analyze(write_model(dense_model())).summary.advice)


def test_floats_without_weights_have_nothing_to_convert() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 8), DType.FLOAT32), b.tensor("y", (1, 4), DType.FLOAT32)
    operands = (b.constant(name, np.asarray(values, np.int32)) for name, values in (("at", (0, 0)), ("size", (1, 4))))
    b.operator("SLICE", (x, *operands), (y,))
    assert not any(each.option == "int8" for each in tflite_memopt.analyze(write_model(b.finish(y))).summary.advice)
