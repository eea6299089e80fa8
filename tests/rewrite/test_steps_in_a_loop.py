"""Unrolled steps as one loop: the same bits, in a fraction of the structures; unequal steps stay."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.recurrent import F32, I8, WIDTH, cell, unrolled, weights
from tests.tflm import needs_wheel
from tests.two_models import compare_models
from tflite_memopt import Options, optimize
from tflite_memopt.analysis.loops import loops_of
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.change import decision_in
from tflite_memopt.ir.check import check_model
from tflite_memopt.ir.copying import copy_model
from tflite_memopt.ir.model import DType, Model
from tflite_memopt.options import fallbacks
from tflite_memopt.proof import prove
from tflite_memopt.rewrite.steps_in_a_loop import roll_up

ARENA = 1 << 20
FREE = Options(max_extra_work=1.0, effort="quick", samples=2)


def rolled(model: Model) -> Model:
    """A copy with its steps in loops, as it is read from a file."""
    looped = copy_model(model)
    uses, refused = roll_up(looped)
    assert uses
    assert not refused
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
    assert loop.turns == 6
    assert str(prove(model, looped)) == "proved for all inputs"
    found = compare_models(runtime, write_model(model), write_model(looped), seeded_inputs(model, 4, 1), ARENA)
    assert found.equal, found.reason


def test_a_row_of_another_turn_is_another_model() -> None:
    looped = rolled(unrolled(7))
    begins = next(tensor for tensor in looped.graphs[2].tensors if tensor.name == "begin/table")
    assert begins.buffer.data is not None
    table = begins.buffer.data.view(np.int32).copy()
    table[0] = 0
    begins.buffer.data = table.view(np.uint8)
    assert not prove(unrolled(7), looped).proved


@needs_wheel
def test_it_is_taken_where_the_limit_on_run_time_permits_it_and_replayed() -> None:
    data = write_model(unrolled(16, more=8))
    plain = optimize(data, Options(samples=2, effort="quick"))
    (reason,) = {each.reason for each in plain.report.refused if each.rule == "steps_in_a_loop"}
    assert "more instructions (--max-extra-work permits 10%)" in reason
    result = optimize(data, FREE)
    assert "steps_in_a_loop" in {use.rule for use in result.report.rewrites}
    assert {proof.status for proof in result.report.proofs.values()} == {"proved"}
    assert result.report.basis.plan_executed
    assert result.report.after.required_bytes["32"] < plain.report.after.required_bytes["32"] / 2
    assert decision_in(result.report.decision).is_rolled
    replayed = optimize(data, Options(max_extra_work=1.0, effort="quick", samples=2, replay=result.report.decision))
    assert replayed.model == result.model
    (_, last) = fallbacks(FREE)[-1]
    assert "steps_in_a_loop" not in {use.rule for use in optimize(data, last).report.rewrites}


def test_without_loops_steps_stay() -> None:
    report = optimize(write_model(unrolled(16)), Options(loops=False, verify=False, max_extra_work=1.0)).report
    assert "steps_in_a_loop" not in {use.rule for use in report.rewrites}


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (unrolled(7, I8, scales=(0.03, 0.04)), "its steps are not equal"),
        (unrolled(7, F32, axis=1), None),
    ],
)
def test_steps_with_scales_of_their_own_stay(model: Model, reason: str | None) -> None:
    operators = len(model.main.operators)
    uses, refused = roll_up(model)
    assert bool(uses) is (reason is None)
    assert [reason in each.reason for each in refused if reason] == ([True] if reason else [])
    assert (len(model.main.operators) == operators) is (reason is not None)


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
    inner = next(tensor for tensor in b.graph.tensors if tensor.name == "step3/sum")
    return b.finish(states[-1], inner) if reads == "a sum" else b.finish(states[-1])


@pytest.mark.parametrize(
    ("reads", "reason"),
    [
        ("states", "'step0/state' is read outside, and not as an item of every step"),
        ("a sum", "others read 'step0/sum' of the last step alone, and it is no state"),
    ],
)
def test_what_no_loop_gives_is_said(reads: str, reason: str) -> None:
    model = chain(reads)
    uses, (refusal,) = roll_up(model)
    assert (uses, refusal.reason) == ((), reason)


@pytest.mark.parametrize("reads", ["the last", "a row twice"])
def test_steps_take_rows_in_any_order(reads: str) -> None:
    model = chain(reads)
    assert prove(model, rolled(model)).proved
