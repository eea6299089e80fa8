"""What inputs exercise, and the search for more."""

from __future__ import annotations

from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import dense_model, mobile_chain
from tflite_memopt.equivalence import drawing
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.coverage import Exercise
from tflite_memopt.equivalence.covering import few_that_cover
from tflite_memopt.equivalence.drawing import draw
from tflite_memopt.equivalence.inputs import Array, Sample
from tflite_memopt.equivalence.litert import run_litert
from tflite_memopt.equivalence.trace import Trace, computed_tensors, trace_of
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.ir.dtype import DType
from tflite_memopt.ir.model import Model


def exercise_of(model: Model, arrays: list[Array]) -> Exercise:
    """Of the first tensor, with itself as the output."""
    found = Exercise(model.main)
    found.add(Trace({0: arrays}, {0: arrays}))
    return found


def test_what_never_changed_is_named() -> None:
    model = dense_model()
    still = np.zeros((1, 16), np.int8)
    found = exercise_of(model, [still, still]).summary()
    assert (found.samples, found.distinct_outputs, found.never_changed) == (2, 1, ("x",))
    assert (found.channels, found.constant_channels) == (16, 16)
    assert not found.is_complete
    assert "16 of 16 channels always held one value; never changed: 'x'" in found.shortfall
    moved = still.copy()
    moved[0, 3] = 1
    found = exercise_of(model, [still, moved]).summary()
    assert (found.never_changed, found.constant_channels, found.distinct_outputs) == ((), 15, 2)


def test_saturation_counts_both_ends_but_not_the_rest_of_a_relu() -> None:
    model = dense_model()
    full = np.full((1, 16), 127, np.int8)
    assert exercise_of(model, [full]).summary().saturated == {"x": 1.0}
    low = np.full((1, 16), -128, np.int8)
    assert exercise_of(model, [low]).summary().saturated == {"x": 1.0}
    quantization = model.main.tensors[0].quantization
    assert quantization is not None
    quantization.zero_point[0] = -128
    assert exercise_of(model, [low]).summary().saturated == {}


def test_a_channel_wakes_once() -> None:
    model = dense_model()
    still, moved = np.zeros((1, 16), np.int8), np.zeros((1, 16), np.int8)
    moved[0, 5] = 7
    exercise = exercise_of(model, [still])
    assert exercise.woken(Trace({}, {0: [moved]})) == {(0, None), (0, 5)}
    exercise.add(Trace({}, {0: [moved]}))
    assert not exercise.woken(Trace({}, {0: [moved]}))
    moved = moved.copy()
    moved[0, 4:6] = 9
    assert exercise.woken(Trace({}, {0: [moved]})) == {(0, 4)}


def test_the_search_goes_on_while_something_sleeps_and_is_limited() -> None:
    calls: list[int] = []
    model = mobile_chain()
    data, wanted = write_model(model), computed_tensors(model.main)

    def run(samples: list[Sample]) -> Trace | None:
        calls.append(len(samples))
        return trace_of(run_litert(RunJob(data, samples, 0, wanted)).arrays, len(samples))

    drawn = draw(model, 4, 0, None, run)
    assert drawn is not None
    assert len(drawn.samples) == drawn.exercise.summary().samples >= 4
    assert calls[0] == 4
    assert len(calls) <= 5
    two = drawn.samples[:2]
    again = draw(model, 4, 0, two, run)
    assert again is not None
    assert len(again.samples) == 2


def test_few_samples_wake_all_that_any_of_those_drawn_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a large model, against what a small one keeps: every sample that wakes a channel."""
    b = ModelBuilder()
    x = b.input("x", (1, 6, 6, 2), DType.INT8)
    data = write_model(b.finish(b.conv(b.conv(x, 48, kernel=3, seed=3), 16, kernel=3, seed=9)))
    model, wanted = read_model(data), computed_tensors(read_model(data).main)
    # Biases that let next to nothing through.
    for tensor in model.main.tensors:
        if tensor.name.endswith("bias") and tensor.buffer.data is not None:
            tensor.buffer.data = (np.abs(tensor.buffer.data.view("<i4")) * -40 - 9_000).astype("<i4").view(np.uint8)
    data = write_model(model)

    def run(samples: list[Sample]) -> Trace | None:
        return trace_of(run_litert(RunJob(data, samples, 0, wanted)).arrays, len(samples))

    every = draw(model, 3, 0, None, run)
    monkeypatch.setattr(drawing, "_CHEAP", 0)
    few = draw(model, 3, 0, None, run)
    assert few is not None
    assert every is not None
    assert 3 < len(few.samples) < len(every.samples)
    one, other = few.exercise.summary(), every.exercise.summary()
    assert (one.constant_channels, one.never_changed) == (other.constant_channels, other.never_changed)
    assert one.samples == len(few.samples) == len(few.trace.outputs[0])


@given(st.lists(st.frozensets(st.integers(0, 7)), max_size=7))
def test_few_sets_cover_what_all_do(sets: list[frozenset[int]]) -> None:
    union: frozenset[int] = frozenset().union(*sets)
    chosen = few_that_cover(sets)
    assert frozenset().union(*(sets[at] for at in chosen)) == union
    assert chosen == sorted(set(chosen))
    for needless in chosen:
        assert frozenset().union(*(sets[at] for at in chosen if at != needless)) != union
    fewest = next(
        size
        for size in range(len(sets) + 1)
        if any(frozenset().union(*some) == union for some in combinations(sets, size))
    )
    largest = max(map(len, sets), default=0)
    assert len(chosen) <= fewest * (1 + log(max(1, largest)))


def test_a_run_that_fails_draws_nothing() -> None:
    assert draw(mobile_chain(), 4, 0, None, lambda _: None) is None
