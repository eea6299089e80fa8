"""What is wrong in one turn of a loop is found, in whichever tensor and whatever comes after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.memory.loops import looped, placement_of, plain
from tests.tflm import litert_and_tflm
from tests.two_models import compare_models
from tflite_memopt import EquivalenceError, Options
from tflite_memopt.analysis.loops import Loop, loops_of, spent_in_rows
from tflite_memopt.cascade.loop import LoopForm
from tflite_memopt.equivalence.baseline import arena_for
from tflite_memopt.equivalence.exposure import snapshots
from tflite_memopt.equivalence.failure import Subject
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.plan_judge import PlanJob, judge_plan
from tflite_memopt.equivalence.pool import Interpreters
from tflite_memopt.equivalence.verification import verify_result
from tflite_memopt.io import offline_plan
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.editor import Editor, add_buffer
from tflite_memopt.ir.model import Model, Tensor, pieces_in, pieces_in_loops
from tflite_memopt.ir.tensors import integers

FORMS: tuple[LoopForm, ...] = ("clamped", "masked")
BOTH = Options(samples=3, runtimes=("litert", "tflm"))


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with litert_and_tflm() as found:
        yield found


def blind(model: Model) -> Model:
    """The model with an output that is the same for all inputs: its outputs alone would prove nothing."""
    (found,) = model.main.outputs
    edit = Editor(model, model.main, len(model.main.operators))
    zero = edit.activation("zero", found.shape, found)
    edit.operator("SUB", (found, found), (zero,), "SubOptions")
    model.main.outputs = (zero,)
    return model


def subject_of(model: Model) -> Subject:
    offline_plan.attach(model, placement_of(model).offsets)
    original = write_model(blind(plain()))
    return Subject(
        original, original, write_model(model), pieces=pieces_in(model.main), loop_pieces=pieces_in_loops(model)
    )


def tables(loop: Loop) -> list[Tensor]:
    """Where each turn reads and writes."""
    return [tensor for tensor in loop.body.tensors if tensor.is_constant and tensor.name.startswith("begins")]


@pytest.mark.parametrize("form", FORMS)
def test_a_right_loop_passes(form: LoopForm) -> None:
    verdicts = verify_result(subject_of(blind(looped(form))), BOTH, lambda _: None).verdicts
    assert all(verdict.equal for verdict in verdicts.values())
    assert all((verdict.inner_tensors or 0) >= 3 for verdict in verdicts.values())


def with_a_wrong_last_turn(model: Model, number: int) -> Model:
    """The model whose loop reads or writes a row too high, or too low, in its last turn."""
    (loop,) = loops_of(model)
    table = tables(loop)[number]
    rows = integers(table)
    assert rows is not None
    changed = rows.astype(np.int32).reshape(-1, 4)
    changed[-1, 1] -= 1 if changed[-1, 1] else -1
    table.buffer = add_buffer(model, changed.ravel())
    return model


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_row_in_the_last_turn_alone_is_caught(form: LoopForm) -> None:
    samples, visible = seeded_inputs(plain(), 3, 0), 0
    for number in range(len(tables(loops_of(looped(form))[0]))):
        open_one = write_model(with_a_wrong_last_turn(looped(form), number))
        if compare_models("litert", write_model(plain()), open_one, samples, 0).equal:
            continue  # it reads a row that padding replaces
        visible += 1
        for runtime in ("litert", "tflm"):
            wrong = subject_of(with_a_wrong_last_turn(blind(looped(form)), number))
            with pytest.raises(EquivalenceError, match=r"tensor '.*' (differs|is off)"):
                verify_result(wrong, replace(BOTH, runtimes=(runtime,)), lambda _: None)
    assert visible


@pytest.mark.parametrize("form", FORMS)
def test_a_weight_of_the_body_that_is_not_the_originals_is_caught_without_a_run(form: LoopForm) -> None:
    model = blind(looped(form))
    (loop,) = loops_of(model)
    weights = next(tensor for tensor in loop.body.tensors if tensor.is_constant and len(tensor.shape) == 4)
    assert weights.buffer.data is not None
    data = weights.buffer.data.view(np.int8).copy()
    data[-1] ^= 1
    weights.buffer = add_buffer(model, data)
    with pytest.raises(EquivalenceError, match=r"in a loop: the constant .* does not hold the original's values"):
        verify_result(subject_of(model), BOTH, lambda _: None)


@pytest.mark.parametrize("form", FORMS)
def test_two_tensors_of_the_body_at_one_place_are_caught(form: LoopForm, interpreters: Interpreters) -> None:
    """Each tensor of the body in turn is put where another one is, that is alive when it is written."""
    model = looped(form)
    placement = placement_of(model)
    (loop,) = loops_of(model)
    offsets = placement.offsets
    tried = 0
    for operator in loop.body.operators:
        source, output = operator.inputs[0], operator.outputs[0]
        if operator.name not in ("CONV_2D", "PAD") or source is None or not {source, output} <= set(offsets):
            continue
        tried += 1
        offline_plan.attach(model, {**offsets, output: offsets[source]})
        data = write_model(model)
        written = read_model(data)
        samples = seeded_inputs(written, 3, 0)
        found = judge_plan(PlanJob(interpreters["tflm"], data, written, samples, arena_for(written)))
        # Where the counter is overwritten the loop reads far outside its tables.
        is_caught = found.difference is not None or "crashed" in str(found.reason)
        assert is_caught, operator.outputs[0].name
    assert tried


def test_what_is_given_up_row_by_row_is_shown_before_anybody_has_read_it(interpreters: Interpreters) -> None:
    model = looped("masked")
    offline_plan.attach(model, placement_of(model).offsets)
    data = write_model(model)
    written = read_model(data)
    (image,) = spent_in_rows(written)
    (shown,) = snapshots(data, 10_000)
    assert written.main.tensors.index(image) in shown.tensors.values()
    copy, reader = read_model(shown.model).main.operators[:2]
    assert (copy.outputs[0].name[:8], reader.name) == ("snapshot", "SLICE")
    samples = seeded_inputs(written, 3, 0)
    found = judge_plan(PlanJob(interpreters["tflm"], data, written, samples, arena_for(written)))
    assert (found.reason, found.difference) == (None, None)
