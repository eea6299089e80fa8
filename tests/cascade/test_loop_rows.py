"""Which rows a loop makes where, and which variables may be overlaid: what the verification and a reader rely on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.cascade.forms import LOOPS, Loop
from tests.cascade.networks import EVERY, TYPES, random_network, regions
from tests.faults import raises
from tests.memory.loops import looped, placement_of, plain
from tests.model_builder import ModelBuilder
from tflite_memopt import ModelFormatError, analyze, optimize
from tflite_memopt.errors import ErrorKind
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.memory.arrange import arrange
from tflite_memopt.model.analysis.loops import loops_of, mark_placeholders
from tflite_memopt.model.analysis.macs import model_macs
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.reader import read_model
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.editor import add_buffer
from tflite_memopt.operators.table import operator_macs
from tflite_memopt.options import Options
from tflite_memopt.run.explore import explore
from tflite_memopt.search.cascade.bound import MayShare, least_head, loop_macs
from tflite_memopt.search.cascade.loop import LoopForm, lower_loop, reason_against_loops
from tflite_memopt.search.cascade.loop_rows import Masked, masked
from tflite_memopt.search.cascade.tiling import loop_rows_for

FORMS: tuple[LoopForm, ...] = ("clamped", "masked")


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4]), st.sampled_from([2, 3, 4]))
def test_pieces_make_all_rows_of_an_iteration_and_keep_what_is_read(seed: int, rows: int, count: int) -> None:
    model = random_network(seed, TYPES[seed % 3], 5, height=24)
    can_loop = [region for region in regions(model) if reason_against_loops(region) is None]
    longest = sorted(can_loop, key=lambda each: len(each.operators), reverse=True)
    every = ((region, masked(region, rows, pieces=count)) for region in longest)
    region, turns = next(((each, found) for each, found in every if isinstance(found, Masked)), (None, None))
    assume(region is not None)
    assert region is not None
    assert turns is not None
    assert len(turns.pieces) == count
    there = {tensor: range(rows.start, rows.end) for tensor, rows in turns.iteration.kept().items()}
    for piece in turns.pieces:
        for operator, way in region.steps:
            job = piece.jobs.get(operator)
            if job is not None:
                output = operator.outputs[0]
                before = there.get(output, range(job.computed.start, job.computed.start))
                assert before.stop == job.computed.start
                there[output] = range(before.start, job.computed.end)
                read = {tensor: there[tensor] for tensor in way.images(operator) if tensor not in region.inputs}
                assert all(rows.start <= job.read.start and job.read.end <= rows.stop for rows in read.values())
        for tensor, window in piece.windows.items():
            assert not window.needed.count or window.needed.end == there[tensor].stop
            there[tensor] = range(window.needed.start, window.needed.end)
    made = {operator.outputs[0]: turns.iteration.jobs[operator].computed.end for operator in region.operators}
    assert {tensor: rows.stop for tensor, rows in there.items()} == made


@pytest.mark.parametrize("form", FORMS)
def test_a_written_loop_is_known_again(form: LoopForm) -> None:
    model = looped(form)
    placement = placement_of(model)
    offline_plan.attach(model, placement.offsets)
    written = write_model(model)
    found = analyze(written).memory
    assert found.arena_bytes == placement.memory.arena_bytes
    assert found.tail_bytes == placement.memory.tail_bytes
    assert found.required_bytes == placement.memory.required_bytes


def test_a_variable_that_is_not_overwritten_in_full_is_left_alone() -> None:
    model = looped("clamped")
    (loop,) = loops_of(model)
    is_turn = loop.condition.operators[0].inputs[0]
    assert is_turn is not None
    assert loop.iterations is not None
    is_turn.buffer = add_buffer(
        model, np.repeat(np.arange(loop.iterations + 1) < loop.iterations - 1, 4)
    )  # the last is missing
    read = read_model(write_model(model))
    (variable,) = [tensor for tensor in read.main.tensors if tensor.is_variable]
    mark_placeholders(read, {variable: 0})
    assert not variable.is_placeholder


def test_a_variable_without_an_offset_stays_in_the_tail() -> None:
    read = read_model(write_model(looped("clamped")))
    mark_placeholders(read, {})
    assert not any(tensor.is_placeholder for tensor in read.main.tensors)


def test_a_variable_that_something_else_reads_is_left_alone() -> None:
    b = ModelBuilder()
    x = b.input("x", (1, 4, 4, 2))
    state, whole = b.tensor("state", (1, 4, 4, 2)), b.tensor("whole", (1, 4, 4, 2))
    state.is_variable = True
    begin = b.constant("begin", np.zeros(4, np.int32))
    b.operator("DYNAMIC_UPDATE_SLICE", (state, x, begin), (whole,))
    model = b.finish(b.add(whole, state))
    mark_placeholders(model, {state: 0})
    assert not state.is_placeholder


def test_a_looped_model_can_be_optimized_again() -> None:
    model = looped("masked")
    assert plain().main.outputs[0].name == model.main.outputs[0].name
    placement = placement_of(model)
    offline_plan.attach(model, placement.offsets)
    again = read_model(write_model(model))
    mark_placeholders(again, offline_plan.decode(again) or {})
    assert placement_of(again).memory.arena_bytes == placement.memory.arena_bytes


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_file_with_a_loop_can_be_optimized_again(form: LoopForm) -> None:
    model = looped(form)
    offline_plan.attach(model, placement_of(model).offsets)
    data = write_model(model)
    report = optimize(data, Options(samples=2, runtimes=("tflm",))).report
    assert report.equivalence["tflm"].equal
    assert report.after.required_bytes["32"] <= analyze(data).memory.required_bytes["32"]


@pytest.mark.parametrize("command", [analyze, optimize, explore])
def test_a_loop_whose_body_is_not_there_is_refused(command: Callable[[bytes], object]) -> None:
    model = looped("masked")
    (operator,) = (each for each in model.main.operators if each.name == "WHILE")
    assert operator.options is not None
    operator.options = replace(operator.options, fields={**operator.options.fields, "bodySubgraphIndex": 99})
    with raises(ModelFormatError, ErrorKind.NO_SUCH_SUBGRAPH, "99"):
        command(write_model(model))


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize("seed", range(8))
def test_what_turns_say_is_what_a_written_loop_takes(form: Loop, seed: int) -> None:
    model = random_network(seed, TYPES[seed % 3], 4, height=24, kinds=EVERY)
    region = max(regions(model), key=lambda each: len(each.operators))
    turns = loop_rows_for(region, form(1 + seed % 2))
    if isinstance(turns, str):
        return
    profile = profile_named("reference" if seed % 2 else "portable")
    before = model_macs(model) - sum(map(operator_macs, region.operators))
    macs, least = loop_macs(region, turns), least_head(region, turns, MayShare(profile))
    lower_loop(model, model.main, region, turns)
    assert before + macs == model_macs(model)
    assert least <= arrange(model, profile, Options().search).placement.memory.arena_bytes
