"""The front of a model: repeatable, and every point is what ``optimize`` writes with the flags beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.program.test_program_firmware import separable
from tests.rewrite.test_channel_tiles import text_model
from tflite_memopt import Options, UsageError
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.report.model import Report, to_json
from tflite_memopt.report.schema import from_json
from tflite_memopt.run.attempts import LIMITS
from tflite_memopt.run.explore import Explored, explore

OPTIONS = Options(effort="quick", kernels="reference", objective="head", every_byte=True)
FLAGS = ("--effort", "quick", "--kernels", "reference", "--objective", "head")


def striped() -> Model:
    """Large inside and small at both ends, so that stripes save most of the head."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 10, 10, 2)), 16, kernel=3, seed=1)
    y = b.conv(b.depthwise(y, seed=2), 2, seed=3)
    return b.finish(b.average_pool(y, y.shape[1]))


@pytest.fixture(scope="module")
def explored() -> Explored:
    return explore(write_model(striped()), OPTIONS)


def test_the_limits_are_in_order() -> None:
    assert list(LIMITS) == sorted(set(LIMITS))


@pytest.mark.slow
def test_the_front_is_the_same_every_time(explored: Explored) -> None:
    again = explore(write_model(striped()), OPTIONS)
    assert to_json(again.exploration) == to_json(explored.exploration)
    assert len(explored.options) == len(explored.exploration.points) > 2
    assert {bool(point.stripes) for point in explored.exploration.points} == {False, True}


@pytest.mark.slow
@pytest.mark.parametrize("make", [striped, text_model], ids=["stripes", "tiles"])
def test_each_point_is_what_its_flags_write(make: Callable[[], Model], tmp_path: Path, explored: Explored) -> None:
    """``text_model`` has channels in tiles."""
    source, output = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(write_model(make()))
    front = explored if make is striped else explore(source, OPTIONS)
    points = front.exploration.points
    assert make is striped or min(point.head for point in points) < front.exploration.before.head // 3
    for point in points:
        written = tmp_path / "report.json"
        asked = ["optimize", str(source), "-o", str(output), "--force", "--report", str(written), *FLAGS]
        asked += point.limits.split()
        done = CliRunner().invoke(cli, asked)
        assert done.exit_code == 0, done.output
        report = from_json(written.read_text())
        assert isinstance(report, Report)
        after = report.after
        assert (after.required_for_target, after.arena_bytes) == (point.total, point.head)
        assert (after.macs, after.operators) == (point.macs, point.operators)
        assert output.stat().st_size == point.file_bytes
        assert report.equivalence["tflm"].equal
        assert len(point.stripes) == sum(use.rule.startswith("cascade") for use in report.rewrites)


@pytest.mark.slow
def test_parts_are_points_that_need_less() -> None:
    options = Options(target="cortex-m7", effort="quick", rewrite=False, cascade=False)
    found = explore(write_model(separable()), options, most_parts=None).exploration
    best = found.points[0]
    assert best.parts > 1
    assert best.limits.startswith(f"--parts {best.parts} --")
    assert best.total < found.before.total
    with raises(UsageError, ErrorKind.EXCLUDED, "--parts", "--objective head"):
        explore(write_model(separable()), OPTIONS, most_parts=2)


@pytest.mark.slow
def test_what_mending_costs_is_told() -> None:
    """A depthwise convolution with a stride, which esp-nn computes wrongly unless a PAD stands before it."""
    b = ModelBuilder()
    model = b.finish(b.depthwise(b.input("x", (1, 9, 20, 64)), stride=2))
    (warning,) = explore(write_model(model), Options(kernels="esp-nn-s3", effort="quick")).exploration.warnings
    assert warning.startswith("the run times include +")
    assert "what kernels compute wrongly otherwise" in warning
