"""LiteRT and TFLM on one model: the operator that is named has equal inputs and other outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.model_builder import ModelBuilder
from tflite_memopt.cli import cli
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.evidence.equivalence.baseline import Baseline, measure_baseline
from tflite_memopt.evidence.equivalence.compare import gap_between
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.equivalence.runtimes import BETWEEN
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model, Operator, Tensor
from tflite_memopt.model.ir.tensors import values
from tflite_memopt.options import Options

pytest.importorskip("tflite_micro")


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with Interpreters((), ProcessLimits()) as running:
        yield running


def layers(count: int) -> Model:
    """A convolution, which both runtimes round alike, and then dense layers, which they do not."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 8, 8, 4)), 8)
    if count > 1:
        y = b.reshape(y, (1, 512))
    for seed in range(2, count):
        y = b.dense(y, 32, seed=seed)
    return b.finish(y)


def baseline(model: Model, interpreters: Interpreters) -> Baseline:
    data = write_model(model)
    return measure_baseline(data, read_model(data), Options(), interpreters)


def test_the_operator_is_the_one_that_differs_most_where_each_runs_alone(interpreters: Interpreters) -> None:
    """Checked by models of one operator, whose input is what LiteRT computes in the whole."""
    model = layers(7)
    found = baseline(model, interpreters)
    litert, whole = found.runs["litert"].run, found.between
    assert litert is not None
    assert whole is not None
    assert whole.most is not None
    gaps = {}
    for number, operator in enumerate(model.main.operators):
        source = model.main.tensors.index(operator.required(0))
        samples = [[array] for array in litert.tensors[source]]
        data = write_model(alone(operator))
        runs = [interpreters[name].run(RunJob(data, samples, 1 << 20)) for name in ("litert", "tflm")]
        gaps[number] = gap_between(runs[0].outputs, runs[1].outputs, {})
    most = max(gaps, key=lambda number: (gaps[number].max_abs_diff, -number))
    assert gaps[most].max_abs_diff > 0
    assert (whole.most.number, whole.most.gap) == (most, gaps[most])


def alone(operator: Operator) -> Model:
    """A model of one operator and its constants."""
    b = ModelBuilder()
    copied: list[Tensor | None] = [b.input("x", operator.required(0).shape)]
    for tensor in operator.inputs[1:]:
        assert tensor is not None
        array = values(tensor)
        assert array is not None
        copied.append(b.constant(tensor.name, array, tensor.quantization))
    y = b.tensor("y", operator.outputs[0].shape)
    made = b.operator(operator.name, copied, (y,))
    made.options = operator.options
    return b.finish(y)


def test_where_both_agree_nothing_is_said(interpreters: Interpreters) -> None:
    found = baseline(layers(2), interpreters)
    assert found.between is None
    assert found.findings == ()


def test_it_is_said_once_and_is_no_verdict(tmp_path: Path) -> None:
    source = str(tmp_path / "m.tflite")
    Path(source).write_bytes(write_model(layers(4)))
    done = CliRunner().invoke(cli, ["verify", source, source, "--json"])
    assert done.exit_code == 0, done.output
    assert f'"{BETWEEN}"' in done.output
    words = ["optimize", source, "-o", str(tmp_path / "o.tflite"), "--effort", "quick"]
    optimized = CliRunner().invoke(cli, words)
    assert optimized.exit_code == 0, optimized.output
    said = " ".join(optimized.output.split())
    assert said.count("LiteRT and TFLM compute the original differently") == 1
    assert "'dense2'" in said
