"""TFLM as the judge of the plan: what is right passes, and a wrong overlap anywhere shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts.mutation.scoring import graph_scores, plan_scores
from tests.models import ALL, branches, concat_model, mobile_chain
from tests.tflm import litert_and_tflm, needs_wheel
from tflite_memopt import EquivalenceError, Options, optimize
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.exposure import snapshots, without_plan
from tflite_memopt.equivalence.failure import Promise, Subject
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.plan_judge import PlanJob, judge_plan
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.equivalence.verification import verify_result
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.kernels import arena
from tflite_memopt.kernels.requests import Size

UNPROVED = Options(verify=False, kernels="reference", objective="head")


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as found:
        yield found


@pytest.mark.parametrize("name", ALL)
def test_right_plans_pass_and_every_tensor_was_looked_at(name: str, interpreters: Interpreters) -> None:
    data = optimize(write_model(ALL[name]()), UNPROVED).model
    model = read_model(data)
    samples = seeded_inputs(model, 5, 0)
    found = judge_plan(PlanJob(interpreters["tflm"], data, model, samples, arena_for(model)))
    assert (found.reason, found.difference) == (None, None)
    assert found.apart is not None
    shown = {index for each in snapshots(data, found.run.facts["head"]) for index in each.tensors.values()}
    every = {index for each in snapshots(without_plan(data), 0) for index in each.tensors.values()}
    unread = {index for index in every if not offline_plan.tensors_in_file_order(model)[index].uses}
    assert every - unread <= shown


def test_snapshots_leave_every_offset_as_it_is() -> None:
    data = optimize(write_model(mobile_chain()), UNPROVED).model
    model = read_model(data)
    plan = offline_plan.decode(model)
    assert plan
    [shown] = snapshots(data, 4_000)
    watched = read_model(shown.model)
    kept = offline_plan.decode(watched)
    assert kept is not None
    by_name = {tensor.name: offset for tensor, offset in kept.items()}
    assert {tensor.name: offset for tensor, offset in plan.items()}.items() <= by_name.items()
    assert all(offset >= 4_000 for name, offset in by_name.items() if name.startswith("snapshot"))


def test_a_wrong_plan_is_found_beside_litert_in_the_same_words() -> None:
    original = write_model(mobile_chain())
    model = read_model(original)
    offline_plan.attach(model, {tensor: 0 for tensor in model.main.tensors if not tensor.is_constant})
    subject = Subject(original, original, write_model(model))
    words = []
    for runtimes in (("litert", "tflm"), ("tflm",)):
        with pytest.raises(EquivalenceError, match="the plan changes values: at its last use, tensor 'conv0'") as found:
            verify_result(subject, Options(samples=3, runtimes=runtimes), lambda _: None)
        words.append(str(found.value))
    assert words[0] == words[1]


@pytest.mark.slow
@pytest.mark.parametrize("make", [mobile_chain, branches, concat_model])
def test_a_sample_of_wrong_plans_is_caught(make: object, interpreters: Interpreters) -> None:
    assert callable(make)
    scores = list(plan_scores("model", write_model(make()), "reference", 5, 60, interpreters, 0))
    assert sum(score.visible for score in scores) >= 5
    assert [score.missed for score in scores if score.missed] == []


@pytest.mark.slow
@pytest.mark.parametrize("make", [mobile_chain, concat_model])
def test_a_sample_of_wrong_graphs_is_caught(make: object, interpreters: Interpreters) -> None:
    assert callable(make)
    scores = list(graph_scores("model", write_model(make()), 4, 60, interpreters, 0))
    assert sum(score.visible for score in scores) >= 10
    assert [score.missed for score in scores if score.missed] == []


@needs_wheel
@pytest.mark.parametrize("wrong", [Promise(required_bytes=4_096), Promise(head=160)])
def test_a_wheel_that_takes_more_than_was_counted_is_noted(wrong: Promise) -> None:
    """It may be of a version that was never measured, which says nothing of the user's firmware."""
    data = optimize(write_model(mobile_chain()), UNPROVED).model
    options = Options(samples=2, runtimes=("tflm",))
    verification = verify_result(
        Subject(write_model(mobile_chain()), data, data, promise=wrong), options, lambda _: None
    )
    assert verification.verdicts["tflm"].equal
    assert verification.basis.plan_executed
    noted = [
        each
        for each in verification.basis.findings
        if "the tflite-micro wheel on 64 bits, refuses the 4,096 bytes" in each
    ]
    assert len(noted) == (wrong.required_bytes is not None)


@needs_wheel
def test_a_wheel_of_another_version_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of 64 bits are as much as 100 bytes off: the same file, and a warning."""
    data = write_model(mobile_chain())
    usual = optimize(data, Options(samples=2))
    monkeypatch.setattr(arena, "MICRO_ALLOCATOR", Size(36, 72, lp64=72))
    other = optimize(data, Options(samples=2))
    assert other.model == usual.model
    assert other.report.basis.plan_executed
    assert any("the tflite-micro wheel on 64 bits, refuses" in warning for warning in other.report.warnings)
    assert not any("the tflite-micro wheel on 64 bits, refuses" in warning for warning in usual.report.warnings)
