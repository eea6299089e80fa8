"""Describe a region that runs as one loop, in analyze and in the report."""

from __future__ import annotations

import pytest

from tests.memory.loops import looped, placement_of, plain
from tflite_memopt import analyze
from tflite_memopt.model.io import offline_plan
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.report.loops import said_of_loop
from tflite_memopt.search.cascade.loop import LoopForm


def test_a_model_without_loops_says_nothing_of_them() -> None:
    assert analyze(write_model(plain())).loops == ()


@pytest.mark.parametrize("form", ["clamped", "masked"])
def test_analyze_tells_a_loop_as_what_it_is(form: LoopForm) -> None:
    model = looped(form)
    offline_plan.attach(model, placement_of(model).offsets)
    (use,) = analyze(write_model(model)).loops
    body = model.graphs[2]
    assert use.operators == tuple(each.name for each in body.operators)
    assert use.reads == tuple(tensor.name for tensor in model.main.inputs)
    kept = {tensor.name for tensor in body.inputs if tensor.name.endswith(("/kept", "/kept_2"))}
    assert len(use.line_buffers) == len(kept)
    assert all(each.bytes > 0 and not each.of.endswith("kept") for each in use.line_buffers)
    height = model.main.outputs[0].shape[1]
    assert use.iterations * use.rows >= height
    said = said_of_loop(use)
    assert said.startswith(f"loop: {use.iterations} iterations of ")
    assert f"{len(body.operators)} operators per iteration" in said
