"""The replay of TFLM's allocator against the wheel: the tail it reports, the smallest arena it accepts."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from scripts.makers.model_builder import ModelBuilder
from tests.tflm import needs_wheel
from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import Interpreter
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.kernels.arena import arena_use
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.kernels.requests import WHEEL

pytestmark = needs_wheel


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("dense", [1, 2])
@pytest.mark.parametrize("after", range(3))
def test_parameters_are_aligned_as_the_wheel_aligns_them(before: int, dense: int, after: int) -> None:
    """SOFTMAX's parameters take 4 bytes, so their number moves those of FULLY_CONNECTED to every alignment."""
    from tflite_memopt.equivalence.tflm import run_tflm

    builder = ModelBuilder()
    tensor = builder.input("x", (1, 8))
    for _ in range(before):
        tensor = builder.softmax(tensor)
    for seed in range(dense):
        tensor = builder.dense(tensor, 8, seed=seed)
    for _ in range(after):
        tensor = builder.softmax(tensor)
    model = builder.finish(tensor)
    measured = run_tflm(RunJob(write_model(model), [[np.zeros((1, 8), np.int8)]], 100_000)).facts["tail"]
    assert arena_use(model, 0, profile_named("reference").requests, WHEEL).tail == measured


@pytest.mark.parametrize("length", range(18, 26))
def test_the_planners_tables_lie_between_aligned_ends(length: int) -> None:
    """The tail's structures end on any multiple of 8: what is left for the planner begins at the next of 16."""
    b = ModelBuilder()
    x = b.input("x", (1, 16))
    for number in range(length):
        x = b.reshape(x, (1, 4, 4) if number % 2 else (1, 16))
    data = write_model(b.finish(x))
    model = read_model(data)
    required = arena_use(model, 32, profile_named("reference").requests, WHEEL).required
    samples = seeded_inputs(model, 1, 0)
    with contextlib.closing(Interpreter("tflm")) as tflm:
        assert [tflm.run(RunJob(data, samples, size)).ran for size in (required, required - 16)] == [True, False]
