"""``optimize --slide``: from the choice of what is kept to the firmware, and the reasons why something cannot be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.faults import raises
from tests.firmware.compiled import HOST, check_against_the_interface, run_on_tflm
from tests.firmware.generated import generate
from tests.model_builder import ModelBuilder
from tests.models import dense_model
from tests.tflm import litert_and_tflm, needs_wheel
from tflite_memopt import Options, Result, UnsupportedModelError, UsageError, optimize
from tflite_memopt.api import verify
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence.adapter import RunJob
from tflite_memopt.model.io import plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import SAME
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import per_tensor
from tflite_memopt.options import Hop
from tflite_memopt.report.receipt import mismatches, receipt_of

SLIDING = Path(__file__).parent / "firmware" / "sliding.cc"
F32 = DType.FLOAT32


def keywords(beside: bool = False, flat: bool = False) -> Model:
    """Convolutions with padding and a stride over 24 frames of 6 features, and a dense layer on all of the last one.

    ``flat``: the window comes as one vector. ``beside``: another input is read with the result.
    """
    b = ModelBuilder()
    given = b.input("frames", (1, 24 * 6) if flat else (1, 24, 6, 1))
    x = b.reshape(given, (1, 24, 6, 1)) if flat else given
    x = b.conv(x, 8, kernel=3, stride=2, seed=1, padding=SAME)
    x = b.depthwise(x, seed=2)
    x = b.conv(x, 8, seed=3)
    y = b.dense(b.reshape(x, (1, x.elements)), 4)
    return b.finish(b.add(y, b.input("bias", (1, 4))) if beside else y)


def windows(signal: np.ndarray, hop: int, size: int) -> Iterator[np.ndarray]:
    for end in range(-(-size // hop) * hop, len(signal) + 1, hop):
        yield signal[end - size : end]


@pytest.fixture(scope="module")
def slid() -> tuple[bytes, Result]:
    """A file, and its model of hops of two frames."""
    data = write_model(keywords())
    return data, optimize(data, Options(slide="2", effort="quick"))


@pytest.mark.slow
@needs_wheel
def test_the_first_line_says_hop_and_price(slid: tuple[bytes, Result]) -> None:
    report = slid[1].report
    headline = report.summary.headline
    assert "% run time or better of the whole window, 2 rows of 24 per call, right from call 12 on, proved" in headline
    assert "verified bit-exact over 1,000 hops (LiteRT and TFLM's reference kernels)" in headline
    assert report.slide is not None
    assert (report.slide.hop, report.slide.window, report.slide.calls) == (2, 24, 12)
    assert report.slide.ends.startswith("RESHAPE ")
    assert report.after.macs < 0.8 * report.before.macs
    assert {name: proof.status for name, proof in report.proofs.items()} == dict.fromkeys(report.proofs, "proved")
    assert {"step", "result", "plan"} <= set(report.proofs)


@pytest.mark.slow
@needs_wheel
def test_other_commands_know_it(slid: tuple[bytes, Result]) -> None:
    data, result = slid
    verdicts = verify(data, result.model)
    assert {name: verdict.equal for name, verdict in verdicts.items()} == dict.fromkeys(
        ("proof", "plan", "file", "litert", "tflm"), True
    )
    assert verdicts["tflm"].samples == 1000
    with raises(UsageError, ErrorKind.INTERFACE):
        verify(write_model(dense_model()), result.model)
    receipt = receipt_of(result.report, result.model, "stream.tflite")
    assert json.loads(receipt)["predicate"]["proofs"]["step"]["status"] == "proved"
    assert list(mismatches(receipt, data, result.model, lambda _: None)) == []
    b = ModelBuilder()
    other = b.conv(b.input("frames", (1, 24, 6, 1)), 8, kernel=3, stride=2, seed=4)
    wrong = write_model(b.finish(b.dense(b.reshape(other, (1, other.elements)), 4)))
    assert any(found.startswith("step: ") for found in mismatches(receipt, wrong, result.model, lambda _: None))


@pytest.mark.few(1)
@needs_wheel
@pytest.mark.parametrize(
    ("model", "slide"),
    [(keywords(flat=True), "2"), (keywords(beside=True), "4,input=frames"), (keywords(), "10")],
    ids=["a flat window", "an input beside it", "a hop that does not divide the window"],
)
def test_other_windows_slide(model: Model, slide: str) -> None:
    report = optimize(write_model(model), Options(slide=slide, effort="quick", samples=40)).report
    assert {name: (each.equal, each.samples) for name, each in report.equivalence.items()} == dict.fromkeys(
        ("litert", "tflm"), (True, 40)
    )
    assert report.proofs["step"].status == "proved"


def columns(hop: int) -> tuple[Model, str]:
    """A window of one column whose output is a column, too, with a constant of three dimensions along the rows."""
    b = ModelBuilder()
    x = b.input("x", (1, 24, 1, 4))
    y = b.depthwise(b.conv(x, 4, seed=1), kernel=1, seed=2)
    steps = b.constant("steps", np.arange(24, dtype=np.int8).reshape(24, 1, 1), per_tensor(0.05, 0))
    total = b.tensor("total", y.shape)
    b.operator("ADD", (steps, y), (total,), "AddOptions")
    return b.finish(total), str(hop)


@needs_wheel
@pytest.mark.parametrize(("model", "slide"), [columns(1), columns(3)], ids=["1", "3"])
def test_outputs_of_one_column_keep_their_shape(model: Model, slide: str) -> None:
    data = write_model(model)
    result = optimize(data, Options(slide=slide, effort="quick", samples=40))
    assert result.report.proofs["step"].status == "proved"
    made = read_model(result.model).main
    assert (made.inputs[0].shape, made.outputs[0].shape) == ((1, int(slide), 1, 4), (1, 24, 1, 4))
    assert {
        name: each.equal for name, each in verify(data, result.model, Options(samples=40)).items()
    } == dict.fromkeys(("proof", "plan", "file", "litert", "tflm"), True)


@pytest.mark.slow
def test_a_budget_buys_run_time() -> None:
    data = write_model(keywords())
    small, large = (
        optimize(data, Options(slide="2", effort="quick", verify=False, budget=budget)).report.after
        for budget in (1, 1 << 20)
    )
    assert small.required_for_target < large.required_for_target
    assert small.macs > large.macs


def test_a_budget_that_no_hop_meets_is_an_answer(tmp_path: Path) -> None:
    """Neither in parts nor fed is it a hop."""
    source = tmp_path / "m.tflite"
    source.write_bytes(write_model(keywords()))
    command = ["optimize", str(source), "-o", str(tmp_path / "x.tflite"), "--slide", "2", "--no-verify"]
    run = CliRunner().invoke(cli, [*command, "--effort", "quick", "--budget", "1K"])
    assert run.exit_code == 3, run.output
    assert (tmp_path / "x.tflite").exists()


def test_more_ram_for_less_run_time_is_no_reason_to_keep_the_original() -> None:
    report = optimize(write_model(keywords()), Options(slide="2", effort="quick", verify=False, budget=1 << 20)).report
    assert report.after.arena_bytes > report.before.arena_bytes
    assert not [each for each in report.warnings if "the original" in each]


@pytest.mark.slow
@needs_wheel
def test_the_firmware_says_when_its_outputs_are_right(tmp_path: Path) -> None:
    data = write_model(keywords())
    result = optimize(data, Options(slide="2", effort="quick", verify=False, target=HOST))
    for path, text in generate(result.model, HOST, planner="table").items():
        (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / path).write_bytes(text)
    assert check_against_the_interface(tmp_path) == ""
    shutil.copy(SLIDING, tmp_path)
    code, said = run_on_tflm(tmp_path, SLIDING.name)
    assert code == 0, said
    x, drawn = 12345, []
    for _ in range(2 * 60 * 12):
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
        drawn.append(x >> 24)
    signals = np.asarray(drawn, np.uint8).view(np.int8).reshape(2, -1)
    given = [[window.reshape(1, 24, 6, 1)] for signal in signals for window in windows(signal, 12, 144)]
    with litert_and_tflm() as running:
        run = running["tflm"].run(RunJob(data, given, 1 << 20))
    wanted = [f"window {' '.join(map(str, output.ravel()))}" for output in run.outputs[0]]
    assert [line for line in said.splitlines() if line.startswith("window")] == wanted


def matrix() -> Model:
    b = ModelBuilder()
    return b.finish(b.dense(b.input("x", (1, 40)), 3))


def wide() -> Model:
    """A convolution that sees all of its window."""
    b = ModelBuilder()
    return b.finish(b.conv(b.input("x", (1, 8, 8, 1)), 2, kernel=7, seed=1))


@pytest.mark.parametrize(
    ("model", "slide", "names"),
    [
        (keywords(), "1", ("CONV_2D 'conv0'", "by 1,", "stride, 2")),
        (wide(), "2", ("CONV_2D 'conv0'", "2 of its 8 rows", "2 new")),
        (matrix(), "2", ("'x'", "[1, 40]")),
    ],
)
def test_what_cannot_slide_is_refused_by_name(model: Model, slide: str, names: tuple[str, ...]) -> None:
    with raises(UnsupportedModelError, ErrorKind.FORM, "--slide", *names):
        optimize(write_model(model), Options(slide=slide))


@pytest.mark.parametrize(
    ("model", "slide", "reason"),
    [
        (keywords(), "24", "--slide 24: "),
        (keywords(), "2/25", "--slide 2/25: "),
        (keywords(), "2,input=y", "'y'; inputs are frames"),
        (
            keywords(beside=True),
            "2",
            "--slide 2,input=NAME: frames, bias",
        ),
        (keywords(), "0", "'0'"),
        (keywords(), "two", "'two'"),
        (keywords(), "2,input=frames,input=bias", "input=frames,input=bias"),
        (keywords(), "2,frames", "'frames'"),
    ],
)
def test_bad_input_is_one_line(model: Model, slide: str, reason: str, tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(write_model(model))
    run = CliRunner().invoke(cli, ["optimize", str(source), "-o", str(tmp_path / "x.tflite"), "--slide", slide])
    said = f"{run.output}{run.exception}"
    assert reason in said
    assert "\n" not in str(run.exception)


def test_a_model_that_streams_already_has_nothing_to_gain() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4), F32)
    b.operator("VAR_HANDLE", (), (b.tensor("state", (), DType.RESOURCE),), "VarHandleOptions", sharedName=b"state")
    with raises(UnsupportedModelError, ErrorKind.FORM, "VAR_HANDLE"):
        optimize(write_model(b.finish(b.add(x, x))), Options(slide="1"))


@pytest.mark.slow
def test_explore_shows_hops(tmp_path: Path) -> None:
    source = tmp_path / "m.tflite"
    source.write_bytes(write_model(keywords()))
    command = ["explore", str(source), "--slide", "1,2,4", "--effort", "quick"]
    run = CliRunner().invoke(cli, [*command, "--json"])
    found = json.loads(run.stdout)
    points = {point["limits"]: point for point in found["points"]}
    assert [point["hop"] for point in found["points"] if point["hop"]] == [2, 4]
    assert -1 < points["--slide 2"]["slowdown"] < points["--slide 4"]["slowdown"] < 0
    assert [each for each in found["warnings"] if each.startswith("--slide 1: ")]
    wrong = CliRunner().invoke(cli, [*command[:3], "1,0"])
    assert "'1,0'" in wrong.output


@pytest.mark.slow
@needs_wheel
def test_from_the_command_line(tmp_path: Path) -> None:
    source, output, again = (str(tmp_path / f"{name}.tflite") for name in ("m", "stream", "again"))
    Path(source).write_bytes(write_model(keywords()))
    run = CliRunner().invoke(cli, ["optimize", source, "-o", output, "--slide", "2", "--effort", "quick"])
    assert run.exit_code == 0, run.output
    assert "input 'frames/kept' is a state, zeros before the first call" in " ".join(run.output.split())
    assert CliRunner().invoke(cli, ["optimize", source, "-o", again, "--replay", output]).exit_code == 0
    labels = [plan_label.decode(read_model(Path(path).read_bytes())) for path in (output, again)]
    assert [label.options["slide"] for label in labels if label is not None] == ["2/24"] * 2
    assert Hop.of("2/24") == Hop(2, None, 24)
