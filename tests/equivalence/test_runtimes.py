"""LiteRT and TFLM on one model: the operator that is named has equal inputs and other outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.model_builder import ModelBuilder
from tflite_memopt.cli import cli
from tflite_memopt.evidence.equivalence.baseline import Baseline, measure_baseline
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.evidence.equivalence.runtimes import BETWEEN
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
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


def test_the_operator_is_the_first_at_which_a_model_that_ends_there_differs(interpreters: Interpreters) -> None:
    """Checked by models that end one operator earlier and there."""
    whole = baseline(layers(5), interpreters).between
    assert whole is not None
    assert whole.first is not None
    number = whole.first.number
    assert number is not None
    assert whole.first.operator.name == "FULLY_CONNECTED"
    assert baseline(layers(number), interpreters).between is None
    cut = baseline(layers(number + 1), interpreters).between
    assert cut is not None
    assert cut.first is not None
    assert cut.first.number == number
    assert cut.first.gap == whole.first.gap
    assert whole.gap.max_lsb_diff is not None
    assert whole.gap.max_lsb_diff >= 1


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
