"""Both legs of the verification: a result that is refuted is refused, and runs differ no more than is allowed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from rich.console import Console

import tflite_memopt
from tests.faults import differs_on, refuted
from tests.model_builder import ModelBuilder
from tests.models import float_sum, mobile_chain, quantized_at_the_boundary
from tests.tflm import needs_wheel
from tflite_memopt import Options
from tflite_memopt.evidence.equivalence import judge
from tflite_memopt.evidence.equivalence.compare import FLOAT_SUMS
from tflite_memopt.evidence.equivalence.subject import Promise, Subject
from tflite_memopt.evidence.equivalence.verification import verify_result
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed, Exactness, RewriteUse, loosest
from tflite_memopt.model.ir.model import Buffer, DType, Model, Tensor
from tflite_memopt.report.document import text_of
from tflite_memopt.report.documents import report_document
from tflite_memopt.report.model import Report, to_json
from tflite_memopt.run import candidate
from tflite_memopt.search.rewrite.boundary import take_integers

BOTH = Options(runtimes=("litert", "tflm"), samples=4, cascade=False)
LITERT = replace(BOTH, runtimes=("litert",))
SUM = write_model(float_sum(True))


def quiet(_: str) -> None:
    pass


def other_sum() -> bytes:
    """The terms of SUM in another order; the tensor in between has a name of its own, as a rewrite gives it."""
    model = float_sum(False)
    inner = model.main.outputs[0].producer
    assert inner is not None
    between = inner.inputs[1]
    assert between is not None
    between.name = "between"
    return write_model(model)


OTHER_SUM = other_sum()


def nudged(model: Model, name: str = "conv4/bias", by: int = 700) -> Model:
    """The model with one bias changed a little: what an inexact rewrite looks like from outside."""
    bias = next(tensor for tensor in model.main.tensors if tensor.name == name)
    assert bias.buffer.data is not None
    values = bias.buffer.data.view("<i4") + np.int32(by)
    bias.buffer = Buffer(np.frombuffer(values.tobytes(), np.uint8))  # copies of the model share the old one
    model.buffers.append(bias.buffer)
    bias.name += "/other"  # a constant of the original's name would have to be the original's
    return model


def planned_at_zero(data: bytes) -> bytes:
    model = read_model(data)
    offline_plan.attach(model, {tensor: 0 for tensor in model.main.tensors if not tensor.is_constant})
    return write_model(model)


def test_float_sums_in_another_order_are_equal_within_the_tolerance_only() -> None:
    found = verify_result(Subject(SUM, OTHER_SUM, "reassociates"), BOTH, quiet).verdicts
    for verdict in found.values():
        assert verdict.equal
        assert 0 < verdict.max_abs_diff < 1e-6
        assert verdict.max_relative_diff is not None
        assert 0 < verdict.max_relative_diff < FLOAT_SUMS.relative
        assert verdict.max_lsb_diff == 0
        assert 0 < verdict.differing_share < 1
        assert (verdict.exactness, verdict.tolerance) == (
            "reassociates",
            {"absolute": FLOAT_SUMS.absolute, "relative": FLOAT_SUMS.relative, "lsb": 0.0},
        )
    with differs_on("litert", "output 0"):
        verify_result(Subject(SUM, OTHER_SUM, "exact"), LITERT, quiet)


def test_reassociation_beyond_the_tolerance_is_an_error() -> None:
    model = float_sum(True)
    last = model.main.outputs[0].producer
    assert last is not None
    model.main.set_input(last, 1, model.main.inputs[0])
    wrong = write_model(model)
    with differs_on("litert", "output 0"):
        verify_result(Subject(SUM, wrong, "reassociates"), LITERT, quiet)


def test_a_tolerance_for_floats_is_none_for_integers() -> None:
    original, changed = write_model(mobile_chain()), write_model(nudged(mobile_chain()))
    with differs_on("litert"):
        verify_result(Subject(original, changed, "reassociates"), LITERT, quiet)


def test_a_wrong_plan_shows_on_tflm() -> None:
    original = write_model(mobile_chain())
    with differs_on("tflm", "output 0"):
        verify_result(Subject(original, planned_at_zero(original)), replace(BOTH, runtimes=("tflm",)), quiet)


@needs_wheel
def test_the_smallest_arena_is_reported_where_tflm_refuses_the_promised_one() -> None:
    original = write_model(mobile_chain())
    required = tflite_memopt.optimize(
        original, replace(BOTH, verify=False, rewrite=False)
    ).report.before.required_bytes["64"]
    for promised, warns in ((required, False), (required - 64, True)):
        promise = Promise(required_bytes=promised)
        notes = verify_result(Subject(original, original, promises={"tflm": promise}), BOTH, quiet).basis.findings
        assert (
            any(f"refuses the {promised:,} bytes" in note and f"accepts {required:,}" in note for note in notes)
            is warns
        )


@pytest.mark.parametrize("exactness", ["reassociates", "approximates"])
def test_stripes_must_not_change_a_bit_of_the_rewritten_graph(
    exactness: Exactness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the tolerance of the original, and still not the graph that was rewritten."""
    monkeypatch.setattr(candidate, "rewrite", rewriting(lambda _: None, exactness))
    monkeypatch.setattr("tflite_memopt.run.candidate.write_model", lambda _: OTHER_SUM)
    with refuted("stripes"):
        tflite_memopt.optimize(SUM, LITERT)


def test_an_approximation_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    original, changed = write_model(mobile_chain()), write_model(nudged(mobile_chain()))
    subject = Subject(original, changed, "approximates")
    with monkeypatch.context() as stricter:
        stricter.setattr(judge, "LEAST_DECIBELS", 99)
        with differs_on("litert", "99 dB"):
            verify_result(subject, LITERT, quiet)
    found = verify_result(subject, BOTH, quiet).verdicts
    for verdict in found.values():
        assert verdict.equal
        assert verdict.exactness == "approximates"
        assert verdict.tolerance is None
        assert verdict.max_lsb_diff == verdict.max_abs_diff > 0
        assert verdict.signal_to_noise is not None
        assert 0 < verdict.signal_to_noise < 100
        assert 0 < verdict.differing_share <= 1
        assert verdict.agreeing_argmax_share is not None
        assert verdict.agreeing_argmax_share * verdict.samples in range(verdict.samples + 1)


def test_a_rewritten_model_that_no_longer_runs_is_an_error() -> None:
    broken = mobile_chain()
    broken.opcodes[0].version = 99
    bad = write_model(broken)
    with differs_on("litert"):
        verify_result(Subject(write_model(mobile_chain()), bad, "approximates"), LITERT, quiet)


def rewriting(change: Callable[[Model], Any], exactness: Exactness) -> Callable[..., Changed]:
    def rewrite(model: Model, *_: object) -> Changed:
        change(model)
        return Changed(model, (RewriteUse("test", ("conv4",), exactness, 0),), ())

    return rewrite


def printed(report: Report) -> str:
    console = Console(width=160, record=True, file=StringIO())
    console.print(text_of(report_document(report)))
    return console.export_text()


@pytest.mark.slow
def test_the_whole_run_says_clearly_what_was_approximated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Onto a model that has a plan already, which does not fit what it is rewritten to."""
    planned = tflite_memopt.optimize(write_model(mobile_chain()), Options(verify=False, cascade=False)).model

    def change(model: Model) -> None:
        nudged(model)
        model.main.tensors.append(replace(model.main.inputs[0], name="another"))

    monkeypatch.setattr(candidate, "rewrite", rewriting(change, "approximates"))
    report = tflite_memopt.optimize(planned, BOTH).report
    [warning, *_] = [each for each in report.warnings if "approximate" in each]
    assert warning.startswith("--allow-approximate")
    assert "LSB" in warning
    samples = report.equivalence["tflm"].samples
    assert f" {samples} " in warning
    shown = printed(report)
    assert "APPROXIMATE" in shown
    schema = json.loads((Path(__file__).parents[2] / "schema" / "report.schema.json").read_text())
    jsonschema.validate(json.loads(to_json(report)), schema)
    unmeasured = tflite_memopt.optimize(planned, replace(BOTH, verify=False)).report.warnings
    assert any(each.startswith("--allow-approximate") for each in unmeasured)


@pytest.mark.slow
def test_approximation_behind_another_interface_is_measured_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(model: Model) -> None:
        take_integers(nudged(model, "depthwise2/bias", 2_000))

    monkeypatch.setattr(candidate, "rewrite", rewriting(change, "approximates"))
    monkeypatch.setattr(judge, "LEAST_DECIBELS", 0)
    data = write_model(quantized_at_the_boundary())
    report = tflite_memopt.optimize(data, replace(BOTH, io="int8")).report
    for verdict in report.equivalence.values():
        assert verdict.max_lsb_diff is not None
        assert verdict.max_lsb_diff >= 1
        assert verdict.max_abs_diff == pytest.approx(0.05 * verdict.max_lsb_diff)
        assert verdict.max_relative_diff is None
    monkeypatch.setattr(candidate, "rewrite", rewriting(take_integers, "reassociates"))
    assert tflite_memopt.optimize(data, replace(BOTH, io="int8")).report.equivalence["tflm"].max_lsb_diff == 0
    # A float tolerance must not hide a step of the integers behind the floats.
    monkeypatch.setattr(candidate, "rewrite", rewriting(change, "reassociates"))
    with refuted("result"):
        tflite_memopt.optimize(data, replace(BOTH, io="int8"))


def joined(dtype: DType) -> Model:
    """Four wide branches, concatenated, and a narrow convolution: far less memory when it is taken apart."""
    b = ModelBuilder()
    x = b.input("x", (1, 16, 16, 4), dtype)
    if dtype is DType.INT8:
        return b.finish(b.conv(b.concat([b.conv(x, 16, kernel=3, seed=seed) for seed in range(4)]), 4, seed=9))
    return b.finish(float_conv(b, b.concat([float_conv(b, x, 16, seed) for seed in range(4)]), 4, 9))


def float_conv(b: ModelBuilder, x: Tensor, channels: int, seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (channels, 3, 3, x.shape[3])).astype(np.float32)
    y = b.tensor(f"conv{seed}", (*x.shape[:3], channels), x.dtype)
    weights = b.constant(f"{y.name}/weights", values), b.constant(f"{y.name}/bias", np.ones(channels, np.float32))
    b.operator("CONV_2D", (x, *weights), (y,), "Conv2DOptions", strideH=1, strideW=1)
    return y


@pytest.mark.slow
def test_a_real_approximation_is_off_by_steps_and_only_when_permitted() -> None:
    data, options = write_model(joined(DType.INT8)), replace(BOTH, objective="head", max_slowdown=1.0)
    strict = tflite_memopt.optimize(data, options).report
    assert (strict.rewrites, strict.warnings) == ((), ())
    assert "--allow-approximate" in strict.refused[0].reason
    report = tflite_memopt.optimize(data, replace(options, allow_approximate=True)).report
    assert report.after.arena_bytes < strict.after.arena_bytes
    for verdict in report.equivalence.values():
        assert verdict.max_lsb_diff is not None
        assert 1 <= verdict.max_lsb_diff <= 4
        assert 0 < verdict.differing_share < 1


@pytest.mark.slow
def test_real_float_sums_stay_far_within_the_tolerance() -> None:
    options = replace(BOTH, objective="head", max_slowdown=1.0)
    report = tflite_memopt.optimize(write_model(joined(DType.FLOAT32)), options).report
    assert loosest(use.exactness for use in report.rewrites) == "reassociates"
    for verdict in report.equivalence.values():
        assert verdict.max_relative_diff is not None
        assert 0 < verdict.max_relative_diff < FLOAT_SUMS.relative / 10


def test_the_console_states_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate, "rewrite", rewriting(lambda _: None, "reassociates"))
    shown = printed(tflite_memopt.optimize(SUM, LITERT).report)
    assert "equal within 1e-06 + 0.0001 of the largest" in shown
    assert "NOT equal" not in shown


def too_many_parts() -> Model:
    """A concatenation that TFLM refuses, and a convolution of it."""
    b = ModelBuilder()
    parts = [b.input(f"x{number}", (1, 4, 4, 1)) for number in range(25)]
    return b.finish(b.conv(b.concat(parts), 4))


def test_a_model_that_tflm_takes_only_once_rewritten_is_measured_there() -> None:
    report = tflite_memopt.optimize(write_model(too_many_parts()), BOTH).report
    assert report.equivalence["litert"].equal
    assert report.equivalence["tflm"].equal
    assert report.basis.executed_by == ("tflm",)
    assert report.as_it_came.makes == "cannot run"
    assert report.before.tflm["head"] == report.before.arena_bytes
    assert report.after.tflm["head"] == report.after.arena_bytes
