"""The predicted arena is enough for TFLM, and 16 bytes less are not, where the planner's own tables decide."""

from __future__ import annotations

import contextlib

import pytest

from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.runner import Interpreter
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.kernels.arena import arena_use
from tflite_memopt.kernels.requests.model import WHEEL
from tflite_memopt.kernels.targets import profile_for


@pytest.mark.parametrize("length", range(18, 26))
def test_the_planners_tables_lie_between_aligned_ends(length: int) -> None:
    """The tail's structures end on any multiple of 8: what is left for the planner begins at the next of 16."""
    b = ModelBuilder()
    x = b.input("x", (1, 16))
    for number in range(length):
        x = b.reshape(x, (1, 4, 4) if number % 2 else (1, 16))
    data = write_model(b.finish(x))
    model = read_model(data)
    required = arena_use(model, 32, profile_for(None, "reference").requests, WHEEL).required
    samples = seeded_inputs(model, 1, 0)
    with contextlib.closing(Interpreter("tflm")) as tflm:
        assert [tflm.run(RunJob(data, samples, size)).ran for size in (required, required - 16)] == [True, False]
