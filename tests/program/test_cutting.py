"""Parts of a model: together they compute what it does, and what cannot be cut is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from tests.faults import raises
from tests.model_builder import ModelBuilder
from tests.models import ALL
from tflite_memopt import Options
from tflite_memopt.errors import ErrorKind, UnsupportedModelError
from tflite_memopt.evidence.equivalence.adapter import RunJob, Sample
from tflite_memopt.evidence.equivalence.inputs import seeded_inputs
from tflite_memopt.evidence.equivalence.runner import Interpreters, ProcessLimits
from tflite_memopt.model.io.writer import write_model
from tflite_memopt.model.ir.model import Model
from tflite_memopt.run.parts import stretch
from tflite_memopt.run.parts.cutting import crossing, cut, why_whole
from tflite_memopt.run.parts.stretch import StretchCosts


def branches() -> Model:
    """The input is read again at the end, and one output comes from the middle."""
    b = ModelBuilder()
    x = b.input("x", (1, 8, 8, 4))
    one = b.conv(x, 4)
    two = b.depthwise(one)
    three = b.add(b.conv(two, 4, seed=1), one)
    return b.finish(b.add(three, x), two)


def test_what_crosses_is_what_is_read_later_or_given() -> None:
    model = branches()
    x, one, two, _, three, last = (*model.main.inputs, *(each.outputs[0] for each in model.main.operators))
    assert crossing(model) == [
        (x,),
        (x, one),
        (x, one, two),
        (x, one, two, model.main.operators[2].outputs[0]),
        (x, two, three),
        (last, two),
    ]


def test_of_many_places_only_narrow_ones_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after QUANTIZE, whose float input is the largest tensor of many networks."""
    b = ModelBuilder()
    y = b.conv(b.input("x", (1, 8, 8, 16)), 4, kernel=1)
    y = b.reshape(b.conv(y, 16, kernel=1), (1, 1024))
    for units in (9, 8, 7, 6):
        y = b.dense(y, units)
    model = b.finish(y)
    assert [sum(each.nbytes for each in tensors) for tensors in crossing(model)] == [1024, 256, 1024, 1024, 9, 8, 7, 6]
    monkeypatch.setattr(stretch, "_MOST_CUTS", {"normal": 2})
    costs = StretchCosts(model, Options(target="cortex-m7"), lambda _: None)
    assert costs.positions == (0, 1, 7)


@pytest.mark.parametrize("name", [name for name in ALL if why_whole(ALL[name]()) is None])
def test_parts_compute_what_the_whole_does(name: str) -> None:
    model = ALL[name]()
    same_as_parts(model, range(1, len(model.main.operators)))


def test_tensors_that_a_part_only_keeps_pass_through_it() -> None:
    same_as_parts(branches(), (1, 2, 3, 4))


def same_as_parts(model: Model, positions: range | tuple[int, ...]) -> None:
    samples = seeded_inputs(model, 3, 0)
    parts = [write_model(part) for part in cut(model, positions)]
    with Interpreters(("litert",), ProcessLimits()) as interpreters:
        whole = interpreters["litert"].run(RunJob(write_model(model), samples, 0))
        assert whole.ran, whole.reason
        given: list[Sample] = samples
        for data in parts:
            run = interpreters["litert"].run(RunJob(data, given, 0))
            assert run.ran, run.reason
            given = [list(row) for row in zip(*(run.outputs[at] for at in sorted(run.outputs)), strict=True)]
    for at, column in whole.outputs.items():
        for sample, wanted in enumerate(column):
            np.testing.assert_array_equal(given[sample][at], wanted)


@pytest.mark.parametrize("name", ["streaming_model"])
def test_state_is_not_cut_off(name: str) -> None:
    with raises(UnsupportedModelError, ErrorKind.FORM, "subgraph 0, operator "):
        cut(ALL[name](), [1])
