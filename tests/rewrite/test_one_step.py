"""One step of a recurrent network: its calls compute what the whole model does, or a line says why they cannot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.faults import raises, refuted
from tests.firmware.compiled import check_against_the_interface
from tests.firmware.generated import generate
from tests.model_builder import ModelBuilder
from tests.models import dense_model
from tests.recurrent import F32, I8, WIDTH, layers, loop_with_a_list, unrolled
from tests.tflm import needs_wheel
from tflite_memopt import Options, Result, UnsupportedModelError, UsageError, optimize
from tflite_memopt.api import verify
from tflite_memopt.cli import cli
from tflite_memopt.errors import ErrorKind
from tflite_memopt.evidence.equivalence import judge
from tflite_memopt.evidence.proof import Proof, Status, prove_streamed
from tflite_memopt.memory.problems import tie_positions
from tflite_memopt.model.io import offline_plan, plan_label
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.report.documents import report_document
from tflite_memopt.report.pictures.page import html_of
from tflite_memopt.report.receipt import mismatches, receipt_of
from tflite_memopt.search.rewrite.one_step import Stepped, one_step

STEP = Options(step=True, effort="quick")
EXACT = {
    "rnn": layers("rnn"),
    "gru": layers("gru"),
    "lstm": layers("lstm"),
    "the last step of a gru": layers("gru", sequences=False),
    "the last step of an lstm": layers("lstm", sequences=False),
    "two layers": layers("gru", "lstm"),
    "three layers": layers("lstm", "rnn", "gru", sequences=False),
    "int8": layers("rnn", dtype=I8),
    "unrolled": unrolled(6, is_folded=True),
    "unrolled, in slices": unrolled(6, is_folded=True, in_slices=True),
}
"""Models whose calls are equal to the bit."""


def proof_of(model: Model, stepped: Stepped) -> Proof:
    step = read_model(write_model(stepped.model))
    return prove_streamed("step", model, step, tie_positions(step, stepped.ties))


@pytest.mark.parametrize("name", EXACT)
def test_calls_of_a_step_are_proved_equal_to_the_model(name: str) -> None:
    stepped = one_step(EXACT[name])
    assert stepped.calls == max(EXACT[name].main.inputs[0].shape)
    proof = proof_of(EXACT[name], stepped)
    assert proof.status is Status.PROVED
    assert proof.is_finite == name.startswith("unrolled")  # a first state of zeros is left out there
    assert all(operator.name != "WHILE" for operator in stepped.model.main.operators)


def test_states_in_each_others_place_are_another_model() -> None:
    model = layers("lstm")
    step = one_step(model)
    (_, h), (_, c) = (tie.split(":") for tie in step.ties)
    outputs = [tie.split(":")[0] for tie in step.ties]
    crossed = Stepped(step.model, step.calls, (f"{outputs[0]}:{c}", f"{outputs[1]}:{h}"), "exact")
    assert proof_of(model, crossed).status is Status.DIFFERENT


@pytest.mark.slow
@pytest.mark.few(1)
@needs_wheel
@pytest.mark.parametrize("name", ["the last step of a gru", "two layers", "int8", "unrolled"])
def test_the_result_keeps_its_states_in_the_arena(name: str) -> None:
    model = EXACT[name]
    result = optimize(write_model(model), STEP)
    report = result.report
    assert {runtime: verdict.equal for runtime, verdict in report.equivalence.items()} == {"litert": True, "tflm": True}
    assert {proof.status for proof in report.proofs.values()} == {"proved"}
    assert report.calls == one_step(model).calls
    limit = " for finite values that do not overflow" if name == "unrolled" else ""
    proved = f"one step per call, proved for all inputs{limit} and verified bit-exact"
    assert f"{proved} on 30 sequences of {report.calls} steps" in report.summary.headline
    assert report.after.required_for_target < report.before.required_for_target
    step = read_model(result.model)
    offsets = offline_plan.decode(step)
    assert offsets is not None
    ties = tie_positions(step, one_step(model).ties)
    assert [offsets[step.main.outputs[output]] for output, _ in ties] == [
        offsets[step.main.inputs[at]] for _, at in ties
    ]


@pytest.fixture(scope="module")
def gru() -> tuple[bytes, Result]:
    """A file and its step."""
    data = write_model(layers("gru"))
    return data, optimize(data, STEP)


@pytest.mark.slow
@needs_wheel
def test_other_commands_know_a_step(gru: tuple[bytes, Result]) -> None:
    data, result = gru
    assert {name: verdict.equal for name, verdict in verify(data, result.model).items()} == dict.fromkeys(
        ("proof", "plan", "file", "litert", "tflm"), True
    )
    with raises(UsageError, ErrorKind.INTERFACE):
        verify(write_model(dense_model()), result.model)
    receipt = receipt_of(result.report, result.model, "step.tflite")
    assert json.loads(receipt)["predicate"]["proofs"]["step"]["status"] == "proved"
    assert list(mismatches(receipt, data, result.model, lambda _: None)) == []
    other = write_model(layers("gru", start=1.0))
    assert any(found.startswith("step: ") for found in mismatches(receipt, other, result.model, lambda _: None))


@pytest.mark.slow
@needs_wheel
def test_the_firmware_has_a_class_that_resets_and_steps(gru: tuple[bytes, Result], tmp_path: Path) -> None:
    for path, text in generate(gru[1].model).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text)
    assert check_against_the_interface(tmp_path) == ""
    header, main = ((tmp_path / name).read_text() for name in ("steps.h", "main.cc"))
    assert re.search(rf"kStates\[\] = {{\s*{{1, {4 * WIDTH}, 0}}", header)
    assert f"kFrameBytes = {4 * WIDTH};" in header
    assert "steps.Reset();" in main


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (layers("gru", backwards=True), ("REVERSE_V2 'turned'",)),
        (layers("gru", sequences=False, mean=True), ("MEAN 'last'",)),
        (layers("gru", start=0.5), ("'h0_zero'",)),
        (unrolled(6, backwards=True, is_folded=True), ("'first'",)),
        (unrolled(6, I8, scales=(0.03, 0.05)), ("scales",)),
        (dense_model(), ("loop",)),
    ],
)
def test_what_does_not_run_frame_by_frame_is_refused(model: Model, names: tuple[str, ...]) -> None:
    with raises(UnsupportedModelError, ErrorKind.FORM, "--step", *names):
        one_step(model)


def test_another_first_step_is_refuted() -> None:
    with refuted("step"):
        optimize(write_model(unrolled(6)), STEP)


@needs_wheel
def test_steps_with_scales_of_their_own_are_approximated_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "LEAST_DECIBELS", 5)
    data = write_model(unrolled(6, I8, scales=(0.03, 0.031), is_folded=True))
    result = optimize(data, Options(step=True, effort="quick", allow_approximate=True))
    assert "APPROXIMATE, compared on 30 sequences of 6 steps" in result.report.summary.headline
    assert "step" not in result.report.proofs
    assert b"not proved" in html_of(report_document(result.report))  # although the step alone is


def test_lists_of_keras_run_step_by_step() -> None:
    result = optimize(write_model(loop_with_a_list()), Options(step=True, effort="quick", verify=False))
    assert [tensor.shape for tensor in read_model(result.model).main.outputs] == [(1, 1, WIDTH), (1, WIDTH)]


@pytest.mark.slow
@needs_wheel
def test_from_the_command_line(tmp_path: Path) -> None:
    source, output, again = (str(tmp_path / f"{name}.tflite") for name in ("m", "step", "again"))
    Path(source).write_bytes(write_model(layers("gru")))
    run = CliRunner().invoke(cli, ["optimize", source, "-o", output, "--step", "--effort", "quick"])
    assert run.exit_code == 0, run.output
    assert "input 'state' is a state, zeros before the first call" in " ".join(run.output.split())
    assert CliRunner().invoke(cli, ["optimize", source, "-o", again, "--replay", output]).exit_code == 0
    labels = [plan_label.decode(read_model(Path(path).read_bytes())) for path in (output, again)]
    assert [label.options.get("ties") for label in labels if label is not None] == [["state_next:state"]] * 2
    wrong = {
        ("--parts", "2"): "--step",
        ("--io", "int8"): "--io int8",
        ("--tie", "a:b"): "--tie",
    }
    for more, said in wrong.items():
        run = CliRunner().invoke(cli, ["optimize", source, "-o", str(tmp_path / "x.tflite"), "--step", *more])
        assert said in f"{run.output}{run.exception}"


def test_several_inputs_are_refused() -> None:
    b = ModelBuilder()
    x, y = b.input("x", (1, 4), F32), b.input("y", (1, 4), F32)
    with raises(UnsupportedModelError, ErrorKind.FORM, "--step"):
        one_step(b.finish(b.add(x, y)))
