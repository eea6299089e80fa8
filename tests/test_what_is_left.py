"""A step that fails verification is left out, an interruption ends the search: the result is verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflite_memopt
from scripts.makers.model_builder import ModelBuilder
from tests.models import mobile_chain
from tflite_memopt import EquivalenceError, Options, pipeline, transform
from tflite_memopt.cascade.plans import Plans
from tflite_memopt.equivalence.inputs import inputs_from_npz
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.model import Buffer, Model, Tensor
from tflite_memopt.rewrite.search import _SiteSearch

OPTIONS = Options(samples=2, objective="head", kernels="reference")
DATA = write_model(mobile_chain(32))


def spoiling(step: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stage leave a model that computes something else, when the options ask for the stage."""
    real = getattr(transform, step)

    def spoiled(model: Model, profile: object, options: Options, *more: object, **named: object) -> Any:
        made = real(model, profile, options, *more, **named)
        if getattr(options, field):
            last = next(op for op in made.model.main.operators if op.name == "DEPTHWISE_CONV_2D")
            weights = last.inputs[1]
            assert weights is not None
            assert weights.buffer.data is not None
            weights.buffer = Buffer(np.roll(weights.buffer.data, 1))  # copies of the model share the old one
            made.model.buffers.append(weights.buffer)
        return made

    monkeypatch.setattr(transform, step, spoiled)


STEPS = [("cascade", "cascade", "stripes"), ("rewrite", "rewrite", "rewrites")]


@pytest.mark.parametrize(("step", "field", "named"), STEPS)
def test_what_fails_its_proof_is_left_out_said_and_kept(
    step: str, field: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiling(step, field, monkeypatch)
    result = tflite_memopt.optimize(DATA, replace(OPTIONS, keep_failures=tmp_path))
    assert result.report.equivalence["tflm"].equal
    assert result.report.basis.plan_executed
    assert any(
        warning.startswith(f"{named} left out, since the result failed verification; please report this model")
        for warning in result.report.warnings
    )
    folder = tmp_path / named
    assert (folder / "original.tflite").read_bytes() == DATA
    model = read_model((folder / "optimized.tflite").read_bytes())
    assert len(inputs_from_npz(folder / "inputs.npz", model)) >= 2
    assert "not equal" in (folder / "message.txt").read_text()


def test_a_wrong_plan_is_an_error_once_each_step_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = offline_plan.attach, []

    def attach(model: Model, offsets: dict[Tensor, int]) -> None:
        if any(tensor.name.startswith("snapshot") for tensor in model.main.tensors):
            real(model, offsets)  # the judge's own
            return
        calls.append(len(offsets))
        real(model, dict.fromkeys(offsets, 0))

    said: list[str] = []
    monkeypatch.setattr(offline_plan, "attach", attach)
    # A wrong plan may lay something on the counter of a loop, which then never ends.
    with pytest.raises(EquivalenceError, match="not equal on tflm"):
        tflite_memopt.optimize(DATA, replace(OPTIONS, interpreter_seconds=30.0), said.append)
    assert len(calls) == 3
    assert [each.split(" left out")[0] for each in said if " left out" in each] == ["stripes", "rewrites"]


def test_when_nothing_is_left_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real = write_model

    def write(model: Model) -> bytes:
        found = read_model(real(model))
        found.main.inputs[0].name = "other"
        bias = next(tensor for tensor in found.main.tensors if tensor.name == "conv0/bias")
        assert bias.buffer.data is not None
        bias.buffer.data = np.roll(bias.buffer.data, 1)
        return real(found)

    monkeypatch.setattr(pipeline, "write_model", write)
    with pytest.raises(EquivalenceError, match="the constant 'conv0/bias' does not hold the original's values"):
        tflite_memopt.optimize(DATA, OPTIONS)


@pytest.mark.parametrize("step", ["rewrite", "cascade", "arrange"])
def test_the_first_interruption_ends_the_search_and_the_second_the_run(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = getattr(transform, step), []
    # The search for tiles, which is part of rewriting, hands on how its model is arranged.
    options = OPTIONS if step != "arrange" else replace(OPTIONS, rewrite=False)

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(step)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    monkeypatch.setattr(transform, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(DATA, options)
    calls.clear()
    result = tflite_memopt.optimize(DATA, replace(options, keep_best=True))
    assert result.report.warnings[0].startswith("interrupted in")
    assert result.report.equivalence["tflm"].equal
    monkeypatch.setattr(transform, step, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(DATA, replace(options, keep_best=True))


def interrupting(owner: type, name: str, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the call of a method that follows so many others."""
    real, calls = getattr(owner, name), []

    def counted(self: Any, *arguments: Any) -> Any:
        calls.append(name)
        if len(calls) == after + 1:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(owner, name, counted)


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_search_for_stripes_hands_over_the_best_it_had(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = replace(OPTIONS, cascade=False, rewrite=False)  # no stripes, and no tiles
    unstriped = tflite_memopt.optimize(DATA, plain).report
    interrupting(Plans, "draft", after, monkeypatch)
    report = tflite_memopt.optimize(DATA, replace(OPTIONS, keep_best=True)).report
    assert report.warnings[0].startswith("interrupted in the search for stripes")
    assert any(use.rule.startswith("cascade in") for use in report.rewrites)
    assert report.after.arena_bytes < unstriped.after.arena_bytes
    assert report.equivalence["tflm"].equal


def joined_twice() -> bytes:
    """Two wide concatenations in a row, each read by a depthwise convolution: in parts they need less."""
    b = ModelBuilder()
    y = b.input("x", (1, 16, 16, 4))
    for _ in range(2):
        y = b.conv(b.depthwise(b.concat([b.conv(y, 16, seed=seed) for seed in (1, 2)])), 4, seed=3)
    return write_model(b.finish(y))


def test_an_interrupted_search_for_concatenations_hands_over_the_best_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    data, options = joined_twice(), replace(OPTIONS, cascade=False)
    rules = [use.rule for use in tflite_memopt.optimize(data, options).report.rewrites]
    assert rules
    interrupting(_SiteSearch, "_toggled", 0, monkeypatch)
    report = tflite_memopt.optimize(data, replace(options, keep_best=True)).report
    assert report.warnings[0].startswith("interrupted in rewriting")
    assert [use.rule for use in report.rewrites] == rules
    assert report.equivalence["tflm"].equal


@pytest.mark.parametrize("owner", [Plans, _SiteSearch])
def test_an_interruption_before_anything_was_found_leaves_what_is_complete(
    owner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "draft" if owner is Plans else "_cost"
    interrupting(owner, name, 0, monkeypatch)
    report = tflite_memopt.optimize(joined_twice(), replace(OPTIONS, keep_best=True)).report
    assert report.warnings[0].startswith("interrupted in")
    assert report.equivalence["tflm"].equal


def raised(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def at(message: str) -> Callable[[str], None]:
    """Progress that is interrupted where something is said that begins so."""
    return lambda said: raised() if said.startswith(message) else None


FOR_A_TARGET = Options(samples=2, effort="quick", target="cortex-m4")


@pytest.fixture(scope="module")
def for_the_target_alone() -> bytes:
    """What is found without a search for any library."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transform, "_for_any_library", lambda *_: None)
        return tflite_memopt.optimize(DATA, FOR_A_TARGET).model


@pytest.mark.parametrize("where", ["looking for", "stripes", "ordering", "before anything is said"])
def test_an_interrupted_search_for_any_library_leaves_the_answer_for_the_target(
    where: str, for_the_target_alone: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = at(f"for any kernel library: {where}")
    if where == "before anything is said":
        monkeypatch.setattr(transform, "needs_by_library", raised)
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(DATA, FOR_A_TARGET, progress)
    kept = tflite_memopt.optimize(DATA, replace(FOR_A_TARGET, keep_best=True), progress)
    assert kept.model == for_the_target_alone
    assert kept.report.warnings[0].startswith("interrupted in the search for any kernel library")
    assert kept.report.equivalence["tflm"].equal
    assert kept.report.wider is None


def test_an_interruption_after_the_proof_leaves_the_proved_result(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(samples=2, effort="quick", kernels="reference")
    whole = tflite_memopt.optimize(DATA, options)
    assert whole.report.least_in_stripes is not None
    monkeypatch.setattr(pipeline, "wider_limits", raised)
    with pytest.raises(KeyboardInterrupt):
        tflite_memopt.optimize(DATA, options)
    kept = tflite_memopt.optimize(DATA, replace(options, keep_best=True))
    assert kept.model == whole.model
    assert kept.report.equivalence["tflm"].equal
    assert kept.report.wider is None
    assert kept.report.warnings[0].startswith("interrupted in the search for what wider limits bring")


def test_a_plan_that_was_not_executed_is_said_and_can_be_refused() -> None:
    plain = replace(OPTIONS, cascade=False)
    options = replace(plain, runtimes=("litert",))
    report = tflite_memopt.optimize(DATA, options).report
    assert not report.basis.plan_executed
    assert any(each.startswith("equal as a graph only: TFLM did not execute the plan") for each in report.warnings)
    with pytest.raises(EquivalenceError, match="--require tflm: TFLM did not execute the plan: TFLM was not asked"):
        tflite_memopt.optimize(DATA, replace(options, require=("tflm",)))
    assert tflite_memopt.optimize(DATA, replace(plain, require=("tflm",))).report.basis.plan_executed
