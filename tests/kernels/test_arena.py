"""The replay of TFLM's allocator against the tail that the wheel reports."""

from __future__ import annotations

import numpy as np
import pytest

from tflite_memopt.equivalence.adapter import RunJob
from tflite_memopt.io.writer import write_model
from tflite_memopt.ir.builder import ModelBuilder
from tflite_memopt.kernels.arena import arena_use
from tflite_memopt.kernels.profiles import profile_named
from tflite_memopt.kernels.requests.model import WHEEL

pytest.importorskip("tflite_micro", reason="the wheel exists for Linux on x86-64 only")


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
