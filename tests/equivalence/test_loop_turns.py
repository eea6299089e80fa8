"""A loop's body by itself, turn after turn, holds what the loop holds, and is found out where it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.memory.loops import looped, placement_of
from tflite_memopt.analysis.loops import loops_of
from tflite_memopt.cascade.loop.lower import LoopForm
from tflite_memopt.equivalence import loop_turns
from tflite_memopt.equivalence.adapter import REFERENCE, RunJob
from tflite_memopt.equivalence.inputs import Sample, seeded_inputs
from tflite_memopt.equivalence.limits import ProcessLimits
from tflite_memopt.equivalence.loop_logs import log_bytes
from tflite_memopt.equivalence.loop_turns import add_turns, given_to_loops
from tflite_memopt.equivalence.original import arena_for, run_exposed
from tflite_memopt.equivalence.pool import Interpreters, open_interpreters
from tflite_memopt.equivalence.runner import Run
from tflite_memopt.equivalence.trace import Trace, computed_tensors, trace_of
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model

FORMS: tuple[LoopForm, ...] = ("clamped", "masked", "peeled")


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with open_interpreters(("litert", "tflm"), ProcessLimits()) as found:
        yield found


def planned(form: LoopForm) -> bytes:
    model = looped(form)
    offline_plan.attach(model, placement_of(model).offsets)
    return write_model(model)


def body_of(model: Model) -> int:
    (loop,) = loops_of(model)
    return next(at for at, graph in enumerate(model.graphs) if graph is loop.body)


def traced(data: bytes, samples: list[Sample], interpreters: Interpreters) -> Trace:
    model = read_model(data)
    wanted = (*computed_tensors(model.main), *given_to_loops(model))
    run = interpreters["litert"].run(RunJob(data, samples, 0, wanted))
    assert run.ran
    return trace_of(run.arrays, len(samples))


def turned(data: bytes, found: Trace, interpreters: Interpreters) -> Run | None:
    model = read_model(data)
    return add_turns(found, data, model, {body_of(model)}, interpreters["litert"], REFERENCE)


@pytest.mark.parametrize("form", FORMS)
def test_every_turn_holds_what_the_logs_of_tflm_show(form: LoopForm, interpreters: Interpreters) -> None:
    data = planned(form)
    model = read_model(data)
    samples = seeded_inputs(model, 3, 0)
    found = traced(data, samples, interpreters)
    assert turned(data, found, interpreters) is None
    logs = run_exposed(interpreters["tflm"], data, samples, arena_for(model))
    assert isinstance(logs, Trace)
    places = log_bytes(model)
    assert places
    for place in places:
        for here, there in zip(found.tensors[place], logs.tensors[place], strict=True):
            assert np.array_equal(here, there)


def test_turns_that_do_not_end_as_the_loop_does_are_found(
    interpreters: Interpreters, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = planned("masked")
    found = traced(data, seeded_inputs(read_model(data), 2, 0), interpreters)
    monkeypatch.setattr(
        loop_turns, "loops_of", lambda model: [replace(each, turns=(each.turns or 0) - 1) for each in loops_of(model)]
    )
    failed = turned(data, found, interpreters)
    assert failed is not None
    assert "do not end as its loop does" in str(failed.error)


def test_a_loop_of_which_it_is_not_known_what_it_is_given_is_said(interpreters: Interpreters) -> None:
    data = planned("masked")
    model = read_model(data)
    found = traced(data, seeded_inputs(model, 2, 0), interpreters)
    del found.tensors[model.main.tensors.index(model.main.inputs[0])]
    failed = turned(data, found, interpreters)
    assert failed is not None
    assert "is given is not known" in str(failed.error)


def test_turns_are_runs_on_the_outputs_before(interpreters: Interpreters) -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 2), DType.INT8)
    y = b.conv(x, 2, kernel=3, seed=3)
    data = write_model(b.finish(y))
    model = read_model(data)
    at = model.main.tensors.index(model.main.outputs[0])
    samples = seeded_inputs(model, 2, 0)
    run = interpreters["litert"].run(RunJob(data, samples, 0, (at,), turns=3))
    for number, sample in enumerate(samples):
        given, values = sample, []
        for _ in range(3):
            once = interpreters["litert"].run(RunJob(data, [given], 0))
            given = [once.arrays["s0_o0"]]
            values.append(given[0])
        assert np.array_equal(run.arrays[f"s{number}_o0"], values[-1])
        assert np.array_equal(run.arrays[f"s{number}_t{at}"], np.concatenate(values))
