"""Modules against Cortex-M in QEMU: the same outputs, head, tail and smallest arena, to the byte."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from scripts.device_lab.runs import run_external
from tests.device.runners import runner
from tests.models import ALL
from tflite_memopt.equivalence.adapter import Array, RunJob
from tflite_memopt.equivalence.inputs import seeded_inputs
from tflite_memopt.equivalence.module import ModuleRunner, module_for
from tflite_memopt.io.reader import read_model
from tflite_memopt.io.writer import write_model
from tflite_memopt.kernels.targets import profile_for

BOARDS: Mapping[str, str] = {"cortex-m3-cmsis-nn": "cortex-m3", "cortex-m7-cmsis-nn": "cortex-m7"}
CORPUS = sorted(Path(os.environ.get("TFLITE_MEMOPT_MODELS", "/nonexistent")).glob("*.tflite"))
MODELS: Mapping[str, bytes] = {name: write_model(make()) for name, make in ALL.items()} | {
    path.stem: path.read_bytes() for path in CORPUS
}
FACTS = ("head", "tail", "smallest_arena")


def other_last_bits(arrays: Mapping[str, Array], others: Mapping[str, Array]) -> bool:
    """Of floats: the C libraries of both round some functions in another way."""
    return all(
        values.dtype.kind == "f" and np.allclose(values, others[name], rtol=1e-5, atol=1e-6)
        for name, values in arrays.items()
        if not np.array_equal(values, others[name])
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("board", BOARDS)
def test_a_module_is_the_board_to_the_byte(name: str, board: str) -> None:
    module = module_for(profile_for(BOARDS[board]))
    if module is None:
        pytest.skip("the modules are not built: scripts/runners does that")
    data, command = MODELS[name], runner(board)
    samples = seeded_inputs(read_model(data), 2, 0)
    there = run_external(command, data, samples)
    here = ModuleRunner(module).run(RunJob(data, samples, 16 << 20, measure=True))
    assert here.ran == there.ran, (here.error, there.error)
    if there.ran:
        assert {fact: here.facts[fact] for fact in FACTS} == {fact: there.facts[fact] for fact in FACTS}
        assert other_last_bits(here.arrays, there.arrays)
