"""A step that fails verification is left out and the result is verified; an interruption ends the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tflite_memopt
from tests.faults import refuted
from tests.model_builder import ModelBuilder
from tests.models import mobile_chain
from tflite_memopt import Options
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Decision, decision_in, without_faults
from tflite_memopt.model.ir.model import Buffer, Model, Tensor
from tflite_memopt.run import candidate, checking

OPTIONS = Options(samples=2, objective="head", kernels="reference")
DATA = write_model(mobile_chain(32))


def two_regions() -> bytes:
    """Two blocks that are narrow at both ends and wide inside."""
    b = ModelBuilder()
    y = b.input("x", (1, 16, 16, 2))
    for seed in range(2):
        y = b.conv(b.depthwise(b.conv(y, 24, kernel=1, seed=seed), seed=seed), 2, kernel=1, seed=seed + 7)
    return write_model(b.finish(y))


def spoil(made: Any) -> Any:
    last = next(op for op in made.model.main.operators if op.name == "DEPTHWISE_CONV_2D")
    weights = last.inputs[1]
    assert weights is not None
    assert weights.buffer.data is not None
    weights.buffer = Buffer(np.roll(weights.buffer.data, 1))  # copies of the model share the old one
    made.model.buffers.append(weights.buffer)
    return made


def spoiling(step: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stage leave a model that computes something else, when the options ask for the stage."""
    real = getattr(candidate, step)

    def spoiled(model: Model, profile: object, options: Options, *more: object, **named: object) -> Any:
        made = real(model, profile, options, *more, **named)
        return spoil(made) if getattr(options, field) else made

    monkeypatch.setattr(candidate, step, spoiled)


STEPS = [("cascade", "cascade", "stripes"), ("rewrite", "rewrite", "rewrites")]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "field", "named"), STEPS)
def test_what_fails_its_proof_is_left_out_and_said(
    step: str, field: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiling(step, field, monkeypatch)
    said: list[str] = []
    result = tflite_memopt.optimize(DATA, replace(OPTIONS, every_byte=True), said.append)
    assert result.report.equivalence["tflm"].equal
    assert result.report.proofs["result"].is_proved
    assert any(
        warning.startswith(f"{named} dropped because the result failed verification; please report this model")
        and "not equal: different: output 0" in warning
        for warning in result.report.warnings
    )
    assert sum(each.startswith("verifying on") for each in said) == 1  # a wrong one is refused without a run


@pytest.mark.slow
def test_of_several_stripes_the_wrong_ones_alone_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second region, which is spoiled wherever it is in stripes."""
    options = replace(OPTIONS, max_slowdown=1.0, loops=False, effort="quick")
    right = tflite_memopt.optimize(two_regions(), options).report
    *_, before, wrong = decision_in(right.decision).actions
    real = getattr(candidate, "cascade")  # noqa: B009 (not exported)

    def spoiled(*given: Any, **named: Any) -> Any:
        made = real(*given, **named)
        return spoil(made) if wrong in made.decision.tilings else made

    monkeypatch.setattr(candidate, "cascade", spoiled)
    report = tflite_memopt.optimize(two_regions(), options).report
    assert decision_in(report.decision).actions[-1] == before
    assert report.proofs["result"].is_proved
    assert [each.split(" dropped")[0] for each in report.warnings if " dropped" in each] == [wrong]


@given(st.integers(0, 5), st.sets(st.integers(0, 7), max_size=3))
def test_all_faults_of_a_decision_are_named(sites: int, faults: set[int]) -> None:
    decision = Decision((" ".join(map(str, range(sites))),) if sites else (), True, (), "; ".join("abc"))
    wrong = {decision.actions[at] for at in faults if at < len(decision.actions)}
    assume(wrong)
    found = without_faults(decision, lambda each: not wrong.isdisjoint(each.actions))
    assert found is not None
    kept, left_out = found
    assert wrong.isdisjoint(kept.actions)
    assert set(left_out) <= wrong
    assert without_faults(decision, lambda _: True) is None


@pytest.mark.slow
def test_a_wrong_plan_is_an_error_once_each_step_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = offline_plan.attach, []

    def attach(model: Model, offsets: dict[Tensor, int]) -> None:
        calls.append(len(offsets))
        real(model, dict.fromkeys(offsets, 0))

    said: list[str] = []
    monkeypatch.setattr(offline_plan, "attach", attach)
    with refuted("plan"):
        tflite_memopt.optimize(DATA, OPTIONS, said.append)
    assert len(calls) == 6  # the original with no memory shared, and three attempts, two of them without any action
    assert [each.split(" dropped")[0] for each in said if " dropped" in each] == ["stripes", "rewrites"]


@pytest.mark.slow
def test_when_nothing_is_left_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = write_model

    def write(model: Model) -> bytes:
        found = read_model(real(model))
        found.main.inputs[0].name = "other"
        bias = next(tensor for tensor in found.main.tensors if tensor.name == "conv0/bias")
        assert bias.buffer.data is not None
        bias.buffer.data = np.roll(bias.buffer.data, 1)
        return real(found)

    monkeypatch.setattr(checking, "write_model", write)
    with refuted("result", "'conv0'"):
        tflite_memopt.optimize(DATA, OPTIONS)


@pytest.mark.parametrize("step", ["rewrite", "cascade", "arrange"])
def test_an_interruption_ends_the_run(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a search and in the final plan."""

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    # The search for tiles, which is part of rewriting, hands on how its model is arranged.
    options = Options(samples=2, effort="quick", target="cortex-m4", rewrite=step != "arrange")
    monkeypatch.setattr(candidate, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(DATA, options)


@pytest.mark.slow
def test_a_plan_that_was_not_executed_is_said() -> None:
    plain = replace(OPTIONS, cascade=False)
    options = replace(plain, runtimes=("litert",))
    report = tflite_memopt.optimize(DATA, options).report
    assert not report.basis.plan_executed
    assert any(each.startswith("equal as a graph only: TFLM did not execute the plan") for each in report.warnings)
    assert tflite_memopt.optimize(DATA, plain).report.basis.plan_executed
