"""Unrolled steps as one loop: the same bits, in a fraction of the structures; unequal steps stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from tests.recurrent import F32, I8, WIDTH, cell, unrolled, weights
from tests.tflm import needs_wheel
from tests.two_models import compare_models
from tflite_memopt import Options, optimize
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.proof import Status, prove
from tflite_memopt.model.analysis.loops import loops_of
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.change import Changed, decision_in
from tflite_memopt.model.ir.check import check_model
from tflite_memopt.model.ir.copying import copy_model, drop_dead_tensors
from tflite_memopt.model.ir.model import DType, Model
from tflite_memopt.model.ir.tensors import affine_of, per_tensor
from tflite_memopt.search.rewrite.loadable import mended
from tflite_memopt.search.rewrite.stage import rewrite
from tflite_memopt.search.rewrite.steps_in_a_loop import roll_up

ARENA = 1 << 20
FREE = Options(max_slowdown=1.0, cascade=False, samples=2)


def rolled(model: Model) -> Model:
    """A copy with its steps in loops, as it is read from a file."""
    looped = copy_model(model)
    done = roll_up(looped)
    assert done.uses
    assert not done.refused
    check_model(looped)
    return read_model(write_model(looped))


@needs_wheel
@pytest.mark.parametrize("runtime", ["litert", "tflm"])
@pytest.mark.parametrize("dtype", [F32, I8])
@pytest.mark.parametrize(("axis", "backwards"), [(0, False), (1, False), (0, True)])
def test_the_same_bits_for_all_inputs(runtime: str, dtype: DType, axis: int, backwards: bool) -> None:
    model = unrolled(7, dtype, axis, backwards)
    looped = rolled(model)
    (loop,) = loops_of(looped)
    assert loop.iterations == 6
    assert prove(model, looped).status is Status.PROVED
    found = compare_models(runtime, write_model(model), write_model(looped), seeded_inputs(model, 4, 1), ARENA)
    assert found.equal, found.reason


@needs_wheel
@pytest.mark.parametrize("steps", [6, 14])
def test_slices_and_concatenations_are_rows_and_items(steps: int) -> None:
    model = unrolled(steps, is_folded=True, in_slices=True)
    found = mended(copy_model(model))
    looped = rolled(found.model if found.uses else model)
    assert bool(found.uses) == (steps > 10)
    assert sum(operator.name == "SLICE" for operator in looped.main.operators) == 1  # of the first step, outside
    assert prove(model, looped).status is Status.PROVED
    found_equal = compare_models("tflm", write_model(model), write_model(looped), seeded_inputs(model, 3, 1), ARENA)
    assert found_equal.equal or steps > 10, found_equal.reason  # TFLM joins at most 10


def test_a_concatenation_that_is_returned_stays() -> None:
    found = mended(unrolled(14, is_folded=True, in_slices=True))
    inner = next(operator for operator in found.model.main.operators if operator.name == "CONCATENATION")
    found.model.main.outputs = (*found.model.main.outputs, inner.outputs[0])
    done = roll_up(found.model)
    (refused,) = done.refused
    assert not done.uses
    assert "outside" in refused.reason


def test_a_row_of_another_turn_is_another_model() -> None:
    looped = rolled(unrolled(7))
    begins = next(tensor for tensor in looped.graphs[2].tensors if tensor.name == "begin/table")
    assert begins.buffer.data is not None
    table = begins.buffer.data.view(np.int32).copy()
    table[0] = 0
    begins.buffer.data = table.view(np.uint8)
    assert not prove(unrolled(7), looped).proved


def changed(options: Options) -> Changed:
    return rewrite(unrolled(10, more=8), options.profile, options.search, lambda _: None)


def test_the_limit_on_run_time_and_the_firmware_decide() -> None:
    found = changed(FREE)
    (use,) = (use for use in found.uses if use.rule == "steps_in_a_loop")
    assert use.saved_bytes > 5000
    assert found.decision.is_rolled
    slow = changed(replace(FREE, max_slowdown=0.1))
    assert not slow.decision.is_rolled
    assert any("--max-slowdown 10" in each.reason for each in slow.refused)
    old = replace(FREE, tflm="2025-01-01")
    for options in (old, replace(FREE, loops=False), replace(FREE, replay="as it is")):
        assert not changed(options).decision.is_rolled
    assert changed(replace(FREE, replay="steps in loops")).decision.is_rolled


@needs_wheel
@pytest.mark.slow
def test_it_is_taken_where_the_limit_on_run_time_permits_it_and_replayed() -> None:
    data = write_model(unrolled(16, more=8))
    plain = optimize(data, replace(FREE, max_slowdown=0.1))
    (reason,) = {each.reason for each in plain.report.refused if each.rule == "steps_in_a_loop"}
    assert "--max-slowdown 10" in reason
    result = optimize(data, FREE)
    assert "steps_in_a_loop" in {use.rule for use in result.report.rewrites}
    assert {proof.status for proof in result.report.proofs.values()} == {"proved"}
    assert result.report.basis.plan_executed
    assert result.report.after.required_bytes["32"] < plain.report.after.required_bytes["32"] / 2
    assert decision_in(result.report.decision).is_rolled
    replayed = optimize(data, replace(FREE, replay=result.report.decision))
    assert replayed.model == result.model
    last = replace(FREE, cascade=False, rewrite=False)
    assert "steps_in_a_loop" not in {use.rule for use in optimize(data, last).report.rewrites}


APART = (0.03, 0.04, 0.05)
"""Scales of steps that were quantized after training."""


def test_steps_with_scales_of_their_own_stay_unless_values_may_change() -> None:
    model = unrolled(7, I8, scales=APART)
    done = roll_up(copy_model(model))
    (refusal,) = done.refused
    assert (done.uses, refusal.cause) == ((), "needs_approximation")
    assert "scales" in refusal.reason
    looped = copy_model(model)
    done = roll_up(looped, is_exact=False)
    (use,) = done.uses
    assert (use.exactness, done.refused) == ("approximates", ())
    sums = next(tensor for tensor in looped.graphs[2].tensors if tensor.name == "sum")
    affine = affine_of(sums)
    assert affine is not None
    assert affine.scale == pytest.approx(max(APART))  # the widest range has all others


@needs_wheel
@pytest.mark.slow
def test_one_scale_for_all_steps_is_close_and_is_said() -> None:
    data = write_model(unrolled(12, I8, scales=APART, more=8))
    assert "steps_in_a_loop" not in {use.rule for use in optimize(data, FREE).report.rewrites}
    report = optimize(data, replace(FREE, allow_approximate=True)).report
    (use,) = (use for use in report.rewrites if use.rule == "steps_in_a_loop")
    assert use.exactness == "approximates"
    on_tflm = report.equivalence["tflm"]
    assert on_tflm.equal
    assert on_tflm.signal_to_noise is not None
    assert on_tflm.signal_to_noise > 20
    assert {name: proof.status for name, proof in report.proofs.items()} == {"stripes": "proved", "plan": "proved"}


@pytest.mark.parametrize(
    ("scale", "around"), [(1 / 256, ["QUANTIZE", "RESHAPE", "WHILE"]), (1 / 64, ["WHILE", "QUANTIZE"])]
)
def test_a_first_state_of_another_scale_is_rescaled_or_the_last_one_is(scale: float, around: list[str]) -> None:
    """Whichever has not the wider range, which the loop carries."""
    model = unrolled(6, I8, scales=APART)
    graph = model.main
    pack = next(operator for operator in graph.operators if operator.name == "PACK")
    graph.outputs = graph.outputs[1:]
    graph.remove_operator(pack)
    first = next(tensor for tensor in graph.tensors if tensor.name == "first")
    first.quantization = per_tensor(scale, 0)
    drop_dead_tensors(model)
    roll_up(model, is_exact=False)
    check_model(model)
    names = [operator.name for operator in model.main.operators]
    assert sorted(names[-len(around) :]) == sorted(around)


def test_a_bias_that_goes_with_another_scale_is_said() -> None:
    b = ModelBuilder()
    x = b.input("x", (5, 1, WIDTH))
    rows = [b.tensor(f"row{at}", (1, WIDTH)) for at in range(5)]
    b.operator("UNPACK", (x,), rows, "UnpackOptions", num=5, axis=0)
    w, bias = weights(b, 1, I8), b.constant("bias", np.ones(WIDTH, np.int32), per_tensor(0.0003, 0))
    state = rows[0]
    for at, row in enumerate(rows[1:]):
        made = b.tensor(f"made{at}", (1, WIDTH), scale=0.1 + at / 100)
        b.operator("FULLY_CONNECTED", (state, w, bias), (made,), "FullyConnectedOptions")
        state = b.tensor(f"sum{at}", (1, WIDTH), scale=0.2 + at / 100)
        b.operator("ADD", (made, row), (state,), "AddOptions")
    done = roll_up(b.finish(state), is_exact=False)
    (refusal,) = done.refused
    assert not done.uses
    assert "scale" in refusal.reason


def chain(reads: str) -> Model:
    """Four steps, of which others read what a loop does not give: every state, or a part of the last step."""
    b = ModelBuilder()
    x = b.input("x", (5, 1, WIDTH), F32)
    rows = [b.tensor(f"row{at}", (1, WIDTH), F32) for at in range(5)]
    b.operator("UNPACK", (x,), rows, "UnpackOptions", num=5, axis=0)
    w, u = weights(b, 1), weights(b, 2)
    states = [rows[0]]
    for at, row in enumerate(rows[1:]):
        taken = rows[0] if reads == "a row twice" and at > 1 else row
        states.append(cell(b, taken, states[-1], w, u, f"step{at}"))
    if reads == "states":
        return b.finish(*states[1:])
    if reads == "two packed":
        sums = [tensor for tensor in b.graph.tensors if tensor.name.endswith("/sum")]
        packed = b.tensor("packed", (8, 1, WIDTH), F32)
        b.operator("PACK", (*states[1:], *sums), (packed,), "PackOptions", valuesCount=8, axis=0)
        return b.finish(packed)
    inner = next(tensor for tensor in b.graph.tensors if tensor.name == "step3/sum")
    return b.finish(states[-1], inner) if reads == "a sum" else b.finish(states[-1])


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ("states", "'step0/state' is read outside, and not as an item of every step"),
        ("two packed", "'packed' takes several tensors of every step"),
        ("a sum", "others read 'step0/sum' of the last step alone, and it is no state"),
    ],
)
def test_what_no_loop_gives_is_said(reads: str, reason: str) -> None:
    model = chain(reads)
    done = roll_up(model)
    (refusal,) = done.refused
    assert (done.uses, refusal.reason) == ((), reason)


@pytest.mark.parametrize("reads", ["the last", "a row twice"])
def test_steps_take_rows_in_any_order(reads: str) -> None:
    model = chain(reads)
    assert prove(model, rolled(model)).proved
